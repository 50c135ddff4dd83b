#ifndef PYPERF_COMPARE_H
#define PYPERF_COMPARE_H

#include "base/vec.h"
#include "profile/view.h"

/*
 * Two recordings beside each other: what share of an event each function, or each line, has in
 * both, and whether the difference says anything.
 *
 * Functions are the same by kind, name and file; where the whole path is in one recording only, by
 * the file's own name if that leaves no doubt. A line is the same by its distance from the
 * function's first line, so that code above it may come and go.
 *
 * A difference is sure where it would come about by chance in less than one of a hundred
 * comparisons of equal programs, all rows of the comparison taken together (Holm's method). The
 * chance is that of the samples: how much the program itself differs from run to run they cannot
 * tell.
 */
struct compare_side {
	const struct profile *profile;
	const struct view_filter *filter;
	uint32_t event;
};

struct compare_row {
	uint32_t function[2]; /* UINT32_MAX where it was not sampled */
	uint32_t line[2];     /* 0 in a comparison of functions */
	double share[2];      /* of the event's total, 0 to 1 */
	uint64_t samples[2];
	double chance; /* that the two shares are one and differ so, or more */
	bool sure;
	double period[2], square[2]; /* sums of the samples' counts and of their squares */
};

struct compare {
	struct {
		VEC_OF(struct compare_row)
	} rows; /* the largest difference first */
	uint64_t samples[2];
	double total[2], square[2];
};

#define COMPARE_SURE 0.01

/* `lines`: of Python, by their own time; functions are compared by self or total. */
int compare_init(struct compare *compare, const struct compare_side sides[2], bool lines,
		 enum view_sort by, struct err *err);
void compare_fini(struct compare *compare);

#endif
