#include "base/privilege.h"

#include "base/io.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The same on every kernel: PROC_PID_INIT_INO and PROC_USER_INIT_INO, linux/proc_ns.h. */
#define INITIAL_PID_NAMESPACE 4026531836u
#define INITIAL_USER_NAMESPACE 4026531837u

#define SMALL_FILE (1u << 20)

/* A file under the root that is looked at, as text; the caller frees. */
static bool read_under(const char *root, const char *name, struct strbuf *text)
{
	char path[PATH_MAX];

	strbuf_reset(text);
	return (size_t)snprintf(path, sizeof(path), "%s%s", root, name) < sizeof(path) &&
	       io_read_file(path, text, SMALL_FILE, NULL) == 0;
}

static bool exists_under(const char *root, const char *name)
{
	char path[PATH_MAX];

	return (size_t)snprintf(path, sizeof(path), "%s%s", root, name) < sizeof(path) &&
	       access(path, R_OK) == 0;
}

/* What a link says; false where there is none. */
static bool link_under(const char *root, const char *name, char *buf, size_t size)
{
	char path[PATH_MAX];
	ssize_t len;

	if ((size_t)snprintf(path, sizeof(path), "%s%s", root, name) >= sizeof(path))
		return false;
	len = readlink(path, buf, size - 1);
	if (len < 0)
		return false;
	buf[len] = '\0';
	return true;
}

/* "pid:[4026531836]" */
static bool namespace_under(const char *root, const char *name, uint32_t *inode)
{
	char link[64];
	const char *number;

	if (!link_under(root, name, link, sizeof(link)) || !(number = strchr(link, '[')))
		return false;
	*inode = (uint32_t)strtoul(number + 1, NULL, 10);
	return *inode != 0;
}

/* The number behind "NAME:" of a status file; `base` as for strtoull(). */
static bool field(const char *status, const char *name, int base, uint64_t *value)
{
	const char *at = strstr(status, name);

	if (!at)
		return false;
	*value = strtoull(at + strlen(name), NULL, base);
	return true;
}

static void read_status(struct privilege *privilege, const char *root, struct strbuf *text)
{
	uint64_t value = 0;

	if (!read_under(root, "/proc/self/status", text))
		return;
	privilege->known = field(strbuf_text(text), "\nCapEff:", 16, &privilege->effective) &&
			   field(strbuf_text(text), "\nCapBnd:", 16, &privilege->bounding);
	/* SECCOMP_MODE_FILTER */
	privilege->seccomp = field(strbuf_text(text), "\nSeccomp:", 10, &value) && value == 2;
}

static void read_namespaces(struct privilege *privilege, const char *root)
{
	char self[32];
	uint32_t inode;

	privilege->user_namespace = namespace_under(root, "/proc/self/ns/user", &inode) &&
				    inode != INITIAL_USER_NAMESPACE;
	if (namespace_under(root, "/proc/self/ns/pid", &inode) && inode != INITIAL_PID_NAMESPACE)
		privilege->pid_namespace = inode;
	privilege->foreign_proc = link_under(root, "/proc/self", self, sizeof(self)) &&
				  strtol(self, NULL, 10) != (long)getpid();
}

/* By what containers are recognised, the surest first. */
static const struct {
	const char *file;
	const char *text; /* a string of the file, or how one begins; NULL: it exists */
	enum privilege_place place;
	const char *sign;
} signs[] = {
	{"/proc/self/environ", "KUBERNETES_SERVICE_HOST=", PRIVILEGE_KUBERNETES,
	 "KUBERNETES_SERVICE_HOST in the environment"},
	{"/proc/self/cgroup", "kubepods", PRIVILEGE_KUBERNETES, "kubepods in /proc/self/cgroup"},
	{"/run/.containerenv", NULL, PRIVILEGE_PODMAN, "/run/.containerenv"},
	{"/.dockerenv", NULL, PRIVILEGE_DOCKER, "/.dockerenv"},
	{"/proc/self/environ", "container=podman", PRIVILEGE_PODMAN,
	 "container=podman in the environment"},
	{"/proc/self/cgroup", "/libpod", PRIVILEGE_PODMAN, "libpod in /proc/self/cgroup"},
	{"/proc/self/cgroup", "/docker", PRIVILEGE_DOCKER, "docker in /proc/self/cgroup"},
	{"/proc/self/environ", "container=", PRIVILEGE_CONTAINER, "container= in the environment"},
	{"/run/systemd/container", NULL, PRIVILEGE_CONTAINER, "/run/systemd/container"},
};

