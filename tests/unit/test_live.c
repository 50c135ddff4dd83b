#include "profile/live.h"

#include "base/strbuf.h"
#include "perfmap/code.h"
#include "perfmap/frames.h"
#include "profile/measure.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A live profile fed with samples as the recorder hands them over: one thread in `hot` or `cold`,
 * cycles that count instructions along. */

enum { CYCLES_ID = 7, INSTRUCTIONS_ID = 8, LINEAGE = 1, SECOND = 1000000000 };
enum function { HOT, COLD };

static struct perf_event_attr attrs[2];
static struct live_event events[2] = {{"cycles", &attrs[0]}, {"instructions", &attrs[1]}};
static uint64_t counted[2]; /* totals of the counters */

static int event_of(const void *ctx, uint64_t id)
{
	return id == CYCLES_ID ? 0 : id == INSTRUCTIONS_ID ? 1 : -1;
}

static void add_codes(struct live *live)
{
	static const char *const names[] = {"hot", "cold"};

	for (uint64_t i = 0; i < 2; i++) {
		struct py_code_parts parts = {
			.lineage = LINEAGE,
			.code = 0x1000 * (i + 1),
			.firstlineno = 10 * (uint32_t)(i + 1),
			.minor = 12,
			.name = bytes_of(names[i], strlen(names[i])),
			.qualname = bytes_of(names[i], strlen(names[i])),
			.filename = bytes_of("a.py", 4),
		};

		assert_true(py_codes_put(live_codes(live), &parts, NULL) >= 0);
	}
}

static struct live *make(unsigned int window)
{
	struct live_options options = {
		.native = PROFILE_NATIVE_OFF,
		.window = window,
		.events = events,
		.event_count = 2,
		.event_of = event_of,
	};
	struct live *live;

	memset(counted, 0, sizeof(counted));
	for (int i = 0; i < 2; i++)
		attrs[i] = (struct perf_event_attr){
			.type = PERF_TYPE_HARDWARE,
			.config = i ? PERF_COUNT_HW_INSTRUCTIONS : PERF_COUNT_HW_CPU_CYCLES,
			.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
				       PERF_SAMPLE_READ,
			.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
				       PERF_FORMAT_TOTAL_TIME_ENABLED |
				       PERF_FORMAT_TOTAL_TIME_RUNNING,
		};
	assert_int_equal(live_new(&live, &options, 0, NULL), 0);
	add_codes(live);
	return live;
}

static void sample(struct live *live, enum function function, uint64_t cycles,
		   uint64_t instructions)
{
	struct {
		struct py_raw_frames head;
		struct py_raw_frame frame;
	} frames = {
		{.magic = PY_RAW_FRAMES, .count = 1, .lineage = LINEAGE},
		{.code = 0x1000 * (uint64_t)(function + 1)},
	};
	const struct perf_event_header head = {
		.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER, .size = 0};
	struct strbuf record = {0};

	counted[0] += cycles;
	counted[1] += instructions;
	strbuf_add(&record, &head, sizeof(head));
	strbuf_u64(&record, CYCLES_ID);
	strbuf_u64(&record, 0x400000);
	strbuf_u32(&record, 12);
	strbuf_u32(&record, 13);
	strbuf_u64(&record, counted[0]);
	strbuf_u64(&record, 0);
	strbuf_u64(&record, cycles);
	strbuf_u64(&record, 2);
	strbuf_u64(&record, counted[0]);
	strbuf_u64(&record, counted[0]);
	strbuf_u64(&record, counted[0]);
	strbuf_u64(&record, CYCLES_ID);
	strbuf_u64(&record, counted[1]);
	strbuf_u64(&record, INSTRUCTIONS_ID);
	((struct perf_event_header *)(void *)record.buf)->size = (uint16_t)record.len;
	assert_int_equal(live_sample(live, (struct perf_event_header *)(void *)record.buf, 0,
				     &frames, sizeof(frames), NULL),
			 0);
	strbuf_fini(&record);
}

/* Samples of the function in what is shown. */
static uint64_t samples_of(struct live *live, bool all, const char *name)
{
	struct profile *profile = live_profile(live, all);
	struct view *view;
	uint64_t samples = 0;

	assert_int_equal(view_functions(&view, profile, NULL, VIEW_BY_SELF, 0, NULL), 0);
	for (size_t i = 0; i < view->count; i++) {
		const struct view_row *row = &view->rows[i];
		uint32_t id = profile_function(profile, row->function)->name;

		if (strcmp(profile_text(profile, id), name) == 0)
			samples += row->counts[0].self_samples;
	}
	view_free(view);
	return samples;
}

