#include "perfmap/perfmap.h"
#include "profile/profile.h"
#include "profile/view.h"
#include "tests/unit/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

/* Recordings made record by record, whose stacks and counts are known. */

#define LIBRARY 0x7f1000000000u
#define ROOT_CODE 0x1000u
#define LEAF_CODE 0x2000u

static char path[64];

static void start(struct recording *r)
{
	int fd;

	strcpy(path, "/tmp/pyperf-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	recording_open(r, path, 0);
	assert_int_equal(r->rc, 0);
}

/* Ends the recording and loads it; the file is gone afterwards. */
static struct profile *finish_with(struct recording *r, const struct data_info *info,
				   const struct profile_options *options)
{
	struct data_file *file;
	struct profile *profile;
	struct err err = {0};

	assert_int_equal(recording_close(r, info), 0);
	assert_int_equal(data_open(&file, path, &err), 0);
	if (profile_load(&profile, file, options, &err) < 0)
		fail_msg("%s", err.text);
	data_close(file);
	unlink(path);
	return profile;
}

static struct profile *finish(struct recording *r, const struct profile_options *options)
{
	return finish_with(r, NULL, options);
}

static void write_codes(struct recording *r)
{
	recording_code(r, 1, ROOT_CODE, 5, "main", "/app/main.py", 10, 8);
	recording_code(r, 1, LEAF_CODE, 6, "Work.run", "/app/work.py", 100, 8);
}

/* main, at its line 12, calls Work.run, at line 100 + `line`. */
static void write_frames(struct recording *r, uint32_t line)
{
	struct py_raw_frame frames[] = {
		{.code = LEAF_CODE, .fingerprint = 6, .instr = line * 4},
		{.code = ROOT_CODE, .fingerprint = 5, .instr = 2 * 4 | PY_FRAME_ENTRY},
	};

	recording_frames(r, 1, PY_WALK_OK, frames, 2);
}

/* "leaf;caller;root" of a stack, lines behind the names of Python frames. */
static const char *stack_text(const struct profile *profile, uint32_t stack)
{
	static char text[1024];
	size_t len = 0;

	text[0] = '\0';
	for (; stack; stack = profile_stack(profile, stack)->parent) {
		const struct profile_frame *frame = profile_frame(
			profile, profile_stack(profile, stack)->frame);
		const struct profile_function *function = profile_function(profile,
									   frame->function);

		assert_true(profile_stack(profile, stack)->parent < stack);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? ";" : "",
					profile_text(profile, function->qualname));
		if (function->kind == FRAME_PYTHON)
			len += (size_t)snprintf(text + len, sizeof(text) - len, ":%u", frame->line);
	}
	return text;
}

/* The samples of all cells with this stack; checks that they are one cell per thread and event. */
static uint64_t samples_of(const struct profile *profile, const char *stack)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < profile_cell_count(profile); i++)
		if (!strcmp(stack_text(profile, profile_cell(profile, i)->stack), stack))
			samples += profile_cell(profile, i)->samples;
	return samples;
}

static void pairs_and_names(void **state)
{
	static const uint64_t chain[] = {LIBRARY + 0x40};
	const struct profile_summary *summary;
	const struct profile_cell *cell;
	struct profile *profile;
	struct recording r;

	start(&r);
	recording_comm(&r, "python3", true);
	recording_mmap(&r, LIBRARY, 0x1000, 0x2000, "/nowhere/libwork.so");
	write_codes(&r);
	for (int i = 0; i < 5; i++) {
		r.time += 1000;
		write_frames(&r, 3);
		r.time += 1;
		recording_sample(&r, EVENT_CYCLES, 7, chain, 1);
	}
	recording_round(&r);
	profile = finish(&r, NULL);
	summary = profile_summary(profile);
	assert_int_equal(profile_cell_count(profile), 1);
	cell = profile_cell(profile, 0);
	assert_string_equal(stack_text(profile, cell->stack), "[libwork.so];Work.run:103;main:12");
	assert_int_equal(cell->samples, 5);
	assert_int_equal(cell->period, 35);
	assert_int_equal(cell->event, EVENT_CYCLES);
	assert_string_equal(profile_text(profile, profile_thread(profile, cell->thread)->comm),
			    "python3");
	assert_int_equal(summary->samples, 5);
	assert_int_equal(summary->user_python_lines, 5);
	assert_int_equal(summary->unpaired, 0);
	assert_int_equal(summary->threads, 1);
	assert_int_equal(summary->last_time - summary->first_time, 4 * 1001);
	assert_true(profile_event(profile, EVENT_CYCLES)->sampled);
	assert_false(profile_event(profile, EVENT_FRAMES)->sampled);
	profile_free(profile);
}

