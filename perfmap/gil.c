#include "perfmap/gil.h"

#include "perfmap/discover.h"

#include <string.h>

#define LISTED_MAX 1024	 /* thread states that are looked at, the newest */
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

static bool find_by_offsets(const struct memory *memory, __u64 pointer, __u64 interp,
			    struct py_gil *gil)
{
	*gil = (struct py_gil){0};
	return pointer &&
	       !memory_read(memory, interp + pointer, &gil->address, sizeof(gil->address)) &&
	       gil->address;
}

/* In 3.12 nothing tells where; the interpreter points to it (ceval.gil), somewhere near its
 * beginning, and what it points to looks like nothing else there: a thread had it last. */
#define INTERVAL_US_MAX 100000000 /* sys.setswitchinterval() of a hundred seconds */
#define POINTER_WORDS 512

static bool is_lock(const struct memory *memory, __u64 address, const __u64 *states, size_t count)
{
	struct gil_state gil;

	return address >= 4096 && address % 8 == 0 &&
	       !memory_read(memory, address, &gil, sizeof(gil)) && gil.interval &&
	       gil.interval <= INTERVAL_US_MAX && (gil.locked == 0 || gil.locked == 1) &&
	       index_of(states, count, gil.last_holder) >= 0;
}

static bool find_by_search(const struct memory *memory, __u64 interp, const __u64 *states,
			   size_t count, struct py_gil *found)
{
	__u64 words[POINTER_WORDS];

	*found = (struct py_gil){0};
	if (memory_read(memory, interp, words, sizeof(words)))
		return false;
	for (size_t i = 0; i < POINTER_WORDS && !found->address; i++)
		if (is_lock(memory, words[i], states, count))
			found->address = words[i];
	return found->address;
}

bool py_gil_look(const struct py_gil *gil, const struct memory *memory, __u64 *state)
{
	struct gil_state lock;

	if (gil->names)
		return !memory_read(memory, gil->address, state, sizeof(*state));
	if (memory_read(memory, gil->address, &lock, sizeof(lock)))
		return false;
	*state = lock.locked == 1 ? lock.last_holder : 0;
	return true;
}

/* Calls back for the lock of each interpreter that the thread states belong to, until one says
 * true. */
static bool each_lock(const struct py_process *process, const struct memory *memory,
		      const __u64 *states, size_t count,
		      bool (*each)(const struct py_gil *gil, void *ctx), void *ctx)
{
	bool tells = process->layout.minor >= 13;
	__u64 pointer = tells ? find_pointer(process, memory) : 0, interp = 0, before = 0;
	struct py_gil gil = {.address = process->current, .names = true};

	if (process->layout.free_threaded)
		return false;
	if (process->current)
		return each(&gil, ctx);
	for (size_t i = 0; i < count; i++) {
		if (!states[i] ||
		    memory_read(memory, states[i] + TSTATE_INTERP, &interp, sizeof(interp)) ||
		    interp == before)
			continue;
		before = interp;
		if ((tells ? find_by_offsets(memory, pointer, interp, &gil)
			   : find_by_search(memory, interp, states, count, &gil)) &&
		    each(&gil, ctx))
			return true;
	}
	return false;
}

struct holder {
	const struct memory *memory;
	const __u64 *states;
	size_t count;
	int index;
};

static bool find_holder(const struct py_gil *gil, void *ctx)
{
	struct holder *holder = ctx;
	__u64 state;

	if (py_gil_look(gil, holder->memory, &state))
		holder->index = index_of(holder->states, holder->count, state);
	return holder->index >= 0;
}

int py_gil_holder(const struct py_process *process, const struct memory *memory,
		  const __u64 *states, size_t count)
{
	struct holder holder = {memory, states, count, PY_GIL_UNKNOWN};

	each_lock(process, memory, states, count, find_holder, &holder);
	return holder.index;
}

/* The thread states of a process, as it lists them. */
struct listed {
	__u64 states[LISTED_MAX];
	size_t count;
};

static int add_state(uint64_t tstate, void *ctx)
{
	struct listed *listed = ctx;

	listed->states[listed->count++] = tstate;
	return listed->count == LISTED_MAX;
}

static void list_states(const struct py_process *process, const struct memory *memory,
			struct listed *listed)
{
	unsigned char offsets[PY_DEBUG_OFFSETS_BYTES];
	struct py_version version = {
		.major = process->layout.major,
		.minor = process->layout.minor,
		.micro = -1,
		.free_threaded = process->layout.free_threaded,
	};
	struct py_layout layout;
	bool told = !memory_read(memory, process->runtime, offsets, sizeof(offsets));

	listed->count = 0;
	if (py_layout_find(&version, told ? offsets : NULL, told ? sizeof(offsets) : 0, &layout,
			   NULL) == 0)
		py_each_thread(&version, memory, process->runtime, add_state, listed);
}

static bool take_lock(const struct py_gil *gil, void *ctx)
{
	*(struct py_gil *)ctx = *gil;
	return true;
}

bool py_gil_find(const struct py_process *process, const struct memory *memory, struct py_gil *gil)
{
	struct listed listed = {.count = 0};

	if (!process->current && !process->layout.free_threaded)
		list_states(process, memory, &listed);
	return each_lock(process, memory, listed.states, listed.count, take_lock, gil);
}

pid_t py_gil_thread(const struct py_process *process, const struct memory *memory, __u64 state)
{
	__u64 thread = 0;
	__s32 tid = 0;

	if (!process->tsd.tid || !process->layout.tstate_thread_id || !state ||
	    memory_read(memory, state + process->layout.tstate_thread_id, &thread,
			sizeof(thread)) ||
	    memory_read(memory, thread + process->tsd.tid, &tid, sizeof(tid)))
		return 0;
	return tid > 0 ? tid : 0;
}
