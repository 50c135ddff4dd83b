#ifndef PYPERF_TALLY_H
#define PYPERF_TALLY_H

#include "profile/view.h"

#include <stdint.h>

/*
 * The one summation below all views.
 *
 * A view gives numbers ("rows") to stacks: the row that a stack's leaf frame stands for, and the
 * row that gets the self time of samples in the stack. Here the cells that pass the filter are
 * summed per stack, self goes to its row, and total is summed up the tree: a row gets what lies at
 * and below its stacks, but only from the stack next to the root where it recurses, so that a
 * sample counts once. All of it is linear in cells and stacks.
 */
#define ROW_NONE UINT32_MAX

struct tally_sum {
	uint64_t period, samples;
	double square;
};

struct tally {
	const struct profile *profile;
	const struct view_filter *filter; /* may be NULL */
	const uint32_t *total_row;	  /* by stack; NULL: no totals */
	const uint32_t *self_row;	  /* by stack; NULL: no self */
	const uint32_t *split_row;	  /* by stack; NULL: no split */
	const uint8_t *outermost;	  /* by stack; NULL: found from total_row */
	struct tally_sum *sums; /* to work with: by stack, all zero, and left so; NULL: made */
	uint32_t rows;
	struct view_count *counts;	  /* rows * events, zeroed by the caller */
	uint64_t *period_total, *samples; /* per event; may be NULL */
	double *square_total;		  /* likewise */
	struct view_product *products;	  /* rows * pairs, zeroed by the caller; may be NULL */
};

/* By stack: does the row of total_row occur in it and in none of its callers? To be freed; NULL
 * when memory ran out. */
uint8_t *tally_outermost(const struct profile *profile, const uint32_t *total_row, uint32_t rows);
int tally_run(const struct tally *tally, struct err *err);

#endif
