#include "profile/metric.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HW PERF_TYPE_HARDWARE
#define LLC_LOADS PERF_COUNT_HW_CACHE_LL
#define MISS (PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

static void roles_by_meaning(void **state)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
		enum metric_role role;
	} cases[] = {
		{"whatever", HW, PERF_COUNT_HW_CPU_CYCLES, ROLE_CYCLES},
		{"cycles", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, ROLE_TIME},
		{"cpu_core/cycles/u", HW, 0x400000000 | PERF_COUNT_HW_CPU_CYCLES, ROLE_CYCLES},
		{"cpu_atom/cpu-cycles/", 10, 0x3c, ROLE_CYCLES},
		{"cpu/instructions/ppp", PERF_TYPE_RAW, 0xc0, ROLE_INSTRUCTIONS},
		{"armv8_pmuv3_0/inst_retired/", 8, 8, ROLE_INSTRUCTIONS},
		{"skl::INST_RETIRED:ANY_P:u", PERF_TYPE_RAW, 0xc0, ROLE_INSTRUCTIONS},
		{"skl::UNHALTED_CORE_CYCLES", PERF_TYPE_RAW, 0x3c, ROLE_CYCLES},
		{"amd64_fam19h_zen4::RETIRED_INSTRUCTIONS:k=1:u=0", PERF_TYPE_RAW, 0xc0,
		 ROLE_INSTRUCTIONS},
		{"LONGEST_LAT_CACHE.MISS", PERF_TYPE_RAW, 0x412e, ROLE_CACHE_MISSES},
		{"LONGEST_LAT_CACHE:MISS:c=1", PERF_TYPE_RAW, 0x100412e, ROLE_NONE},
		{"LLC-load-misses", PERF_TYPE_HW_CACHE, LLC_LOADS | MISS, ROLE_CACHE_MISSES},
		{"dTLB-load-misses", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_DTLB | MISS,
		 ROLE_DTLB_MISSES},
		{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, ROLE_TIME},
		/* Named like a counter, but the kernel says what it is. */
		{"instructions", PERF_TYPE_TRACEPOINT, 12, ROLE_NONE},
		{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, ROLE_NONE},
		{"raw 0x1a8", PERF_TYPE_RAW, 0x1a8, ROLE_NONE},
		{"", PERF_TYPE_RAW, 0x1a8, ROLE_NONE},
		{"::::////", PERF_TYPE_RAW, 0x1a8, ROLE_NONE},
		{NULL, PERF_TYPE_RAW, 0x1a8, ROLE_NONE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct perf_event_attr attr = {.type = cases[i].type, .config = cases[i].config};

		if (metric_role_of(cases[i].name, &attr) != cases[i].role)
			fail_msg("'%s' plays role %d", cases[i].name,
				 metric_role_of(cases[i].name, &attr));
	}
}

/* Very long names neither overrun nor match by their start. */
static void long_names(void **state)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_RAW};
	char name[300];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t at = 0; at < sizeof(name) - 8; at += 7) {
		memcpy(name + at, "cycles:", 7);
		assert_int_equal(metric_role_of(name, &attr), ROLE_NONE);
	}
}

static struct perf_event_attr attr_of(uint32_t type, uint64_t config, bool user_only)
{
	return (struct perf_event_attr){
		.type = type, .config = config, .exclude_kernel = user_only};
}

static bool plan_of(struct metric_plan *plan, const char *key, const struct metric_event *events,
		    size_t count, uint32_t ranked)
{
	return metric_plan(plan, metric_find(key, strlen(key)), events, count, ranked);
}

static void plain_plan(void **state)
{
	struct perf_event_attr cycles = attr_of(HW, PERF_COUNT_HW_CPU_CYCLES, false);
	struct perf_event_attr instructions = attr_of(HW, PERF_COUNT_HW_INSTRUCTIONS, false);
	struct perf_event_attr misses = attr_of(HW, PERF_COUNT_HW_CACHE_MISSES, false);
	const struct metric_event events[] = {
		{"cycles", &cycles, 0},
		{"instructions", &instructions, 0},
		{"cache-misses", &misses, -1},
	};
	struct metric_plan plan;

	assert_true(plan_of(&plan, "ipc", events, 3, 0));
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.pairs[0].above, 1);
	assert_int_equal(plan.pairs[0].below, 0);
	assert_true(plan.joint);
	assert_true(plan_of(&plan, "mpki", events, 3, 0));
	assert_false(plan.joint);
	assert_false(plan_of(&plan, "miss", events, 3, 0));
	assert_true(plan_of(&plan, "kernel", events, 3, 0));
	assert_int_equal(plan.pairs[0].above, 0);
	assert_false(plan_of(&plan, "kernel", events, 3, UINT32_MAX));
	assert_false(plan_of(&plan, "ipc", events, 0, 0));
}

/* User cycles are not divided into the instructions of user and kernel. */
static void modes_must_agree(void **state)
{
	struct perf_event_attr cycles = attr_of(HW, PERF_COUNT_HW_CPU_CYCLES, true);
	struct perf_event_attr all = attr_of(HW, PERF_COUNT_HW_INSTRUCTIONS, false);
	struct perf_event_attr user = attr_of(HW, PERF_COUNT_HW_INSTRUCTIONS, true);
	const struct metric_event events[] = {
		{"cycles:u", &cycles, -1},
		{"instructions", &all, -1},
		{"instructions:u", &user, -1},
	};
	struct metric_plan plan;

	assert_false(plan_of(&plan, "ipc", events, 2, 0));
	assert_true(plan_of(&plan, "ipc", events, 3, 0));
	assert_int_equal(plan.pairs[0].above, 2);
	assert_int_equal(plan.count, 1);
}

