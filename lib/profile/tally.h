#ifndef PYPERF_TALLY_H
#define PYPERF_TALLY_H

#include "base/vec.h"
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

/*
 * The tree of stacks without those that have no row for a total: what sums are passed up along. It
 * depends on no filter and may be used again and again.
 */
struct tally_node {
	uint32_t parent, row;
};
struct tally_tree {
	struct {
		VEC_OF(struct tally_node)
	} nodes;		/* parents first; 0 is the root */
	uint32_t *of_stack;	/* its node, or that of its nearest caller that has one */
	uint8_t *outermost;	/* by node: it has its row, and none above it has the same */
	struct tally_sum *sums; /* by node, to work with: all zero between uses */
};
int tally_tree_init(struct tally_tree *tree, const struct profile *profile,
		    const uint32_t *total_row, uint32_t rows, struct err *err);
void tally_tree_fini(struct tally_tree *tree);

struct tally {
	const struct profile *profile;
	const struct view_filter *filter; /* may be NULL */
	const uint32_t *total_row;	  /* by stack; NULL: no totals */
	const uint32_t *self_row;	  /* by stack; NULL: no self */
	const uint32_t *split_row;	  /* by stack; NULL: no split */
	const struct tally_tree *tree;	  /* of total_row; NULL: made */
	uint32_t rows;
	struct view_count *counts;	  /* rows * events, zeroed by the caller */
	uint64_t *period_total, *samples; /* per event; may be NULL */
	double *square_total;		  /* likewise */
	struct view_product *products;	  /* rows * pairs, zeroed by the caller; may be NULL */
};

int tally_run(const struct tally *tally, struct err *err);

#endif