/* All addresses of a function without a symbol are one, and say where it starts and ends. */
static void functions_without_symbols(void **state)
{
	/* What readelf --debug-dump=frames says of the file: one function, 0x4003d0..0x400410. */
	static const uint64_t first[] = {LIBRARY + 0x3d0}, last[] = {LIBRARY + 0x40f},
			      jump[] = {LIBRARY + 0x3bc}, behind[] = {LIBRARY + 0x412};
	const struct profile_function *function;
	struct profile *profile;
	struct recording r;
	struct utsname host;
	struct data_info info = {.hostname = host.nodename};
	char *object = realpath("tests/fuzz/corpus/fuzz_elf/plt-aarch64-bti", NULL);
	uint64_t vaddr;
	uint8_t *bytes;
	uint16_t machine;
	uint32_t id;
	size_t len;

	start(&r);
	recording_mmap(&r, LIBRARY, 0x1000, 0, object);
	recording_sample(&r, EVENT_CYCLES, 1, first, 1);
	recording_sample(&r, EVENT_CYCLES, 1, last, 1);
	recording_sample(&r, EVENT_CYCLES, 1, jump, 1);
	recording_sample(&r, EVENT_CYCLES, 1, behind, 1);
	assert_int_equal(uname(&host), 0);
	profile = finish_with(&r, &info, NULL);
	free(object);
	assert_int_equal(profile_cell_count(profile), 4);
	assert_int_equal(samples_of(profile, "0x4003d0 [plt-aarch64-bti]"), 2);
	assert_int_equal(samples_of(profile, "puts@plt"), 1);
	assert_int_equal(samples_of(profile, "[plt-aarch64-bti]"), 1);
	id = profile_frame(profile, profile_stack(profile, profile_cell(profile, 0)->stack)->frame)
		     ->function;
	function = profile_function(profile, id);
	assert_string_equal(profile_text(profile, function->name), "0x4003d0");
	assert_int_equal(profile_native_code(profile, id, &vaddr, &bytes, &len, &machine, NULL), 0);
	assert_int_equal(vaddr, 0x4003d0);
	assert_int_equal(len, 0x40);
	assert_memory_equal(bytes, "\x3f\x23\x03\xd5", 4); /* paciasp */
	free(bytes);
	profile_free(profile);
}

/* The second sample was lost after its frames were written: the third must not get them. */
static void lost_sample(void **state)
{
	static const uint64_t chain[] = {LIBRARY + 0x40};
	struct profile *profile;
	struct recording r;

	start(&r);
	recording_mmap(&r, LIBRARY, 0x1000, 0x2000, "/nowhere/libwork.so");
	write_codes(&r);
	write_frames(&r, 1);
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	write_frames(&r, 2);
	recording_lost(&r, 41);
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	write_frames(&r, 3);
	r.tid = 101; /* another thread's sample, then the right one: too late */
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	r.tid = 100;
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	write_frames(&r, 4); /* and no sample at all */
	profile = finish(&r, NULL);
	assert_int_equal(samples_of(profile, "[libwork.so];Work.run:101;main:12"), 1);
	assert_int_equal(samples_of(profile, "[libwork.so]"), 3);
	assert_int_equal(profile_summary(profile)->lost, 41);
	assert_int_equal(profile_summary(profile)->unpaired, 3);
	assert_int_equal(profile_summary(profile)->python, 1);
	assert_int_equal(profile_event(profile, EVENT_CYCLES)->lost, 41);
	profile_free(profile);
}

