#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "event/catalog.h"
#include "event/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What `pyperf list` says of a machine that the test invents: its hardware events are answered by
 * software events of the real one, which count or stay at 0. */

static char machine[] = "/tmp/pyperf-test-catalog-XXXXXX";
static char devices[64], tracing[64];
static struct event_system sys;

static const struct {
	const char *path, *text;
} files[] = {
	{"devices/cpu/type", "4\n"},
	{"devices/cpu/cpus", "0-3\n"},
	{"devices/cpu/format/event", "config:0-7\n"},
	{"devices/cpu/format/umask", "config:8-15\n"},
	{"devices/cpu/events/l1d-pend", "event=0x48\n"},
	{"devices/cpu/events/l1d-pend.unit", "cycles\n"},
	{"devices/cpu/events/topdown", "event=?\n"},
	{"tracing/events/sched/sched_switch/id", "316\n"},
};

static int make_machine(void **state)
{
	if (!mkdtemp(machine))
		return -1;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[256];
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", machine, files[i].path);
		for (char *slash = path + strlen(machine) + 1; (slash = strchr(slash, '/'));
		     slash++) {
			*slash = '\0';
			mkdir(path, 0700);
			*slash = '/';
		}
		file = fopen(path, "w");
		if (!file)
			return -1;
		fputs(files[i].text, file);
		fclose(file);
	}
	snprintf(devices, sizeof(devices), "%s/devices", machine);
	snprintf(tracing, sizeof(tracing), "%s/tracing", machine);
	return 0;
}

static int remove_machine(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", machine);
	return system(command);
}

/* Cycles count (user space only), instructions stay at 0, the raw event 0x48 counts, others are not
 * there or forbidden. */
static int open_fake(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	struct perf_event_attr real = *attr;

	assert_int_equal(pid, 0);
	assert_true(attr->disabled && !attr->sample_period);
	real.type = PERF_TYPE_SOFTWARE;
	real.config = PERF_COUNT_SW_TASK_CLOCK;
	real.exclude_kernel = 0;
	if (attr->type == PERF_TYPE_SOFTWARE || (attr->type == 4 && attr->config == 0x48))
		real.config = attr->type == 4 ? real.config : attr->config;
	else if (attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_INSTRUCTIONS)
		real.config = PERF_COUNT_SW_DUMMY;
	else if (attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_BRANCH_MISSES)
		return -EPERM;
	else if (attr->type != PERF_TYPE_HARDWARE || attr->config != PERF_COUNT_HW_CPU_CYCLES)
		return -ENOENT;
	else if (!attr->exclude_kernel)
		return -EACCES;
	return event_open_fd(&real, pid, cpu, group_fd);
}

static const struct catalog_event *find(const struct catalog *catalog, const char *name)
{
	for (size_t i = 0; i < catalog->events.len; i++)
		if (strcmp(catalog->events.items[i].name, name) == 0)
			return &catalog->events.items[i];
	return NULL;
}

static void test_statuses(void **state)
{
	static const struct {
		const char *name;
		enum catalog_kind kind;
		enum catalog_status status;
		bool user_only;
	} table[] = {
		{"cycles", CATALOG_HARDWARE, CATALOG_COUNTS, true},
		{"instructions", CATALOG_HARDWARE, CATALOG_ZERO, false},
		{"branch-misses", CATALOG_HARDWARE, CATALOG_FORBIDDEN, false},
		{"branches", CATALOG_HARDWARE, CATALOG_ABSENT, false},
		{"LLC-loads", CATALOG_CACHE, CATALOG_ABSENT, false},
		{"task-clock", CATALOG_SOFTWARE, CATALOG_COUNTS, false},
		{"page-faults", CATALOG_SOFTWARE, CATALOG_COUNTS, false},
		{"context-switches", CATALOG_SOFTWARE, CATALOG_COUNTS, false},
		{"dummy", CATALOG_SOFTWARE, CATALOG_ZERO, false},
		{"cpu/l1d-pend/", CATALOG_PMU, CATALOG_COUNTS, false},
		{"cpu/topdown/", CATALOG_PMU, CATALOG_UNTRIED, false},
		{"sched:sched_switch", CATALOG_TRACEPOINT, CATALOG_UNTRIED, false},
	};
	enum catalog_kind last = CATALOG_HARDWARE;
	struct catalog catalog;
	struct err err = {0};
	bool known = false;

	assert_int_equal(catalog_read_on(&sys, &catalog, NULL, &err), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct catalog_event *event = find(&catalog, table[i].name);

		if (!event || event->kind != table[i].kind || event->status != table[i].status ||
		    event->user_only != table[i].user_only)
			fail_msg("%s: %s", table[i].name,
				 event ? catalog_status_name(event->status) : "is missing");
	}
	assert_string_equal(find(&catalog, "cycles")->aliases, "cpu-cycles");
	assert_non_null(strstr(find(&catalog, "cpu/topdown/")->why, "value"));
	assert_null(find(&catalog, "cpu-cycles"));
	assert_null(find(&catalog, "cpu/l1d-pend.unit/"));
	for (size_t i = 0; i < catalog.events.len; i++) {
		assert_true(catalog.events.items[i].kind >= last);
		last = catalog.events.items[i].kind;
	}
	assert_int_equal(catalog.pmus.len, 1);
	assert_string_equal(catalog.pmus.items[0].name, "cpu");
	assert_int_equal(catalog.pmus.items[0].type, 4);
	assert_string_equal(catalog.pmus.items[0].cpus, "0-3");
	assert_string_equal(catalog.pmus.items[0].terms, "event=config:0-7 umask=config:8-15");
	for (size_t i = 0; i < catalog.models.len; i++)
		known |= strcmp(catalog.models.items[i].name, "skl") == 0 &&
			 catalog.models.items[i].events > 50;
#ifdef __x86_64__
	assert_true(known);
#endif
	catalog_fini(&catalog);
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *has, *lacks;
	} table[] = {
		{"cycle", "cycles", "instructions"},
		{"cs", "context-switches", "page-faults"}, /* by another name */
		{"software", "task-clock", "cycles"},
		{"SCHED:*", "sched:sched_switch", "cpu/l1d-pend/"},
		{"cpu/*", "cpu/l1d-pend/", "cpu-clock"},
		{"perf::CYC", "perf::CYCLES", "cycles"},
#ifdef __x86_64__
		{"skl::INST", "skl::INST_RETIRED:ALL", "cycles"},
#endif
	};
	struct catalog catalog;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(catalog_read_on(&sys, &catalog, table[i].pattern, NULL), 0);
		if (!find(&catalog, table[i].has) || find(&catalog, table[i].lacks))
			fail_msg("%s", table[i].pattern);
		catalog_fini(&catalog);
	}
	assert_int_equal(catalog_read_on(&sys, &catalog, "no such event", NULL), 0);
	assert_int_equal(catalog.events.len, 0);
	catalog_fini(&catalog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_patterns),
	};

	sys = event_system_host;
	sys.open = open_fake;
	sys.devices = devices;
	sys.tracing = tracing;
	return cmocka_run_group_tests(tests, make_machine, remove_machine);
}
