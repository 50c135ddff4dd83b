#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "tests/unit/machine.h"

#include <errno.h>
#include <fcntl.h>

/*
 * The events of a hybrid CPU, on invented machines: sysfs as an Alder Lake has it, and as an arm64
 * with two kinds of cores. What is expected is what `perf record -vv` opens on such machines.
 */
static const struct machine_file alder_lake[] = {
	{"devices/cpu_core/type", "4\n"},
	{"devices/cpu_core/cpus", "0-3\n"},
	{"devices/cpu_core/format/event", "config:0-7\n"},
	{"devices/cpu_core/format/umask", "config:8-15\n"},
	{"devices/cpu_core/format/ldlat", "config1:0-15\n"},
	{"devices/cpu_core/events/cpu-cycles", "event=0x3c\n"},
	{"devices/cpu_core/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"},
	{"devices/cpu_core/events/topdown-retiring", "event=0x00,umask=0x80\n"},
	{"devices/cpu_atom/type", "10\n"},
	{"devices/cpu_atom/cpus", "4-7\n"},
	{"devices/cpu_atom/format/event", "config:0-7\n"},
	{"devices/cpu_atom/format/umask", "config:8-15\n"},
	{"devices/cpu_atom/format/ldlat", "config1:0-15\n"},
	{"devices/cpu_atom/events/cpu-cycles", "event=0x3c\n"},
	{"devices/cpu_atom/events/mem-loads", "event=0xd0,umask=0x5,ldlat=3\n"},
	{"devices/uncore_imc_0/type", "20\n"},
	{"devices/uncore_imc_0/cpumask", "0\n"},
	{"devices/uncore_imc_0/format/event", "config:0-7\n"},
	{"devices/uncore_imc_0/events/data_reads", "event=0x1\n"},
	{"tracing/events/sched/sched_switch/id", "316\n"},
};
/* Its small cores are offline. */
static const struct machine_file only_big[] = {
	{"devices/cpu_core/type", "4\n"},
	{"devices/cpu_core/cpus", "0-3\n"},
	{"devices/cpu_atom/type", "10\n"},
	{"devices/cpu_atom/cpus", "\n"},
};

static char logged[1024];

static void sink(enum log_level level, const char *line, void *ctx)
{
	size_t len = strlen(logged);

	snprintf(logged + len, sizeof(logged) - len, "%s\n", line);
}

static int give_fd(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int open_all(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	return give_fd();
}

/* A kernel that looks at the whole config, as arm64's before 6.6. */
static int open_untyped(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	return attr->type <= PERF_TYPE_HARDWARE && attr->config >> 32 ? -ENOENT : give_fd();
}

static int open_no_hardware(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	return attr->type != PERF_TYPE_SOFTWARE ? -ENOENT : give_fd();
}

/* The small cores have no such event. */
static int open_no_atom_misses(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	return attr->config == 0xa00000003 ? -ENOENT : give_fd();
}

static bool run_always(int leader_fd)
{
	return true;
}

static void ordinary(struct privilege *privilege)
{
	*privilege = (struct privilege){.paranoid = 1};
}

/* "name type:config cpus group leader counted; ..." */
static void describe(const struct event_list *list, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < list->len; i++) {
		const struct event_spec *spec = &list->items[i];

		len += (size_t)snprintf(
			out + len, size - len, "%s%s %u:%llx %s %d%s%s", i ? "; " : "", spec->name,
			spec->attr.type, (unsigned long long)spec->attr.config,
			spec->cpus ? spec->cpus : "all", spec->group, spec->leader ? "" : " member",
			spec->counted ? " read" : "");
	}
}

struct expected {
	const char *text, *want;
};

static void expect(const struct machine *machine, const struct expected *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct event_list list = {0};
		struct err err = {0};
		char got[1024];

		if (event_parse_on(&machine->sys, &list, rows[i].text, &err))
			fail_msg("%s: %s", rows[i].text, err.text);
		describe(&list, got, sizeof(got));
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s: %s, not %s", rows[i].text, got, rows[i].want);
		event_list_fini(&list);
	}
}

static void begin(struct machine *machine, const struct machine_file *files, size_t count)
{
	assert_int_equal(machine_make(machine, files, count), 0);
	machine->sys.open = open_all;
	machine->sys.runs = run_always;
	machine->sys.privilege = ordinary;
	machine->sys.watchdog = "/nonexistent";
	logged[0] = '\0';
}

