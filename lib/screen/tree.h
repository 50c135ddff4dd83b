#ifndef PYPERF_SCREEN_TREE_H
#define PYPERF_SCREEN_TREE_H

#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>

/*
 * Rows of a list that open in place. Here is which rows there are, one behind the other as a list
 * shows them; what a node is and what belongs below it is the view's. Children are asked for when
 * their parent is opened, so a tree of any size costs what is open of it.
 */
struct screen_tree_row {
	uint64_t node; /* the view's */
	uint32_t depth;
	bool open, leaf; /* a leaf has nothing below it */
};

struct screen_tree {
	struct {
		VEC_OF(struct screen_tree_row)
	} rows;
	/* Calls screen_tree_add() for each child; `row` is the parent's and stays in place. */
	int (*children)(void *self, struct screen_tree *tree, const struct screen_tree_row *row,
			struct err *err);
	void *self;
	struct {
		VEC_OF(struct screen_tree_row)
	} added;
};

void screen_tree_fini(struct screen_tree *tree);
/* Empties it; the roots are then added by screen_tree_add(), and taken over by
 * screen_tree_rooted(). */
void screen_tree_reset(struct screen_tree *tree);
int screen_tree_add(struct screen_tree *tree, uint64_t node, bool leaf, struct err *err);
int screen_tree_rooted(struct screen_tree *tree, struct err *err);

/* Nothing happens to rows that are open, or leaves; a row without children becomes a leaf. */
int screen_tree_open(struct screen_tree *tree, size_t row, struct err *err);
void screen_tree_close(struct screen_tree *tree, size_t row);
/* Opens the row and all below it, down to `depth` levels and as long as there are at most `most`
 * rows in all; 1 where that left rows closed. */
int screen_tree_open_all(struct screen_tree *tree, size_t row, uint32_t depth, size_t most,
			 struct err *err);
/* The row that this one is below; itself for a root. */
size_t screen_tree_parent(const struct screen_tree *tree, size_t row);
/* The first row behind this one that is not below it. */
size_t screen_tree_end(const struct screen_tree *tree, size_t row);

#endif
