#ifndef PYPERF_GIL_H
#define PYPERF_GIL_H

#include "perfmap/layout.h"
#include "process/memory.h"

#include <stddef.h>

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

#endif
