#ifndef PYPERF_NATIVE_H
#define PYPERF_NATIVE_H

#include "base/err.h"
#include "record/recorder.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Native stacks while recording: registers and the stack are copied at each sample, by the walker
 * (copies.h) or the kernel, and what goes into the file is the call chain that they unwind to. The
 * file stays as small as with frame pointers, and perf shows the same stacks.
 *
 * That it is done here, at once and by no thread of its own, was measured (tests/bench/run unwind
 * native_lost native_size). A stack of 22 frames is unwound in 1.7 us; to compress its copy takes
 * 5 us or more, and 470 bytes of file where the chain takes 25. So a recorder that is behind would
 * fall back further by storing copies instead, and at 20 kHz it is busy for a twentieth of the time
 * of a CPU. What made rings overflow was never the unwinding but long steps beside it (recorder.c
 * gives space back while it reads, cfi.c unpacks no more than it needs) and waiting for a CPU, so
 * the recorder goes first where it may.
 *
 * A sample whose process has become another program meanwhile is left as it is: whoever reads the
 * file in the order of time can unwind it.
 */
struct native;
struct hits;
struct pythons;
struct record_sample;
struct perf_event_header;

/* Files are opened as `hits` found them. Where the engine for Python frames can, it copies the
 * stacks: `stack_bytes`, or as many as each takes where that is 0. Both are borrowed. */
int native_new(struct native **native, struct hits *hits, struct pythons *pythons,
	       uint32_t stack_bytes, struct err *err);
void native_free(struct native *native);

/* What the attr of a sampled event needs. */
void native_attr(const struct native *native, struct perf_event_attr *attr);

/* A record of the walker; true where it was for us, and is not to be written. */
bool native_copy(struct native *native, size_t ring, const struct record_sample *record);

/* Maps, names and forks, ours included, before the samples that they matter for. */
int native_sideband(struct native *native, const struct perf_event_header *header, struct err *err);

/* The record of a ring as it goes into the file, valid until the next call; `sample` becomes what
 * it says. */
const struct perf_event_header *native_sample(struct native *native, size_t ring,
					      const struct perf_event_header *header,
					      const struct perf_event_attr *attr,
					      struct record_sample *sample);

/* The stack of registers (of the mask that native_attr() asks for) and a copy, and that of the
 * stack which a signal interrupted (NULL: none), by the maps that native_sideband() was told;
 * frames are valid until the next call. False where there is none. */
struct unwind_copy;
struct unwind_stack;
bool native_unwind(struct native *native, const struct record_sample *sample,
		   const struct unwind_copy *interrupted, struct unwind_stack *stack);

/* How stacks ended that are not whole, by reason and object. */
void native_each_end(const struct native *native,
		     void (*each)(const char *reason, const char *object, uint64_t samples,
				  void *ctx),
		     void *ctx);
/* Samples that have a user stack, and those of them whose stack is whole. */
void native_counts(const struct native *native, uint64_t *stacks, uint64_t *complete);

#endif
