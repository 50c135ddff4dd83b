#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/machine.h"

#include <errno.h>

/*
 * The parser, on a machine that the test invents: a folder laid out like sysfs with an Intel core
 * PMU (the files of a Skylake), a hybrid's second PMU, and one like tracefs.
 */

static struct machine machine;
static struct event_system sys;

static const struct machine_file files[] = {
	{"devices/cpu/type", "4\n"},
	{"devices/cpu/format/event", "config:0-7\n"},
	{"devices/cpu/format/umask", "config:8-15\n"},
	{"devices/cpu/format/edge", "config:18\n"},
	{"devices/cpu/format/inv", "config:23\n"},
	{"devices/cpu/format/cmask", "config:24-31\n"},
	{"devices/cpu/format/ldlat", "config1:0-15\n"},
	{"devices/cpu/format/offcore_rsp", "config1:0-63\n"},
	{"devices/cpu/format/wide", "config2:0-63\n"},
	{"devices/cpu/format/odd", "config:0-3,32-35\n"},
	{"devices/cpu/format/broken", "config:9-3\n"},
	{"devices/cpu/format/alien", "config9:0-3\n"},
	{"devices/cpu/events/cpu-cycles", "event=0x3c\n"},
	{"devices/cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"},
	{"devices/cpu/events/mem-loads.scale", "1\n"},
	{"devices/cpu/events/topdown", "event=?,umask=0x9\n"},
	{"devices/cpu/events/loop", "loop\n"},
	{"devices/uncore/type", "17\n"},
	{"devices/uncore/events/clockticks", "event=0x0\n"},
	{"devices/uncore/format/event", "config:0-7\n"},
	{"devices/cpu_atom/type", "10\n"},
	{"devices/untyped/type", "x\n"},
	{"devices/arm_spe_0/type", "12\n"},
	{"devices/arm_spe_0/format/load_filter", "config:33\n"},
	{"devices/arm_spe_0/format/ts_enable", "config:0\n"},
	{"devices/intel_pt/type", "13\n"},
	{"tracing/events/enable", "0\n"},
	{"tracing/events/sched/enable", "0\n"},
	{"tracing/events/sched/sched_switch/id", "316\n"},
	{"tracing/events/sched/sched_wakeup/id", "318\n"},
	{"tracing/events/odd/empty/id", "\n"},
};

static int make_machine(void **state)
{
	int ret = machine_make(&machine, files, sizeof(files) / sizeof(files[0]));

	sys = machine.sys;
	return ret;
}

static int remove_machine(void **state)
{
	return machine_remove(&machine);
}

struct expected {
	const char *text;
	uint32_t type;
	uint64_t config[3];
};

static void expect(const struct expected *want)
{
	struct event_list list = {0};
	struct err err = {0};
	int ret = event_parse_on(&sys, &list, want->text, &err);

	if (ret)
		fail_msg("%s: %s", want->text, err.text);
	assert_string_equal(err.text, "");
	assert_int_equal(list.len, 1);
	if (list.items[0].attr.type != want->type || list.items[0].attr.config != want->config[0] ||
	    list.items[0].attr.config1 != want->config[1] ||
	    list.items[0].attr.config2 != want->config[2])
		fail_msg("%s: type %u config %llx %llx %llx", want->text, list.items[0].attr.type,
			 (unsigned long long)list.items[0].attr.config,
			 (unsigned long long)list.items[0].attr.config1,
			 (unsigned long long)list.items[0].attr.config2);
	assert_int_equal(list.items[0].attr.size, sizeof(struct perf_event_attr));
	assert_int_equal(list.items[0].group, -1);
	assert_true(list.items[0].leader);
	event_list_fini(&list);
}

