#include "perfmap/perfmap.h"
#include "profile/bytecode.h"
#include "profile/calls.h"
#include "profile/view.h"
#include "tests/unit/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * One recording, made once. Functions a, b and c have line tables of 8 lines from 10, 20 and 30 on;
 * "lib" is native, "krn" a kernel address. Stacks root first, with their cycles:
 *
 *   a:11 b:22 c:33                 5 samples of period 10
 *   a:11 b:22 c:33 lib             3 of 10
 *   a:11 a:12 a:11 lib krn         2 of 100     recursion
 *   a:11 b:22 a:11 b:22 lib        1 of 7       recursion through another
 *   b:21                           4 of 1, by thread 101 of process 101, "other"
 *   a:11                           6 cache misses of 1000
 */
#define LIBRARY 0x7f1000000000u
#define KERNEL 0xffffffff81000000u

static struct profile *profile;

static struct py_raw_frame python(char function, uint32_t line)
{
	uint32_t number = (uint32_t)(function - 'a');

	return (struct py_raw_frame){
		.code = 0x1000 + number * 0x1000,
		.fingerprint = number,
		.instr = (line - 10 * (number + 1)) * 4,
	};
}

/* `path` is leaf first: "c33 b22 a11". */
static void write_samples(struct recording *r, const char *path, bool native, bool kernel,
			  int event, int samples, uint64_t period)
{
	static const uint64_t chain[] = {LIBRARY + 0x10};
	struct py_raw_frame frames[8];
	size_t count = 0;

	for (const char *at = path; *at; at += at[3] ? 4 : 3)
		frames[count++] = python(at[0], (uint32_t)atoi(at + 1));
	frames[count - 1].instr |= PY_FRAME_ENTRY;
	for (int i = 0; i < samples; i++) {
		r->time += 1000;
		recording_frames(r, 1, PY_WALK_OK, frames, count);
		if (kernel)
			recording_kernel_sample(r, event, period, KERNEL, chain, 1);
		else if (native)
			recording_sample(r, event, period, chain, 1);
		else /* in the eval loop */
			recording_sample(r, event, period, (uint64_t[]){0x7f2000000000}, 1);
	}
}

static int make_profile(void **state)
{
	/* A trampoline's address stands for the eval loop: it never shows. */
	static const char map[] = "7f2000000000 40 py::x:y\n";
	char path[] = "/tmp/pyperf-test-XXXXXX";
	struct strbuf section = {0};
	struct data_file *file;
	struct recording r;
	struct err err = {0};
	int fd = mkstemp(path);

	if (fd < 0)
		return -1;
	close(fd);
	recording_open(&r, path, 3);
	perfmap_section_add(&section, 100, map, strlen(map));
	perfmap_section_add(&section, 101, map, strlen(map));
	data_writer_section(r.writer, DATA_SECTION_PERFMAP, section.buf, section.len, NULL);
	strbuf_fini(&section);
	for (r.pid = r.tid = 100; r.pid <= 101; r.pid = ++r.tid) {
		recording_comm(&r, r.pid == 100 ? "python3" : "other", true);
		recording_mmap(&r, LIBRARY, 0x1000, 0, "/nowhere/lib.so");
		recording_mmap(&r, 0x7f2000000000, 0x1000, 0, "//anon");
	}
	r.pid = r.tid = 100;
	recording_code(&r, 1, 0x1000, 0, "a", "/app/a.py", 10, 8);
	recording_code(&r, 1, 0x2000, 1, "b", "/app/b.py", 20, 8);
	recording_code(&r, 1, 0x3000, 2, "c", "/app/c.py", 30, 8);
	write_samples(&r, "c33 b22 a11", false, false, EVENT_CYCLES, 5, 10);
	write_samples(&r, "c33 b22 a11", true, false, EVENT_CYCLES, 3, 10);
	write_samples(&r, "a11 a12 a11", true, true, EVENT_CYCLES, 2, 100);
	write_samples(&r, "b22 a11 b22 a11", true, false, EVENT_CYCLES, 1, 7);
	write_samples(&r, "a11", false, false, EVENT_MISSES, 6, 1000);
	r.pid = r.tid = 101;
	write_samples(&r, "b21", false, false, EVENT_CYCLES, 4, 1);
	if (recording_close(&r, NULL) < 0 || data_open(&file, path, &err) < 0 ||
	    profile_load(&profile, file, NULL, &err) < 0) {
		print_error("%s\n", err.text);
		return -1;
	}
	data_close(file);
	unlink(path);
	return 0;
}

static int free_profile(void **state)
{
	profile_free(profile);
	return 0;
}

static const char *name_of(uint32_t function)
{
	return profile_text(profile, profile_function(profile, function)->qualname);
}

static uint32_t function_named(const char *name)
{
	for (uint32_t i = 0; i < profile_function_count(profile); i++)
		if (!strcmp(name_of(i), name))
			return i;
	fail_msg("no function %s", name);
	return 0;
}

static struct view *functions(const struct view_filter *filter, enum view_sort sort)
{
	struct view *view;