/* Two CPUs whose rings are read one after the other, so that the file is not in order of time. */
static void two_cpus(void **state)
{
	static const uint64_t chain[] = {LIBRARY + 0x40};
	struct profile *profile;
	struct recording r;

	start(&r);
	recording_mmap(&r, LIBRARY, 0x1000, 0x2000, "/nowhere/libwork.so");
	write_codes(&r);
	for (uint32_t round = 0; round < 10; round++) {
		for (r.cpu = 0; r.cpu < 2; r.cpu++) {
			r.tid = 100 + r.cpu;
			r.time = 1000000 + round * 100000 + r.cpu * 50;
			for (int i = 0; i < 3; i++) {
				r.time += 100;
				write_frames(&r, r.cpu);
				recording_sample(&r, (int)r.cpu, 10, chain, 1);
			}
		}
		recording_round(&r);
	}
	profile = finish(&r, NULL);
	assert_int_equal(profile_summary(profile)->unpaired, 0);
	assert_int_equal(profile_summary(profile)->late, 0);
	assert_int_equal(profile_summary(profile)->threads, 2);
	assert_int_equal(profile_cell_count(profile), 2);
	assert_int_equal(samples_of(profile, "[libwork.so];Work.run:100;main:12"), 30);
	assert_int_equal(samples_of(profile, "[libwork.so];Work.run:101;main:12"), 30);
	assert_int_equal(profile_event(profile, 0)->period_total, 300);
	assert_int_equal(profile_event(profile, 1)->period_total, 300);
	profile_free(profile);
}

/* A child has its parent's maps until it execs, and its own code object at the same address. */
static void fork_and_exec(void **state)
{
	static const uint64_t chain[] = {LIBRARY + 0x40};
	struct profile *profile;
	struct recording r;

	start(&r);
	recording_comm(&r, "parent", true);
	recording_mmap(&r, LIBRARY, 0x1000, 0x2000, "/nowhere/libwork.so");
	recording_fork(&r, 200, 200);
	r.pid = r.tid = 200;
	r.time += 100;
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	r.time += 100;
	recording_comm(&r, "child", true);
	r.time += 100;
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	recording_mmap(&r, LIBRARY, 0x1000, 0, "/nowhere/libother.so");
	r.time += 100;
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	profile = finish(&r, NULL);
	assert_int_equal(samples_of(profile, "[libwork.so]"), 1);
	assert_int_equal(samples_of(profile, "[unknown]"), 1);
	assert_int_equal(samples_of(profile, "[libother.so]"), 1);
	/* One thread under two names. */
	assert_int_equal(profile_thread_count(profile), 2);
	assert_int_equal(profile_summary(profile)->threads, 1);
	profile_free(profile);
}

static void code_arrives_late_or_never(void **state)
{
	static const struct py_raw_frame unknown[] = {
		{.code = 0x9000, .fingerprint = 1, .instr = 4 | PY_FRAME_ENTRY},
	};
	static const struct py_raw_frame no_instr[] = {
		{.code = LEAF_CODE, .fingerprint = 6, .instr = PY_FRAME_NO_INSTR | PY_FRAME_ENTRY},
	};
	static const uint64_t chain[] = {LIBRARY + 0x40};
	const struct profile_summary *summary;
	struct py_raw_frame wrong = {.code = LEAF_CODE, .fingerprint = 7, .instr = PY_FRAME_ENTRY};
	struct profile *profile;
	struct recording r;

	start(&r);
	recording_mmap(&r, LIBRARY, 0x1000, 0x2000, "/nowhere/libwork.so");
	write_frames(&r, 5);
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	recording_frames(&r, 1, PY_WALK_TRUNCATED, unknown, 1);
	/* A code record between frames and sample changes nothing. */
	write_codes(&r);
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	recording_frames(&r, 1, PY_WALK_FAULT, no_instr, 1);
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	recording_frames(&r, 1, PY_WALK_OK, &wrong, 1); /* the address was used again */
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	wrong.fingerprint = 6;
	recording_frames(&r, 2, PY_WALK_BAD, &wrong, 1); /* another process's address */
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	profile = finish(&r, NULL);
	summary = profile_summary(profile);
	assert_int_equal(samples_of(profile, "[libwork.so];Work.run:105;main:12"), 1);
	assert_int_equal(samples_of(profile, "[libwork.so];Work.run:0"), 1);
	assert_int_equal(samples_of(profile, "[libwork.so];[unreadable Python function]:0"), 2);
	assert_int_equal(samples_of(profile, "[libwork.so];[unreadable Python function]:0;"
					     "[deeper Python callers]:0"),
			 1);
	assert_int_equal(summary->python, 5);
	assert_int_equal(summary->python_lines, 1);
	assert_int_equal(summary->unresolved_code, 3);
	assert_int_equal(summary->truncated, 1);
	assert_int_equal(summary->faulted, 1);
	assert_int_equal(summary->torn, 1);
	profile_free(profile);
}

