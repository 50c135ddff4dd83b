#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Machines that answer as real ones do: a tree of files in the place of /proc and /sys, and an
 * event system and a BPF system beside it. */

static char root[64];
static int open_answer, kernel_answer; /* of perf_event_open for user code, for the kernel's */
static int hardware_answer;
static bool idle; /* hardware events open and get no counter */
static enum err_code bpf_answer;
static enum recorder_python other_engine; /* that auto takes without BPF */

static void put_file(const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(full, 0755);
		*at = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void put_link(const char *path, const char *target)
{
	char full[512];

	put_file(path, "");
	snprintf(full, sizeof(full), "%s%s", root, path);
	unlink(full);
	assert_int_equal(symlink(target, full), 0);
}

static void put_status(const char *caps, const char *seccomp)
{
	char text[256];

	snprintf(text, sizeof(text), "Name:\tpyperf\nCapEff:\t%s\nCapBnd:\t0\nSeccomp:\t%s\n", caps,
		 seccomp);
	put_file("/proc/self/status", text);
}

/* An ordinary user of a distribution's host. */
static int make_host(void **state)
{
	snprintf(root, sizeof(root), "/tmp/pyperf-doctor-XXXXXX");
	assert_non_null(mkdtemp(root));
	put_status("0000000000000000", "0");
	put_link("/proc/self/ns/user", "user:[4026531837]");
	put_link("/proc/self/ns/pid", "pid:[4026531836]");
	put_file("/proc/sys/kernel/perf_event_paranoid", "2\n");
	put_file("/proc/sys/kernel/perf_event_max_sample_rate", "100000\n");
	put_file("/proc/sys/kernel/perf_event_max_stack", "127\n");
	put_file("/proc/sys/kernel/perf_event_mlock_kb", "4096\n");
	put_file("/proc/sys/kernel/kptr_restrict", "1\n");
	put_file("/proc/sys/kernel/yama/ptrace_scope", "1\n");
	put_file("/proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T schedule\n");
	put_file("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	put_file("/sys/kernel/btf/vmlinux", "btf");
	put_file("/sys/kernel/tracing/events/sched/enable", "0\n");
	put_file("/sys/bus/event_source/devices/software/type", "1\n");
	put_file("/sys/bus/event_source/devices/cpu/type", "4\n");
	open_answer = kernel_answer = hardware_answer = 0;
	idle = false;
	bpf_answer = ERR_OK;
	other_engine = RECORDER_PYTHON_TRAMPOLINE;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int remove_host(void **state)
{
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A descriptor from which a counter can be read. */
static int counter(void)
{
	const uint64_t values[3] = {idle ? 0 : 1000, 10, idle ? 0 : 10};
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], values, sizeof(values)), sizeof(values));
	close(ends[1]);
	return ends[0];
}

static int open_event(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	int answer = attr->type == PERF_TYPE_HARDWARE ? hardware_answer
		     : attr->exclude_kernel	      ? open_answer
						      : kernel_answer;

	return answer ? answer : counter();
}

static int try_bpf(struct err *err)
{
	return bpf_answer ? err_set(err, bpf_answer, "BPF says no") : 0;
}

static int choose_engine(enum recorder_python *engine, struct strbuf *why, struct err *err)
{
	*engine = bpf_answer ? other_engine : RECORDER_PYTHON_BPF;
	if (bpf_answer)
		strbuf_str(why, "bpf does not work: BPF says no");
	return 0;
}

static const struct doctor_machine machine = {
	.root = root,
	.open_event = open_event,
	.try_bpf = try_bpf,
	.choose_engine = choose_engine,
};

static struct doctor examine(void)
{
	struct doctor doctor;
	struct err err = {0};

	assert_int_equal(doctor_run(&doctor, &machine, 0, &err), 0);
	return doctor;
}

static const struct doctor_line *find(const struct doctor *doctor, const char *id)
{
	for (size_t i = 0; i < doctor->lines.len; i++)
		if (strcmp(doctor->lines.items[i].id, id) == 0)
			return &doctor->lines.items[i];
	fail_msg("no line %s", id);
	return NULL;
}

static const char *host_remedy(const struct doctor_line *line)
{
	return privilege_remedy((enum privilege_need)line->need, PRIVILEGE_HOST);
}

/* One check on the machine as it is now: its verdict, a part of its text, a part of the remedy for
 * a host, NULL for none. */
static void expect(const char *id, enum doctor_verdict verdict, const char *text,
		   const char *remedy)
{
	struct doctor doctor = examine();
	const struct doctor_line *line = find(&doctor, id);

	if (!strstr(line->text, text))
		fail_msg("%s says '%s', not '%s'", id, line->text, text);
	assert_int_equal(line->verdict, verdict);
	assert_int_equal(line->need >= 0, remedy != NULL);
	if (remedy && !strstr(host_remedy(line), remedy))
		fail_msg("%s advises '%s', not '%s'", id, host_remedy(line), remedy);
	doctor_fini(&doctor);
}

static void host_of_a_user(void **state)
{
	struct doctor doctor = examine();

	/* All that stands in the way of nothing. */
	for (size_t i = 0; i < doctor.lines.len; i++)
		assert_int_not_equal(doctor.lines.items[i].verdict, DOCTOR_FAIL);
	assert_true(doctor.works);
	assert_int_equal(doctor.privilege.place, PRIVILEGE_HOST);
	doctor_fini(&doctor);
	expect("perf-events", DOCTOR_OK, "can be opened", NULL);
	expect("hardware-events", DOCTOR_OK, "cycles instructions", NULL);
	expect("pmus", DOCTOR_OK, "cpu software", NULL);
	expect("capabilities", DOCTOR_NOTE, "none", "setcap");
	expect("paranoid", DOCTOR_NOTE, "2: no kernel code", "perf_event_paranoid=1");
	expect("kernel-symbols", DOCTOR_NOTE, "kptr_restrict", "kptr_restrict=0");
	expect("ptrace", DOCTOR_NOTE, "only programs that pyperf starts", "ptrace_scope=0");
	expect("lockdown", DOCTOR_OK, "none", NULL);
	expect("tracepoints", DOCTOR_OK, "1 systems", NULL);
	expect("locked-memory", DOCTOR_OK, "ring buffers of ", NULL);
}

static void host_of_root(void **state)
{
	put_status("000001ffffffffff", "0");
	put_file("/proc/kallsyms", "ffffffff81000000 T _text\n");
	expect("capabilities", DOCTOR_OK, "BPF PERFMON", NULL);
	expect("paranoid", DOCTOR_OK, "not for you", NULL);
	expect("kernel-symbols", DOCTOR_OK, "functions have names", NULL);
	expect("ptrace", DOCTOR_OK, "every process", NULL);
	expect("locked-memory", DOCTOR_OK, "any size", NULL);
}

static void events_are_forbidden(void **state)
{
	struct doctor doctor;

	open_answer = kernel_answer = hardware_answer = -EACCES;
	put_file("/proc/sys/kernel/perf_event_paranoid", "3\n");
	put_status("0000000000000000", "2");
	expect("perf-events", DOCTOR_FAIL, "does not allow", "perf_event_paranoid=1");
	expect("paranoid", DOCTOR_FAIL, "3: nothing without", "perf_event_paranoid=1");
	expect("kernel-samples", DOCTOR_NOTE, "user space only", "perf_event_paranoid");
	expect("whole-cpus", DOCTOR_NOTE, "do not work", "perf_event_paranoid=0");
	doctor = examine();
	assert_false(doctor.works);
	assert_int_equal(find(&doctor, "seccomp")->verdict, DOCTOR_FAIL);
	assert_int_equal(find(&doctor, "seccomp")->need, PRIVILEGE_NEED_SECCOMP);
	doctor_fini(&doctor);
}

static void bpf_is_forbidden(void **state)
{
	struct doctor doctor;

	bpf_answer = ERR_PERMISSION;
	expect("bpf", DOCTOR_FAIL, "BPF says no", "setcap");
	expect("engine", DOCTOR_FAIL, "takes trampoline, since bpf does not work: BPF says no",
	       "setcap");
	doctor = examine();
	assert_false(doctor.works);
	doctor_fini(&doctor);
	put_file("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	expect("lockdown", DOCTOR_FAIL, "confidentiality", "boot");
	/* With an engine that does without BPF its failure is a note. */
	other_engine = RECORDER_PYTHON_STOP;
	expect("lockdown", DOCTOR_NOTE, "confidentiality", "boot");
	expect("bpf", DOCTOR_NOTE, "BPF says no", "setcap");
	doctor = examine();
	assert_true(doctor.works);
	doctor_fini(&doctor);
}

static void virtual_machine(void **state)
{
	hardware_answer = -ENOENT;
	expect("hardware-events", DOCTOR_NOTE, "none (a virtual machine?)", "virtual machine");
	hardware_answer = 0;
	idle = true;
	expect("hardware-events", DOCTOR_NOTE, "none; get no counter: cycles instructions",
	       "nmi_watchdog");
}

static void lesser_limits(void **state)
{
	put_file("/proc/sys/kernel/perf_event_max_sample_rate", "500\n");
	put_file("/proc/sys/kernel/perf_event_max_stack", "16\n");
	expect("sample-rate", DOCTOR_NOTE, "500 samples", "max_sample_rate=");
	expect("stack-depth", DOCTOR_NOTE, "16 frames", "max_stack=127");
}

static void container(void **state)
{
	struct doctor doctor;

	put_file("/run/.containerenv", "");
	expect("container", DOCTOR_OK, "signs of podman (/run/.containerenv)", NULL);
	doctor = examine();
	assert_int_equal(doctor.privilege.place, PRIVILEGE_PODMAN);
	doctor_fini(&doctor);
}

/* Its root has every capability, and none of them counts. */
static void user_namespace(void **state)
{
	put_status("000001ffffffffff", "0");
	put_link("/proc/self/ns/user", "user:[4026532000]");
	kernel_answer = -EACCES;
	expect("container", DOCTOR_NOTE, "own users", "user namespace");
	expect("capabilities", DOCTOR_NOTE, "within a user namespace", "outside of the user");
	expect("paranoid", DOCTOR_NOTE, "2: no kernel code", "perf_event_paranoid");
	expect("ptrace", DOCTOR_NOTE, "only programs", "ptrace_scope");
}

static const struct {
	const char *file, *check;
} numbers[] = {
	{"/proc/sys/kernel/perf_event_paranoid", "paranoid"},
	{"/proc/sys/kernel/perf_event_max_sample_rate", "sample-rate"},
	{"/proc/sys/kernel/perf_event_max_stack", "stack-depth"},
};

static void corrupt_files_are_told(void **state)
{
	static const char *const texts[] = {
		"",	     "\n", "many\n", "12 monkeys\n", "0x10\n", "99999999999999999999\n",
		"\x80\xff\n"};

	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			put_file(numbers[i].file, texts[t]);
			expect(numbers[i].check, DOCTOR_UNKNOWN, "not known", NULL);
		}
		put_file("/proc/sys/kernel/yama/ptrace_scope", texts[t]);
		expect("ptrace", DOCTOR_OK, "one's own", NULL);
		put_file("/sys/kernel/security/lockdown", texts[t]);
		expect("lockdown", DOCTOR_OK, "none", NULL);
		put_file("/proc/kallsyms", texts[t]);
		expect("kernel-symbols", DOCTOR_UNKNOWN, "lists no symbols", NULL);
		put_file("/proc/self/status", texts[t]);
		expect("capabilities", DOCTOR_UNKNOWN, "does not say", NULL);
	}
}