	assert_int_equal(view_functions(&view, profile, filter, sort, EVENT_CYCLES, NULL), 0);
	return view;
}

static const struct view_count *row(const struct view *view, const char *name, uint32_t line)
{
	for (size_t i = 0; i < view->count; i++)
		if (!strcmp(name_of(view->rows[i].function), name) && view->rows[i].line == line)
			return &view->rows[i].counts[EVENT_CYCLES];
	fail_msg("no row %s:%u", name, line);
	return NULL;
}

static void check(const struct view_count *count, uint64_t self, uint64_t self_samples,
		  uint64_t total, uint64_t total_samples)
{
	assert_int_equal(count->self, self);
	assert_int_equal(count->self_samples, self_samples);
	assert_int_equal(count->total, total);
	assert_int_equal(count->total_samples, total_samples);
}

static void check_split(const struct view_count *count, uint64_t py, uint64_t native,
			uint64_t kernel)
{
	assert_int_equal(count->split[FRAME_PYTHON], py);
	assert_int_equal(count->split[FRAME_NATIVE], native);
	assert_int_equal(count->split[FRAME_KERNEL], kernel);
}

static void functions_self_and_total(void **state)
{
	struct view *view = functions(NULL, VIEW_BY_SELF);
	uint64_t self[2] = {0};

	check(row(view, "a", 0), 0, 0, 287, 11);
	check(row(view, "b", 0), 4, 4, 91, 13);
	check(row(view, "c", 0), 50, 5, 80, 8);
	check(row(view, "[lib.so]", 0), 37, 4, 237, 6);
	check(row(view, "[kernel]", 0), 200, 2, 200, 2);
	check_split(row(view, "a", 0), 0, 0, 200);
	check_split(row(view, "b", 0), 4, 7, 0);
	check_split(row(view, "c", 0), 50, 30, 0);
	check_split(row(view, "[lib.so]", 0), 0, 0, 0);
	/* Self adds up to everything. */
	assert_int_equal(view->count, 5);
	assert_int_equal(view->period_total[EVENT_CYCLES], 291);
	assert_int_equal(view->samples[EVENT_CYCLES], 15);
	assert_int_equal(view->period_total[EVENT_MISSES], 6000);
	for (size_t i = 0; i < view->count; i++) {
		self[0] += view->rows[i].counts[EVENT_CYCLES].self;
		self[1] += view->rows[i].counts[EVENT_MISSES].self;
	}
	assert_int_equal(self[0], 291);
	assert_int_equal(self[1], 6000);
	view_free(view);
}

static void functions_in_order(void **state)
{
	static const char *const by_self[] = {"[kernel]", "c", "[lib.so]", "b", "a"};
	static const char *const by_total[] = {"a", "[lib.so]", "[kernel]", "b", "c"};
	struct view *self = functions(NULL, VIEW_BY_SELF), *total = functions(NULL, VIEW_BY_TOTAL);

	for (size_t i = 0; i < 5; i++) {
		assert_string_equal(name_of(self->rows[i].function), by_self[i]);
		assert_string_equal(name_of(total->rows[i].function), by_total[i]);
	}
	view_free(self);
	view_free(total);
}

static void lines_hold_what_they_call(void **state)
{
	struct view *view;

	assert_int_equal(view_lines(&view, profile, NULL, UINT32_MAX, EVENT_CYCLES, NULL), 0);
	assert_int_equal(view->count, 5);
	assert_int_equal(view->rows[0].line, 11);
	check(row(view, "a", 11), 200, 2, 287, 11);
	check(row(view, "a", 12), 0, 0, 200, 2);
	check(row(view, "b", 22), 7, 1, 87, 9);
	check(row(view, "b", 21), 4, 4, 4, 4);
	check(row(view, "c", 33), 80, 8, 80, 8);
	check_split(row(view, "c", 33), 50, 30, 0);
	check_split(row(view, "a", 11), 0, 0, 200);
	view_free(view);

	/* Of one function, by line. */
	assert_int_equal(view_lines(&view, profile, NULL, function_named("b"), EVENT_CYCLES, NULL),
			 0);
	assert_int_equal(view->count, 2);
	assert_int_equal(view->rows[0].line, 21);
	assert_int_equal(view->rows[1].line, 22);
	check(&view->rows[1].counts[EVENT_CYCLES], 7, 1, 87, 9);
	assert_int_equal(view->period_total[EVENT_CYCLES], 291);
	view_free(view);
}

