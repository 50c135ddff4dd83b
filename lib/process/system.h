#ifndef PYPERF_SYSTEM_H
#define PYPERF_SYSTEM_H

#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What this machine is and allows, as /proc, /sys and the root folder tell it.
 *
 * `root` stands in front of every path: "" on a live machine, a folder in tests. Nothing there is
 * trusted: what is missing is ERR_NOT_FOUND, what may not be read ERR_PERMISSION, and what does not
 * say what it should ERR_CORRUPT.
 */

/* A file that holds one decimal number: most of /proc/sys. */
int system_number(const char *root, const char *path, long long *value, struct err *err);

/* A field of /proc/self/status: "CapEff" in base 16, "Seccomp" in base 10. */
int system_status(const char *root, const char *field, int base, uint64_t *value, struct err *err);

/* The word in brackets of a file such as "none [integrity] confidentiality". */
int system_choice(const char *root, const char *path, char *buf, size_t size, struct err *err);

/* Does /proc/kallsyms show addresses? 1, 0 where all of them are hidden, or a negative code. */
int system_kernel_addresses(const char *root, struct err *err);

/* Appends the names in a folder, sorted, with blanks between; the count or a negative code. */
int system_list(const char *root, const char *path, struct strbuf *out, struct err *err);

/* Linux's numbers of the capabilities that matter to profiling. */
enum {
	SYSTEM_CAP_IPC_LOCK = 14,
	SYSTEM_CAP_SYS_PTRACE = 19,
	SYSTEM_CAP_SYS_ADMIN = 21,
	SYSTEM_CAP_SYSLOG = 34,
	SYSTEM_CAP_PERFMON = 38,
	SYSTEM_CAP_BPF = 39,
};

enum system_container {
	SYSTEM_HOST, /* no sign of a container */
	SYSTEM_DOCKER,
	SYSTEM_PODMAN,
	SYSTEM_KUBERNETES,
	SYSTEM_CONTAINER, /* of another kind */
};

/* Signs of a container, none of which is proof. */
struct system_place {
	enum system_container container;
	char sign[80];	     /* what told the container */
	bool user_namespace; /* whose root is not the machine's */
	bool pid_namespace;  /* pids are not the machine's */
	int seccomp;	     /* 0 none, 1 strict, 2 filter; -1: not known */
};

/* `kubernetes` is $KUBERNETES_SERVICE_HOST or NULL. */
void system_place(const char *root, const char *kubernetes, struct system_place *place);
/* "docker", "podman", "kubernetes", "container"; NULL for the host. */
const char *system_container_name(enum system_container container);

#endif