static void kernel_and_garbage(void **state)
{
	/* The caller's address is looked up at the call; the last word is no return address. */
	static const uint64_t chain[] = {LIBRARY + 0x40, LIBRARY + 0x81, 0x1234};
	struct profile *profile;
	struct recording r;

	start(&r);
	recording_mmap(&r, LIBRARY, 0x1000, 0x2000, "/nowhere/libwork.so");
	recording_kernel_sample(&r, EVENT_MISSES, 3, 0xffffffff81000123u, chain, 3);
	profile = finish(&r, NULL);
	assert_int_equal(samples_of(profile, "[kernel];[libwork.so];"
					     "[libwork.so]"),
			 1);
	assert_int_equal(profile_summary(profile)->dropped_native, 1);
	assert_int_equal(profile_summary(profile)->user_samples, 0);
	profile_free(profile);
}

static void broken_payloads(void **state)
{
	static const uint64_t chain[] = {LIBRARY + 0x40};
	struct py_raw_frames head = {.magic = PY_RAW_FRAMES, .count = 500, .lineage = 1};
	struct profile *profile;
	struct recording r;

	start(&r);
	recording_raw(&r, "junk", 4);
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	recording_raw(&r, &head, sizeof(head));
	recording_sample(&r, EVENT_CYCLES, 1, chain, 1);
	recording_begin(&r, PERF_RECORD_SAMPLE, MISC_USER); /* ends within its layout */
	strbuf_u64(&r.record, recording_ids[EVENT_CYCLES][0]);
	recording_end(&r);
	profile = finish(&r, NULL);
	assert_int_equal(profile_summary(profile)->samples, 2);
	assert_int_equal(profile_summary(profile)->python, 0);
	assert_int_equal(profile_summary(profile)->malformed, 3);
	profile_free(profile);
}

struct seen {
	uint64_t last, count;
};

static int see(const struct profile_sample *sample, void *ctx, struct err *err)
{
	struct seen *seen = ctx;

	assert_true(sample->time >= seen->last);
	assert_int_equal(sample->period, 10);
	seen->last = sample->time;
	return ++seen->count == 7 ? err_set(err, ERR_FAILED, "enough") : 0;
}

static void samples_come_in_order_of_time(void **state)
{
	static const uint64_t chain[] = {LIBRARY + 0x40};
	struct seen seen = {0};
	struct profile_options options = {.on_sample = see, .ctx = &seen};
	struct data_file *file;
	struct profile *profile;
	struct recording r;
	struct err err = {0};

	start(&r);
	for (r.cpu = 0; r.cpu < 2; r.cpu++) {
		r.time = 1000 + r.cpu;
		for (int i = 0; i < 3; i++, r.time += 10)
			recording_sample(&r, EVENT_CYCLES, 10, chain, 1);
	}
	recording_round(&r);
	profile_free(finish(&r, &options));
	assert_int_equal(seen.count, 6);

	/* What the callback returns ends the loading. */
	start(&r);
	for (int i = 0; i < 3; i++)
		recording_sample(&r, EVENT_CYCLES, 10, chain, 1);
	assert_int_equal(recording_close(&r, NULL), 0);
	assert_int_equal(data_open(&file, path, &err), 0);
	seen.last = 0;
	assert_int_equal(profile_load(&profile, file, &options, &err), ERR_FAILED);
	assert_null(profile);
	assert_string_equal(err.text, "enough");
	data_close(file);
	unlink(path);
}

