#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/privilege.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads made-up machines: a file tree for each, as a container or a host would show it. */

static char root[] = "/tmp/pyperf-test-privilege-XXXXXX";

static void remove_tree(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s/*  %s/.[a-z]*", root, root);
	assert_int_equal(system(command), 0);
}

static void make_folders(char *path)
{
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
	}
}

static void put_bytes(const char *name, const void *bytes, size_t len)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s%s", root, name);
	make_folders(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, bytes, len), 0);
	close(fd);
}

static void put(const char *name, const char *text)
{
	put_bytes(name, text, strlen(text));
}

static void put_link(const char *name, const char *to)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", root, name);
	make_folders(path);
	unlink(path);
	assert_int_equal(symlink(to, path), 0);
}

/* /proc/self is a link to the number of who looks. */
static void put_self(long pid, const char *status)
{
	char number[32], name[64];

	snprintf(number, sizeof(number), "%ld", pid);
	put_link("/proc/self", number);
	snprintf(name, sizeof(name), "/proc/%ld/status", pid);
	put(name, status);
	snprintf(name, sizeof(name), "/proc/%ld/ns/pid", pid);
	put_link(name, "pid:[4026531836]");
	snprintf(name, sizeof(name), "/proc/%ld/ns/user", pid);
	put_link(name, "user:[4026531837]");
}

static int make_root(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	remove_tree();
	return rmdir(root);
}

static int next_machine(void **state)
{
	remove_tree();
	return 0;
}

static void test_host(void **state)
{
	struct privilege p;

	put_self(getpid(), "Name:\tx\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n"
			   "Seccomp:\t0\nSeccomp_filters:\t0\n");
	put("/proc/sys/kernel/perf_event_paranoid", "-1\n");
	put("/proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
	put("/proc/sys/kernel/perf_event_mlock_kb", "516\n");
	put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	put("/sys/kernel/btf/vmlinux", "");
	put("/sys/kernel/tracing/events/x", "");
	privilege_read_at(&p, root);
	assert_true(p.known);
	assert_int_equal(p.effective, 0);
	assert_int_equal(p.bounding, 0x1ffffffffff);
	assert_false(p.user_namespace);
	assert_int_equal(p.pid_namespace, 0);
	assert_false(p.foreign_proc);
	assert_false(p.seccomp);
	assert_int_equal(p.place, PRIVILEGE_HOST);
	assert_string_equal(p.sign, "");
	assert_int_equal(p.paranoid, -1);
	assert_int_equal(p.unprivileged_bpf, 2);
	assert_int_equal(p.ptrace_scope, PRIVILEGE_UNKNOWN);
	assert_int_equal(p.perf_mlock_kb, 516);
	assert_int_equal(p.lockdown, PRIVILEGE_LOCKDOWN_INTEGRITY);
	assert_true(p.btf && p.tracefs);
	assert_false(privilege_perf(&p) || privilege_bpf(&p));
}

static void test_nothing_readable(void **state)
{
	struct privilege p;

	privilege_read_at(&p, root);
	assert_false(p.known || p.btf || p.tracefs || p.seccomp);
	assert_int_equal(p.place, PRIVILEGE_HOST);
	assert_int_equal(p.paranoid, PRIVILEGE_UNKNOWN);
	assert_int_equal(p.lockdown, PRIVILEGE_LOCKDOWN_NONE);
}

static void set_caps(uint64_t effective)
{
	char status[160];

	snprintf(status, sizeof(status),
		 "Name:\tx\nCapEff:\t%016llx\nCapBnd:\t000001ffffffffff\nSeccomp:\t2\n",
		 (unsigned long long)effective);
	put_self(getpid(), status);
}

static void test_capabilities(void **state)
{
	static const struct {
		uint64_t caps;
		bool perf, bpf;
	} cases[] = {
		{0x00000000a80425fb, false, false}, /* Docker's default */
		{UINT64_C(1) << 21, true, true},    /* SYS_ADMIN */
		{UINT64_C(1) << 38, true, false},   /* PERFMON */
		{UINT64_C(1) << 39, false, false},  /* BPF */
		{UINT64_C(3) << 38, true, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct privilege p;

		set_caps(cases[i].caps);
		privilege_read_at(&p, root);
		assert_int_equal(p.effective, cases[i].caps);
		assert_int_equal(privilege_perf(&p), cases[i].perf);
		assert_int_equal(privilege_bpf(&p), cases[i].bpf);
		assert_true(p.seccomp);
	}
}

static void test_places(void **state)
{
	static const struct {
		const char *file;
		const char *bytes;
		size_t len;
		enum privilege_place place;
	} cases[] = {
		{"/.dockerenv", "", 0, PRIVILEGE_DOCKER},
		{"/run/.containerenv", "", 0, PRIVILEGE_PODMAN},
		{"/run/systemd/container", "systemd-nspawn", 14, PRIVILEGE_CONTAINER},
		{"/proc/self/cgroup", "0::/kubepods.slice/x\n", 21, PRIVILEGE_KUBERNETES},
		{"/proc/self/cgroup", "0::/docker/0123\n", 16, PRIVILEGE_DOCKER},
		{"/proc/self/cgroup", "0::/user.slice\n", 15, PRIVILEGE_HOST},
		{"/proc/self/environ", "A=1\0container=podman\0", 21, PRIVILEGE_PODMAN},
		{"/proc/self/environ", "container=lxc\0", 14, PRIVILEGE_CONTAINER},
		{"/proc/self/environ", "my_container=lxc\0", 17, PRIVILEGE_HOST},
		{"/proc/self/environ", "A=1\0KUBERNETES_SERVICE_HOST=10.0.0.1\0", 37,
		 PRIVILEGE_KUBERNETES},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct privilege p;

		remove_tree();
		set_caps(0);
		put_bytes(cases[i].file, cases[i].bytes, cases[i].len);
		privilege_read_at(&p, root);
		assert_int_equal(p.place, cases[i].place);
		assert_int_equal(p.sign[0] == '\0', cases[i].place == PRIVILEGE_HOST);
	}
	/* The kubelet's containers may have Docker's sign as well. */
	put("/.dockerenv", "");
	struct privilege p;

	privilege_read_at(&p, root);
	assert_int_equal(p.place, PRIVILEGE_KUBERNETES);
}

static void test_namespaces(void **state)
{
	struct privilege p;
	char name[64];

	set_caps(UINT64_C(1) << 21);
	snprintf(name, sizeof(name), "/proc/%d/ns/pid", (int)getpid());
	put_link(name, "pid:[4026532000]");
	snprintf(name, sizeof(name), "/proc/%d/ns/user", (int)getpid());
	put_link(name, "user:[4026532001]");
	privilege_read_at(&p, root);
	assert_int_equal(p.pid_namespace, 4026532000);
	assert_true(p.user_namespace);
	assert_int_equal(p.place, PRIVILEGE_CONTAINER);
	assert_false(p.foreign_proc);
	/* The container's capabilities do not count outside of it. */
	assert_int_equal(privilege_explain(&p, PRIVILEGE_NEED_BPF), PRIVILEGE_NEED_USER_NAMESPACE);
	/* A /proc that numbers us otherwise. */
	put_self((long)getpid() + 1, "CapEff:\t0\n");
	privilege_read_at(&p, root);
	assert_true(p.foreign_proc);
}

static void test_explain(void **state)
{
	struct privilege p = {.seccomp = true};

	assert_int_equal(privilege_explain(&p, PRIVILEGE_NEED_PERF), PRIVILEGE_NEED_PERF);
	p.effective = UINT64_C(1) << PRIVILEGE_PERFMON;
	assert_int_equal(privilege_explain(&p, PRIVILEGE_NEED_PERF), PRIVILEGE_NEED_SECCOMP);
	assert_int_equal(privilege_explain(&p, PRIVILEGE_NEED_BPF), PRIVILEGE_NEED_BPF);
	p.effective = UINT64_C(1) << PRIVILEGE_SYS_ADMIN;
	assert_int_equal(privilege_explain(&p, PRIVILEGE_NEED_BPF), PRIVILEGE_NEED_SECCOMP);
	p.seccomp = false;
	assert_int_equal(privilege_explain(&p, PRIVILEGE_NEED_BPF), PRIVILEGE_NEED_BPF);
}

/* Every cell is filled and fits into an err's hint; a container of nobody known is told all. */
static void test_remedies(void **state)
{
	for (int need = 0; need < PRIVILEGE_NEEDS; need++)
		for (int place = 0; place < PRIVILEGE_PLACES; place++) {
			const char *text = privilege_remedy((enum privilege_need)need,
							    (enum privilege_place)place);

			assert_non_null(text);
			assert_in_range(strlen(text), 10, sizeof(((struct err *)0)->hint) - 1);
			assert_true(text[strlen(text) - 1] != '.');
		}
	const char *all = privilege_remedy(PRIVILEGE_NEED_BPF, PRIVILEGE_CONTAINER);

	assert_true(strstr(all, "docker run") && strstr(all, "podman run") &&
		    strstr(all, "kubectl debug"));
}

/* The real machine agrees with what the C library says of it. */
static void test_here(void **state)
{
	struct privilege p;
	struct rlimit limit;

	privilege_read(&p);
	assert_true(p.known);
	assert_int_equal(p.euid, geteuid());
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	assert_true(p.memlock ==
		    (limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur));
	assert_int_equal(p.btf, access("/sys/kernel/btf/vmlinux", R_OK) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_host, next_machine),
		cmocka_unit_test_setup(test_nothing_readable, next_machine),
		cmocka_unit_test_setup(test_capabilities, next_machine),
		cmocka_unit_test_setup(test_places, next_machine),
		cmocka_unit_test_setup(test_namespaces, next_machine),
		cmocka_unit_test(test_explain),
		cmocka_unit_test(test_remedies),
		cmocka_unit_test(test_here),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
