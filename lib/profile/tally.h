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

struct tally {
	const struct profile *profile;
	const struct view_filter *filter; /* may be NULL */
	const uint32_t *total_row;	  /* by stack; NULL: no totals */
	const uint32_t *self_row;	  /* by stack; NULL: no self */
	const uint32_t *split_row;	  /* by stack; NULL: no split */
	uint32_t rows;
	struct view_count *counts;	  /* rows * events, zeroed by the caller */
	uint64_t *period_total, *samples; /* per event; may be NULL */
	double *square_total;		  /* likewise */
	struct view_product *products;	  /* rows * pairs, zeroed by the caller; may be NULL */
};

int tally_run(const struct tally *tally, struct err *err);

#endif
