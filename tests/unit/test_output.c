#include "base/text.h"
#include "output/export.h"
#include "output/extent.h"
#include "output/names.h"
#include "output/output.h"
#include "output/table.h"
#include "profile/store.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A profile made by hand: 100 samples of an event whose period is 10, 10 of another. */
enum { MATMUL, HELPER, MUL, SYSCALL, EVIL, FUNCTIONS };

static char folder[] = "/tmp/test_output.XXXXXX";
static char source_path[64];
static const char source_text[] = "import os\n"
				  "\n"
				  "@cache\n"
				  "def matmul(a,\n"
				  "           b,\n"
				  ") -> list:\n"
				  "    '''Text\n"
				  "at the margin.\n"
				  "'''\n"
				  "\tx = a * b\n"
				  "    # comment\n"
				  "\n"
				  "    return x\n"
				  "\n"
				  "def after():\n"
				  "    pass\n";

struct made {
	struct profile *profile;
	uint32_t functions[FUNCTIONS];
	struct view *by_self, *lines;
};

static uint32_t add_function(struct profile *profile, enum frame_kind kind, const char *name,
			     const char *qualname, const char *file, uint32_t line)
{
	struct function_item item;

	memset(&item, 0, sizeof(item));
	item.function.kind = kind;
	item.function.name = intern_str(&profile->strings, name);
	item.function.qualname = intern_str(&profile->strings, qualname);
	item.function.file = intern_str(&profile->strings, file);
	item.function.line = line;
	item.vaddr = kind == FRAME_PYTHON ? 0 : 0x1000;
	return profile_add_function(profile, &item, 0);
}

static uint32_t add_frame(struct profile *profile, uint32_t function, uint32_t line, uint64_t addr)
{
	uint32_t frame = profile_add_frame(profile, ORIGIN_NATIVE, function, addr << 32 | line);

	profile_frame_item(profile, frame)->frame = (struct profile_frame){
		.function = function, .line = line, .addr = addr, .ip = addr};
	return frame;
}

static void add_samples(struct profile *profile, uint32_t stack, uint32_t event, uint64_t samples)
{
	uint32_t thread = profile_add_thread(profile, 7, 8, "py;thon");
	struct profile_cell *cell = keyed_at(&profile->cells,
					     profile_add_cell(profile, thread, stack, event));

	cell->samples += samples;
	cell->period += samples * 10;
	profile->events.items[event].samples += samples;
	profile->events.items[event].period_total += samples * 10;
}

static void add_event(struct profile *profile, const char *name, bool sampled)
{
	struct profile_event *event = vec_push(&profile->events);

	event->name = name;
	event->sampled = sampled;
	event->frequency = 999;
}

static int make(void **state)
{
	struct made *made = calloc(1, sizeof(*made));
	struct profile *p = profile_new();
	uint32_t root, line9, line10, helper, frame;

	assert_non_null(made);
	assert_non_null(p);
	made->profile = p;
	add_event(p, "dummy", false);
	add_event(p, "cycles", true);
	add_event(p, "cycles", true);
	made->functions[MATMUL] = add_function(p, FRAME_PYTHON, "matmul", "Matrix.matmul",
					       source_path, 3);
	made->functions[HELPER] = add_function(p, FRAME_PYTHON, "helper", "helper", "/b/train.py",
					       30);
	made->functions[MUL] = add_function(p, FRAME_NATIVE, "mul", "mul", "/usr/lib/libfoo.so", 0);
	made->functions[SYSCALL] = add_function(p, FRAME_KERNEL, "[kernel]", "[kernel]", "[kernel]",
						0);
	made->functions[EVIL] = add_function(p, FRAME_PYTHON, "\x1b[31m", "\x1b[31m,\"\xff;",
					     "/a/train.py", 1);

	root = add_frame(p, made->functions[EVIL], 2, 0);
	line9 = add_frame(p, made->functions[MATMUL], 9, 4);
	line10 = add_frame(p, made->functions[MATMUL], 10, 8);
	helper = add_frame(p, made->functions[HELPER], 31, 2);
	add_samples(p, stacks_add(&p->stacks, (uint32_t[]){line9, root}, 2), 1, 10);
	add_samples(p, stacks_add(&p->stacks, (uint32_t[]){line10, root}, 2), 1, 30);
	add_samples(p, stacks_add(&p->stacks, (uint32_t[]){line10, root}, 2), 2, 10);
	frame = add_frame(p, made->functions[MUL], 0, 0x1010);
	add_samples(p, stacks_add(&p->stacks, (uint32_t[]){frame, line10, root}, 3), 1, 40);
	frame = add_frame(p, made->functions[SYSCALL], 0, 0x2000);
	add_samples(p, stacks_add(&p->stacks, (uint32_t[]){frame, helper, line10, root}, 4), 1, 20);

	p->summary = (struct profile_summary){
		.samples = 110,
		.python = 110,
		.python_lines = 110,
		.first_time = 1000000000,
		.last_time = 3500000000,
		.command = "python3 \x1b[2Jtrain.py",
		.python_version = "CPython 3.12.1",
		.threads = 1,
		.dropped_native = 1,
	};
	assert_int_equal(view_functions(&made->by_self, p, NULL, VIEW_BY_SELF, 1, NULL), 0);
	assert_int_equal(view_lines(&made->lines, p, NULL, UINT32_MAX, 1, NULL), 0);
	*state = made;
	return 0;
}

