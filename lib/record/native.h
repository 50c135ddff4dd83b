#ifndef PYPERF_NATIVE_H
#define PYPERF_NATIVE_H

#include "base/err.h"
#include "record/recorder.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Native stacks while recording: the kernel copies registers and the top of the stack into each
 * sample, and what goes into the file is the call chain that they unwind to.
 *
 * Measured, this costs less than to store the copies (compressing 16 kB takes longer than to unwind
 * them), the file stays as small as with frame pointers, and perf shows the same stacks. A sample
 * whose process has become another program meanwhile is left as it is: whoever reads the file in
 * the order of time can unwind it.
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

/* How stacks ended that are not whole, by reason and object. */
void native_each_end(const struct native *native,
		     void (*each)(const char *reason, const char *object, uint64_t samples,
				  void *ctx),
		     void *ctx);
/* Samples that have a user stack, and those of them whose stack is whole. */
void native_counts(const struct native *native, uint64_t *stacks, uint64_t *complete);

#endif