/* An environment is strings with NULs between, and a variable is found at the begin of one. */
static bool holds(const char *file, const struct strbuf *text, const char *wanted)
{
	const char *at = strbuf_text(text), *end = at + text->len;

	if (!strstr(file, "environ"))
		return strstr(at, wanted) != NULL;
	for (; at < end; at += strlen(at) + 1)
		if (strncmp(at, wanted, strlen(wanted)) == 0)
			return true;
	return false;
}

static void read_place(struct privilege *privilege, const char *root, struct strbuf *text)
{
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		if (signs[i].text ? !read_under(root, signs[i].file, text) ||
					    !holds(signs[i].file, text, signs[i].text)
				  : !exists_under(root, signs[i].file))
			continue;
		privilege->place = signs[i].place;
		snprintf(privilege->sign, sizeof(privilege->sign), "%s", signs[i].sign);
		return;
	}
	if (!privilege->pid_namespace)
		return;
	privilege->place = PRIVILEGE_CONTAINER;
	snprintf(privilege->sign, sizeof(privilege->sign), "a pid namespace of its own");
}

static int read_sysctl(const char *root, const char *name, struct strbuf *text)
{
	char *end;
	long value;

	if (!read_under(root, name, text))
		return PRIVILEGE_UNKNOWN;
	value = strtol(strbuf_text(text), &end, 10);
	if (end == strbuf_text(text) || end[strspn(end, " \n")] || value != (int)value)
		return PRIVILEGE_UNKNOWN;
	return (int)value;
}

static enum privilege_lockdown read_lockdown(const char *root, struct strbuf *text)
{
	if (!read_under(root, "/sys/kernel/security/lockdown", text))
		return PRIVILEGE_LOCKDOWN_NONE;
	if (strstr(strbuf_text(text), "[confidentiality]"))
		return PRIVILEGE_LOCKDOWN_CONFIDENTIALITY;
	return strstr(strbuf_text(text), "[integrity]") ? PRIVILEGE_LOCKDOWN_INTEGRITY
							: PRIVILEGE_LOCKDOWN_NONE;
}

void privilege_read_at(struct privilege *privilege, const char *root)
{
	struct strbuf text = {0};
	struct rlimit limit;

	*privilege = (struct privilege){.euid = geteuid(), .memlock = UINT64_MAX};
	read_status(privilege, root, &text);
	read_namespaces(privilege, root);
	read_place(privilege, root, &text);
	privilege->paranoid = read_sysctl(root, "/proc/sys/kernel/perf_event_paranoid", &text);
	privilege->unprivileged_bpf = read_sysctl(
		root, "/proc/sys/kernel/unprivileged_bpf_disabled", &text);
	privilege->ptrace_scope = read_sysctl(root, "/proc/sys/kernel/yama/ptrace_scope", &text);
	privilege->kptr_restrict = read_sysctl(root, "/proc/sys/kernel/kptr_restrict", &text);
	privilege->perf_mlock_kb = read_sysctl(root, "/proc/sys/kernel/perf_event_mlock_kb", &text);
	privilege->lockdown = read_lockdown(root, &text);
	privilege->btf = exists_under(root, "/sys/kernel/btf/vmlinux");
	privilege->tracefs = exists_under(root, "/sys/kernel/tracing/events") ||
			     exists_under(root, "/sys/kernel/debug/tracing/events");
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		privilege->memlock = limit.rlim_cur;
	strbuf_fini(&text);
}

void privilege_read(struct privilege *privilege)
{
	privilege_read_at(privilege, "");
}

bool privilege_has(const struct privilege *privilege, enum privilege_cap cap)
{
	return privilege->effective >> cap & 1;
}

bool privilege_perf(const struct privilege *privilege)
{
	return privilege_has(privilege, PRIVILEGE_PERFMON) ||
	       privilege_has(privilege, PRIVILEGE_SYS_ADMIN);
}

bool privilege_bpf(const struct privilege *privilege)
{
	return privilege_has(privilege, PRIVILEGE_SYS_ADMIN) ||
	       (privilege_has(privilege, PRIVILEGE_PERFMON) &&
		privilege_has(privilege, PRIVILEGE_BPF));
}

/*
 * The table of remedies. Of file capabilities it names those that pyperf keeps (confine.c).
 *
 * Docker's seccomp profile lets perf_event_open and bpf pass with CAP_PERFMON and CAP_BPF from 23.0
 * on (moby pull request 43988), before with CAP_SYS_ADMIN alone. Podman's took CAP_SYS_ADMIN alone,
 * then asked for CAP_SYS_ADMIN and CAP_PERFMON both, and takes either since late 2025
 * (containers/common pull request 2534): all of them together work with each. `exec --privileged`
 * gives capabilities, but leaves the container's filter in force (moby issues 21984, 30068), so a
 * running container is looked into from a second one that shares its pid namespace. An ordinary
 * `kubectl debug` container has no capability of these; the sysadmin profile is privileged.
 */
