#ifndef PYPERF_SYNTH_H
#define PYPERF_SYNTH_H

#include "record/outlet.h"

/*
 * Records of what was there before the recording, as if the kernel had written them at time 0,
 * with the trailer that all our events share.
 */
struct synth {
	const struct outlet *out;
	uint64_t id;	       /* of the side-band event: goes into the trailer */
	struct native *native; /* is told of each, or NULL */
};

/* A part of the kernel: PERF_RECORD_MMAP of pid -1. */
int synth_kernel_map(const struct synth *synth, uint64_t start, uint64_t len, uint64_t pgoff,
		     const char *name, struct err *err);

struct proc_map;
/* A mapping of a process: PERF_RECORD_MMAP2. `path` is that of the map, or "//anon". */
int synth_map(const struct synth *synth, uint32_t pid, const struct proc_map *map, const char *path,
	      struct err *err);
int synth_comm(const struct synth *synth, uint32_t pid, uint32_t tid, const char *comm,
	       struct err *err);
/* A thread of the process, made by its first one. */
int synth_thread(const struct synth *synth, uint32_t pid, uint32_t tid, struct err *err);

#endif