/* Numbers by hand from enum perf_hw_id, perf_sw_ids and perf_hw_cache_* of linux/perf_event.h. */
static void test_generic(void **state)
{
	static const struct expected table[] = {
		{"cycles", 0, {0}},
		{"cpu-cycles", 0, {0}},
		{"CYCLES", 0, {0}},
		{"instructions", 0, {1}},
		{"cache-references", 0, {2}},
		{"cache-misses", 0, {3}},
		{"branches", 0, {4}},
		{"branch-instructions", 0, {4}},
		{"branch-misses", 0, {5}},
		{"bus-cycles", 0, {6}},
		{"stalled-cycles-frontend", 0, {7}},
		{"idle-cycles-frontend", 0, {7}},
		{"stalled-cycles-backend", 0, {8}},
		{"idle-cycles-backend", 0, {8}},
		{"ref-cycles", 0, {9}},
		{"cpu-clock", 1, {0}},
		{"task-clock", 1, {1}},
		{"page-faults", 1, {2}},
		{"faults", 1, {2}},
		{"context-switches", 1, {3}},
		{"cs", 1, {3}},
		{"cpu-migrations", 1, {4}},
		{"migrations", 1, {4}},
		{"minor-faults", 1, {5}},
		{"major-faults", 1, {6}},
		{"alignment-faults", 1, {7}},
		{"emulation-faults", 1, {8}},
		{"dummy", 1, {9}},
		{"bpf-output", 1, {10}},
		{"cgroup-switches", 1, {11}},
		{"r1a8", 4, {0x1a8}},
		{"rFFFFffffFFFFffff", 4, {UINT64_MAX}},
		{"L1-dcache-loads", 3, {0x00000}},
		{"L1-dcache-load-misses", 3, {0x10000}},
		{"L1-dcache-stores", 3, {0x00100}},
		{"L1-dcache-store-misses", 3, {0x10100}},
		{"L1-dcache-prefetches", 3, {0x00200}},
		{"L1-dcache-prefetch-misses", 3, {0x10200}},
		{"L1-icache-loads", 3, {0x00001}},
		{"L1-icache-load-misses", 3, {0x10001}},
		{"L1-icache-prefetch-misses", 3, {0x10201}},
		{"LLC-loads", 3, {0x00002}},
		{"LLC-load-misses", 3, {0x10002}},
		{"LLC-stores", 3, {0x00102}},
		{"LLC-prefetches", 3, {0x00202}},
		{"dTLB-load-misses", 3, {0x10003}},
		{"dTLB-store-misses", 3, {0x10103}},
		{"iTLB-loads", 3, {0x00004}},
		{"iTLB-load-misses", 3, {0x10004}},
		{"branch-loads", 3, {0x00005}},
		{"branch-load-misses", 3, {0x10005}},
		{"node-loads", 3, {0x00006}},
		{"node-store-misses", 3, {0x10106}},
		{"node-prefetch-misses", 3, {0x10206}},
		{"l1d-read-miss", 3, {0x10000}},
		{"L1-dcache-speculative-read", 3, {0x00200}},
		{"dTLB-misses", 3, {0x10003}},
		{"L2-misses-stores", 3, {0x10102}},
		{"bpu", 3, {0x00005}},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		expect(&table[i]);
}

static void test_sysfs(void **state)
{
	static const struct expected table[] = {
		{"cpu/event=0x3c,umask=0x1/", 4, {0x13c}},
		{"cpu/event=60,umask=1,cmask=2,inv,edge=1/", 4, {0x284013c}},
		{"cpu/config=0x1234,config1=7,config2=8/", 4, {0x1234, 7, 8}},
		/* Its records are to have times, unless told otherwise. */
		{"arm_spe_0//", 12, {1}},
		{"arm_spe_0/load_filter=1/", 12, {UINT64_C(1) << 33 | 1}},
		{"arm_spe_0/ts_enable=0/", 12, {0}},
		{"cpu/r1a8/", 4, {0x1a8}},
		{"cpu/cpu-cycles/", 4, {0x3c}},
		{"cpu/mem-loads/", 4, {0x1cd, 3}},
		{"cpu/mem-loads,ldlat=30/pp", 4, {0x1cd, 30}},
		{"cpu/topdown,event=0xa4/", 4, {0x9a4}},
		{"cpu/offcore_rsp=0xffffffffffffffff/", 4, {0, UINT64_MAX}},
		{"cpu/wide=18446744073709551615/", 4, {0, 0, UINT64_MAX}},
		{"cpu/odd=0xab/", 4, {0xa0000000bULL}},
		/* Names of perf's own, on one PMU of several; "cpu" is the ordinary one. */
		{"cpu/cycles/", 0, {0}},
		{"cpu_atom/cache-misses/", 0, {0xa00000003ULL}},
		{"cpu_atom/LLC-load-misses/", 3, {0xa00010002ULL}},
		/* Without its PMU. */
		{"mem-loads", 4, {0x1cd, 3}},
		{"clockticks", 17, {0}},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		expect(&table[i]);
}

/* What an event says itself of how it is sampled, and what it is called then. */
static void test_sampling_terms(void **state)
{
	static const struct {
		const char *text, *name;
		uint64_t config, rate;
		bool freq;
	} table[] = {
		{"cpu/event=0x3c,period=1000/", "cpu/event=0x3c,period=1000/", 0x3c, 1000, false},
		{"cpu/freq=0x63,event=0x3c/u", "cpu/freq=0x63,event=0x3c/u", 0x3c, 99, true},
		{"cycles/period=5,freq=99/", "cycles", 0, 99, true},
		{"cycles/freq=99,period=5/u", "cycles:u", 0, 5, false},
		{"cache-misses/period=7,name='far away'/", "far away", 3, 7, false},
		{"sched:sched_switch/period=2/k", "sched:sched_switch:k", 316, 2, false},
		{"instructions//", "instructions", 1, 0, false},
		{"perf::CPU-CLOCK:freq=50", "perf::CPU-CLOCK:freq=50", 0, 50, true},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct event_list list = {0};
		struct err err = {0};
		const struct perf_event_attr *attr;

		if (event_parse_on(&sys, &list, table[i].text, &err) < 0)
			fail_msg("%s: %s", table[i].text, err.text);
		attr = &list.items[0].attr;
		assert_string_equal(list.items[0].name, table[i].name);
		assert_int_equal(attr->config, table[i].config);
		assert_int_equal(attr->sample_period, table[i].rate);
		assert_int_equal(attr->freq, table[i].freq);
		event_list_fini(&list);
	}
}

static void test_tracepoints(void **state)
{
	static const struct expected table[] = {
		{"sched:sched_switch", 2, {316}},
		{"sched:sched_wakeup:k", 2, {318}},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		expect(&table[i]);
}

/* Bits as in the order of `flags`. */
static void test_modifiers(void **state)
{
	static const struct {
		const char *text;
		const char
			*flags; /* user kernel hv idle host guest excluded; precise pinned excl. */
	} table[] = {
		{"cycles", "000000000"},       {"cycles:u", "011000000"},
		{"cycles:k", "101000000"},     {"cycles:h", "110000000"},
		{"cycles:uk", "001000000"},    {"cycles:I", "000100000"},
		{"cycles:G", "000010000"},     {"cycles:H", "000001000"},
		{"cycles:GH", "000000000"},    {"cycles:p", "000001100"},
		{"cycles:upp", "011001200"},   {"cycles:ppp", "000001300"},
		{"cycles:P", "000001300"},     {"cycles:pG", "000010100"},
		{"cycles:D", "000000010"},     {"cycles:e", "000000001"},
		{"cpu/cycles/u", "011000000"}, {"cpu/cycles/:u", "011000000"},
		{"r1a8:k", "101000000"},       {"sched:sched_switch:u", "011000000"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct event_list list = {0};
		struct perf_event_attr *attr;
		char flags[16];

		assert_int_equal(event_parse_on(&sys, &list, table[i].text, NULL), 0);
		attr = &list.items[0].attr;
		snprintf(flags, sizeof(flags), "%d%d%d%d%d%d%d%d%d", attr->exclude_user,
			 attr->exclude_kernel, attr->exclude_hv, attr->exclude_idle,
			 attr->exclude_host, attr->exclude_guest, attr->precise_ip, attr->pinned,
			 attr->exclusive);
		if (strcmp(flags, table[i].flags) != 0)
			fail_msg("%s: %s, not %s", table[i].text, flags, table[i].flags);
		assert_string_equal(list.items[0].name, table[i].text);
		event_list_fini(&list);
	}
}

/* "name group leader;..." */
static void describe(const struct event_list *list, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < list->len; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%s %d %d%s%s", i ? ";" : "",
					list->items[i].name, list->items[i].group,
					list->items[i].leader,
					list->items[i].counted ? " counted" : "",
					list->items[i].weak ? " weak" : "");
}

static void test_lists(void **state)
{
	static const struct {
		const char *text, *want;
	} table[] = {
		{"cycles,cache-misses:u", "cycles -1 1;cache-misses:u -1 1"},
		{" cycles , cs ", "cycles -1 1;cs -1 1"},
		{"{cycles,instructions}", "cycles 0 1;instructions 0 0"},
		{"{cycles, instructions:k}:u,cs", "cycles:u 0 1;instructions:ku 0 0;cs -1 1"},
		{"cs,{cycles,r1},{r2,r3}:k", "cs -1 1;cycles 0 1;r1 0 0;r2:k 1 1;r3:k 1 0"},
		{"{cycles}:u", "cycles:u -1 1"},
		{"{cpu/event=1,umask=2/,cpu/event=3,umask=4/k}:u",
		 "cpu/event=1,umask=2/u 0 1;cpu/event=3,umask=4/ku 0 0"},
		{"{sched:sched_switch,sched:sched_wakeup:k}:u",
		 "sched:sched_switch:u 0 1;sched:sched_wakeup:ku 0 0"},
		{"{cycles,cs}:S", "cycles 0 1;cs 0 0 counted"},
		{"{cycles,cs,r1:k}:uSW,{r2,r3}:W",
		 "cycles:u 0 1 weak;cs:u 0 0 counted weak;r1:ku 0 0 counted weak;"
		 "r2 1 1 weak;r3 1 0 weak"},
		{"{cycles}:S", "cycles -1 1"},
		{"cpu/event=1,umask=2,name=one/,cpu/event=3,name='two'/u", "one -1 1;two -1 1"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct event_list list = {0};
		struct err err = {0};
		char got[256];

		if (event_parse_on(&sys, &list, table[i].text, &err))
			fail_msg("%s: %s", table[i].text, err.text);
		describe(&list, got, sizeof(got));
		assert_string_equal(got, table[i].want);
		event_list_fini(&list);
	}
}

/* Several -e: groups keep apart, and one that fails leaves what was there. */
static void test_append(void **state)
{
	struct event_list list = {0};
	char got[256];

	assert_int_equal(event_parse_on(&sys, &list, "{cycles,r1}", NULL), 0);
	assert_int_equal(event_parse_on(&sys, &list, "{r2,r3}", NULL), 0);
	assert_int_equal(event_parse_on(&sys, &list, "r4,{r5,nonsense}", NULL), ERR_USAGE);
	describe(&list, got, sizeof(got));
	assert_string_equal(got, "cycles 0 1;r1 0 0;r2 1 1;r3 1 0");
	/* Only a leader may be pinned. */
	assert_int_equal(event_parse_on(&sys, &list, "{r6,r7}:D", NULL), 0);
	assert_int_equal(list.items[4].attr.pinned, 1);
	assert_int_equal(list.items[5].attr.pinned, 0);
	event_list_fini(&list);
	event_list_fini(NULL);
}

static void test_errors(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *says, *hints;
	} table[] = {
		{"", ERR_USAGE, "missing", "commas"},
		{"cycles,", ERR_USAGE, "missing", ""},
		{",cycles", ERR_USAGE, "missing", ""},
		{"cycles,,cs", ERR_USAGE, "missing", ""},
		{"{}", ERR_USAGE, "missing", ""},
		{"{cycles", ERR_USAGE, "'}'", ""},
		{"{cycles,{cs}}", ERR_USAGE, "group", ""},
		{"cycles}", ERR_USAGE, "'}'", ""},
		{"{cycles}cs", ERR_USAGE, "'cs'", "commas"},
		{"{cycles}:", ERR_USAGE, "modifiers", ""},
		{"cycles:", ERR_USAGE, "modifiers", "u (user)"},
		{"cycles:x", ERR_USAGE, "'x'", "u (user)"},
		{"cycles:u:k", ERR_USAGE, "':'", ""},
		{"cycles:pppp", ERR_USAGE, "ppp", ""},
		{"cycles:S", ERR_USAGE, "'S'", "leave"},
		{"{cycles,cs:W}", ERR_USAGE, "'W'", "leave"},
		{"cycels", ERR_USAGE, "'cycels'", "'cycles'"},
		{"cycels:u", ERR_USAGE, "'cycels'", "'cycles'"},
		{"cache-miss", ERR_USAGE, "'cache-miss'", "'cache-misses'"},
		{"mem-laods", ERR_USAGE, "'mem-laods'", "'mem-loads'"},
		{"sched:sched_swich", ERR_USAGE, "sched_swich", "'sched:sched_switch'"},
		{"sched_switch", ERR_USAGE, "'sched_switch'", "'sched:sched_switch'"},
		{"perf::CYCELS", ERR_USAGE, "'perf::CYCELS'", "'perf::CYCLES'"},
		{"qqqqqqqqqqqqqqqqqqqqqqqqqq", ERR_USAGE, "no event", "cycles, "},
		{"odd:empty", ERR_USAGE, "odd:empty", ""},
		{"..:..", ERR_USAGE, "no event", ""},
		{"r", ERR_USAGE, "'r'", ""},
		{"r12345678123456781", ERR_USAGE, "no event", ""},
		{"iTLB-stores", ERR_USAGE, "'iTLB-stores'", "'dTLB-stores'"},
		{"L1-dcache-loads-loads", ERR_USAGE, "no event", "L1-dcache-loads"},
		{"cpu/cycles", ERR_USAGE, "'/'", "pmu/terms/"},
		{"cpux/cycles/", ERR_USAGE, "'cpux'", "cpu_atom"},
		{"intel_pt//", ERR_UNSUPPORTED, "intel_pt traces", "perf inject"},
		{"untyped/cycles/", ERR_USAGE, "'untyped'", ""},
		{"../cycles/", ERR_USAGE, "'..'", ""},
		{"/cycles/", ERR_USAGE, "''", ""},
		{"cpu/nonsense=1/", ERR_USAGE, "'nonsense'", ""},
		{"cpu/evnt=1/", ERR_USAGE, "'evnt'", "'event'"},
		{"cpu/mem-laods/", ERR_USAGE, "'mem-laods'", "'mem-loads'"},
		{"cpu/mem-loads.scale/", ERR_USAGE, "scale", ""},
		{"cpu/event=0x100/", ERR_USAGE, "fit", ""},
		{"cpu/odd=0x100/", ERR_USAGE, "fit", ""},
		{"cpu/event=12z/", ERR_USAGE, "number", ""},
		{"cpu/event=/", ERR_USAGE, "number", ""},
		{"cpu/event=99999999999999999999/", ERR_USAGE, "number", ""},
		{"cpu/=1/", ERR_USAGE, "without a name", ""},
		{"cpu/topdown/", ERR_USAGE, "'event'", "event="},
		{"cpu/period=0/", ERR_USAGE, "'period=0'", ""},
		{"cycles/freq/", ERR_USAGE, "'freq='", ""},
		{"cycles/freq=4000000000/", ERR_USAGE, "allows", "sysctl"},
		{"cycles/call-graph=fp/", ERR_USAGE, "'call-graph'", "--call-graph"},
		{"cpu/nr=3/", ERR_USAGE, "'nr'", "leave it out"},
		{"cycles/event=3/", ERR_USAGE, "'event'", "period=N"},
		{"cycels:u/period=3/", ERR_USAGE, "no event", "'cycles'"},
		{"cpu/broken=1/", ERR_UNSUPPORTED, "format", ""},
		{"cpu/alien=1/", ERR_UNSUPPORTED, "format", ""},
		{"cpu/loop/", ERR_UNSUPPORTED, "itself", ""},
		{"cpu/event=1/x", ERR_USAGE, "'x'", ""},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct event_list list = {0};
		struct err err = {0};
		int ret = event_parse_on(&sys, &list, table[i].text, &err);

		if (ret != table[i].code || err.code != (enum err_code)table[i].code ||
		    !strstr(err.text, table[i].says) || !strstr(err.hint, table[i].hints))
			fail_msg("%s: %d \"%s\" \"%s\"", table[i].text, ret, err.text, err.hint);
		assert_int_equal(list.len, 0);
		/* Without an err the code is the same. */
		assert_int_equal(event_parse_on(&sys, &list, table[i].text, NULL), table[i].code);
		event_list_fini(&list);
	}
}

static void test_no_tracefs(void **state)
{
	struct event_system bare = {.devices = "/nonexistent", .tracing = "/nonexistent"};
	struct event_list list = {0};
	struct err err = {0};

	assert_int_equal(event_parse_on(&bare, &list, "sched:sched_switch", &err), ERR_UNSUPPORTED);
	assert_non_null(strstr(err.hint, "mount -t tracefs"));
	assert_int_equal(event_parse_on(&bare, &list, "cycels", &err), ERR_USAGE);
	assert_non_null(strstr(err.hint, "'cycles'"));
	assert_int_equal(event_parse_on(&bare, &list, "cycles", &err), 0);
	event_list_fini(&list);
}

/* What a name stands for is named back the same, for every name that perf shows. */
static bool names_itself(const char *name, void *ctx)
{
	struct perf_event_attr attr = {0}, again = {0};
	char back[64];

	(*(unsigned int *)ctx)++;
	assert_true(event_name_find(name, &attr));
	event_attr_name(&attr, back, sizeof(back));
	assert_true(event_name_find(back, &again));
	assert_int_equal(again.type, attr.type);
	assert_int_equal(again.config, attr.config);
	return true;
}

static void test_attr_name(void **state)
{
	static const struct {
		struct perf_event_attr attr;
		const char *name;
	} table[] = {
		{{.type = 0, .config = 0}, "cycles"},
		{{.type = 0, .config = 4, .exclude_kernel = 1, .exclude_hv = 1}, "branches:u"},
		{{.type = 1, .config = 2, .exclude_user = 1}, "page-faults:k"},
		{{.type = 3, .config = 0x10000, .precise_ip = 2}, "L1-dcache-load-misses:pp"},
		{{.type = 3, .config = 0x00100}, "L1-dcache-stores"},
		{{.type = 4, .config = 0x1a8}, "raw 0x1a8"},
		{{.type = 2, .config = 316, .exclude_kernel = 1}, "tracepoint 316:u"},
		{{.type = 5, .bp_addr = 0x1000}, "mem:0x1000"},
		{{.type = 17, .config = 5}, "pmu 17 0x5"},
		/* Numbers beyond the tables, as a damaged file may have. */
		{{.type = 0, .config = 99}, "pmu 0 0x63"},
		{{.type = 3, .config = 0xff}, "pmu 3 0xff"},
		{{.type = 3, .config = UINT64_MAX}, "pmu 3 0xffffffffffffffff"},
		{{.type = UINT32_MAX, .config = 1}, "pmu 4294967295 0x1"},
	};
	unsigned int names = 0;
	char name[64], tiny[8];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		event_attr_name(&table[i].attr, name, sizeof(name));
		assert_string_equal(name, table[i].name);
	}
	event_name_each(names_itself, &names);
	assert_int_equal(names, 29 + 2 * (3 + 2 + 3 + 3 + 1 + 1 + 3));
	/* Too small a buffer cuts the name. */
	event_attr_name(&table[3].attr, tiny, sizeof(tiny));
	assert_string_equal(tiny, "L1-dcac");
}

/* Those of the machine that runs the test, where it has them. */
static void test_host(void **state)
{
	struct event_list list = {0};
	struct err err = {0};

	assert_int_equal(event_parse(&list, "cpu-clock,{cycles,instructions}:u", &err), 0);
	assert_int_equal(list.len, 3);
	event_list_fini(&list);
	if (event_parse(&list, "sched:sched_switch", &err) < 0) {
		printf("%s\n", err.text);
		skip();
	}
	assert_int_equal(list.items[0].attr.type, PERF_TYPE_TRACEPOINT);
	assert_true(list.items[0].attr.config > 0);
	event_list_fini(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_generic),	       cmocka_unit_test(test_sysfs),
		cmocka_unit_test(test_sampling_terms), cmocka_unit_test(test_tracepoints),
		cmocka_unit_test(test_modifiers),      cmocka_unit_test(test_lists),
		cmocka_unit_test(test_append),	       cmocka_unit_test(test_errors),
		cmocka_unit_test(test_no_tracefs),     cmocka_unit_test(test_attr_name),
		cmocka_unit_test(test_host),
	};

	return cmocka_run_group_tests(tests, make_machine, remove_machine);
}
