#ifndef PYPERF_OUTPUT_COLUMNS_H
#define PYPERF_OUTPUT_COLUMNS_H

#include "base/strbuf.h"
#include "profile/measure.h"

#include <stdbool.h>

/*
 * The metrics that a table shows: which they are, and each row's figures.
 *
 * Without a choice of the user's they are those that the recording has the events for and that say
 * more than other columns do. A figure that is too uncertain to use is left blank in text and
 * counted; JSON and CSV have it with its interval.
 */
struct metric_columns {
	struct measures measures;
	size_t chosen[METRICS_MAX]; /* plans */
	size_t count;
	enum measure_basis basis;
	size_t uncertain; /* figures left blank so far */
};

/* The figures of a row, by plan (all of them, since readings rest on others than are shown). */
struct row_metrics {
	struct estimate figures[METRICS_MAX];
	const struct reading *reading;
};

/* `list`: keys separated by commas, "all", "none", or NULL. A key that no metric has is ERR_USAGE;
 * a metric that the recording has no events for is ERR_NOT_FOUND. */
int metric_columns_init(struct metric_columns *columns, const struct profile *profile,
			uint32_t ranked, const char *list, struct err *err);

void metric_columns_row(const struct metric_columns *columns, const struct view *view,
			const struct view_row *row, struct row_metrics *out);
/* Of all rows together. */
void metric_columns_all(const struct metric_columns *columns, const struct view *view,
			struct row_metrics *out);
/* The figure, or the interval's half; nothing where it is too uncertain. */
void metric_columns_text(const struct metric_columns *columns, const struct row_metrics *row,
			 size_t plan, bool error, struct strbuf *out);
/* Has the row got anything below the line, so that a figure might be expected? */
bool metric_columns_due(const struct metric_columns *columns, const struct view_row *row,
			size_t plan);
/* What rows are ordered by: the figure; -INFINITY, less than any, where it is left blank. */
double metric_columns_rank(const struct metric_columns *columns, const struct view *view,
			   const struct view_row *row, size_t plan);
/* "IPC 0.41 ±0.02   38.2 MPKI ±1.9   memory-bound"; nothing where no figure is sure. */
void metric_columns_line(const struct metric_columns *columns, const struct row_metrics *row,
			 struct strbuf *out);
/* "14 figures are left out: ..." and a newline; nothing where none are. */
void metric_columns_footer(const struct metric_columns *columns, struct strbuf *out);

#endif
