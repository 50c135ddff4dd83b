#ifndef PYPERF_OUTPUT_SLICES_H
#define PYPERF_OUTPUT_SLICES_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Counts by when: time is cut into equal slices, and each row counts one stack of one thread and
 * event within one slice. Where the rows would become too many slices are joined, so memory and
 * what is made of it are bounded.
 */
struct slices;

struct slice_row {
	uint32_t slice, event, thread, stack; /* numbers that the caller gives */
	uint64_t samples, period;
};

/* From `start` to `end`, ns (one slice where there is no time between them); at most about
 * `rows_max` rows. */
struct slices *slices_new(uint64_t start, uint64_t end, size_t rows_max);
void slices_free(struct slices *slices);
/* Adds samples at `time`; the row's slice is not looked at. */
int slices_add(struct slices *slices, uint64_t time, const struct slice_row *row, struct err *err);
/* In order of slice, event, thread and stack, to be called once all are added. */
const struct slice_row *slices_sorted(struct slices *slices, size_t *count);
uint64_t slices_width(const struct slices *slices); /* ns */
uint32_t slices_count(const struct slices *slices);

#endif