static int unmake(void **state)
{
	struct made *made = *state;

	view_free(made->by_self);
	view_free(made->lines);
	profile_free(made->profile);
	free(made);
	return 0;
}

static struct report report_of(const struct made *made)
{
	return (struct report){
		.profile = made->profile,
		.view = made->by_self,
		.lines = made->lines,
		.event = 1,
		.kind = OUTPUT_ANY_KIND,
	};
}

/* What `write` prints; freed by the caller. */
static char *printed(int (*write)(FILE *out, const struct report *report, struct err *err),
		     const struct report *report)
{
	struct err err = {0};
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(write(out, report, &err), 0);
	fclose(out);
	return text;
}

static void test_report_text(void **state)
{
	struct report report = report_of(*state);
	char *text;

	report.percent_limit = 20.5;
	text = printed(output_report_text, &report);
	/* clang-format off */
	assert_string_equal(text,
"python3 \\x1b[2Jtrain.py   2.5 s   CPython 3.12.1   1 thread   Python lines on 100.0% of samples\n"
"cycles at 999 Hz: 100 samples, 0 lost\n"
"cycles#2 at 999 Hz: 10 samples, 0 lost\n"
"own code 40.0%   system libraries 40.0%   kernel 20.0%\n"
"\n"
"       cycles         cycles#2\n"
"    self   total     self   total   py nat krn   function\n"
"   40.0%  100.0%   100.0%  100.0%   50  50       Matrix.matmul    mat.py:3\n"
"   40.0%   40.0%                                 mul              libfoo.so\n"
"          100.0%           100.0%                \\x1b[31m,\"\\xff;  a/train.py:1\n"
"\n"
"2 more below 20.5% (--percent-limit 0 shows all).\n"
"20.0% in the kernel without names: its addresses were hidden (kernel.kptr_restrict), or it is another kernel's recording.\n"
"1 sample has an incomplete native stack: code without frame pointers; totals of native callers are too small.\n");
	/* clang-format on */
	free(text);
}

static void test_kinds_and_children(void **state)
{
	struct report report = report_of(*state);
	char *text;

	report.kind = FRAME_KERNEL;
	report.no_children = true;
	report.quiet = true;
	report.show_samples = true;
	text = printed(output_report_text, &report);
	assert_non_null(strstr(text, "20.0%"));
	assert_non_null(strstr(text, "   [kernel]\n"));
	assert_null(strstr(text, "total"));
	assert_null(strstr(text, "matmul"));
	free(text);
}

static void test_report_csv(void **state)
{
	struct report report = report_of(*state);
	char *text, *line;

	text = printed(output_report_csv, &report);
	line = strstr(text, "\nmul,");
	assert_non_null(line);
	line[strcspn(line + 1, "\n") + 1] = '\0';
	assert_string_equal(line + 1,
			    "mul,mul,/usr/lib/libfoo.so,,native,system,0.4,0.4,40,40,,,,0,0,0,"
			    "0,,,");
	assert_null(strchr(text, '\x1b'));
	free(text);
	text = printed(output_report_csv, &report);
	assert_non_null(strstr(text, "\\x1b[31m,\"\\x1b[31m,\"\"\\xff;\",/a/train.py,1,python,"));
	free(text);
}

static const json_t *find(const json_t *array, const char *key, const char *value)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *item = json_array_get(array, i);

		if (strcmp(json_string_value(json_object_get(item, key)), value) == 0)
			return item;
	}
	fail_msg("no %s %s", key, value);
	return NULL;
}

static double number(const json_t *row, const char *event, const char *key)
{
	const json_t *events = json_object_get(row, "events");

	return json_number_value(json_object_get(json_object_get(events, event), key));
}

