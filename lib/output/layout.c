#include "output/layout.h"

#include <stdlib.h>

#define SOURCE_WANTED 32 /* columns that figures leave to the text */

int layout_add(struct layout *layout, struct table_column column, struct err *err)
{
	struct table_column *c = vec_push(&layout->columns);

	if (!c)
		return err_nomem(err);
	*c = column;
	return 0;
}

int layout_add_source(struct layout *layout, struct err *err)
{
	const struct table_column text = {
		.heading = "", .left = true, .gap = 2, .want = SOURCE_WANTED};
	int rc = layout_add(layout, (struct table_column){.heading = "line", .gap = 3}, err);

	return rc ? rc : layout_add(layout, text, err);
}

static bool is_shown(const struct figure *figure, const struct layout_choice *choice)
{
	switch (figure->when) {
	case FIGURE_ALWAYS:
		return true;
	case FIGURE_TOTAL:
		return choice->totals;
	case FIGURE_SAMPLES:
		return choice->samples;
	case FIGURE_TOTAL_SAMPLES:
		return choice->total_counts;
	case FIGURE_SPLIT:
		return choice->split;
	}
	return false;
}

static bool has_metrics(const struct layout_choice *choice)
{
	return choice->metrics && choice->metrics->count;
}

static unsigned int drop_of(const struct figure *figure, const struct layout_choice *choice,
			    bool ranked)
{
	if (figure->when == FIGURE_SPLIT)
		return LAYOUT_DROP_SPLIT;
	if (figure->unit != FIGURE_COUNT)
		return ranked ? 0 : LAYOUT_DROP_EVENTS;
	if (!ranked)
		return LAYOUT_DROP_OTHER_COUNTS;
	/* What the shares are worth, unless intervals tell that. */
	return has_metrics(choice) ? LAYOUT_DROP_COUNTS : 0;
}

static int add_place(struct layout *layout, struct table_column column, struct layout_place place,
		     struct err *err)
{
	struct layout_place *p = vec_push(&layout->places);

	if (!p || layout_add(layout, column, err))
		return err_nomem(err);
	*p = place;
	return 0;
}

/* The figures of one event: the split, which goes last and once, or the others. */
static int add_figures(struct layout *layout, const struct layout_choice *choice, uint32_t event,
		       bool split, struct err *err)
{
	bool first = true;
	int rc = 0;

	for (const struct figure *f = figures; f->key && !rc; f++) {
		struct table_column column = {.heading = f->heading};

		if ((f->when == FIGURE_SPLIT) != split || !is_shown(f, choice))
			continue;
		column.group = split ? NULL : layout->groups[event];
		column.gap = split ? first ? 3 : 1 : column.group && first ? 3 : 2;
		column.drop = drop_of(f, choice, event == choice->ranked);
		column.keep = split || !has_metrics(choice);
		rc = add_place(layout, column, (struct layout_place){.figure = f, .event = event},
			       err);
		first = false;
	}
	return rc;
}

/* The first two metrics are the most telling ones. */
static int add_metrics(struct layout *layout, struct err *err)
{
	const struct metric_columns *metrics = layout->metrics;
	int rc = 0;

	for (size_t i = 0; metrics && i < metrics->count && !rc; i++) {
		size_t plan = metrics->chosen[i];
		const struct metric *metric = metrics->measures.plans[plan].metric;
		struct layout_place place = {.metric = metric, .plan = plan};

		rc = add_place(layout,
			       (struct table_column){.heading = metric->heading,
						     .gap = i ? 2 : 3,
						     .drop = i < 2 ? 0 : LAYOUT_DROP_METRICS},
			       place, err);
		place.error = true;
		if (!rc)
			rc = add_place(layout,
				       (struct table_column){.heading = "",
							     .left = true,
							     .gap = 1,
							     .drop = LAYOUT_DROP_ERROR},
				       place, err);
	}
	return rc;
}

static int add_reading(struct layout *layout, struct err *err)
{
	if (!layout->metrics || !layout->metrics->count)
		return 0;
	return add_place(
		layout,
		(struct table_column){
			.heading = "reading", .left = true, .gap = 3, .drop = LAYOUT_DROP_READING},
		(struct layout_place){0}, err);
}

int layout_init(struct layout *layout, const struct profile *profile, const struct names *names,
		const struct layout_choice *choice, struct err *err)
{
	size_t with_samples = 0, count = profile_event_count(profile);
	int rc = 0;

	*layout = (struct layout){.group_count = count, .metrics = choice->metrics};
	layout->groups = calloc(count + 1, sizeof(*layout->groups));
	if (!layout->groups)
		return err_nomem(err);
	for (uint32_t e = 0; e < count; e++)
		with_samples += names_event_has_columns(names, e, choice->ranked);
	for (uint32_t e = 0; e < count && !rc; e++) {
		struct strbuf name = {0};

		if (!names_event_has_columns(names, e, choice->ranked))
			continue;
		if (with_samples > 1) {
			names_add_event(names, e, &name);
			layout->groups[e] = strbuf_detach(&name, NULL);
			if (!layout->groups[e])
				rc = err_nomem(err);
		}
		if (!rc)
			rc = add_figures(layout, choice, e, false, err);
	}
	if (!rc)
		rc = add_metrics(layout, err);
	if (!rc)
		rc = add_figures(layout, choice, choice->ranked, true, err);
	if (!rc)
		rc = add_reading(layout, err);
	if (rc)
		layout_fini(layout);
	return rc;
}

void layout_fini(struct layout *layout)
{
	vec_fini(&layout->columns);
	vec_fini(&layout->places);
	for (size_t i = 0; layout->groups && i < layout->group_count; i++)
		free(layout->groups[i]);
	free(layout->groups);
	layout->groups = NULL;
}

static void metric_cell(struct metric_columns *metrics, const struct layout_place *place,
			const struct row_metrics *row, bool due, struct strbuf *cell)
{
	size_t before = cell->len;

	if (!place->metric) {
		strbuf_str(cell, row->reading ? row->reading->name : "");
		return;
	}
	if (!due)
		return;
	metric_columns_text(metrics, row, place->plan, place->error, cell);
	metrics->uncertain += !place->error && cell->len == before;
}

void layout_row(const struct layout *layout, struct table *table, const struct view *view,
		const struct view_row *row)
{
	struct row_metrics metrics = {0};

	if (row && layout->metrics)
		metric_columns_row(layout->metrics, view, row, &metrics);
	for (size_t i = 0; i < layout->places.len; i++) {
		const struct layout_place *place = &layout->places.items[i];
		struct strbuf *cell = table_cell(table);

		if (!row)
			continue;
		if (place->figure)
			figure_text(place->figure, &row->counts[place->event],
				    view->period_total[place->event], cell);
		else
			metric_cell(layout->metrics, place, &metrics,
				    place->metric &&
					    metric_columns_due(layout->metrics, row, place->plan),
				    cell);
	}
}

void layout_cells(const struct layout *layout, struct table *table, const struct view_count *counts,
		  const uint64_t *period_total)
{
	for (size_t i = 0; i < layout->places.len; i++) {
		const struct layout_place *place = &layout->places.items[i];
		struct strbuf *cell = table_cell(table);

		if (counts && place->figure)
			figure_text(place->figure, &counts[place->event],
				    period_total[place->event], cell);
	}
}
