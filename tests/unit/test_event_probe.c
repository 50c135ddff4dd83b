#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "event/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Machines that answer perf_event_open() as real ones do, and what becomes of a list on each. */

static char logged[4096];
static unsigned int lines;
static int opened; /* descriptors given out and not closed */

static void sink(enum log_level level, const char *line, void *ctx)
{
	size_t len = strlen(logged);

	snprintf(logged + len, sizeof(logged) - len, "%s\n", line);
	lines++;
}

static int give_fd(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool is_hardware(const struct perf_event_attr *attr)
{
	return attr->type != PERF_TYPE_SOFTWARE && attr->type != PERF_TYPE_TRACEPOINT;
}

/* What holds of every probe on every machine. */
static void check_probe(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	assert_int_equal(pid, 0);
	assert_int_equal(cpu, -1);
	assert_int_equal(attr->size, sizeof(*attr));
	/* Far apart; none for what is counted only. */
	assert_true(!attr->sample_period || attr->sample_period >= UINT64_C(1) << 40);
	assert_int_equal(attr->disabled, group_fd < 0);
}

static int open_full(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	check_probe(attr, pid, cpu, group_fd);
	return give_fd();
}

static int open_virtual(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	check_probe(attr, pid, cpu, group_fd);
	return is_hardware(attr) ? -ENOENT : give_fd();
}

/* A counter that does not interrupt (r1), a PMU that counts for CPUs (r2), and no other. */
static int open_odd(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	bool task = pid == 0 && cpu == -1;

	if (!is_hardware(attr))
		return give_fd();
	if (attr->type != PERF_TYPE_RAW)
		return -ENOENT;
	return attr->sample_period || task != (attr->config == 1) ? -EINVAL : give_fd();
}

/* Paranoid 2 for an ordinary user. */
static int open_paranoid2(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	check_probe(attr, pid, cpu, group_fd);
	return attr->exclude_kernel ? give_fd() : -EACCES;
}

static int open_paranoid2_virtual(const struct perf_event_attr *attr, pid_t pid, int cpu,
				  int group_fd)
{
	if (!attr->exclude_kernel)
		return -EACCES;
	return open_virtual(attr, pid, cpu, group_fd);
}

/* Debian's paranoid 3, or a seccomp filter. */
static int open_forbidden(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	return -EPERM;
}

/* An ARM core: no precise sampling; one that gives one level. */
static int open_no_precise(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	return attr->precise_ip > 1 ? -EOPNOTSUPP : give_fd();
}

/* Counters without an interrupt count but do not sample. */
static int open_no_interrupt(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	return is_hardware(attr) && attr->sample_period ? -EOPNOTSUPP : give_fd();
}

static int open_no_caches(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	if (attr->type == PERF_TYPE_RAW)
		return -EINVAL;
	return attr->type == PERF_TYPE_HW_CACHE ? -ENOENT : give_fd();
}

/* Two counters: the third event of a group is refused. */
static int in_group;

static int open_two_counters(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	if (group_fd < 0)
		in_group = 1;
	else if (++in_group > 2)
		return -EINVAL;
	return give_fd();
}

static int open_busy(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	return -EBUSY;
}

static bool run_always(int leader_fd)
{
	return true;
}

static void ordinary(struct privilege *privilege)
{
	*privilege = (struct privilege){.paranoid = 2};
}

typedef int open_fn(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd);

static int count_fds(void)
{
	int fd = give_fd();

	close(fd);
	return fd;
}

static int probe(struct event_list *list, open_fn *machine, const char *text, struct err *err)
{
	struct event_system sys = event_system_host;
	int ret;

	sys.open = machine;
	sys.runs = run_always;
	sys.privilege = ordinary;
	*list = (struct event_list){0};
	assert_int_equal(event_parse_on(&sys, list, text, err), 0);
	logged[0] = '\0';
	lines = 0;
	opened = count_fds();
	ret = event_list_probe_on(&sys, list, true, err);
	assert_int_equal(count_fds(), opened);
	return ret;
}

/* "name group leader fallback;..." */
static void describe(const struct event_list *list, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < list->len; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%s %d %d %d", i ? "; " : "",
					list->items[i].name, list->items[i].group,
					list->items[i].leader, list->items[i].fallback);
}