static void test_window(void **state)
{
	struct live *live = make(2);

	for (int i = 0; i < 3; i++)
		sample(live, HOT, 1000, 500);
	assert_int_equal(samples_of(live, false, "hot"), 3);
	/* What was looked at goes on counting. */
	sample(live, COLD, 1000, 500);
	assert_int_equal(samples_of(live, false, "cold"), 1);
	assert_int_equal(samples_of(live, false, "hot"), 3);
	assert_int_equal(live_turn(live, SECOND, NULL), 0);
	sample(live, COLD, 1000, 500);
	assert_int_equal(samples_of(live, false, "cold"), 2);
	assert_int_equal(live_samples(live, false), 5);
	assert_int_equal(live_since(live, false), 0);
	/* The first interval leaves. */
	assert_int_equal(live_turn(live, 2u * SECOND, NULL), 0);
	assert_int_equal(samples_of(live, false, "hot"), 0);
	assert_int_equal(samples_of(live, false, "cold"), 1);
	assert_int_equal(live_since(live, false), SECOND);
	assert_int_equal(samples_of(live, true, "hot"), 3);
	assert_int_equal(samples_of(live, true, "cold"), 2);
	assert_int_equal(live_since(live, true), 0);
	live_free(live);
}

static void test_reset(void **state)
{
	struct live *live = make(2);

	sample(live, HOT, 1000, 500);
	live_reset(live, SECOND);
	assert_int_equal(samples_of(live, true, "hot"), 0);
	assert_int_equal(live_samples(live, true), 0);
	assert_int_equal(live_since(live, true), SECOND);
	sample(live, HOT, 1000, 500);
	assert_int_equal(samples_of(live, true, "hot"), 1);
	live_free(live);
}

/* Counters go on where they were: no sample stands for all that was before. */
static void test_renew(void **state)
{
	struct live *live = make(2);
	const struct profile_cell *cell;

	sample(live, HOT, 1000000, 500);
	assert_false(live_is_full(live));
	assert_int_equal(live_renew(live, SECOND, NULL), 0);
	assert_int_equal(live_renewals(live), 1);
	add_codes(live);
	assert_int_equal(samples_of(live, true, "hot"), 0);
	sample(live, COLD, 1000, 500);
	assert_int_equal(samples_of(live, true, "cold"), 1);
	cell = profile_cell(live_profile(live, true), 0);
	assert_int_equal(cell->period, 1000);
	live_free(live);
}

/* Instructions of the window over its cycles, however often it was looked at. */
static void test_ipc(void **state)
{
	struct live *live = make(2);
	struct measures measures;
	struct estimate ipc;
	struct view *view;
	int plan;

	for (int turn = 0; turn < 4; turn++) {
		for (int i = 0; i < 50; i++)
			sample(live, HOT, 1000 + (uint64_t)i,
			       turn < 2 ? 500 : 2000 + 2u * (uint64_t)i);
		samples_of(live, turn % 2, "hot");
		if (turn < 3)
			assert_int_equal(live_turn(live, (uint64_t)(turn + 1) * SECOND, NULL), 0);
	}
	assert_int_equal(measures_init(&measures, live_profile(live, false), 0, NULL), 0);
	plan = measures_find(&measures, "ipc", 3);
	assert_true(plan >= 0);
	assert_int_equal(
		view_functions(&view, live_profile(live, false), NULL, VIEW_BY_SELF, 0, NULL), 0);
	assert_int_equal(view->count, 1);
	assert_int_equal(view->rows[0].counts[0].self_samples, 100);
	ipc = measure(&measures, (size_t)plan, view, &view->rows[0], MEASURE_SELF);
	assert_true(ipc.known && ipc.value > 1.99 && ipc.value < 2.01);
	assert_true(ipc.low > 1.95 && ipc.high < 2.05);
	view_free(view);
	live_free(live);
}

/* Where the thread is now; not where it was long ago. */
static void test_seen(void **state)
{
	struct live *live = make(3);
	uint32_t line, function;

	sample(live, HOT, 1000, 500);
	sample(live, COLD, 1000, 500);
	live_profile(live, false);
	function = live_function_of(live, 13, &line);
	assert_string_equal(
		profile_text(live_profile(live, false),
			     profile_function(live_profile(live, false), function)->name),
		"cold");
	assert_int_equal(live_function_of(live, 99, &line), UINT32_MAX);
	for (uint64_t i = 1; i <= 2; i++)
		assert_int_equal(live_turn(live, i * SECOND, NULL), 0);
	assert_int_equal(live_function_of(live, 13, &line), UINT32_MAX);
	live_free(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window), cmocka_unit_test(test_reset),
		cmocka_unit_test(test_renew),  cmocka_unit_test(test_ipc),
		cmocka_unit_test(test_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
