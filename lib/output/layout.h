#ifndef PYPERF_OUTPUT_LAYOUT_H
#define PYPERF_OUTPUT_LAYOUT_H

#include "output/figure.h"
#include "output/names.h"
#include "output/table.h"

/*
 * The columns of a table of text: figures per event, under the event's name where there are
 * several, then the division into Python, native and kernel for the event that ranks, then what the
 * caller appends. Events without a sample have no columns.
 */
struct layout_choice {
	uint32_t ranked;   /* event */
	bool totals;	   /* columns of totals */
	bool samples;	   /* of sample counts */
	bool total_counts; /* of the counts of totals too */
	bool split;
};

struct layout_place {
	const struct figure *figure;
	uint32_t event;
};

struct layout {
	struct {
		VEC_OF(struct table_column)
	} columns;
	struct {
		VEC_OF(struct layout_place)
	} places; /* of the first columns */
	char **groups;
	size_t group_count;
};

int layout_init(struct layout *layout, const struct profile *profile, const struct names *names,
		const struct layout_choice *choice, struct err *err);
void layout_fini(struct layout *layout);
/* Appends a column of the caller's. */
int layout_add(struct layout *layout, struct table_column column, struct err *err);
/* The cells of the figures; blank where `counts` is NULL. */
void layout_cells(const struct layout *layout, struct table *table, const struct view_count *counts,
		  const uint64_t *period_total);

#endif
