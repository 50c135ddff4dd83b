#ifndef PYPERF_GIL_H
#define PYPERF_GIL_H

#include "perfmap/layout.h"
#include "process/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Which of the threads holds the global interpreter lock.
 *
 * Up to 3.11 the runtime names the thread state that has it (gilstate.tstate_current). From 3.12 on
 * each interpreter has a `struct _gil_runtime_state` (Include/internal/pycore_gil.h).
 */
#define PY_GIL_UNKNOWN (-1) /* no thread has it, or it cannot be told */

/* `states` are the PyThreadStates of one process, 0 for threads that have none; the index of the
 * one that holds the lock, or PY_GIL_UNKNOWN. With several interpreters, each with a lock of its
 * own, the first that is found. */
int py_gil_holder(const struct py_process *process, const struct memory *memory,
		  const __u64 *states, size_t count);

/* Where the lock lies, found once so that it can be looked at often: of several, the first. */
struct py_gil {
	__u64 address;
	bool names; /* there is the thread state that has it, else a struct of the lock */
};

/* Of a process that runs. False where there is no lock, or it is not to be found now: that of 3.12
 * is known by the thread that had it last, which must live. */
bool py_gil_find(const struct py_process *process, const struct memory *memory, struct py_gil *gil);
/* *state: that has it now, 0 where none has. False where it cannot be read. */
bool py_gil_look(const struct py_gil *gil, const struct memory *memory, __u64 *state);
/* The thread of a thread state, by the kernel's number; 0 where it cannot be told. */
pid_t py_gil_thread(const struct py_process *process, const struct memory *memory, __u64 state);

#endif