static void test_json(void **state)
{
	struct made *made = *state;
	struct report report = report_of(made);
	char *text = printed(output_json, &report);
	json_t *root = json_loads(text, 0, NULL);
	const json_t *functions = json_object_get(root, "functions"), *row;

	assert_non_null(root);
	assert_int_equal(json_array_size(json_object_get(root, "events")), 2);
	row = find(json_object_get(root, "events"), "name", "cycles#2");
	assert_int_equal(json_integer_value(json_object_get(row, "samples")), 10);
	assert_int_equal(json_integer_value(json_object_get(row, "period_total")), 100);
	assert_int_equal(json_array_size(functions), 5);
	row = find(functions, "qualname", "Matrix.matmul");
	assert_string_equal(json_string_value(json_object_get(row, "file")), source_path);
	assert_int_equal(json_integer_value(json_object_get(row, "line")), 3);
	assert_true(fabs(number(row, "cycles", "self") - 0.4) < 1e-9);
	assert_true(fabs(number(row, "cycles", "total") - 1) < 1e-9);
	assert_true(fabs(number(row, "cycles", "native") - 0.5) < 1e-9);
	assert_true(fabs(number(row, "cycles", "self_samples") - 40) < 1e-9);
	/* The bad byte is replaced, the others are there. */
	find(functions, "qualname", "\x1b[31m,\"\xef\xbf\xbd;");
	assert_int_equal(json_array_size(json_object_get(root, "lines")), 4);
	json_decref(root);
	free(text);

	report.only = &made->functions[HELPER];
	report.only_count = 1;
	text = printed(output_json, &report);
	root = json_loads(text, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(root, "functions")), 1);
	row = json_array_get(json_object_get(root, "lines"), 0);
	assert_int_equal(json_integer_value(json_object_get(row, "line")), 31);
	assert_true(fabs(number(row, "cycles", "kernel") - 1) < 1e-9);
	json_decref(root);
	free(text);
}

static void test_groups(void **state)
{
	static const enum view_key keys[] = {VIEW_COMM, VIEW_DSO};
	struct made *made = *state;
	struct report report = report_of(made);
	struct view_groups *groups;
	char *text;

	assert_int_equal(view_groups(&groups, made->profile, NULL, keys, 2, VIEW_BY_SELF, 1, NULL),
			 0);
	report.groups = groups;
	report.view = &groups->view;
	report.quiet = true;
	text = printed(output_report_text, &report);
	/* clang-format off */
	assert_string_equal(text,
"       cycles         cycles#2\n"
"    self   total     self   total   comm      dso\n"
"   40.0%  100.0%   100.0%  100.0%   py;thon   [python]\n"
"   40.0%   40.0%                    py;thon   libfoo.so\n"
"   20.0%   20.0%                    py;thon   [kernel]\n");
	/* clang-format on */
	free(text);
	view_groups_free(groups);
}

static void test_annotate(void **state)
{
	struct made *made = *state;
	struct annotate annotate = {
		.profile = made->profile,
		.functions = made->by_self,
		.function = made->functions[MATMUL],
		.event = 1,
		.quiet = true,
	};
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(output_annotate_python(out, &annotate, NULL), 0);
	fclose(out);
	/* clang-format off */
	assert_string_equal(text,
"           cycles                  cycles#2\n"
"    self  total  samples     self   total  samples    py nat krn   line\n"
"                                                                      3  @cache\n"
"                                                                      4  def matmul(a,\n"
"                                                                      5             b,\n"
"                                                                      6  ) -> list:\n"
"                                                                      7      '''Text\n"
"                                                                      8  at the margin.\n"
"   10.0%  10.0%       10                             100              9  '''\n"
"   70.0%  90.0%       70   100.0%  100.0%       10    43  57         10          x = a * b\n"
"                                                                         called on 10: mul 40.0%  helper 20.0%\n"
"                                                                     11      # comment\n"
"                                                                     12\n"
"                                                                     13      return x\n");
	/* clang-format on */
	free(text);
}

static void test_folded(void **state)
{
	struct made *made = *state;
	struct export_options options = {.profile = made->profile, .event = 1};
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(export_folded(out, &options, NULL), 0);
	fclose(out);
	/* Lines of one function are one frame; separators inside names are gone. */
	assert_string_equal(text, "py:thon;\\x1b[31m,\"\\xff:;Matrix.matmul 40\n"
				  "py:thon;\\x1b[31m,\"\\xff:;Matrix.matmul;mul 40\n"
				  "py:thon;\\x1b[31m,\"\\xff:;Matrix.matmul;helper;[kernel] 20\n");
	free(text);
	out = open_memstream(&text, &len);
	options.event = 2;
	options.by_period = true;
	assert_int_equal(export_folded(out, &options, NULL), 0);
	fclose(out);
	assert_non_null(strstr(text, "Matrix.matmul 100\n"));
	free(text);
}

