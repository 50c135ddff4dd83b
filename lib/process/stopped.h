#ifndef PYPERF_STOPPED_H
#define PYPERF_STOPPED_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A thread of another process, held for a moment so that what it is doing can be read.
 *
 * It is stopped by PTRACE_INTERRUPT, which leaves no trace in it: a system call that it waits in is
 * begun again, and a thread that was stopped before stays stopped after.
 */
struct stopped {
	pid_t tid;
	int signal; /* that came in the way and is passed on at the end */
	uint64_t thread_pointer;
};

/* ERR_PERMISSION where the kernel forbids it, or another tracer holds the thread; ERR_NOT_FOUND
 * where it is gone; ERR_UNSUPPORTED where it does not stop (an uninterruptible wait). */
int stopped_hold(struct stopped *stopped, pid_t tid, struct err *err);
void stopped_release(struct stopped *stopped);

/* The registers that `mask` names by perf's numbers, in their order, of a thread that is held. */
bool stopped_registers(pid_t tid, uint64_t mask, uint64_t *values);
/* The thread pointer of a thread that is held, by whatever means of ptrace. */
bool stopped_thread_pointer(pid_t tid, uint64_t *pointer);

#endif