#define BEGIN(machine, files) begin(machine, files, sizeof(files) / sizeof(files[0]))

static void events_are_of_every_pmu(void **state)
{
	static const struct expected rows[] = {
		{"cycles",
		 "cpu_core/cycles/ 0:400000000 0-3 -1; cpu_atom/cycles/ 0:a00000000 4-7 -1"},
		{"LLC-loads:u", "cpu_core/LLC-loads/u 3:400000002 0-3 -1; "
				"cpu_atom/LLC-loads/u 3:a00000002 4-7 -1"},
		{"cycles:upp", "cpu_core/cycles/upp 0:400000000 0-3 -1; "
			       "cpu_atom/cycles/upp 0:a00000000 4-7 -1"},
		{"r1a8", "cpu_core/r1a8/ 4:1a8 0-3 -1; cpu_atom/r1a8/ 10:1a8 4-7 -1"},
		/* Each PMU's own encoding; one that a single PMU has. */
		{"mem-loads",
		 "cpu_core/mem-loads/ 4:1cd 0-3 -1; cpu_atom/mem-loads/ 10:5d0 4-7 -1"},
		{"topdown-retiring", "cpu_core/topdown-retiring/ 4:8000 0-3 -1"},
		/* Who names a PMU means it. */
		{"cpu_atom/cycles/", "cpu_atom/cycles/ 0:a00000000 4-7 -1"},
		{"cpu_core/event=0xc0/k", "cpu_core/event=0xc0/k 4:c0 0-3 -1"},
		/* Others than the cores'. */
		{"cpu-clock", "cpu-clock 1:0 all -1"},
		{"uncore_imc_0/data_reads/", "uncore_imc_0/data_reads/ 20:1 all -1"},
		{"sched:sched_switch", "sched:sched_switch 2:13c all -1"},
		{"cs,cycles,faults", "cs 1:3 all -1; cpu_core/cycles/ 0:400000000 0-3 -1; "
				     "cpu_atom/cycles/ 0:a00000000 4-7 -1; faults 1:2 all -1"},
	};
	struct machine machine;

	BEGIN(&machine, alder_lake);
	expect(&machine, rows, sizeof(rows) / sizeof(rows[0]));
	machine_remove(&machine);
}

static void groups_are_of_one_pmu_each(void **state)
{
	static const struct expected rows[] = {
		{"{cycles,instructions}:S", "cpu_core/cycles/ 0:400000000 0-3 0; "
					    "cpu_core/instructions/ 0:400000001 0-3 0 member read; "
					    "cpu_atom/cycles/ 0:a00000000 4-7 1; "
					    "cpu_atom/instructions/ 0:a00000001 4-7 1 member read"},
		/* What the kernel counts is counted where the others are. */
		{"{cycles,page-faults:u},cs",
		 "cpu_core/cycles/ 0:400000000 0-3 0; cpu_core/page-faults/u 1:2 0-3 0 member; "
		 "cpu_atom/cycles/ 0:a00000000 4-7 1; cpu_atom/page-faults/u 1:2 4-7 1 member; "
		 "cs 1:3 all -1"},
		/* An event that names its PMU takes the others with it. */
		{"{cycles,cpu_atom/event=1/}",
		 "cpu_atom/cycles/ 0:a00000000 4-7 0; cpu_atom/event=1/ 10:1 4-7 0 member"},
		{"{cs,faults}", "cs 1:3 all 0; faults 1:2 all 0 member"},
		{"{cycles,faults},{instructions,cs}",
		 "cpu_core/cycles/ 0:400000000 0-3 0; cpu_core/faults/ 1:2 0-3 0 member; "
		 "cpu_atom/cycles/ 0:a00000000 4-7 2; cpu_atom/faults/ 1:2 4-7 2 member; "
		 "cpu_core/instructions/ 0:400000001 0-3 1; cpu_core/cs/ 1:3 0-3 1 member; "
		 "cpu_atom/instructions/ 0:a00000001 4-7 3; cpu_atom/cs/ 1:3 4-7 3 member"},
	};
	struct machine machine;

	BEGIN(&machine, alder_lake);
	expect(&machine, rows, sizeof(rows) / sizeof(rows[0]));
	machine_remove(&machine);
}

