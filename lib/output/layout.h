#ifndef PYPERF_OUTPUT_LAYOUT_H
#define PYPERF_OUTPUT_LAYOUT_H

#include "output/columns.h"
#include "output/figure.h"
#include "output/names.h"
#include "output/table.h"

/*
 * The columns of a table of text: figures per event, under the event's name where there are
 * several, then metrics with their intervals, then the division into Python, native and kernel for
 * the event that ranks, then what the caller appends. Events without a sample of their own have no
 * columns. Where the width does not do, what says least goes first: sample counts of other events
 * than the one that ranks, intervals, its own counts, other events, readings, lesser metrics, the
 * division.
 */
#define LAYOUT_DROP_OTHER_COUNTS 7
#define LAYOUT_DROP_ERROR 6
#define LAYOUT_DROP_COUNTS 5
#define LAYOUT_DROP_EVENTS 4
#define LAYOUT_DROP_READING 3
#define LAYOUT_DROP_METRICS 2
#define LAYOUT_DROP_SPLIT 1

#define LAYOUT_NAME_WANTED 18 /* columns that figures leave to a name */

struct layout_choice {
	uint32_t ranked;   /* event */
	bool totals;	   /* columns of totals */
	bool samples;	   /* of sample counts */
	bool total_counts; /* of the counts of totals too */
	bool split;
	struct metric_columns *metrics; /* NULL: none */
};

struct layout_place {
	const struct figure *figure; /* NULL: a metric, or where that has none either the reading */
	uint32_t event;
	const struct metric *metric;
	size_t plan;
	bool error; /* the interval of the metric */
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
	struct metric_columns *metrics;
};

int layout_init(struct layout *layout, const struct profile *profile, const struct names *names,
		const struct layout_choice *choice, struct err *err);
void layout_fini(struct layout *layout);
/* Appends a column of the caller's. */
int layout_add(struct layout *layout, struct table_column column, struct err *err);
/* Appends the two columns of a listing: the line's number and its text, which figures leave room.
 */
int layout_add_source(struct layout *layout, struct err *err);
/* The cells of the figures; blank where `counts` is NULL. */
void layout_cells(const struct layout *layout, struct table *table, const struct view_count *counts,
		  const uint64_t *period_total);
/* The same for a row of a view, with its metrics; blank where `row` is NULL. */
void layout_row(const struct layout *layout, struct table *table, const struct view *view,
		const struct view_row *row);

#endif
