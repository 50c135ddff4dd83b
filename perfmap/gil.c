#include "perfmap/gil.h"

#include <string.h>

#define TSTATE_INTERP 16 /* PyThreadState: prev, next, interp, since 3.6 */

/* struct _gil_runtime_state of builds that always have the lock. */
struct gil_state {
	__u64 interval; /* us */
	__u64 last_holder;
	__s32 locked;
};

static int index_of(const __u64 *states, size_t count, __u64 state)
{
	for (size_t i = 0; state && i < count; i++)
		if (states[i] == state)
			return (int)i;
	return PY_GIL_UNKNOWN;
}

/* 3.13 and later tell in their debug offsets where an interpreter has the pointer to its lock
 * (ceval_gil), a lock of its own, and of that `enabled` (0: not there), `locked` and the holder. */
#define OFFSETS_WORDS 64

static __u64 find_pointer(const struct py_process *process, const struct memory *memory)
{
	__u64 w[OFFSETS_WORDS];

	if (memory_read(memory, process->runtime, w, sizeof(w)))
		return 0;
	for (size_t i = 2; i + 3 <= OFFSETS_WORDS; i++)
		if (w[i] == 0 && w[i - 1] &&
		    w[i + 1] == w[i - 1] + offsetof(struct gil_state, locked) &&
		    w[i + 2] == w[i - 1] + offsetof(struct gil_state, last_holder))
			return w[i - 2];
	return 0;
}

static int holder_by_offsets(const struct memory *memory, __u64 pointer, __u64 interp,
			     const __u64 *states, size_t count)
{
	struct gil_state gil;
	__u64 address = 0;

	if (memory_read(memory, interp + pointer, &address, sizeof(address)) ||
	    memory_read(memory, address, &gil, sizeof(gil)) || gil.locked != 1)
		return PY_GIL_UNKNOWN;
	return index_of(states, count, gil.last_holder);
}

/* In 3.12 nothing tells; the lock is a part of its interpreter, and looks like nothing else there.
 */
#define INTERVAL_US_MAX 100000000 /* sys.setswitchinterval() of a hundred seconds */
#define CHUNK_WORDS 512
#define INTERP_BYTES_MAX (1u << 20)

static int holder_by_search(const struct memory *memory, __u64 interp, const __u64 *states,
			    size_t count)
{
	__u64 words[CHUNK_WORDS + 2];
	struct gil_state gil;

	for (__u64 at = 0; at < INTERP_BYTES_MAX; at += CHUNK_WORDS * sizeof(words[0])) {
		if (memory_read(memory, interp + at, words, sizeof(words)))
			return PY_GIL_UNKNOWN;
		for (size_t i = 0; i < CHUNK_WORDS; i++) {
			memcpy(&gil, words + i, sizeof(gil));
			if (gil.interval && gil.interval <= INTERVAL_US_MAX && gil.locked == 1 &&
			    index_of(states, count, gil.last_holder) >= 0)
				return index_of(states, count, gil.last_holder);
		}
	}
	return PY_GIL_UNKNOWN;
}

int py_gil_holder(const struct py_process *process, const struct memory *memory,
		  const __u64 *states, size_t count)
{
	bool tells = process->layout.minor >= 13;
	__u64 current = 0, interp = 0, before = 0, pointer;

	if (process->layout.free_threaded)
		return PY_GIL_UNKNOWN;
	if (process->current)
		return memory_read(memory, process->current, &current, sizeof(current))
			       ? PY_GIL_UNKNOWN
			       : index_of(states, count, current);
	pointer = tells ? find_pointer(process, memory) : 0;
	if (tells && !pointer)
		return PY_GIL_UNKNOWN;
	for (size_t i = 0; i < count; i++) {
		int holder;

		if (!states[i] ||
		    memory_read(memory, states[i] + TSTATE_INTERP, &interp, sizeof(interp)) ||
		    interp == before)
			continue;
		before = interp;
		holder = tells ? holder_by_offsets(memory, pointer, interp, states, count)
			       : holder_by_search(memory, interp, states, count);
		if (holder >= 0)
			return holder;
	}
	return PY_GIL_UNKNOWN;
}
