#ifndef PYPERF_MERGE_H
#define PYPERF_MERGE_H

#include "perfmap/frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Weaving Python frames into a native stack (design: "Merging").
 *
 * Both inputs are leaf first. The native stack is walked leaf to root; at each frame that lies in
 * the eval loop one run of Python frames takes its place (one run ends with PY_FRAME_ENTRY).
 * CPython is usually built without frame pointers, so a frame-pointer chain may break below the
 * leaf or hold frames that are no callers at all. Truth before beauty:
 *
 *  - kernel frames and the first user frame (the interrupted instruction) are always real;
 *  - when the chain passes through the eval loop, the frames up to there are real;
 *  - when it does not, frames after the first user frame are dropped (*dropped counts them), and
 * all Python frames follow;
 *  - native frames on the root side of the last eval frame are kept only when every Python run
 *    found its eval frame.
 *
 * Trampolines, their evaluator and eval frames themselves do not appear in the result: their time
 * is Python's. But when they are asked for (`all`), the former stay where they are, and an eval
 * frame stands above the run that it executes: what a line costs is its eval loop's or what that
 * calls.
 */
enum merge_class {
	MERGE_KERNEL,
	MERGE_NATIVE,
	MERGE_EVAL,	  /* the interpreter's eval loop */
	MERGE_TRAMPOLINE, /* of -X perf; code that the interpreter made of a function */
	MERGE_EVALUATOR,  /* what the interpreter calls a trampoline by */
};

struct merge_item {
	bool python;
	uint32_t index; /* into the Python frames, or into the native stack */
};

/* `out` has room for native_count + python_count items. Returns how many it holds, leaf first.
 * Without Python frames the native stack passes unchanged (eval frames included). */
size_t merge_stacks(const uint8_t *native, size_t native_count, const struct py_raw_frame *python,
		    size_t python_count, bool all, struct merge_item *out, size_t *dropped);

#endif
