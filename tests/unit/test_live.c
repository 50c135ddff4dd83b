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
 * cycles that count instructions along, on a hybrid CPU by each PMU. */

enum { FIRST_ID = 7, EVENTS = 4, LINEAGE = 1, SECOND = 1000000000 };
enum function { HOT, COLD };
enum pmu { CORE, ATOM }; /* of each the events are cycles and instructions */

static struct perf_event_attr attrs[EVENTS];
static const struct live_event plain[] = {{"cycles", &attrs[0]}, {"instructions", &attrs[1]}};
static const struct live_event hybrid[] = {{"cpu_core/cycles/", &attrs[0]},
					   {"cpu_core/instructions/", &attrs[1]},
					   {"cpu_atom/cycles/", &attrs[2]},
					   {"cpu_atom/instructions/", &attrs[3]}};
static uint64_t counted[EVENTS]; /* totals of the counters */

static int event_of(const void *ctx, uint64_t id)
{
	return id >= FIRST_ID && id < FIRST_ID + EVENTS ? (int)(id - FIRST_ID) : -1;
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

/* `read`: samples read their group's counters; each event is sampled on its own otherwise. */
static struct live *make_of(unsigned int window, const struct live_event *events, size_t count,
			    bool read)
{
	struct live_options options = {
		.native = PROFILE_NATIVE_OFF,
		.window = window,
		.events = events,
		.event_count = count,
		.event_of = event_of,
	};
	struct live *live;

	memset(counted, 0, sizeof(counted));
	for (uint64_t i = 0; i < EVENTS; i++)
		attrs[i] = (struct perf_event_attr){
			.type = PERF_TYPE_HARDWARE,
			.config = (i % 2 ? PERF_COUNT_HW_INSTRUCTIONS : PERF_COUNT_HW_CPU_CYCLES) |
				  (count > 2 ? 4 + i / 2 : 0) << 32,
			.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
				       (read ? PERF_SAMPLE_READ : 0),
			.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
				       PERF_FORMAT_TOTAL_TIME_ENABLED |
				       PERF_FORMAT_TOTAL_TIME_RUNNING,
		};
	assert_int_equal(live_new(&live, &options, 0, NULL), 0);
	add_codes(live);
	return live;
}

static struct live *make(unsigned int window)
{
	return make_of(window, plain, 2, true);
}

static void sample_event(struct live *live, uint32_t event, enum function function, uint64_t period)
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

	strbuf_add(&record, &head, sizeof(head));
	strbuf_u64(&record, FIRST_ID + event);
	strbuf_u64(&record, 0x400000);
	strbuf_u32(&record, 12);
	strbuf_u32(&record, 13);
	strbuf_u64(&record, counted[0] + counted[2]); /* time: cycles of 1 GHz */
	strbuf_u64(&record, 0);
	strbuf_u64(&record, period);
	if (attrs[event].sample_type & PERF_SAMPLE_READ) {
		strbuf_u64(&record, 2);
		strbuf_u64(&record, counted[event]);
		strbuf_u64(&record, counted[event]);
		for (uint32_t i = event; i < event + 2; i++) {
			strbuf_u64(&record, counted[i]);
			strbuf_u64(&record, FIRST_ID + i);
		}
	}
	((struct perf_event_header *)(void *)record.buf)->size = (uint16_t)record.len;
	assert_int_equal(live_sample(live, (struct perf_event_header *)(void *)record.buf, event,
				     &frames, sizeof(frames), NULL),
			 0);
	strbuf_fini(&record);
}

static void sample_on(struct live *live, enum pmu pmu, enum function function, uint64_t cycles,
		      uint64_t instructions)
{
	counted[2 * pmu] += cycles;
	counted[2 * pmu + 1] += instructions;
	sample_event(live, 2 * pmu, function, cycles);
}