static void add_section(struct recording *r, enum data_section id, const char *text, size_t len)
{
	assert_int_equal(data_writer_section(r->writer, id, text, len, NULL), 0);
}

static void meta_is_read_leniently(void **state)
{
	static const char full[] =
		"{\"command\": \"python train.py\", \"engine\": \"bpf\", \"lost\": 3, \"pythons\": "
		"[{\"version\": \"3.12.1\"}, {\"version\": \"3.12\"}, {\"path\": \"/x\"}, "
		"{\"version\": \"3.12.1\"}]}";
	static const char strange[] = "{\"command\": 7, \"pythons\": {}, \"lost\": -1, \"x\": []}";
	const struct profile_summary *summary;
	struct profile *profile;
	struct recording r;

	start(&r);
	recording_lost(&r, 2);
	add_section(&r, DATA_SECTION_META, full, strlen(full));
	profile = finish(&r, NULL);
	summary = profile_summary(profile);
	assert_string_equal(summary->command, "python train.py");
	assert_string_equal(summary->engine, "bpf");
	assert_string_equal(summary->python_version, "CPython 3.12.1, 3.12");
	assert_int_equal(summary->lost, 3);
	assert_int_equal(summary->samples, 0);
	profile_free(profile);

	start(&r);
	add_section(&r, DATA_SECTION_META, strange, strlen(strange));
	add_section(&r, DATA_SECTION_CODE, "\1\2\3", 3);
	add_section(&r, DATA_SECTION_SOURCE, "\xff\xff\xff\xff", 4);
	add_section(&r, DATA_SECTION_PERFMAP, "\xff\xff\xff\xff\1", 5);
	profile = finish(&r, NULL);
	summary = profile_summary(profile);
	assert_null(summary->python_version);
	assert_null(summary->command);
	assert_true(summary->malformed > 0);
	profile_free(profile);
}

/* -X perf without a walker: functions come from the perf map in the file. */
static void trampolines(void **state)
{
	static const char map[] = "7f2000000000 40 py::Work.run:/app/work.py\n"
				  "7f2000000040 40 py::main:/app/main file.py\n"
				  "7f2000000080 40 LazyCompile:~other x.js:1\n";
	static const uint64_t chain[] = {LIBRARY + 0x40, 0x7f2000000010, LIBRARY + 0x80,
					 0x7f2000000050};
	static const uint64_t other[] = {0x7f2000000088};
	const struct profile_function *function;
	struct strbuf section = {0};
	struct profile *profile;
	struct recording r;

	start(&r);
	perfmap_section_add(&section, 100, map, strlen(map));
	add_section(&r, DATA_SECTION_PERFMAP, section.buf, section.len);
	strbuf_fini(&section);
	recording_mmap(&r, LIBRARY, 0x1000, 0x2000, "/nowhere/libpython.so");
	recording_mmap(&r, 0x7f2000000000, 0x1000, 0, "//anon");
	recording_fork(&r, 200, 200);
	r.pid = r.tid = 200; /* a child without a map of its own */
	r.time += 100;
	recording_sample(&r, EVENT_CYCLES, 1, chain, 4);
	recording_sample(&r, EVENT_CYCLES, 1, other, 1);
	profile = finish(&r, NULL);
	assert_int_equal(samples_of(profile, "[libpython.so];Work.run:0;"
					     "[libpython.so];main:0"),
			 1);
	assert_int_equal(samples_of(profile, "LazyCompile:~other x.js:1"), 1);
	assert_string_equal(profile_summary(profile)->engine, "trampoline");
	assert_int_equal(profile_summary(profile)->python, 1);
	for (uint32_t i = 0; i < profile_function_count(profile); i++) {
		function = profile_function(profile, i);
		if (!strcmp(profile_text(profile, function->qualname), "main"))
			assert_string_equal(profile_text(profile, function->file),
					    "/app/main file.py");
		if (!strcmp(profile_text(profile, function->qualname), "Work.run"))
			assert_string_equal(profile_text(profile, function->name), "run");
	}
	profile_free(profile);
}