static void filters(void **state)
{
	static const struct {
		struct view_filter filter;
		uint64_t samples;
	} cases[] = {
		{{.comm = "python3"}, 11},
		{{.comm = "other"}, 4},
		{{.comm = "x,other,y"}, 4},
		{{.comm = "othe"}, 0},
		{{.pids = "101"}, 4},
		{{.pids = "100,101"}, 15},
		{{.pids = "10"}, 0},
		{{.tids = "100"}, 11},
		{{.dso = "lib.so"}, 4},
		{{.dso = "[kernel]"}, 2},
		{{.dso = "c.py"}, 5},
		{{.tids = "100", .pids = "101"}, 0},
		{{.python_file = "/app/b.py"}, 5},
		{{.python_file = "/app/c.py"}, 8},
		{{.python_file = "b.py"}, 0},
		{{.python_file = "/app/a.py", .dso = "[kernel]"}, 2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct view *view = functions(&cases[i].filter, VIEW_BY_SELF);
		uint64_t samples = 0;

		for (size_t j = 0; j < view->count; j++)
			samples += view->rows[j].counts[EVENT_CYCLES].self_samples;
		assert_int_equal(samples, cases[i].samples);
		assert_int_equal(view->samples[EVENT_CYCLES], cases[i].samples);
		view_free(view);
	}
}

static void addresses_of_a_native_function(void **state)
{
	struct view_address *rows;
	size_t count;

	assert_int_equal(
		view_addresses(&rows, &count, profile, NULL, function_named("[lib.so]"), NULL), 0);
	assert_int_equal(count, 1);
	assert_int_equal(rows[0].addr, 0x10);
	assert_int_equal(rows[0].counts[EVENT_CYCLES].self, 37);
	assert_int_equal(rows[0].counts[EVENT_CYCLES].self_samples, 4);
	view_addresses_free(rows, count);
}

static void callees_of_lines(void **state)
{
	static const struct {
		uint32_t line;
		const char *name;
		uint64_t total, samples;
	} wanted[] = {
		{11, "[lib.so]", 200, 2},
		{11, "a", 200, 2},
		{11, "b", 87, 9}, /* once per sample, although it is called twice */
		{12, "a", 200, 2},
	};
	struct view_call *rows;
	size_t count;

	assert_int_equal(
		view_callees(&rows, &count, profile, NULL, function_named("a"), EVENT_CYCLES, NULL),
		0);
	assert_int_equal(count, 4);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(rows[i].line, wanted[i].line);
		assert_string_equal(name_of(rows[i].function), wanted[i].name);
		assert_int_equal(rows[i].counts[EVENT_CYCLES].total, wanted[i].total);
		assert_int_equal(rows[i].counts[EVENT_CYCLES].total_samples, wanted[i].samples);
	}
	view_calls_free(rows);
}

static void callers_of_lines(void **state)
{
	static const struct {
		uint32_t line, from;
		const char *name;
		uint64_t total, samples;
	} wanted[] = {
		{21, 0, NULL, 4, 4},
		{22, 11, "a", 87, 9}, /* once per sample, although it is reached twice */
	};
	struct view_call *rows;
	size_t count;

	assert_int_equal(
		view_callers(&rows, &count, profile, NULL, function_named("b"), EVENT_CYCLES, NULL),
		0);
	assert_int_equal(count, 2);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(rows[i].line, wanted[i].line);
		assert_int_equal(rows[i].other_line, wanted[i].from);
		if (wanted[i].name)
			assert_string_equal(name_of(rows[i].function), wanted[i].name);
		else
			assert_int_equal(rows[i].function, UINT32_MAX);
		assert_int_equal(rows[i].counts[EVENT_CYCLES].total, wanted[i].total);
		assert_int_equal(rows[i].counts[EVENT_CYCLES].total_samples, wanted[i].samples);
	}
	view_calls_free(rows);
}

/* No code object here has any: that is told, and nothing is shown. */
static void no_bytecode(void **state)
{
	struct view_bytecode *bytecode;
	size_t count;

	assert_int_equal(view_bytecode(&bytecode, profile, NULL, function_named("a"), NULL), 0);
	assert_true(bytecode->partial);
	assert_int_equal(bytecode->count, 0);
	view_bytecode_line(bytecode, 11, &count);
	assert_int_equal(count, 0);
	view_bytecode_free(bytecode);
}

/* Totals against the plain definition: walk every cell's stack and count each function once. */
static void totals_match_the_definition(void **state)
{
	struct view *view = functions(NULL, VIEW_BY_TOTAL);

	for (size_t i = 0; i < view->count; i++) {
		uint64_t total[2] = {0};

		for (size_t j = 0; j < profile_cell_count(profile); j++) {
			const struct profile_cell *cell = profile_cell(profile, j);
			bool on_stack = false;

			for (uint32_t s = cell->stack; s; s = profile_stack(profile, s)->parent)
				on_stack |= profile_frame(profile, profile_stack(profile, s)->frame)
						    ->function == view->rows[i].function;
			total[cell->event] += on_stack ? cell->period : 0;
		}
		assert_int_equal(view->rows[i].counts[EVENT_CYCLES].total, total[EVENT_CYCLES]);
		assert_int_equal(view->rows[i].counts[EVENT_MISSES].total, total[EVENT_MISSES]);
	}
	view_free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_self_and_total),
		cmocka_unit_test(functions_in_order),
		cmocka_unit_test(lines_hold_what_they_call),
		cmocka_unit_test(filters),
		cmocka_unit_test(addresses_of_a_native_function),
		cmocka_unit_test(callees_of_lines),
		cmocka_unit_test(callers_of_lines),
		cmocka_unit_test(no_bytecode),
		cmocka_unit_test(totals_match_the_definition),
	};

	return cmocka_run_group_tests(tests, make_profile, free_profile);
}
