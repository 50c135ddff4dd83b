#include "profile/measure.h"

#include <stdlib.h>
#include <string.h>

int measures_init(struct measures *measures, const struct profile *profile, uint32_t ranked,
		  struct err *err)
{
	static const struct perf_event_attr none = {.type = PERF_TYPE_SOFTWARE,
						    .config = PERF_COUNT_SW_DUMMY};
	size_t count = profile_event_count(profile), usable = 0;
	struct metric_event *events = calloc(count + 1, sizeof(*events));

	*measures = (struct measures){.profile = profile};
	if (!events)
		return err_nomem(err);
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_event *event = profile_event(profile, i);

		/* An event without samples plays no role, but keeps its place. */
		events[i] = (struct metric_event){
			event->name, event->sampled ? &event->attr : &none, (int)event->group - 1};
		if (event->sampled && event->period_total)
			usable = i + 1;
	}
	for (const struct metric *m = metric_table; m->key; m++) {
		struct metric_plan *plan = &measures->plans[measures->count];

		measures->count += metric_plan(plan, m, events, usable, ranked);
	}
	free(events);
	return 0;
}

int measures_find(const struct measures *measures, const char *key, size_t len)
{
	for (size_t i = 0; i < measures->count; i++)
		if (strlen(measures->plans[i].metric->key) == len &&
		    strncmp(measures->plans[i].metric->key, key, len) == 0)
			return (int)i;
	return -1;
}

/* What a figure is made of, for one row or for several. */
struct parts {
	struct estimate_sum above, below;
	double product;
	bool joint;
};

static void add_sum(struct estimate_sum *sum, const struct view_count *count,
		    enum measure_basis basis, double scale)
{
	bool self = basis == MEASURE_SELF;

	sum->sum += scale * (double)(self ? count->self : count->total);
	sum->square += scale * scale * (self ? count->self_square : count->total_square);
	sum->samples += self ? count->self_samples : count->total_samples;
}

static void add_whole(struct estimate_sum *sum, const struct view *view, uint32_t event,
		      double scale)
{
	sum->whole += scale * (double)view->period_total[event];
	sum->whole_square += scale * scale * view->square_total[event];
	sum->whole_samples += view->samples[event];
}

static void add_kernel(struct parts *parts, const struct view_count *count)
{
	const double *square = count->split_square;
	const uint64_t *split = count->split;

	parts->above.sum += (double)split[FRAME_KERNEL];
	parts->above.square += square[FRAME_KERNEL];
	parts->below.sum += (double)(split[FRAME_PYTHON] + split[FRAME_NATIVE] +
				     split[FRAME_KERNEL]);
	parts->below.square += square[FRAME_PYTHON] + square[FRAME_NATIVE] + square[FRAME_KERNEL];
	parts->below.samples += count->self_samples ? count->self_samples : count->total_samples;
}

static size_t find_pair(const struct profile *profile, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < profile_pair_count(profile); i++) {
		const struct profile_pair *pair = profile_pair(profile, i);

		if (pair->a == (a < b ? a : b) && pair->b == (a < b ? b : a))
			return i;
	}
	return SIZE_MAX;
}

/* Samples were lost, or an event was throttled or shared its counter: by how much what the event
 * counted is more than its samples say. */
static double scale_of(const struct profile *profile, uint32_t event)
{
	const struct profile_event *e = profile_event(profile, event);

	return e->period_total ? e->estimated_total / (double)e->period_total : 1;
}

static void add_row(struct parts *parts, const struct measures *measures,
		    const struct metric_plan *plan, const struct view_row *row,
		    enum measure_basis basis)
{
	if (plan->metric->above == ROLE_KERNEL) {
		add_kernel(parts, &row->counts[plan->pairs[0].below]);
		return;
	}
	for (size_t i = 0; i < plan->count; i++) {
		uint32_t above = plan->pairs[i].above, below = plan->pairs[i].below;
		size_t pair = plan->joint ? find_pair(measures->profile, above, below) : SIZE_MAX;
		/* Counts that were read together have the same gaps. */
		bool together = pair != SIZE_MAX && row->products;

		add_sum(&parts->above, &row->counts[above], basis,
			together ? 1 : scale_of(measures->profile, above));
		add_sum(&parts->below, &row->counts[below], basis,
			together ? 1 : scale_of(measures->profile, below));
		parts->joint &= together;
		if (together)
			parts->product += basis == MEASURE_SELF ? row->products[pair].self
								: row->products[pair].total;
	}
}

static struct estimate figure_of(const struct measures *measures, const struct metric_plan *plan,
				 const struct view *view, struct parts *parts)
{
	struct estimate estimate;

	for (size_t i = 0; i < plan->count; i++) {
		uint32_t above = plan->pairs[i].above, below = plan->pairs[i].below;

		add_whole(&parts->above, view, above, scale_of(measures->profile, above));
		add_whole(&parts->below, view, below, scale_of(measures->profile, below));
	}
	if (plan->metric->above == ROLE_KERNEL)
		estimate = estimate_part(&parts->above, &parts->below);
	else if (parts->joint)
		estimate = estimate_joint(&parts->above, &parts->below, parts->product);
	else
		estimate = estimate_ratio(&parts->above, &parts->below);
	return estimate_scaled(estimate, plan->metric->scale);
}

struct estimate measure(const struct measures *measures, size_t plan, const struct view *view,
			const struct view_row *row, enum measure_basis basis)
{
	const struct metric_plan *p = &measures->plans[plan];
	struct parts parts = {.joint = true};

	add_row(&parts, measures, p, row, basis);
	return figure_of(measures, p, view, &parts);
}

struct estimate measure_all(const struct measures *measures, size_t plan, const struct view *view,
			    enum measure_basis basis)
{
	const struct metric_plan *p = &measures->plans[plan];
	struct parts parts = {.joint = true};

	for (size_t i = 0; i < view->count; i++)
		add_row(&parts, measures, p, &view->rows[i], basis);
	return figure_of(measures, p, view, &parts);
}
