#ifndef PYPERF_OUTPUT_COUNTS_H
#define PYPERF_OUTPUT_COUNTS_H

#include "profile/estimate.h"
#include "profile/metric.h"
#include "record/recorder.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * What `pyperf stat` shows: counts of whole runs, of intervals, threads and Python functions, and
 * the metrics made of them.
 *
 * Where counters were shared a count is scaled by enabled / running, and marked with the part of
 * the time that it was counted in. Of several runs the mean is shown with its 95% interval.
 */
struct counts_row {
	char *label;	 /* of a thread or function; NULL: an interval */
	double end;	 /* of an interval, in seconds since the start */
	double *values;	 /* one per event, scaled */
	double *metrics; /* one per plan; NAN: not known or too uncertain */
};

struct counts_run {
	struct recorder_count *counts;
	double elapsed, user, system; /* s; user < 0: not known */
};

struct counts_rows {
	VEC_OF(struct counts_row)
};

struct counts {
	const struct event_list *events;
	const char *title; /* what was run or attached to */
	struct {
		VEC_OF(struct counts_run)
	} runs;
	struct counts_rows intervals, threads, functions;
	struct metric_plan plans[METRICS_MAX];
	size_t plan_count;
};

/* Finds the metrics that the events have. */
void counts_init(struct counts *counts, const struct event_list *events, bool metrics);
void counts_fini(struct counts *counts);
/* NULL when memory ran out. */
struct counts_run *counts_add_run(struct counts *counts);
struct counts_row *counts_new_row(struct counts *counts, struct counts_row *row, const char *label);
void counts_row_fini(struct counts_row *row);

/* How many times more there was than was counted: 1 where the counter was not shared, 0 where it
 * never counted. */
double counts_scale(const struct recorder_count *count);
double counts_value(const struct recorder_count *count);
/* NAN where what stands below the line is 0. */
double counts_metric(const struct metric_plan *plan, const double *values);
/* Fills in the metrics of a row from its values. */
void counts_measure(const struct counts *counts, struct counts_row *row);

/* Over all runs; with one run the value alone is known. */
struct estimate counts_mean(const struct counts *counts, size_t event);
struct estimate counts_mean_metric(const struct counts *counts, size_t plan);

void output_counts_text(FILE *out, const struct counts *counts);
/* One line; the first one has headings before it. */
void output_counts_interval(FILE *out, const struct counts *counts, const struct counts_row *row,
			    bool first);
int output_counts_json(FILE *out, const struct counts *counts, struct err *err);
void output_counts_csv(FILE *out, const struct counts *counts);

#endif
