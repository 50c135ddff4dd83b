#ifndef PYPERF_OUTPUT_SLICES_H
#define PYPERF_OUTPUT_SLICES_H

#include "profile/profile.h"

/*
 * Samples by when they were taken: time is cut into equal slices, and each row counts one stack of
 * one thread and event within one slice. A long recording gets wider slices, so memory is bounded
 * by how different the stacks are and not by how many samples there are.
 */
struct slices;

struct slice_row {
	uint32_t slice, thread, stack, event;
	uint64_t samples, period;
};

struct slices *slices_new(void);
void slices_free(struct slices *slices);
/* For struct profile_options: `slices` is the context. */
int slices_keep(const struct profile_sample *sample, void *slices, struct err *err);
/* Rows come in no order. */
size_t slices_row_count(const struct slices *slices);
const struct slice_row *slices_row(const struct slices *slices, size_t row);
/* When slice 0 begins and how long each takes, in ns; and how many there are. */
uint64_t slices_start(const struct slices *slices);
uint64_t slices_width(const struct slices *slices);
uint32_t slices_count(const struct slices *slices);

#endif
