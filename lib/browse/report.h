#ifndef PYPERF_BROWSE_REPORT_H
#define PYPERF_BROWSE_REPORT_H

#include "browse/browse.h"
#include "browse/calltree.h"
#include "browse/choices.h"
#include "browse/grid.h"
#include "browse/zoom.h"
#include "output/layout.h"
#include "output/rows.h"
#include "screen/tree.h"

/*
 * The ranking of functions: its data (report_data.c), what is drawn of it (report.c) and what keys
 * do (report_keys.c).
 */

/* What the list is ordered by, beside metrics: these are SORT_METRICS + their number. */
enum report_sort {
	SORT_SELF,
	SORT_TOTAL,
	SORT_NAME,
	SORT_PLACE,
	SORT_METRICS,
};

/* Rows of the tree, by the upper bits of a node. */
enum node_kind {
	NODE_ROW,    /* of the view */
	NODE_SIDE,   /* "callers", "calls": a branch whose name that is */
	NODE_BRANCH, /* of calls */
};
#define NODE(kind, index) ((uint64_t)(kind) << 56 | (index))
#define NODE_KIND(node) ((enum node_kind)((node) >> 56))
#define NODE_INDEX(node) ((size_t)((node)&0xffffffffffffff))

struct report_view {
	struct screen *screen;
	struct screen_list list;
	struct screen_tree tree;
	struct grid grid;
	int width; /* that the list has */
	const struct browse *browse;
	struct report report; /* what is shown now */
	struct names *names;
	struct metric_columns metrics;
	struct layout layout;
	struct view_basis *basis;
	struct view *functions;
	struct view_groups *groups;
	unsigned int sort; /* enum report_sort */
	struct zooms zooms;
	struct choices choices; /* of the box that is open */
	struct calltree calls;
	bool calls_begun;
	/* An action on a row that waits until they are ready. */
	int (*waiting)(struct screen *screen, void *self, int argument, struct err *err);
	size_t waiting_row;
};

/* Reads the rows for the filter in force, and orders them. */
int report_data_load(struct report_view *view, struct err *err);
/* The rows that are shown, as roots of the tree, in their order. */
int report_data_sort(struct report_view *view, struct err *err);
/* Other columns: of another event, for one. */
int report_data_layout(struct report_view *view, struct err *err);
/* Call trees for the filter in force, which take a while: 1 when they are ready, 0
 * when the clock is past `until_ns` before. */
int report_data_calls(struct report_view *view, uint64_t until_ns, struct err *err);
int report_data_children(void *self, struct screen_tree *tree, const struct screen_tree_row *row,
			 struct err *err);
void report_data_fini(struct report_view *view);

/* How many ways to order there are, and what they are called. */
unsigned int report_sorts(const struct report_view *view);
const char *report_sort_name(const struct report_view *view, unsigned int sort);

/* The function of a row of the list; UINT32_MAX where it is none. */
uint32_t report_function(const struct report_view *view, size_t row);

extern const struct screen_key report_keys[];
/* Shows the next event that has samples; or the one before, where `step` is -1. */
int report_next_event(struct screen *screen, struct report_view *view, int step, struct err *err);

/* The flame graph of what the view shows. */
int flame_open(struct screen *screen, struct report_view *report, struct err *err);
/* A function's lines or instructions. */
int annotate_open(struct screen *screen, const struct report_view *report, uint32_t function,
		  struct err *err);

#endif
