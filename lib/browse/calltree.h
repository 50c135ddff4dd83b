#ifndef PYPERF_BROWSE_CALLTREE_H
#define PYPERF_BROWSE_CALLTREE_H

#include "output/fold.h"
#include "profile/view.h"

#include <stdbool.h>

/*
 * Who calls a function, and what it calls, as trees that are made where they are looked at.
 *
 * Both come from the tree of stacks by function (fold.h), weighed once for a filter: a branch of a
 * call tree is a set of places in it, and a branch's children are the places next to these, grouped
 * by function. A function that calls itself is looked at from its outermost call, so that no sample
 * counts twice.
 */
enum calltree_side {
	CALLTREE_CALLERS,
	CALLTREE_CALLEES,
};

/* One place in the tree of stacks, reached from a place of the function that was opened. */
struct calltree_place {
	uint32_t at, origin; /* folds */
};

/* A branch: a function, called (or calling) along one path. */
struct calltree_branch {
	uint32_t function;
	enum calltree_side side;
	size_t first, count;		 /* of places */
	size_t children, children_count; /* of branches; valid once `opened` */
	bool opened;
	/* By event: total, and for callees self; nothing else. */
	struct view_count *counts;
};

/* What lies in a fold itself, and with all below it: of an event. */
struct calltree_weight {
	uint64_t self, total, self_samples, total_samples;
};

/* Folds by what they belong to: those of k are items[start[k]] up to items[start[k + 1]]. */
struct calltree_lists {
	uint32_t *items, *start;
};

/* Through all folds, depth first. */
struct calltree_walk {
	uint32_t at;	   /* fold */
	uint32_t *next;	   /* by fold: the child to go to, an index of `children` */
	uint32_t *on_path; /* by function: how often it is on the path to `at` */
};

struct view_matcher;

struct calltree {
	const struct profile *profile;
	struct folds folds;
	size_t events;
	size_t step, done; /* of making it ready: which step, and how many of its items are done */
	struct calltree_weight *weights;   /* fold * events */
	bool *outermost;		   /* folds without their function above them */
	struct calltree_lists children;	   /* folds below a fold */
	struct calltree_lists of_function; /* outermost folds of a function */
	/* While trees are made: */
	struct calltree_walk walk;
	const struct view_filter *filter;
	struct view_matcher *matcher;
	struct {
		VEC_OF(struct calltree_place)
	} places;
	struct {
		VEC_OF(struct calltree_branch)
	} branches;
};

int calltree_init(struct calltree *calls, const struct profile *profile, struct err *err);
/* Makes the trees and weighs them for the filter, bit by bit, each less than a millisecond's work:
 * 1 when all is ready, 0 when the clock is past `until_ns` before. After a failure it may be called
 * again. */
int calltree_prepare(struct calltree *calls, const struct view_filter *filter, uint64_t until_ns,
		     struct err *err);
/* Another filter: what is weighed is to be weighed anew, and all branches are forgotten. */
void calltree_refilter(struct calltree *calls);
void calltree_fini(struct calltree *calls);

/* The children of a function, as branch *branch, an index; its counts are those of the whole. */
int calltree_of(struct calltree *calls, uint32_t function, enum calltree_side side, size_t *branch,
		struct err *err);
/* Finds a branch's children: `children` and `children_count` of it are set, the heaviest by the
 * event first. */
int calltree_open(struct calltree *calls, size_t branch, uint32_t event, struct err *err);

static inline const struct calltree_weight *calltree_weight(const struct calltree *calls,
							    uint32_t fold)
{
	return &calls->weights[fold * calls->events];
}

#endif