static void missing_files_are_told(void **state)
{
	struct doctor doctor;

	assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(mkdir(root, 0755), 0);
	expect("paranoid", DOCTOR_UNKNOWN, "not known", NULL);
	expect("sample-rate", DOCTOR_UNKNOWN, "No such file", NULL);
	expect("pmus", DOCTOR_UNKNOWN, "No such file", NULL);
	expect("capabilities", DOCTOR_UNKNOWN, "does not say", NULL);
	expect("kernel-symbols", DOCTOR_UNKNOWN, "No such file", NULL);
	/* Those are not built into every kernel. */
	expect("lockdown", DOCTOR_OK, "none", NULL);
	expect("ptrace", DOCTOR_OK, "one's own", NULL);
	expect("tracepoints", DOCTOR_NOTE, "no tracefs", "mount");
	/* What was tried counts, not what a file says: BPF that works needs none. */
	expect("btf", DOCTOR_NOTE, "no /sys/kernel/btf", "CONFIG_DEBUG_INFO_BTF");
	doctor = examine();
	assert_true(doctor.works);
	doctor_fini(&doctor);
	bpf_answer = ERR_PERMISSION;
	expect("btf", DOCTOR_FAIL, "no /sys/kernel/btf", "CONFIG_DEBUG_INFO_BTF");
}

static void process_that_is_none(void **state)
{
	struct doctor doctor;
	struct err err = {0};
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(doctor_run(&doctor, &machine, pid, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "there is no process"));
	doctor_fini(&doctor);
	/* This test is a process, and no Python. */
	assert_int_equal(doctor_run(&doctor, &machine, getpid(), &err), 0);
	assert_false(doctor.works);
	assert_int_equal(find(&doctor, "pythons")->verdict, DOCTOR_FAIL);
	assert_non_null(strstr(find(&doctor, "pythons")->text, "no CPython"));
	doctor_fini(&doctor);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_host, remove_host)
	const struct CMUnitTest tests[] = {
		TEST(host_of_a_user),
		TEST(host_of_root),
		TEST(events_are_forbidden),
		TEST(bpf_is_forbidden),
		TEST(virtual_machine),
		TEST(lesser_limits),
		TEST(container),
		TEST(user_namespace),
		TEST(corrupt_files_are_told),
		TEST(missing_files_are_told),
		TEST(process_that_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
