#include "perfmap/source.h"
#include "profile/memuse.h"
#include "tests/unit/counted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * Sampled instructions of which some load: a made-up recording of an AMD IBS, whose Python lines
 * have the latencies and the data sources that they were given.
 */
enum { LOADS, SPARE, FRAMES, EVENT_COUNT };
_Static_assert((int)FRAMES == (int)EVENT_FRAMES, "where the walker's event is");

static const uint64_t ids[EVENT_COUNT][1] = {{11}, {22}, {33}};

/* What is sampled on a line: so often, with so many cycles of latency and up to as many again, from
 * there. */
static const struct kind {
	unsigned int line, samples, latency;
	uint64_t op, level;
	bool tlb_miss;
} kinds[] = {
	{3, 60, 200, PERF_MEM_OP_LOAD, PERF_MEM_LVLNUM_RAM, true},
	{3, 20, 40, PERF_MEM_OP_LOAD, PERF_MEM_LVLNUM_L3, false},
	{3, 20, 0, PERF_MEM_OP_NA, PERF_MEM_LVLNUM_NA, false},
	{4, 50, 4, PERF_MEM_OP_LOAD, PERF_MEM_LVLNUM_L1, false},
	{4, 30, 0, PERF_MEM_OP_STORE, PERF_MEM_LVLNUM_L1, false},
	{6, 40, 0, PERF_MEM_OP_NA, PERF_MEM_LVLNUM_NA, false},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void sample(struct recording *r, const struct kind *kind, unsigned int i)
{
	const struct py_raw_frame frame = {.code = 0x1000,
					   .instr = kind->line * 4 | PY_FRAME_ENTRY};
	union perf_mem_data_src src = {.val = 0};

	src.mem_op = kind->op;
	src.mem_lvl_num = kind->level;
	src.mem_lvl = PERF_MEM_LVL_NA;
	src.mem_dtlb = kind->tlb_miss ? PERF_MEM_TLB_MISS | PERF_MEM_TLB_L2 : PERF_MEM_TLB_NA;
	r->time += 1000;
	recording_frames(r, 1, PY_WALK_OK, &frame, 1);
	recording_sample_head(r, LOADS, MISC_USER, COUNTED_STUB, 1000);
	strbuf_u64(&r->record, 2);
	strbuf_u64(&r->record, (uint64_t)PERF_CONTEXT_USER);
	strbuf_u64(&r->record, COUNTED_STUB);
	/* The upper half: other latencies of the instruction. */
	strbuf_u64(&r->record, 99ull << 32 | (kind->latency + kind->latency * i / kind->samples));
	strbuf_u64(&r->record, src.val);
	recording_end(r);
}

static int make(const char *path, const char *file)
{
	static const char map[] = "7f2000000000 40 py::x:y\n";
	struct data_event events[EVENT_COUNT] = {
		[LOADS] = {.name = "ibs_op//",
			   .attr = {.type = 11,
				    .sample_type = RECORDING_COMMON | PERF_SAMPLE_CALLCHAIN |
						   PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC,
				    .sample_period = 1000}},
		[SPARE] = {.name = "dummy",
			   .attr = {.type = PERF_TYPE_SOFTWARE,
				    .config = PERF_COUNT_SW_DUMMY,
				    .sample_type = RECORDING_COMMON},
			   .leader = SPARE},
		[FRAMES] = recording_frames_event(),
	};
	struct sources *sources = sources_new();
	struct strbuf section = {0};
	char folder[4096];
	struct recording r;

	recording_open_events(&r, path, 0, events, EVENT_COUNT, ids);
	perfmap_section_add(&section, 100, map, strlen(map));
	data_writer_section(r.writer, DATA_SECTION_PERFMAP, section.buf, section.len, NULL);
	strbuf_reset(&section);
	recording_comm(&r, "python3", true);
	recording_mmap(&r, COUNTED_STUB, 0x1000, 0, "//anon");
	recording_code(&r, 1, 0x1000, 0, "hot", file, COUNTED_FIRST, COUNTED_LINES);
	for (size_t s = 0; s < KINDS; s++)
		for (unsigned int i = 0; i < kinds[s].samples; i++)
			sample(&r, &kinds[s], i);
	if (sources && getcwd(folder, sizeof(folder)) &&
	    sources_read(sources, file, "", folder, NULL) > 0 &&
	    sources_encode(sources, &section) >= 0)
		data_writer_section(r.writer, DATA_SECTION_SOURCE, section.buf, section.len, NULL);
	strbuf_fini(&section);
	sources_free(sources);
	return recording_close(&r, NULL);
}

static const struct memuse_row *row_of(const struct memuse_view *view, unsigned int line)
{
	for (size_t i = 0; i < view->count; i++)
		if (view->rows[i].line == COUNTED_FIRST + line)
			return &view->rows[i];
	return NULL;
}

static void lines_have_latency_and_source(void **state)
{
	char path[] = "/tmp/pyperf-test-XXXXXX";
	int fd = mkstemp(path);
	const struct view_filter everything = {0};
	const struct memuse_row *chase, *near;
	struct memuse_view *view;
	struct profile *profile;
	struct data_file *file;
	uint64_t weight = 0;
	uint32_t function;

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(make(path, "hot.py"), 0);
	assert_int_equal(data_open(&file, path, NULL), 0);
	assert_int_equal(profile_load(&profile, file, NULL, NULL), 0);
	data_close(file);
	unlink(path);
	assert_int_equal(memuse_view(&view, profile, &everything, UINT32_MAX, NULL), 0);
	assert_int_equal(view->count, 1); /* the function */
	assert_int_equal(view->rows[0].total.accesses, 160);
	function = view->rows[0].function;
	memuse_view_free(view);
	assert_int_equal(memuse_view(&view, profile, &everything, function, NULL), 0);
	chase = row_of(view, 3);
	near = row_of(view, 4);
	assert_true(chase && near && !row_of(view, 6));
	assert_int_equal(chase->self.accesses, 80);
	assert_int_equal(chase->self.levels[MEMUSE_RAM], 60);
	assert_int_equal(chase->self.levels[MEMUSE_L3], 20);
	assert_int_equal(chase->self.tlb_misses, 60);
	assert_int_equal(chase->self.weighed, 80);
	for (unsigned int i = 0; i < 60; i++)
		weight += 200 + 200 * i / 60;
	for (unsigned int i = 0; i < 20; i++)
		weight += 40 + 40 * i / 20;
	assert_int_equal((uint64_t)chase->self.weight, weight);
	/* Stores have no latency. */
	assert_int_equal(near->self.accesses, 80);
	assert_int_equal(near->self.levels[MEMUSE_L1], 80);
	assert_int_equal(near->self.weighed, 50);
	memuse_view_free(view);
	profile_free(profile);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_have_latency_and_source),
	};

	/* For the tests of the command line. */
	if (argc == 3)
		return make(argv[1], argv[2]) < 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