/* Of one kind of cores there is one PMU, and the kernel may not know the upper half. */
static void others_stay_as_they_are(void **state)
{
	static const struct expected rows[] = {
		{"cycles,r1", "cycles 0:0 all -1; r1 4:1 all -1"},
	};
	static const struct expected untyped[] = {
		{"cycles", "cycles 0:0 all -1"},
		{"r1a8", "cpu_core/r1a8/ 4:1a8 0-3 -1; cpu_atom/r1a8/ 10:1a8 4-7 -1"},
	};
	struct machine machine;

	BEGIN(&machine, only_big);
	expect(&machine, rows, 1);
	machine_remove(&machine);
	BEGIN(&machine, alder_lake);
	machine.sys.open = open_untyped;
	expect(&machine, untyped, 2);
	machine_remove(&machine);
}

/* From the options to what is recorded, as in test_event_probe.c. */
static void lists_are_fitted_to_the_machine(void **state)
{
	static const struct {
		int (*open)(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd);
		const char *text; /* NULL: no -e */
		const char *want, *says;
	} rows[] = {
		{open_all, "cycles",
		 "cpu_core/cycles/ 0:400000000 0-3 0; "
		 "cpu_core/instructions/ 0:400000001 0-3 0 member read; "
		 "cpu_atom/cycles/ 0:a00000000 4-7 1; "
		 "cpu_atom/instructions/ 0:a00000001 4-7 1 member read",
		 ""},
		{open_no_atom_misses, "cycles:u,cache-misses:u",
		 "cpu_core/cycles/u 0:400000000 0-3 0; "
		 "cpu_core/instructions/u 0:400000001 0-3 0 member read; "
		 "cpu_atom/cycles/u 0:a00000000 4-7 1; "
		 "cpu_atom/instructions/u 0:a00000001 4-7 1 member read; "
		 "cpu_core/cache-misses/u 0:400000003 0-3 -1",
		 "left out, since this machine does not have it: cpu_atom/cache-misses/u\n"},
		{open_no_hardware, "cycles", "cpu-clock 1:0 all -1", "cpu-clock instead"},
		{open_all, NULL,
		 "cpu_core/cycles/ 0:400000000 0-3 0; "
		 "cpu_core/instructions/ 0:400000001 0-3 0 member read; "
		 "cpu_core/cache-misses/ 0:400000003 0-3 0 member read; "
		 "cpu_core/branch-misses/ 0:400000005 0-3 0 member read; "
		 "cpu_core/cache-references/ 0:400000002 0-3 0 member read; "
		 "cpu_atom/cycles/ 0:a00000000 4-7 1; "
		 "cpu_atom/instructions/ 0:a00000001 4-7 1 member read; "
		 "cpu_atom/cache-misses/ 0:a00000003 4-7 1 member read; "
		 "cpu_atom/branch-misses/ 0:a00000005 4-7 1 member read; "
		 "cpu_atom/cache-references/ 0:a00000002 4-7 1 member read",
		 ""},
	};

	log_set_sink(sink, NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct event_list list = {0};
		struct machine machine;
		struct err err = {0};
		char got[1024];
		int ret;

		BEGIN(&machine, alder_lake);
		machine.sys.open = rows[i].open;
		if (rows[i].text)
			ret = event_parse_on(&machine.sys, &list, rows[i].text, &err);
		else
			ret = event_list_default_on(&machine.sys, &list, &err);
		if (!ret)
			ret = event_list_count_instructions(&list, &err);
		if (!ret)
			ret = event_list_probe_on(&machine.sys, &list, true, &err);
		if (ret)
			fail_msg("%s: %s", rows[i].text, err.text);
		describe(&list, got, sizeof(got));
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s: %s, not %s", rows[i].text, got, rows[i].want);
		if (!strstr(logged, rows[i].says) || (!*rows[i].says && *logged))
			fail_msg("%s: says %s", rows[i].text, logged);
		event_list_fini(&list);
		machine_remove(&machine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_of_every_pmu),
		cmocka_unit_test(groups_are_of_one_pmu_each),
		cmocka_unit_test(others_stay_as_they_are),
		cmocka_unit_test(lists_are_fitted_to_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
