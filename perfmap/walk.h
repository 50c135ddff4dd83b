#ifndef PYPERF_WALK_H
#define PYPERF_WALK_H

#include "perfmap/frames.h"
#include "perfmap/layout.h"
#include "process/memory.h"

#include <stdbool.h>

/*
 * The interpreter walker for a live process or a saved image; walk_core.h holds the one source
 * that is also built for BPF.
 *
 * Walks the frames of the thread whose thread pointer (fs base on x86-64) is given. `frames` has
 * room for `max`. Returns enum py_walk_status; *count frames are sound in every case.
 */
int py_walk(const struct py_process *process, const struct memory *memory, __u64 thread_pointer,
	    struct py_raw_frame *frames, unsigned int max, unsigned int *count);

/* The thread's PyThreadState; PY_WALK_OK or why there is none. */
int py_thread_state(const struct py_process *process, const struct memory *memory,
		    __u64 thread_pointer, __u64 *tstate);

/* The fingerprint of the code object at an address, as raw frames carry it: 0, or -1 where it
 * cannot be read. */
int py_code_fingerprint(const struct py_layout *layout, const struct memory *memory, __u64 code,
			__u32 *fingerprint);
/* Is that still the code object that a raw frame named? */
bool py_code_is(const struct py_layout *layout, const struct memory *memory, __u64 code,
		__u32 fingerprint);

#endif