/* Misses of loads are no part of all references. */
static void kinds_must_agree(void **state)
{
	struct perf_event_attr references = attr_of(HW, PERF_COUNT_HW_CACHE_REFERENCES, false);
	struct perf_event_attr misses = attr_of(PERF_TYPE_HW_CACHE, LLC_LOADS | MISS, false);
	struct perf_event_attr loads = attr_of(PERF_TYPE_HW_CACHE, LLC_LOADS, false);
	const struct metric_event events[] = {
		{"cache-references", &references, -1},
		{"LLC-load-misses", &misses, -1},
		{"LLC-loads", &loads, -1},
	};
	struct metric_plan plan;

	assert_false(plan_of(&plan, "miss", events, 2, 0));
	assert_true(plan_of(&plan, "miss", events, 3, 0));
	assert_int_equal(plan.pairs[0].below, 2);
}

/* Both PMUs of a hybrid CPU are summed, each in its own pair; events given twice are not. */
static void hybrid_is_summed(void **state)
{
	struct perf_event_attr attrs[] = {
		attr_of(HW, 4ull << 32 | PERF_COUNT_HW_CPU_CYCLES, false),
		attr_of(HW, 10ull << 32 | PERF_COUNT_HW_CPU_CYCLES, false),
		attr_of(HW, 4ull << 32 | PERF_COUNT_HW_INSTRUCTIONS, false),
		attr_of(HW, 10ull << 32 | PERF_COUNT_HW_INSTRUCTIONS, false),
		attr_of(HW, 10ull << 32 | PERF_COUNT_HW_CACHE_MISSES, false),
	};
	const struct metric_event events[] = {
		{"cpu_core/cycles/", &attrs[0], 0},	  {"cpu_atom/cycles/", &attrs[1], 1},
		{"cpu_core/instructions/", &attrs[2], 0}, {"cpu_atom/instructions/", &attrs[3], 1},
		{"cpu_atom/cache-misses/", &attrs[4], 1}, {"cpu_core/cycles/", &attrs[0], -1},
	};
	struct metric_plan plan;

	assert_true(plan_of(&plan, "ipc", events, 6, 0));
	assert_int_equal(plan.count, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(plan.pairs[i].above, plan.pairs[i].below + 2);
	assert_true(plan.joint);
	assert_true(plan_of(&plan, "mpki", events, 6, 0));
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.pairs[0].below, 3);
}

static void time_goes_with_any(void **state)
{
	struct perf_event_attr cycles = attr_of(HW, PERF_COUNT_HW_CPU_CYCLES, true);
	struct perf_event_attr clock = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false);
	const struct metric_event events[] = {{"cycles:u", &cycles, -1},
					      {"task-clock", &clock, -1}};
	struct metric_plan plan;

	assert_true(plan_of(&plan, "ns", events, 2, 0));
	assert_int_equal(plan.pairs[0].above, 1);
	assert_int_equal(plan.pairs[0].below, 0);
	assert_true(plan_of(&plan, "ghz", events, 2, 0));
	/* The clock alone says nothing of itself. */
	assert_false(plan_of(&plan, "ns", events, 2, 1));
	assert_false(plan_of(&plan, "ns", events + 1, 1, 0));
}

static void sure_within_a_factor_of_two(void **state)
{
	const struct metric *ipc = metric_find("ipc", 3);
	struct estimate e = {1, 0.72, 1.43, .known = true};

	assert_true(metric_is_sure(ipc, &e));
	e.high = 1.45;
	assert_false(metric_is_sure(ipc, &e));
	e = (struct estimate){0.02, 0, 0.1, .known = true}; /* within the tolerance of 0.05 */
	assert_true(metric_is_sure(ipc, &e));
	e.high = 0.11;
	assert_false(metric_is_sure(ipc, &e));
	e = (struct estimate){1, 1, INFINITY, .known = true};
	assert_false(metric_is_sure(ipc, &e));
	e = (struct estimate){1, 1, 1, .known = false};
	assert_false(metric_is_sure(ipc, &e));
	/* Known by too few pairs. */
	e = (struct estimate){1, 0.9, 1.1, .known = true};
	assert_true(metric_is_sure(ipc, &e));
	e.few = true;
	assert_false(metric_is_sure(ipc, &e));
}

static void texts(void **state)
{
	const struct estimate e = {0.412, 0.36, 0.44, .known = true};
	struct strbuf out = {0};

	metric_text(metric_find("ipc", 3), 0.412, &out);
	strbuf_char(&out, ' ');
	metric_error_text(metric_find("ipc", 3), &e, &out);
	strbuf_char(&out, ' ');
	metric_text(metric_find("br-miss", 7), 4.26, &out);
	strbuf_char(&out, ' ');
	metric_text(metric_find("mpki", 4), 0.032, &out);
	assert_string_equal(strbuf_text(&out), "0.41 0.04 4.3% 0.03");
	strbuf_fini(&out);
	assert_null(metric_find("ip", 2));
	assert_null(metric_find("nonsense", 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roles_by_meaning),
		cmocka_unit_test(long_names),
		cmocka_unit_test(plain_plan),
		cmocka_unit_test(modes_must_agree),
		cmocka_unit_test(kinds_must_agree),
		cmocka_unit_test(hybrid_is_summed),
		cmocka_unit_test(time_goes_with_any),
		cmocka_unit_test(sure_within_a_factor_of_two),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
