#ifndef PYPERF_PRIVILEGE_H
#define PYPERF_PRIVILEGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What this process may do, where it runs, and what to say when that is not enough.
 *
 * Facts only: nothing is tried, printed or judged here. Whoever meets a refusal reads them, picks
 * the need that explains it and takes the remedy for the place from the one table.
 */

/* Bits of the capability sets, linux/capability.h; the last two came with Linux 5.8. */
enum privilege_cap {
	PRIVILEGE_IPC_LOCK = 14,
	PRIVILEGE_SYS_PTRACE = 19,
	PRIVILEGE_SYS_ADMIN = 21,
	PRIVILEGE_SYSLOG = 34,
	PRIVILEGE_PERFMON = 38,
	PRIVILEGE_BPF = 39,
};

/* Whose flags grant things here. */
enum privilege_place {
	PRIVILEGE_HOST,
	PRIVILEGE_DOCKER,
	PRIVILEGE_PODMAN,
	PRIVILEGE_KUBERNETES,
	PRIVILEGE_CONTAINER, /* by its namespaces, of nobody known */
	PRIVILEGE_PLACES,
};

enum privilege_lockdown {
	PRIVILEGE_LOCKDOWN_NONE, /* or a kernel without it */
	PRIVILEGE_LOCKDOWN_INTEGRITY,
	PRIVILEGE_LOCKDOWN_CONFIDENTIALITY,
};

#define PRIVILEGE_UNKNOWN (-100) /* of a sysctl that cannot be read */

struct privilege {
	bool known; /* /proc/self/status could be read; else the capabilities are 0 */
	uint32_t euid;
	uint64_t effective, bounding; /* capabilities, bit by enum privilege_cap */
	/* Not the initial one: capabilities then count for what belongs to it, not for perf and
	 * BPF. */
	bool user_namespace;
	uint32_t pid_namespace; /* inode; 0: the initial one */
	/* /proc numbers processes as another pid namespace does: what it says of a pid is said of
	 * another process. */
	bool foreign_proc;
	bool seccomp; /* a filter is in force */
	enum privilege_place place;
	char sign[64]; /* by what a container was recognised: "/.dockerenv"; "" on a host */

	int paranoid;	      /* kernel.perf_event_paranoid */
	int unprivileged_bpf; /* kernel.unprivileged_bpf_disabled: 0 allows */
	int ptrace_scope;     /* kernel.yama.ptrace_scope; unknown without Yama */
	int kptr_restrict;    /* kernel.kptr_restrict */
	int perf_mlock_kb;    /* kernel.perf_event_mlock_kb, per user and CPU */
	uint64_t memlock;     /* RLIMIT_MEMLOCK in bytes; UINT64_MAX: no limit */
	enum privilege_lockdown lockdown;
	bool btf;     /* the kernel describes its types */
	bool tracefs; /* mounted where it may be read */
};

void privilege_read(struct privilege *privilege);
/* The same of a file tree under `root`, "" for this machine's: for tests. */
void privilege_read_at(struct privilege *privilege, const char *root);

bool privilege_has(const struct privilege *privilege, enum privilege_cap cap);
/* CAP_PERFMON or CAP_SYS_ADMIN: the kernel asks perfmon_capable(). */
bool privilege_perf(const struct privilege *privilege);
/* CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN: what a tracing program needs. */
bool privilege_bpf(const struct privilege *privilege);

/* What can be missing. */
enum privilege_need {
	PRIVILEGE_NEED_PERF,	       /* perf events beyond one's own user-space code */
	PRIVILEGE_NEED_BPF,	       /* BPF programs */
	PRIVILEGE_NEED_PTRACE,	       /* memory, maps and files of a process */
	PRIVILEGE_NEED_SECCOMP,	       /* a filter that lets perf_event_open and bpf pass */
	PRIVILEGE_NEED_USER_NAMESPACE, /* the initial user namespace */
	PRIVILEGE_NEED_PROC,	       /* a /proc of pyperf's own pid namespace */
	PRIVILEGE_NEED_TARGET,	       /* a target that pyperf's pid namespace can see */
	PRIVILEGE_NEED_MLOCK,	       /* more locked memory */
	PRIVILEGE_NEED_BTF,	       /* the kernel's types */
	PRIVILEGE_NEED_LOCKDOWN,       /* a kernel without confidentiality lockdown */
	PRIVILEGE_NEED_TRACEFS,	       /* descriptions of tracepoints */
	PRIVILEGE_NEED_KALLSYMS,       /* the kernel's addresses */
	PRIVILEGE_NEED_WHOLE_CPUS,     /* whatever runs, not only one's own */
	PRIVILEGE_NEED_PTRACE_SCOPE,   /* one's own processes that pyperf did not start */
	PRIVILEGE_NEED_COUNTERS,       /* hardware counters */
	PRIVILEGE_NEED_RATE,	       /* a higher sample rate */
	PRIVILEGE_NEED_STACK,	       /* deeper stacks */
	PRIVILEGE_NEED_PYTHON,	       /* a process that runs CPython */
	PRIVILEGE_NEED_LAYOUT,	       /* a CPython whose structures are known */
	PRIVILEGE_NEEDS,
};

/* The remedy: an order of a sentence, no full stop. Never NULL. */
const char *privilege_remedy(enum privilege_need need, enum privilege_place place);
/* The need behind a refused perf_event_open or bpf (EPERM, EACCES, or the ENOSYS of a filter):
 * `need` itself, or what stands before it: the user namespace, the filter. */
enum privilege_need privilege_explain(const struct privilege *privilege, enum privilege_need need);

#endif
