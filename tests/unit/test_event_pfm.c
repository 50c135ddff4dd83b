#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "event/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Names of libpfm4, each in a process that pretends to be the model. Codes are those of the
 * vendors' tables: Intel's perfmon event lists (EventCode, UMask, CounterMask at bits 0, 8, 24),
 * AMD's processor programming references, Arm's architecture manual; and of the tables by which the
 * kernel makes its generic events of them (intel_perfmon_event_map, amd_zen1_perfmon_event_map,
 * armv8_pmuv3_perf_map), so that both names count the same.
 */
static const struct {
	const char *model, *text;
	int code;
	uint64_t config, config1;
	bool exclude_kernel;
	int precise;
} table[] = {
	{"skl", "skl::INST_RETIRED:ANY_P", 0, 0x00c0, 0, false, 0},
	{"skl", "INST_RETIRED:ANY_P", 0, 0x00c0, 0, false, 0},
	{"skl", "skl::INST_RETIRED:ANY_P:u", 0, 0x00c0, 0, true, 0},
	{"skl", "skl::INST_RETIRED:ANY_P:upp", 0, 0x00c0, 0, true, 2},
	{"skl", "skl::INST_RETIRED:ANY_P:precise=2", 0, 0x00c0, 0, false, 2},
	{"skl", "skl::UNHALTED_CORE_CYCLES", 0, 0x003c, 0, false, 0},
	{"skl", "skl::LONGEST_LAT_CACHE:MISS", 0, 0x412e, 0, false, 0},
	{"skl", "skl::BR_MISP_RETIRED:ALL_BRANCHES", 0, 0x00c5, 0, false, 0},
	{"skl", "skl::CYCLE_ACTIVITY:STALLS_L3_MISS", 0, 0x60006a3, 0, false, 0},
	{"skl", "skl::MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=64", 0, 0x01cd, 64, false, 0},
	{"skl", "skl::INST_RETIRED:NONSENSE", ERR_USAGE, 0, 0, false, 0},
	{"skl", "skl::NONSENSE", ERR_USAGE, 0, 0, false, 0},
	{"skl", "skl::INST_RETIRED:cpu=1", ERR_USAGE, 0, 0, false, 0},
	{"amd64_fam19h_zen3", "RETIRED_INSTRUCTIONS", 0, 0xc0, 0, false, 0},
	{"amd64_fam19h_zen3", "amd64_fam19h_zen3::CYCLES_NOT_IN_HALT", 0, 0x76, 0, false, 0},
	{"amd64_fam19h_zen3", "RETIRED_BRANCH_INSTRUCTIONS:u", 0, 0xc2, 0, true, 0},
	{"amd64_fam19h_zen3", "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED", 0, 0xc3, 0, false, 0},
	/* cycles, instructions, cache-references, cache-misses, branches, branch-misses */
	{"hsw", "hsw::UNHALTED_CORE_CYCLES", 0, 0x003c, 0, false, 0},
	{"hsw", "hsw::INST_RETIRED:ANY_P", 0, 0x00c0, 0, false, 0},
	{"hsw", "hsw::LONGEST_LAT_CACHE:REFERENCE", 0, 0x4f2e, 0, false, 0},
	{"hsw", "hsw::LONGEST_LAT_CACHE:MISS", 0, 0x412e, 0, false, 0},
	{"hsw", "hsw::BR_INST_RETIRED:ALL_BRANCHES", 0, 0x00c4, 0, false, 0},
	{"hsw", "hsw::BR_MISP_RETIRED:ALL_BRANCHES", 0, 0x00c5, 0, false, 0},
	{"icl", "icl::UNHALTED_CORE_CYCLES", 0, 0x003c, 0, false, 0},
	{"icl", "icl::INST_RETIRED:ANY_P", 0, 0x00c0, 0, false, 0},
	{"icl", "icl::LONGEST_LAT_CACHE:MISS", 0, 0x412e, 0, false, 0},
	{"icl", "icl::BR_INST_RETIRED:ALL_BRANCHES", 0, 0x00c4, 0, false, 0},
	{"spr", "spr::INST_RETIRED:ANY_P", 0, 0x00c0, 0, false, 0},
	{"spr", "spr::LONGEST_LAT_CACHE:MISS", 0, 0x412e, 0, false, 0},
	{"spr", "spr::BR_MISP_RETIRED:ALL_BRANCHES", 0, 0x00c5, 0, false, 0},
	{"amd64_fam17h_zen2", "CYCLES_NOT_IN_HALT", 0, 0x76, 0, false, 0},
	{"amd64_fam17h_zen2", "RETIRED_INSTRUCTIONS", 0, 0xc0, 0, false, 0},
	{"amd64_fam17h_zen2", "RETIRED_BRANCH_INSTRUCTIONS", 0, 0xc2, 0, false, 0},
	{"amd64_fam19h_zen4", "RETIRED_INSTRUCTIONS", 0, 0xc0, 0, false, 0},
	{"amd64_fam19h_zen4", "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED", 0, 0xc3, 0, false, 0},
	{"arm_n1", "arm_n1::L1D_CACHE", 0, 0x04, 0, false, 0},
	{"arm_ac72", "arm_ac72::CPU_CYCLES", 0, 0x11, 0, false, 0},
	{"arm_ac72", "arm_ac72::INST_RETIRED", 0, 0x08, 0, false, 0},
	{"arm_ac72", "arm_ac72::L1D_CACHE_REFILL", 0, 0x03, 0, false, 0},
	{"arm_n1", "arm_n1::CPU_CYCLES", 0, 0x11, 0, false, 0},
	{"arm_n1", "arm_n1::INST_RETIRED", 0, 0x08, 0, false, 0},
	{"arm_n1", "arm_n1::L1D_CACHE_REFILL:u", 0, 0x03, 0, true, 0},
	{"arm_n1", "arm_n1::BR_MIS_PRED", 0, 0x10, 0, false, 0},
};

