#include "output/columns.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

/* The event without which the recording lacks a metric, in the user's words. */
static const char *const role_names[ROLES] = {
	[ROLE_CYCLES] = "cycles",
	[ROLE_INSTRUCTIONS] = "instructions",
	[ROLE_CACHE_REFERENCES] = "cache-references",
	[ROLE_CACHE_MISSES] = "cache-misses",
	[ROLE_BRANCHES] = "branches",
	[ROLE_BRANCH_MISSES] = "branch-misses",
	[ROLE_L1D_LOADS] = "L1-dcache-loads",
	[ROLE_L1D_MISSES] = "L1-dcache-load-misses",
	[ROLE_DTLB_MISSES] = "dTLB-load-misses",
	[ROLE_STALLED_BACKEND] = "stalled-cycles-backend",
	[ROLE_TIME] = "task-clock",
	[ROLE_RANKED] = "cycles",
	[ROLE_KERNEL] = "samples",
};

static int choose(struct metric_columns *columns, const char *key, size_t len, struct err *err)
{
	int plan = measures_find(&columns->measures, key, len);
	const struct metric *metric = metric_find(key, len);

	if (!metric) {
		err_set(err, ERR_USAGE, "there is no metric '%.*s'", (int)len, key);
		err_hint(err, "pyperf help report lists them.");
		return ERR_USAGE;
	}
	if (plan < 0) {
		err_set(err, ERR_NOT_FOUND, "the recording has no %s", metric->key);
		err_hint(err, "It takes %s and %s: record with -e %s,%s.",
			 role_names[metric->above], role_names[metric->below],
			 role_names[metric->below], role_names[metric->above]);
		return ERR_NOT_FOUND;
	}
	for (size_t i = 0; i < columns->count; i++)
		if (columns->chosen[i] == (size_t)plan)
			return 0;
	columns->chosen[columns->count++] = (size_t)plan;
	return 0;
}

static void choose_by_default(struct metric_columns *columns, bool all)
{
	for (size_t i = 0; i < columns->measures.count; i++)
		if (all || columns->measures.plans[i].metric->shown)
			columns->chosen[columns->count++] = i;
}

int metric_columns_init(struct metric_columns *columns, const struct profile *profile,
			uint32_t ranked, const char *list, struct err *err)
{
	int rc;

	*columns = (struct metric_columns){.basis = MEASURE_SELF};
	rc = measures_init(&columns->measures, profile, ranked, err);
	if (rc)
		return rc;
	if (!list || strcmp(list, "all") == 0) {
		choose_by_default(columns, list != NULL);
		return 0;
	}
	if (strcmp(list, "none") == 0)
		return 0;
	for (;;) {
		size_t len = strcspn(list, ",");

		rc = choose(columns, list, len, err);
		if (rc || !list[len])
			return rc;
		list += len + 1;
	}
}

static void read_row(const struct metric_columns *columns, struct row_metrics *out)
{
	out->reading = measure_reading(&columns->measures, out->figures, NULL);
}

void metric_columns_row(const struct metric_columns *columns, const struct view *view,
			const struct view_row *row, struct row_metrics *out)
{
	for (size_t i = 0; i < columns->measures.count; i++)
		out->figures[i] = measure(&columns->measures, i, view, row, columns->basis);
	read_row(columns, out);
}

void metric_columns_all(const struct metric_columns *columns, const struct view *view,
			struct row_metrics *out)
{
	for (size_t i = 0; i < columns->measures.count; i++)
		out->figures[i] = measure_all(&columns->measures, i, view, columns->basis);
	read_row(columns, out);
}

static const struct metric *metric_of(const struct metric_columns *columns, size_t plan)
{
	return columns->measures.plans[plan].metric;
}

/* Nothing where the figure is known better than it is written. */
static void add_error(const struct metric *metric, const struct estimate *figure,
		      struct strbuf *out)
{
	if (!metric_error_shows(metric, figure))
		return;
	strbuf_str(out, "±");
	metric_error_text(metric, figure, out);
}

void metric_columns_text(const struct metric_columns *columns, const struct row_metrics *row,
			 size_t plan, bool error, struct strbuf *out)
{
	const struct metric *metric = metric_of(columns, plan);
	const struct estimate *figure = &row->figures[plan];

	if (!metric_is_sure(metric, figure))
		return;
	if (error)
		add_error(metric, figure, out);
	else
		metric_text(metric, figure->value, out);
}

bool metric_columns_due(const struct metric_columns *columns, const struct view_row *row,
			size_t plan)
{
	const struct metric_plan *p = &columns->measures.plans[plan];

	for (size_t i = 0; i < p->count; i++) {
		const struct view_count *count = &row->counts[p->pairs[i].below];

		if (p->metric->above == ROLE_KERNEL)
			return count->split[FRAME_PYTHON] || count->split[FRAME_NATIVE] ||
			       count->split[FRAME_KERNEL];
		if (columns->basis == MEASURE_SELF ? count->self_samples : count->total_samples)
			return true;
	}
	return false;
}

double metric_columns_rank(const struct metric_columns *columns, const struct view *view,
			   const struct view_row *row, size_t plan)
{
	struct row_metrics metrics;

	if (!metric_columns_due(columns, row, plan))
		return -INFINITY;
	metric_columns_row(columns, view, row, &metrics);
	return metric_is_sure(metric_of(columns, plan), &metrics.figures[plan])
		       ? metrics.figures[plan].value
		       : -INFINITY;
}

void metric_columns_line(const struct metric_columns *columns, const struct row_metrics *row,
			 struct strbuf *out)
{
	const char *gap = "";

	for (size_t i = 0; i < columns->count; i++) {
		const struct metric *metric = metric_of(columns, columns->chosen[i]);
		const struct estimate *figure = &row->figures[columns->chosen[i]];
		bool behind = metric->scale > 1;

		if (!metric_is_sure(metric, figure))
			continue;
		strbuf_printf(out, "%s%s%s", gap, behind ? "" : metric->heading, behind ? "" : " ");
		metric_text(metric, figure->value, out);
		if (behind)
			strbuf_printf(out, " %s", metric->heading);
		if (metric_error_shows(metric, figure))
			strbuf_char(out, ' ');
		add_error(metric, figure, out);
		gap = "   ";
	}
	if (row->reading)
		strbuf_printf(out, "%s%s", gap, row->reading->name);
}

void metric_columns_footer(const struct metric_columns *columns, struct strbuf *out)
{
	char count[32];

	if (!columns->uncertain)
		return;
	text_count(count, sizeof(count), columns->uncertain);
	strbuf_printf(out,
		      "%s figure%s left out as too uncertain: too few samples to tell %s within a "
		      "factor of two.\n",
		      count, columns->uncertain == 1 ? " is" : "s are",
		      columns->uncertain == 1 ? "it" : "them");
}