/* Fixtures: what perf 6.1 counts (their README.md). */
static const struct {
	const char *name;
	struct {
		const char *event;
		uint64_t samples;
	} events[6];
} fixtures[] = {
	{"perf.data.busy.0-3.4",
	 {{"cycles", 67},
	  {"instructions", 127},
	  {"cache-references", 135},
	  {"cache-misses", 70},
	  {"branches", 123},
	  {"branch-misses", 106}}},
	{"perf.data.busy.0-3.8", {{"cycles", 4}}},
	{"perf.data.hw_and_sw-3.4", {{"cycles", 207}, {"cpu-clock", 4734}}},
	{"perf.data.piped.hw_and_sw-3.4", {{"cycles", 193}, {"cpu-clock", 4082}}},
	{"perf.data.group_desc-4.14", {{"cache-references", 7}, {"branch-misses", 6}}},
	{"perf.data.piped.header_feautres_group_desc-6.8",
	 {{"cycles:u", 11}, {"instructions:u", 10}}},
	{"perf.data.callgraph-3.4", {{"cycles", 1548}}},
	{"perf.data.branch-4.14", {{"cycles:ppp", 13}}},
	{"perf.data.piped.no_attr_ids-4.14", {{"cycles", 7}}},
	{"perf.data.piped.header_features_aligned-6.12", {{"cycles:u", 9}}},
	{"perf.data.proc.map.timeout-3.18", {{"cycles", 8}}},
	{"sleep.compressed.pipe.data", {{"cycles:P", 8}}},
};

static void check_fixture(const char *folder, size_t number)
{
	char name[512];
	struct data_file *file;
	struct profile *profile;
	struct view *view;
	struct err err = {0};

	snprintf(name, sizeof(name), "%s/perf-data/%s", folder, fixtures[number].name);
	if (data_open(&file, name, &err) < 0 || profile_load(&profile, file, NULL, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(view_functions(&view, profile, NULL, VIEW_BY_SELF, 0, &err), 0);
	for (size_t i = 0; i < 6 && fixtures[number].events[i].event; i++) {
		const char *wanted = fixtures[number].events[i].event;
		uint32_t event = 0;
		uint64_t samples = 0, period = 0;

		while (strcmp(profile_event(profile, event)->name, wanted) != 0)
			assert_true(++event < profile_event_count(profile));
		for (size_t row = 0; row < view->count; row++) {
			samples += view->rows[row].counts[event].self_samples;
			period += view->rows[row].counts[event].self;
		}
		assert_int_equal(samples, fixtures[number].events[i].samples);
		assert_int_equal(period, profile_event(profile, event)->period_total);
	}
	view_free(view);
	profile_free(profile);
	data_close(file);
}

static void fixtures_count_as_perf_counts(void **state)
{
	const char *folder = getenv("PYPERF_FIXTURES");
	char readme[512];

	if (!folder)
		folder = "../shared/fixtures";
	snprintf(readme, sizeof(readme), "%s/README.md", folder);
	if (access(readme, R_OK) < 0) {
		print_message("no fixtures at %s: set PYPERF_FIXTURES\n", folder);
		skip();
	}
	for (size_t i = 0; i < sizeof(fixtures) / sizeof(fixtures[0]); i++)
		check_fixture(folder, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_and_names),
		cmocka_unit_test(functions_without_symbols),
		cmocka_unit_test(lost_sample),
		cmocka_unit_test(two_cpus),
		cmocka_unit_test(fork_and_exec),
		cmocka_unit_test(code_arrives_late_or_never),
		cmocka_unit_test(kernel_and_garbage),
		cmocka_unit_test(broken_payloads),
		cmocka_unit_test(samples_come_in_order_of_time),
		cmocka_unit_test(meta_is_read_leniently),
		cmocka_unit_test(trampolines),
		cmocka_unit_test(fixtures_count_as_perf_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