static void test_machines(void **state)
{
	static const struct {
		open_fn *machine;
		const char *text, *want;
		unsigned int lines;
		const char *says;
	} table[] = {
		{open_full, "cycles,{instructions,cache-misses}:u",
		 "cycles -1 1 0; instructions:u 0 1 0; cache-misses:u 0 0 0", 0, ""},
		{open_virtual, "cycles", "cpu-clock -1 1 1", 1,
		 "cycles: this machine has no hardware counter (virtual machine?); sampling "
		 "cpu-clock instead\n"},
		{open_virtual, "cycles:upp", "cpu-clock:u -1 1 1", 1, "cycles:upp: "},
		{open_virtual, "cpu-cycles:k,LLC-loads,r1a8,page-faults",
		 "cpu-clock:k -1 1 1; page-faults -1 1 0", 2, "LLC-loads, r1a8\n"},
		{open_virtual, "cycles,cpu-clock", "cpu-clock -1 1 0", 1, "already"},
		{open_virtual, "cpu-clock,cycles", "cpu-clock -1 1 0", 1, "already"},
		{open_virtual, "cycles,cpu-cycles", "cpu-clock -1 1 1", 2, "already"},
		{open_virtual, "cycles:u,cpu-clock:k", "cpu-clock:u -1 1 1; cpu-clock:k -1 1 0", 1,
		 "instead"},
		/* Named by the user twice on purpose. */
		{open_virtual, "cpu-clock,cpu-clock", "cpu-clock -1 1 0; cpu-clock -1 1 0", 0, ""},
		{open_virtual, "{instructions,page-faults,cs}", "page-faults 0 1 0; cs 0 0 0", 1,
		 "instructions\n"},
		{open_virtual, "{cache-misses,page-faults},{cs,migrations}",
		 "page-faults -1 1 0; cs 1 1 0; migrations 1 0 0", 1, "cache-misses\n"},
		{open_virtual, "faults:u,faults:k,page-faults:k",
		 "faults:u -1 1 0; faults:k -1 1 0; page-faults:k -1 1 0", 1,
		 "faults:k and page-faults:k are the same"},
		{open_virtual, "{cycles,instructions}:u", "cpu-clock:u -1 1 1", 2,
		 "instructions:u\n"},
		{open_paranoid2, "cycles,instructions:u,page-faults:p,cpu-clock:uk",
		 "cycles:u -1 1 0; instructions:u -1 1 0; page-faults:up -1 1 0; cpu-clock:u -1 "
		 "1 0",
		 1, "kernel.perf_event_paranoid is 2"},
		{open_paranoid2, "{cycles,faults}", "cycles:u 0 1 0; faults:u 0 0 0", 1,
		 ": cycles, faults\n"},
		{open_paranoid2_virtual, "cycles,cache-misses", "cpu-clock:u -1 1 1", 3,
		 ": cpu-clock\n"},
		{open_no_precise, "cycles:ppp,instructions:p,faults",
		 "cycles:p -1 1 0; instructions:p -1 1 0; faults -1 1 0", 1, ": cycles:ppp\n"},
		{open_paranoid2, "r1a8:uk,perf::CYCLES,perf::INSTRUCTIONS:u:k",
		 "r1a8:u -1 1 0; perf::CYCLES:u -1 1 0; perf::INSTRUCTIONS:u -1 1 0", 1,
		 "user space"},
		{open_no_interrupt, "cycles,instructions", "cpu-clock -1 1 1", 2, "instructions\n"},
		{open_no_caches, "cycles,LLC-loads,rff,dTLB-loads", "cycles -1 1 0", 2,
		 "invalid here: rff\n"},
		{open_two_counters, "{cycles,instructions},{r1,r2,r3}:W",
		 "cycles 0 1 0; instructions 0 0 0; r1 1 1 0; r2 1 0 0; r3 -1 1 0", 1,
		 "on their own: r3\n"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct event_list list;
		struct err err = {0};
		char got[256];

		if (probe(&list, table[i].machine, table[i].text, &err) < 0)
			fail_msg("%s: %s", table[i].text, err.text);
		describe(&list, got, sizeof(got));
		assert_string_equal(got, table[i].want);
		if (lines != table[i].lines || !strstr(logged, table[i].says))
			fail_msg("%s: %u lines: %s", table[i].text, lines, logged);
		/* A list that fits stays as it is. */
		list.items[0].attr.sample_period = 1;
		event_list_fini(&list);
	}
}

/* "name group leader counted;..." of a list as it is recorded. */
static void describe_counted(const struct event_list *list, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < list->len; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%s %d %d %d", i ? "; " : "",
					list->items[i].name, list->items[i].group,
					list->items[i].leader, list->items[i].counted);
}

