#ifndef PYPERF_DISCOVER_H
#define PYPERF_DISCOVER_H

#include "perfmap/layout.h"
#include "process/memory.h"

/*
 * What an interpreter tells of itself beside its layout: where a thread has its PyThreadState, in a
 * slot of a key (autoTSSkey) or, from 3.15 on, in a thread-local variable (_Py_tss_gilstate).
 */

/* The variable by the code of PyGILState_GetThisThreadState(), where that does nothing but return
 * it: from the thread pointer. False for other code. */
bool py_variable_of_code(const unsigned char *code, size_t len, int32_t *offset);

/* Calls back for each thread state that the runtime of a live process lists, until one says
 * non-zero, which is passed on; 0 at the end or where nothing (more) can be read. Lists may change
 * meanwhile, and are never followed without end. */
int py_each_thread(const struct py_version *version, const struct memory *memory, uint64_t runtime,
		   int (*each)(uint64_t tstate, void *ctx), void *ctx);

/* By data: a thread state names its thread, and what of that thread holds the thread state is what
 * is looked for. Fills in process->key or ->variable; false where no thread is there yet. */
bool py_find_key(const struct py_version *version, const struct memory *memory,
		 struct py_process *process);

#endif
