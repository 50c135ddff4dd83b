#ifndef PYPERF_TARGET_H
#define PYPERF_TARGET_H

#include "base/err.h"
#include "base/strbuf.h"
#include "record/recorder.h"

/*
 * What runs already and is to be recorded: which processes and threads, and whether they still run.
 * A process is known by its pid and the time at which it started, so that a reused pid is another.
 */

/* Does /proc show the processes that pyperf sees, by the same numbers? Else nothing can be recorded
 * soundly: ERR_UNSUPPORTED. */
int target_check(struct err *err);

/* "12,34": appends to the target's tasks, each once. For RECORDER_PROCESSES a thread's id stands
 * for its process. One that does not run is ERR_NOT_FOUND. */
int target_add_ids(struct recorder_target *target, const char *text, struct err *err);
/* The processes of a user (name or number), but not this one. */
int target_add_user(struct recorder_target *target, const char *user, struct err *err);
/* "0-3,8": all of them must be online. */
int target_add_cpus(struct recorder_target *target, const char *text, struct err *err);
/* What belongs to a control group (cgroup.h), on the target's CPUs. */
int target_set_cgroup(struct recorder_target *target, const char *name, struct err *err);
void target_fini(struct recorder_target *target);

/* "process 12 (python3)", "CPUs 0-1", "all CPUs", "control group /x on all CPUs"; names are read
 * now. */
void target_describe(const struct recorder_target *target, struct strbuf *out);

/* Are all its tasks gone, or its control group? A target of CPUs alone never ends. */
bool target_ended(const struct recorder_target *target);

/* The threads of a process now; none where it is gone. */
struct tasks {
	VEC_OF(pid_t)
};
int target_threads(pid_t pid, struct tasks *tasks, struct err *err);
/* All processes now. */
int target_processes(struct tasks *pids, struct err *err);

/* Says why a task that runs cannot be attached to, where it is another user's. Returns err's code.
 */
int target_explain(pid_t pid, struct err *err);

#endif