enum { PASS, FAIL, ABSENT };

static bool is_foreign(const char *model)
{
	struct utsname host;

	return uname(&host) < 0 ||
	       (strncmp(model, "arm", 3) == 0) != (strcmp(host.machine, "aarch64") == 0);
}

/* libpfm4 reads the variable once, hence the process. */
static int check(size_t i)
{
	struct event_list list = {0};
	struct err err = {0};
	int ret;

	setenv("LIBPFM_FORCE_PMU", table[i].model, 1);
	ret = event_parse(&list, table[i].text, &err);
	/* A library for one architecture leaves the models of the others out. */
	if (ret != table[i].code && is_foreign(table[i].model))
		return ABSENT;
	if (ret != table[i].code || (ret < 0 && list.len)) {
		fprintf(stderr, "%s: %d %s\n", table[i].text, ret, err.text);
		return FAIL;
	}
	if (ret < 0)
		return PASS;

	const struct perf_event_attr *attr = &list.items[0].attr;

	ret = attr->type == PERF_TYPE_RAW && attr->config == table[i].config &&
	      attr->config1 == table[i].config1 &&
	      attr->exclude_kernel == table[i].exclude_kernel &&
	      attr->precise_ip == (unsigned int)table[i].precise && attr->sample_period == 0 &&
	      attr->size == sizeof(*attr) && strcmp(list.items[0].name, table[i].text) == 0;
	if (!ret)
		fprintf(stderr, "%s: type %u config 0x%llx 0x%llx\n", table[i].text, attr->type,
			(unsigned long long)attr->config, (unsigned long long)attr->config1);
	event_list_fini(&list);
	return ret ? PASS : FAIL;
}

static void test_models(void **state)
{
	unsigned int absent = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (child == 0)
			_exit(check(i));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_not_equal(WEXITSTATUS(status), FAIL);
		absent += WEXITSTATUS(status) == ABSENT;
	}
	if (absent)
		printf("%u names of other architectures are not in this libpfm4\n", absent);
}

static void test_perf_names(void **state)
{
	static const struct {
		const char *text;
		uint32_t type;
		uint64_t config;
		bool exclude_kernel;
	} names[] = {
		{"perf::CYCLES", 0, 0, false},
		{"perf::CYCLES:u", 0, 0, true},
		{"perf::CYCLES:up", 0, 0, true},
		{"perf::INSTRUCTIONS", 0, 1, false},
		{"perf::CACHE-MISSES", 0, 3, false},
		{"perf::PAGE-FAULTS:u", 1, 2, true},
		{"perf::LLC-LOAD-MISSES", 3, 0x10002, false},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct event_list list = {0};
		struct err err = {0};

		if (event_parse(&list, names[i].text, &err) < 0)
			fail_msg("%s: %s", names[i].text, err.text);
		assert_int_equal(list.items[0].attr.type, names[i].type);
		assert_int_equal(list.items[0].attr.config, names[i].config);
		assert_int_equal(list.items[0].attr.exclude_kernel, names[i].exclude_kernel);
		event_list_fini(&list);
	}
}

/* A model that this machine is not, and no model at all: two machines, so one is another one. */
static void test_other_model(void **state)
{
	static const char *const names[] = {"core::INST_RETIRED", "k8::CPU_CLK_UNHALTED"};
	unsigned int told = 0;

	for (size_t i = 0; i < 2; i++) {
		struct event_list list = {0};
		struct err err = {0};
		int ret = event_parse(&list, names[i], &err);

		assert_true(ret == 0 || ret == ERR_USAGE);
		told += strstr(err.text, "another processor") &&
			strstr(err.hint, "LIBPFM_FORCE_PMU");
		event_list_fini(&list);
	}
#ifdef __x86_64__
	assert_true(told >= 1);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models),
		cmocka_unit_test(test_perf_names),
		cmocka_unit_test(test_other_model),
	};

	unsetenv("LIBPFM_FORCE_PMU");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