static void test_script(void **state)
{
	struct made *made = *state;
	struct samples *samples = samples_new();
	struct profile_sample sample = {.event = 1, .cpu = 1, .time = 2500001000, .period = 10};
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	sample.stack = profile_cell(made->profile, 3)->stack; /* mul */
	assert_int_equal(samples_keep(&sample, samples, NULL), 0);
	sample.event = 0; /* not sampled: left out */
	assert_int_equal(samples_keep(&sample, samples, NULL), 0);
	assert_int_equal(output_script(out, made->profile, samples, NULL, UINT32_MAX, NULL), 0);
	fclose(out);
	assert_memory_equal(text,
			    "py;thon     7/8     [001]     2.500001:         10 cycles: \n"
			    "\t            1010 mul+0x10 (/usr/lib/libfoo.so)\n"
			    "\t               8 Matrix.matmul (/tmp/test_output.",
			    150);
	assert_non_null(strstr(text, ":10)\n"));
	assert_non_null(strstr(text, " \\x1b[31m,\"\\xff; (/a/train.py:2)\n\n"));
	free(text);
	samples_free(samples);
}

static void test_table_width(void **state)
{
	static const struct table_column columns[] = {
		{.heading = "n", .gap = 1},
		{.heading = "name", .left = true, .cut = TABLE_CUT_MIDDLE, .gap = 1},
		{.heading = "", .left = true, .cut = TABLE_CUT_FRONT, .gap = 1},
	};
	struct table table;
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	table_init(&table, columns, 3);
	strbuf_str(table_cell(&table), "1");
	strbuf_str(table_cell(&table), "abcdefghijklmnopqrstuvwxyz");
	strbuf_str(table_cell(&table), "/usr/lib/python3/json/decoder.py:343");
	assert_int_equal(table_print(out, &table, 35, NULL), 0);
	fclose(out);
	assert_string_equal(text, " n name\n"
				  " 1 abcdef..tuvwxyz ..decoder.py:343\n");
	free(text);
	table_fini(&table);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static uint32_t end_of(const char *text, uint32_t first)
{
	struct sources *sources = sources_new();
	char path[64];
	uint32_t end;

	snprintf(path, sizeof(path), "%s/case.py", folder);
	write_text(path, text);
	assert_int_equal(sources_read(sources, path, "", "", NULL), 1);
	end = extent_end(sources_find(sources, path), first);
	sources_free(sources);
	unlink(path);
	return end;
}

static void test_extent(void **state)
{
	static const struct {
		const char *text;
		uint32_t first, end;
	} cases[] = {
		{source_text, 3, 13},
		{source_text, 15, 16},
		{"def f(): return 1\nx = 2\n", 1, 1},
		{"f = lambda: (\n 1,\n)\nx\n", 1, 3},
		{"class A:\n    def f(self):\n        pass\n\n    def g(self):\n        pass\n", 2,
		 3},
		{"def f():\n    s = \"\\\"'''\"\n    return s\ny = 1\n", 1, 3},
		{"def f():\n    x = '''\nopen", 1, 3},
		{"def f(\n", 1, 1},
		{"", 1, 1},
		{"x\n", 9, 9},
		{"async def f():  # note:\n    await g(a[\n1])\nz\n", 1, 3},
		{"def f():\n    if x: \\\n y\n    z\n", 1, 4},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (end_of(cases[i].text, cases[i].first) != cases[i].end)
			fail_msg("case %zu: line %u, not %u", i,
				 end_of(cases[i].text, cases[i].first), cases[i].end);
}

static void test_names(void **state)
{
	struct made *made = *state;
	struct strbuf text = {0};
	struct names *names;

	add_function(made->profile, FRAME_PYTHON, "x", "x", "/c/pkg/__init__.py", 1);
	assert_int_equal(names_new(&names, made->profile, NULL), 0);
	names_add_place(names, made->functions[EVIL], &text);
	assert_string_equal(strbuf_text(&text), "a/train.py:1");
	strbuf_reset(&text);
	names_add_place(names, made->functions[HELPER], &text);
	assert_string_equal(strbuf_text(&text), "b/train.py:30");
	strbuf_reset(&text);
	names_add_place(names, FUNCTIONS, &text);
	assert_string_equal(strbuf_text(&text), "pkg/__init__.py:1");
	names_free(names);
	strbuf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_report_text, make, unmake),
		cmocka_unit_test_setup_teardown(test_kinds_and_children, make, unmake),
		cmocka_unit_test_setup_teardown(test_report_csv, make, unmake),
		cmocka_unit_test_setup_teardown(test_json, make, unmake),
		cmocka_unit_test_setup_teardown(test_groups, make, unmake),
		cmocka_unit_test_setup_teardown(test_annotate, make, unmake),
		cmocka_unit_test_setup_teardown(test_folded, make, unmake),
		cmocka_unit_test_setup_teardown(test_script, make, unmake),
		cmocka_unit_test_setup_teardown(test_names, make, unmake),
		cmocka_unit_test(test_table_width),
		cmocka_unit_test(test_extent),
	};
	int rc;

	if (!mkdtemp(folder))
		return 1;
	snprintf(source_path, sizeof(source_path), "%s/mat.py", folder);
	write_text(source_path, source_text);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(source_path);
	rmdir(folder);
	return rc;
}
