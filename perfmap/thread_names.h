#ifndef PYPERF_THREAD_NAMES_H
#define PYPERF_THREAD_NAMES_H

#include "perfmap/layout.h"
#include "process/memory.h"

/*
 * The names that a program gave its threads: up to 3.13 the interpreter keeps them to itself
 * (threading.Thread.name), later it gives them to the kernel, too.
 */

/* The root function of every thread that the module threading started. */
#define PY_THREAD_ROOT "_bootstrap"

/* `ident` is the thread's pthread_t; the name is UTF-8 and valid during the call. */
typedef void py_thread_name(__u64 ident, const char *name, void *ctx);

/* Calls back for each thread that threading knows. `state` is the PyThreadState of one whose root
 * function is PY_THREAD_ROOT; the process is held meanwhile. What cannot be read is left out. */
void py_thread_names(const struct py_process *process, const struct memory *memory, __u64 state,
		     py_thread_name *each, void *ctx);

#endif
