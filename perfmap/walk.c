#include "perfmap/walk.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define WALK_READ(walk, dst, len, addr) memory_read((walk)->memory, (addr), (dst), (len))
#include "perfmap/walk_core.h"

int py_walk(const struct py_process *process, const struct memory *memory, __u64 thread_pointer,
	    struct py_raw_frame *frames, unsigned int max, unsigned int *count)
{
	struct walk_scratch scratch = {0};
	struct walk walk = {
		.process = process,
		.scratch = &scratch,
		.frames = frames,
		.max = max,
		.memory = memory,
	};
	/* At most one shim lies below each frame; more of them is a loop of shims. */
	unsigned int steps = 2 * max + 2;

	if (walk_begin(&walk, thread_pointer))
		while (steps && walk_step(&walk))
			steps--;
	if (!steps)
		scratch.status = PY_WALK_TRUNCATED;
	*count = scratch.count;
	return (int)scratch.status;
}

int py_thread_state(const struct py_process *process, const struct memory *memory,
		    __u64 thread_pointer, __u64 *tstate)
{
	struct walk_scratch scratch = {0};
	struct walk walk = {.process = process, .scratch = &scratch, .memory = memory};

	walk_begin(&walk, thread_pointer);
	*tstate = scratch.tstate;
	return (int)scratch.status;
}

int py_code_fingerprint(const struct py_layout *layout, const struct memory *memory, __u64 code,
			__u32 *fingerprint)
{
	struct walk_scratch scratch = {0};
	struct py_process process = {.layout = *layout};
	struct walk walk = {.process = &process, .scratch = &scratch, .memory = memory};

	if (walk_read_code(&walk, code))
		return -1;
	*fingerprint = walk_fingerprint(layout, &scratch);
	return 0;
}

/* The walker in the kernel does not always read the strings: then the fingerprint is without. */
bool py_code_is(const struct py_layout *layout, const struct memory *memory, __u64 code,
		__u32 fingerprint)
{
	struct walk_scratch scratch = {0};
	struct py_process process = {.layout = *layout, .reuse = WALK_REUSE_MANY};
	struct walk walk = {.process = &process, .scratch = &scratch, .memory = memory};
	__u64 name, filename;

	if (walk_read_code(&walk, code))
		return false;
	name = scratch.name;
	filename = scratch.filename;
	for (int without = 0; without < 4; without++) {
		scratch.name = without & 1 ? 0 : name;
		scratch.filename = without & 2 ? 0 : filename;
		if (walk_fingerprint(layout, &scratch) == fingerprint)
			return true;
	}
	return false;
}