#define CAPS_DOCKER                                                                          \
	"--cap-add PERFMON --cap-add BPF --cap-add SYS_PTRACE (before Docker 23: --cap-add " \
	"SYS_ADMIN --cap-add SYS_PTRACE)"
#define CAPS_PODMAN \
	"--cap-add SYS_ADMIN --cap-add PERFMON --cap-add BPF --cap-add SYS_PTRACE, as root"
#define DEBUG_KUBECTL "kubectl debug -it POD --image IMAGE --target CONTAINER --profile sysadmin"
#define BESIDE \
	"; beside a running container add --pid container:NAME (exec --privileged will not do)"

/* In a container of nobody known all three are told. */
#define RUN_WITH(docker, podman, kubernetes)                                                   \
	[PRIVILEGE_DOCKER] = "docker run " docker BESIDE,                                      \
	[PRIVILEGE_PODMAN] = "podman run " podman BESIDE, [PRIVILEGE_KUBERNETES] = kubernetes, \
	[PRIVILEGE_CONTAINER] = "docker run " docker ", podman run " podman ", or " kubernetes

/* What only the host's administrator can mend. */
#define EVERYWHERE(host, inside)                                                           \
	[PRIVILEGE_HOST] = host, [PRIVILEGE_DOCKER] = inside, [PRIVILEGE_PODMAN] = inside, \
	[PRIVILEGE_KUBERNETES] = inside, [PRIVILEGE_CONTAINER] = inside

/* What no right mends. */
#define FIND_PYTHON "name a process that runs Python: pyperf doctor without a number lists them"
#define OTHER_PYTHON                                                                      \
	"record --python=trampoline names the functions, without lines, where it starts " \
	"a CPython 3.12 or later itself; for lines, run the program on an unpatched "     \
	"CPython 3.6 to 3.15"