static int open_three_counters(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	in_group = group_fd < 0 ? 1 : in_group + 1;
	return in_group > 3 ? -EINVAL : give_fd();
}

static int open_cycles_only(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	return is_hardware(attr) && (attr->type || attr->config) ? -ENOENT : give_fd();
}

/* What is counted that nobody asked for, and what becomes of it where the machine counts less. */
static void test_along(void **state)
{
	static const struct {
		open_fn *machine;
		const char *text; /* NULL: no -e */
		bool reads;
		const char *want;
		unsigned int lines;
		const char *says;
	} table[] = {
		{open_full, NULL, true,
		 "cycles 0 1 0; instructions 0 0 1; cache-misses 0 0 1; branch-misses 0 0 1; "
		 "cache-references 0 0 1",
		 0, ""},
		{open_full, NULL, false,
		 "cycles 0 1 0; instructions 0 0 0; cache-misses 0 0 0; branch-misses 0 0 0; "
		 "cache-references 0 0 0",
		 0, ""},
		{open_three_counters, NULL, true,
		 "cycles 0 1 0; instructions 0 0 1; cache-misses 0 0 1; branch-misses -1 1 0; "
		 "cache-references -1 1 0",
		 1, "on their own"},
		{open_virtual, NULL, true, "cpu-clock -1 1 0", 1, "cpu-clock instead"},
		{open_cycles_only, NULL, true, "cycles -1 1 0", 1,
		 "does not have it: instructions, cache-misses, branch-misses, cache-references"},
		{open_full, "cycles,cache-misses", true,
		 "cycles 0 1 0; instructions 0 0 1; cache-misses -1 1 0", 0, ""},
		{open_full, "cs,cycles:u", true, "cs -1 1 0; cycles:u 0 1 0; instructions:u 0 0 1",
		 0, ""},
		{open_full, "cycles,cycles:k", true,
		 "cycles 0 1 0; instructions 0 0 1; cycles:k 1 1 0; instructions:k 1 0 1", 0, ""},
		{open_full, "cycles,instructions", true, "cycles -1 1 0; instructions -1 1 0", 0,
		 ""},
		{open_full, "cycles:pp", true, "cycles:pp 0 1 0; instructions 0 0 1", 0, ""},
		{open_full, "{cycles,cache-misses}:S", true,
		 "cycles 0 1 0; cache-misses 0 0 1; instructions 0 0 1", 0, ""},
		{open_full, "{cycles,cache-misses}:S", false,
		 "cycles 0 1 0; cache-misses 0 0 0; instructions 0 0 0", 1, "6.12"},
		/* A leader's samples read all of its group, also what is sampled. */
		{open_full, "{cycles,cache-misses}", true,
		 "cycles 0 1 0; cache-misses 0 0 0; instructions -1 1 0", 0, ""},
		{open_three_counters, "{cycles,r1,r2}:S", true,
		 "cycles 0 1 0; r1 0 0 1; r2 0 0 1; instructions -1 1 0", 1, "instructions\n"},
		{open_full, "cache-misses", true, "cache-misses -1 1 0", 0, ""},
		{open_virtual, "cycles,cs", true, "cpu-clock -1 1 0; cs -1 1 0", 1, "cpu-clock"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct event_system sys = event_system_host;
		struct event_list list = {0};
		struct err err = {0};
		char got[256];
		int fds = count_fds();

		sys.open = table[i].machine;
		sys.runs = run_always;
		sys.privilege = ordinary;
		if (table[i].text) {
			assert_int_equal(event_parse_on(&sys, &list, table[i].text, &err), 0);
			assert_int_equal(event_list_count_instructions(&list, &err), 0);
		} else {
			assert_int_equal(event_list_default_on(&sys, &list, &err), 0);
		}
		logged[0] = '\0';
		lines = 0;
		if (event_list_probe_on(&sys, &list, table[i].reads, &err) < 0)
			fail_msg("%s: %s", table[i].text, err.text);
		assert_int_equal(count_fds(), fds);
		describe_counted(&list, got, sizeof(got));
		if (strcmp(got, table[i].want) != 0)
			fail_msg("%zu: %s, not %s", i, got, table[i].want);
		if (lines != table[i].lines || !strstr(logged, table[i].says))
			fail_msg("%zu: %u lines: %s", i, lines, logged);
		event_list_fini(&list);
	}
}

/* A kernel that takes any group and counts only those of two events, as riscv64's does. */
static bool run_two(int leader_fd)
{
	return in_group <= 2;
}

static int open_counting(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	in_group = group_fd < 0 ? 1 : in_group + 1;
	return give_fd();
}

/* Which event is too much, how many fit, and who holds another counter. */
static void test_groups(void **state)
{
	static const struct {
		open_fn *machine;
		bool (*runs)(int leader_fd);
		const char *watchdog;
		bool named;
	} table[] = {
		{open_two_counters, run_always, "0\n", false},
		{open_two_counters, run_always, "1\n", true},
		{open_counting, run_two, "1\n", true},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct event_system sys = event_system_host;
		struct event_list list = {0};
		struct err err = {0};
		char path[] = "/tmp/pyperf-watchdog-XXXXXX";
		int fd = mkstemp(path);

		assert_int_equal(write(fd, table[i].watchdog, 2), 2);
		close(fd);
		sys.open = table[i].machine;
		sys.runs = table[i].runs;
		sys.privilege = ordinary;
		sys.watchdog = path;
		assert_int_equal(event_parse_on(&sys, &list, "cs,{r1,r2,r3,r4}", &err), 0);
		assert_int_equal(event_list_probe_on(&sys, &list, true, &err), ERR_UNSUPPORTED);
		assert_non_null(strstr(err.text, "{r1,r2,r3,r4}"));
		assert_non_null(strstr(err.text, "'r3' is too much"));
		assert_non_null(strstr(err.text, "counts 2 at once"));
		assert_non_null(strstr(err.hint, "{r1,r2,r3,r4}:W"));
		assert_int_equal(!!strstr(err.hint, "nmi_watchdog"), table[i].named);
		event_list_fini(&list);
		unlink(path);
	}
}

static bool run_never(int leader_fd)
{
	return false;
}

/* Events that open and get no counter: pinned ones of others have them all. */
static void test_taken(void **state)
{
	static const struct {
		const char *text, *watchdog; /* text NULL: no -e */
		int code;
		const char *want, *says[2];
	} table[] = {
		{"cycles,cs",
		 "0\n",
		 0,
		 "cpu-clock -1 1 1; cs -1 1 0",
		 {"cycles: another user has its counter", "cpu-clock instead"}},
		{"cs,instructions,cache-misses",
		 "0\n",
		 0,
		 "cs -1 1 0",
		 {"left out, since another user", "instructions, cache-misses\n"}},
		{"cs,instructions", "1\n", 0, "cs -1 1 0", {"NMI watchdog", "instructions\n"}},
		{NULL, "1\n", 0, "cpu-clock -1 1 1", {"cycles: another", "cpu-clock instead"}},
		{"instructions,r1", "1\n", ERR_SYSTEM, "", {"instructions, r1", "NMI watchdog"}},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct event_system sys = event_system_host;
		char path[] = "/tmp/pyperf-watchdog-XXXXXX", got[256];
		struct event_list list = {0};
		struct err err = {0};
		int fd = mkstemp(path);

		assert_int_equal(write(fd, table[i].watchdog, 2), 2);
		close(fd);
		sys.open = open_full;
		sys.runs = run_never;
		sys.privilege = ordinary;
		sys.watchdog = path;
		if (table[i].text)
			assert_int_equal(event_parse_on(&sys, &list, table[i].text, &err), 0);
		else
			assert_int_equal(event_list_default_on(&sys, &list, &err), 0);
		logged[0] = '\0';
		assert_int_equal(event_list_probe_on(&sys, &list, true, &err), table[i].code);
		for (size_t s = 0; s < 2; s++)
			if (!strstr(table[i].code ? err.text : logged, table[i].says[s]))
				fail_msg("%zu: %s%s", i, logged, err.text);
		describe(&list, got, sizeof(got));
		if (!table[i].code && strcmp(got, table[i].want) != 0)
			fail_msg("%zu: %s", i, got);
		event_list_fini(&list);
		unlink(path);
	}
}

static void test_refusals(void **state)
{
	static const struct {
		open_fn *machine;
		const char *text;
		int code;
		const char *says, *hints;
	} table[] = {
		{open_virtual, "cache-misses,LLC-loads", ERR_UNSUPPORTED, "cache-misses, LLC-loads",
		 "cpu-clock"},
		{open_forbidden, "cycles", ERR_PERMISSION, "'cycles", "perf_event_paranoid=1"},
		{open_forbidden, "cycles", ERR_PERMISSION, "cycles",
		 "setcap cap_perfmon,cap_bpf+ep"},
		/* Nothing is left of these without the kernel. */
		{open_paranoid2, "cycles:k", ERR_PERMISSION, "'cycles:k'", ""},
		{open_paranoid2, "cycles,cs", ERR_PERMISSION, "'cs'", ""},
		{open_busy, "instructions", ERR_SYSTEM, "another user", "nmi_watchdog"},
		{open_odd, "r1", ERR_UNSUPPORTED, "cannot sample r1: it can be counted only",
		 "pyperf stat"},
		{open_odd, "r2", ERR_UNSUPPORTED, "counts for whole CPUs", "perf stat -a"},
		{open_odd, "r1,cache-misses", ERR_UNSUPPORTED,
		 "r1 (it can be counted only), cache-misses (this machine does not have it)", ""},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct event_list list;
		struct err err = {0};
		int ret = probe(&list, table[i].machine, table[i].text, &err);

		if (ret != table[i].code || !strstr(err.text, table[i].says) ||
		    !strstr(err.hint, table[i].hints))
			fail_msg("%s: %d %s / %s", table[i].text, ret, err.text, err.hint);
		assert_int_equal(lines, 0);
		event_list_fini(&list);
	}
}

/* The attr of a fallback is that of a clock and nothing more. */
static void test_clock_attr(void **state)
{
	struct event_list list;
	struct err err = {0};

	assert_int_equal(probe(&list, open_virtual, "cycles:ukpp", &err), 0);
	assert_int_equal(list.items[0].attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(list.items[0].attr.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_int_equal(list.items[0].attr.precise_ip, 0);
	assert_int_equal(list.items[0].attr.exclude_guest, 0);
	assert_int_equal(list.items[0].attr.exclude_hv, 1);
	/* Probing leaves no traces of how it sampled. */
	assert_int_equal(list.items[0].attr.sample_period, 0);
	assert_int_equal(list.items[0].attr.disabled, 0);
	event_list_fini(&list);
}

static void test_open_errors(void **state)
{
	static const struct {
		int sys, code;
		const char *says;
	} table[] = {
		{ENOENT, ERR_UNSUPPORTED, "does not have it"},
		{ENODEV, ERR_UNSUPPORTED, "does not have it"},
		{EOPNOTSUPP, ERR_UNSUPPORTED, "cannot sample"},
		{EINVAL, ERR_UNSUPPORTED, "invalid"},
		{EMFILE, ERR_SYSTEM, "too many files are open in this process"},
		{ENFILE, ERR_SYSTEM, "too many files are open on this machine"},
		{ENOSPC, ERR_SYSTEM, "no counter"},
		{EBUSY, ERR_SYSTEM, "another user"},
		{E2BIG, ERR_UNSUPPORTED, "too old"},
		{ENOSYS, ERR_UNSUPPORTED, "CONFIG_PERF_EVENTS"},
		{ESRCH, ERR_NOT_FOUND, "ended"},
		{ENOMEM, ERR_NOMEM, "memory"},
		{EACCES, ERR_PERMISSION, "does not allow"},
		{EPERM, ERR_PERMISSION, "does not allow"},
		{EIO, ERR_SYSTEM, "Input/output error"},
	};
	char name[] = "cycles";
	struct event_spec spec = {.name = name};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct err err = {0};

		assert_int_equal(event_open_error(&spec, table[i].sys, &err), table[i].code);
		assert_int_equal(err.code, table[i].code);
		if (!strstr(err.text, table[i].says) || !strstr(err.text, "'cycles'"))
			fail_msg("%d: %s", table[i].sys, err.text);
		/* What event_open_fd() returned serves as well. */
		assert_int_equal(event_open_error(&spec, -table[i].sys, NULL), table[i].code);
		/* The hint arrived whole. */
		assert_true(strlen(err.hint) < sizeof(err.hint) - 1);
	}
}

static int level;
static bool capable;

static bool filtered, namespaced;

static void get_privilege(struct privilege *privilege)
{
	*privilege = (struct privilege){
		.paranoid = level,
		.effective = capable ? UINT64_C(1) << PRIVILEGE_PERFMON : 0,
		.seccomp = filtered,
		.user_namespace = namespaced,
	};
}

/* The sentence blames the paranoid level only where that is what forbids it. */
static void test_blame(void **state)
{
	static const struct {
		int sys, level;
		bool capable, user_only, blamed;
	} table[] = {
		{EPERM, 2, false, false, true},	 {EPERM, 2, false, true, false},
		{EPERM, 3, false, true, true},	 {EPERM, 4, false, false, true},
		{EPERM, 1, false, false, false}, {EPERM, -1, false, false, false},
		{EPERM, 4, true, false, false},	 {EACCES, 2, false, true, true},
		{EACCES, 1, false, false, true}, {EACCES, 0, false, false, false},
		{EACCES, 2, true, false, false},
	};
	struct event_system sys = {.privilege = get_privilege};
	char name[] = "cycles";

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct event_spec spec = {.name = name,
					  .attr = {.exclude_kernel = table[i].user_only}};
		struct err err = {0};
		char says[64];

		level = table[i].level;
		capable = table[i].capable;
		snprintf(says, sizeof(says), "kernel.perf_event_paranoid is %d", level);
		assert_int_equal(event_open_error_on(&sys, &spec, table[i].sys, &err),
				 ERR_PERMISSION);
		assert_non_null(strstr(err.text, says));
		assert_int_equal(strstr(err.text, "CAP_PERFMON is missing") != NULL,
				 table[i].blamed);
		assert_int_equal(strstr(err.text, "another owner") != NULL, !table[i].blamed);
		assert_int_equal(strstr(err.text, "in force") != NULL, capable);
		assert_true(strlen(err.text) < sizeof(err.text) - 1);
	}
}

/* In a container: what the filter and the namespace take away is not put on the sysctl. */
static void test_blame_contained(void **state)
{
	static const struct {
		int sys, level;
		bool capable, filtered, namespaced;
		const char *says, *hints;
	} table[] = {
		{EPERM, 2, true, true, false, "seccomp filter", "seccomp"},
		{ENOSYS, 2, true, true, false, "seccomp filter", "seccomp"},
		{ENOSYS, 2, false, true, false, "seccomp filter", "seccomp"},
		{EPERM, 1, false, true, false, "seccomp filter", "seccomp"},
		{EPERM, 2, false, true, false, "CAP_PERFMON is missing", "cap_perfmon"},
		{EACCES, 2, true, false, true, "user namespace", "user namespace"},
		{EACCES, 2, true, true, true, "user namespace", "user namespace"},
		{ENOSYS, 2, true, false, false, "built without perf events", ""},
	};
	struct event_system sys = {.privilege = get_privilege};
	char name[] = "cycles";

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct event_spec spec = {.name = name};
		struct err err = {0};

		level = table[i].level;
		capable = table[i].capable;
		filtered = table[i].filtered;
		namespaced = table[i].namespaced;
		event_open_error_on(&sys, &spec, table[i].sys, &err);
		if (!strstr(err.text, table[i].says))
			fail_msg("%zu: %s", i, err.text);
		/* The table's host column names the filter's other users. */
		if (!strcmp(table[i].hints, "seccomp"))
			assert_string_equal(
				err.hint, privilege_remedy(PRIVILEGE_NEED_SECCOMP, PRIVILEGE_HOST));
		else
			assert_non_null(strstr(err.hint, table[i].hints));
	}
	filtered = namespaced = false;
}

static void test_host(void **state)
{
	struct event_list list = {0};
	struct err err = {0};
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
	int now;

	if (!file || fscanf(file, "%d", &now) != 1) {
		printf("no perf events here\n");
		skip();
	}
	fclose(file);
	assert_true(event_max_sample_rate() > 0);
	/* Every machine that allows anything has a clock. */
	assert_int_equal(event_parse(&list, "cycles:u", &err), 0);
	if (event_list_probe(&list, true, &err) < 0) {
		assert_int_equal(err.code, ERR_PERMISSION);
		printf("%s\n", err.text);
		event_list_fini(&list);
		skip();
	}
	assert_int_equal(list.len, 1);

	int fd = event_open_fd(&list.items[0].attr, 0, -1, -1);

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	assert_int_equal(event_open_fd(&list.items[0].attr, 0, -1, 12345), -EBADF);
	event_list_fini(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machines),	cmocka_unit_test(test_along),
		cmocka_unit_test(test_groups),		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_refusals),	cmocka_unit_test(test_clock_attr),
		cmocka_unit_test(test_open_errors),	cmocka_unit_test(test_blame),
		cmocka_unit_test(test_blame_contained), cmocka_unit_test(test_host),
	};

	log_set_sink(sink, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