static void sample(struct live *live, enum function function, uint64_t cycles,
		   uint64_t instructions)
{
	sample_on(live, CORE, function, cycles, instructions);
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

/* The IPC of the only function in what is shown, of whose first event there are so many samples. */
static struct estimate ipc_of(struct live *live, uint64_t samples)
{
	struct profile *profile = live_profile(live, false);
	struct measures measures;
	struct estimate ipc;
	struct view *view;
	int plan;

	assert_int_equal(measures_init(&measures, profile, 0, NULL), 0);
	plan = measures_find(&measures, "ipc", 3);
	assert_true(plan >= 0);
	assert_int_equal(view_functions(&view, profile, NULL, VIEW_BY_SELF, 0, NULL), 0);
	assert_int_equal(view->count, 1);
	assert_int_equal(view->rows[0].counts[0].self_samples, samples);
	ipc = measure(&measures, (size_t)plan, view, &view->rows[0], MEASURE_SELF);
	assert_true(ipc.known);
	view_free(view);
	return ipc;
}

/* Instructions of the window over its cycles, however often it was looked at. */
static void test_ipc(void **state)
{
	struct live *live = make(2);
	struct estimate ipc;

	for (int turn = 0; turn < 4; turn++) {
		for (int i = 0; i < 50; i++)
			sample(live, HOT, 1000 + (uint64_t)i,
			       turn < 2 ? 500 : 2000 + 2u * (uint64_t)i);
		samples_of(live, turn % 2, "hot");
		if (turn < 3)
			assert_int_equal(live_turn(live, (uint64_t)(turn + 1) * SECOND, NULL), 0);
	}
	ipc = ipc_of(live, 100);
	assert_true(ipc.value > 1.99 && ipc.value < 2.01);
	assert_true(ipc.low > 1.95 && ipc.high < 2.05);
	live_free(live);
}

/* Where samples cannot read groups (before Linux 6.12) there is an IPC all the same. */
static void test_ipc_of_events_apart(void **state)
{
	struct live *live = make_of(2, plain, 2, false);
	struct estimate ipc;

	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < 50; i++)
			sample_event(live, 0, HOT, 1000);
		for (int i = 0; i < 75; i++)
			sample_event(live, 1, HOT, 2000);
		samples_of(live, turn % 2, "hot");
		if (turn < 2)
			assert_int_equal(live_turn(live, (uint64_t)(turn + 1) * SECOND, NULL), 0);
	}
	ipc = ipc_of(live, 100);
	assert_true(ipc.value > 2.99 && ipc.value < 3.01);
	live_free(live);
}

/* What the PMUs of a hybrid CPU count is one event, however often it was looked at. */
static void test_hybrid(void **state)
{
	struct live *live = make_of(2, hybrid, 4, true);
	const struct profile *profile;
	struct estimate ipc;

	for (int turn = 0; turn < 3; turn++) {
		for (uint64_t i = 0; i < 10; i++)
			sample_on(live, CORE, HOT, 1000 + i, 500 + i);
		samples_of(live, turn % 2, "hot");
		for (uint64_t i = 0; i < 30; i++)
			sample_on(live, ATOM, HOT, 1000 + i, 2000 + i);
		assert_int_equal(samples_of(live, true, "hot"), 40 * (turn + 1));
		if (turn < 2)
			assert_int_equal(live_turn(live, (uint64_t)(turn + 1) * SECOND, NULL), 0);
	}
	ipc = ipc_of(live, 80);
	assert_true(ipc.value > 1.60 && ipc.value < 1.63);
	profile = live_profile(live, false);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(profile_event(profile, i)->sampled, i < 2);
	assert_string_equal(profile_event(profile, 0)->name, "cycles");
	assert_string_equal(profile_event(profile, 1)->name, "instructions");
	/* Anew with empty tables: the parts are parts still. */
	assert_int_equal(live_renew(live, 3ull * SECOND, NULL), 0);
	add_codes(live);
	sample_on(live, ATOM, HOT, 1000, 2000);
	assert_int_equal(samples_of(live, true, "hot"), 1);
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
		cmocka_unit_test(test_seen),   cmocka_unit_test(test_ipc_of_events_apart),
		cmocka_unit_test(test_hybrid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
