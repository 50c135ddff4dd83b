#include "output/counts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Less than that of the time is what passes between reading two clocks. */
#define SHARED_LEAST 0.01
#define SHARED_LEAST_NS 2000000u

void counts_init(struct counts *counts, const struct event_list *events, bool with_metrics)
{
	struct metric_event *list = calloc(events->len + 1, sizeof(*list));

	*counts = (struct counts){.events = events};
	for (size_t i = 0; list && i < events->len; i++)
		list[i] = (struct metric_event){
			.name = events->items[i].name,
			.attr = &events->items[i].attr,
			.group = events->items[i].group,
		};
	for (const struct metric *m = metric_table; list && with_metrics && m->key; m++)
		if (m->above != ROLE_KERNEL && m->below != ROLE_RANKED &&
		    metric_plan(&counts->plans[counts->plan_count], m, list, events->len,
				UINT32_MAX))
			counts->plan_count++;
	free(list);
}

void counts_row_fini(struct counts_row *row)
{
	free(row->label);
	free(row->values);
	free(row->metrics);
	*row = (struct counts_row){0};
}

void counts_fini(struct counts *counts)
{
	for (size_t i = 0; i < counts->runs.len; i++)
		free(counts->runs.items[i].counts);
	for (size_t i = 0; i < counts->intervals.len; i++)
		counts_row_fini(&counts->intervals.items[i]);
	for (size_t i = 0; i < counts->threads.len; i++)
		counts_row_fini(&counts->threads.items[i]);
	for (size_t i = 0; i < counts->functions.len; i++)
		counts_row_fini(&counts->functions.items[i]);
	vec_fini(&counts->runs);
	vec_fini(&counts->intervals);
	vec_fini(&counts->threads);
	vec_fini(&counts->functions);
}

struct counts_run *counts_add_run(struct counts *counts)
{
	struct counts_run *run = vec_push(&counts->runs);

	if (!run)
		return NULL;
	run->counts = calloc(counts->events->len, sizeof(*run->counts));
	if (run->counts)
		return run;
	counts->runs.len--;
	return NULL;
}

struct counts_row *counts_new_row(struct counts *counts, struct counts_row *row, const char *label)
{
	*row = (struct counts_row){
		.label = label ? strdup(label) : NULL,
		.values = calloc(counts->events->len, sizeof(*row->values)),
		.metrics = calloc(METRICS_MAX, sizeof(*row->metrics)),
	};
	if (row->values && row->metrics && (!label || row->label))
		return row;
	counts_row_fini(row);
	return NULL;
}

double counts_scale(const struct recorder_count *count)
{
	uint64_t idle = count->enabled_ns > count->running_ns
				? count->enabled_ns - count->running_ns
				: 0;

	if (!count->running_ns)
		return 0;
	if (idle < SHARED_LEAST_NS || (double)idle < SHARED_LEAST * (double)count->enabled_ns)
		return 1;
	return (double)count->enabled_ns / (double)count->running_ns;
}

double counts_value(const struct recorder_count *count)
{
	return (double)count->value * counts_scale(count);
}

double counts_metric(const struct metric_plan *plan, const double *values)
{
	double above = 0, below = 0;

	for (size_t i = 0; i < plan->count; i++) {
		above += values[plan->pairs[i].above];
		below += values[plan->pairs[i].below];
	}
	return below > 0 ? plan->metric->scale * above / below : NAN;
}

void counts_measure(const struct counts *counts, struct counts_row *row)
{
	for (size_t i = 0; i < counts->plan_count; i++)
		row->metrics[i] = counts_metric(&counts->plans[i], row->values);
}

/* The mean of what `of` says of each run. */
static struct estimate mean(const struct counts *counts, size_t index,
			    double (*of)(const struct counts *counts, size_t run, size_t index))
{
	struct estimate estimate;
	double sum = 0, square = 0;
	uint64_t n = 0;

	for (size_t i = 0; i < counts->runs.len; i++) {
		double value = of(counts, i, index);

		if (isnan(value))
			continue;
		sum += value;
		square += value * value;
		n++;
	}
	estimate = estimate_mean(sum, square, n);
	estimate.value = n ? sum / (double)n : NAN;
	return estimate;
}

static double event_of_run(const struct counts *counts, size_t run, size_t event)
{
	return counts_value(&counts->runs.items[run].counts[event]);
}

static double metric_of_run(const struct counts *counts, size_t run, size_t plan)
{
	double *values = calloc(counts->events->len, sizeof(*values)), metric;

	if (!values)
		return NAN;
	for (size_t i = 0; i < counts->events->len; i++)
		values[i] = event_of_run(counts, run, i);
	metric = counts_metric(&counts->plans[plan], values);
	free(values);
	return metric;
}

struct estimate counts_mean(const struct counts *counts, size_t event)
{
	return mean(counts, event, event_of_run);
}

struct estimate counts_mean_metric(const struct counts *counts, size_t plan)
{
	return mean(counts, plan, metric_of_run);
}
