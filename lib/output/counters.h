#ifndef PYPERF_COUNTERS_H
#define PYPERF_COUNTERS_H

#include "base/vec.h"
#include "output/samples.h"

/*
 * How each event of each process went over time: its periods summed in equal slices of the
 * recording. A slice is wide enough for some samples to lie in it, so that a rate means something.
 */
struct counter {
	uint32_t pid, event;
	uint32_t thread; /* the first one of the process that was sampled */
	uint64_t *sums;	 /* by slice */
};

struct counters {
	uint64_t start, slice; /* ns */
	size_t slices;
	struct {
		VEC_OF(struct counter)
	} rows; /* by first sample */
};

int counters_init(struct counters *counters, struct samples_walk *walk, struct err *err);
void counters_fini(struct counters *counters);

#endif