static const char *const remedies[PRIVILEGE_NEEDS][PRIVILEGE_PLACES] = {
	[PRIVILEGE_NEED_PERF] =
		{
			[PRIVILEGE_HOST] = "run as root, or setcap cap_perfmon,cap_bpf+ep "
					   "on pyperf, or sysctl kernel.perf_event_paranoid=1 for "
					   "programs of one's own",
			RUN_WITH(CAPS_DOCKER, CAPS_PODMAN, DEBUG_KUBECTL),
		},
	[PRIVILEGE_NEED_BPF] =
		{
			[PRIVILEGE_HOST] = "run as root, or setcap cap_perfmon,cap_bpf+ep "
					   "on pyperf (kernels before 5.8: cap_sys_admin)",
			RUN_WITH(CAPS_DOCKER, CAPS_PODMAN, DEBUG_KUBECTL),
		},
	[PRIVILEGE_NEED_PTRACE] =
		{
			[PRIVILEGE_HOST] = "run as root or as the process's user",
			RUN_WITH("--cap-add SYS_PTRACE", "--cap-add SYS_PTRACE", DEBUG_KUBECTL),
		},
	[PRIVILEGE_NEED_SECCOMP] =
		{
			[PRIVILEGE_HOST] =
				"start pyperf outside of the sandbox that set the filter (a "
				"service's SystemCallFilter=, a browser, a build tool)",
			RUN_WITH(CAPS_DOCKER ", or --security-opt seccomp=unconfined",
				 CAPS_PODMAN ", or --security-opt seccomp=unconfined",
				 DEBUG_KUBECTL
				 ", or securityContext.seccompProfile.type: Unconfined"),
		},
	[PRIVILEGE_NEED_USER_NAMESPACE] =
		{
			[PRIVILEGE_HOST] = "run pyperf outside of the user namespace, as root",
			RUN_WITH("--userns host " CAPS_DOCKER ", by a daemon that is not rootless",
				 "--userns host " CAPS_PODMAN " (sudo podman, not rootless)",
				 DEBUG_KUBECTL " on a pod with hostUsers: true"),
		},
	[PRIVILEGE_NEED_PROC] =
		{
			EVERYWHERE("mount the right one: unshare --mount-proc, or nsenter with "
				   "--mount "
				   "beside --pid",
				   "leave out -v /proc:/proc, or share the host's pid namespace, "
				   "too: --pid "
				   "host (Kubernetes: hostPID: true)"),
		},
	[PRIVILEGE_NEED_TARGET] =
		{
			[PRIVILEGE_HOST] =
				"run pyperf in the target's pid namespace or outside of both",
			RUN_WITH("--pid container:NAME, or --pid host",
				 "--pid container:NAME, or --pid host",
				 "kubectl debug --target CONTAINER, or hostPID: true"),
		},
	[PRIVILEGE_NEED_MLOCK] =
		{
			[PRIVILEGE_HOST] =
				"sysctl kernel.perf_event_mlock_kb=8192, or ulimit -l unlimited",
			RUN_WITH("--ulimit memlock=-1 or --cap-add IPC_LOCK",
				 "--ulimit memlock=-1 or --cap-add IPC_LOCK", DEBUG_KUBECTL),
		},
	[PRIVILEGE_NEED_BTF] =
		{
			EVERYWHERE("use a kernel built with CONFIG_DEBUG_INFO_BTF, as "
				   "distributions' are",
				   "mount the host's /sys (-v /sys:/sys:ro) where it is masked; "
				   "its kernel "
				   "needs CONFIG_DEBUG_INFO_BTF"),
		},
	[PRIVILEGE_NEED_LOCKDOWN] =
		{
			EVERYWHERE("boot without lockdown=confidentiality",
				   "boot the host without lockdown=confidentiality"),
		},
	[PRIVILEGE_NEED_TRACEFS] =
		{
			EVERYWHERE("as root: mount -t tracefs tracefs /sys/kernel/tracing",
				   "give the container the host's: -v "
				   "/sys/kernel/tracing:/sys/kernel/tracing:ro "
				   "(Kubernetes: a hostPath volume)"),
		},
	[PRIVILEGE_NEED_KALLSYMS] =
		{
			EVERYWHERE(
				"run as root, or sysctl kernel.kptr_restrict=0 "
				"kernel.perf_event_paranoid=1",
				"--cap-add SYSLOG, or on the host: sysctl kernel.kptr_restrict=0"),
		},
	[PRIVILEGE_NEED_WHOLE_CPUS] =
		{
			[PRIVILEGE_HOST] = "run as root, or sysctl kernel.perf_event_paranoid=0",
			RUN_WITH(CAPS_DOCKER, CAPS_PODMAN, DEBUG_KUBECTL),
		},
	[PRIVILEGE_NEED_PTRACE_SCOPE] =
		{
			[PRIVILEGE_HOST] = "run as root, or sysctl kernel.yama.ptrace_scope=0",
			RUN_WITH("--cap-add SYS_PTRACE", "--cap-add SYS_PTRACE", DEBUG_KUBECTL),
		},
	[PRIVILEGE_NEED_COUNTERS] =
		{
			EVERYWHERE("a virtual machine gets counters from its host (a vPMU); "
				   "sysctl kernel.nmi_watchdog=0 frees one that is taken",
				   "on the host: a virtual machine gets counters from its own "
				   "host (a vPMU); sysctl kernel.nmi_watchdog=0 frees one"),
		},
	[PRIVILEGE_NEED_RATE] =
		{
			EVERYWHERE("sysctl kernel.perf_cpu_time_max_percent=0 "
				   "kernel.perf_event_max_sample_rate=100000",
				   "on the host: sysctl kernel.perf_cpu_time_max_percent=0 "
				   "kernel.perf_event_max_sample_rate=100000"),
		},
	[PRIVILEGE_NEED_STACK] =
		{
			EVERYWHERE("sysctl kernel.perf_event_max_stack=127",
				   "on the host: sysctl kernel.perf_event_max_stack=127"),
		},
	[PRIVILEGE_NEED_PYTHON] =
		{
			EVERYWHERE(FIND_PYTHON, FIND_PYTHON),
		},
	[PRIVILEGE_NEED_LAYOUT] =
		{
			EVERYWHERE(OTHER_PYTHON, OTHER_PYTHON),
		},
};

const char *privilege_remedy(enum privilege_need need, enum privilege_place place)
{
	return remedies[need][place];
}

enum privilege_need privilege_explain(const struct privilege *privilege, enum privilege_need need)
{
	bool allowed = need == PRIVILEGE_NEED_BPF ? privilege_bpf(privilege)
						  : privilege_perf(privilege);

	if (privilege->user_namespace)
		return PRIVILEGE_NEED_USER_NAMESPACE;
	return allowed && privilege->seccomp ? PRIVILEGE_NEED_SECCOMP : need;
}
