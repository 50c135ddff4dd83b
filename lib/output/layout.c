#include "output/layout.h"

#include <stdlib.h>

int layout_add(struct layout *layout, struct table_column column, struct err *err)
{
	struct table_column *c = vec_push(&layout->columns);

	if (!c)
		return err_nomem(err);
	*c = column;
	return 0;
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

/* The figures of one event: the split, which goes last and once, or the others. */
static int add_figures(struct layout *layout, const struct layout_choice *choice, uint32_t event,
		       bool split, struct err *err)
{
	bool first = true;

	for (const struct figure *f = figures; f->key; f++) {
		struct table_column column = {.heading = f->heading};
		struct layout_place *place;

		if ((f->when == FIGURE_SPLIT) != split || !is_shown(f, choice))
			continue;
		column.group = split ? NULL : layout->groups[event];
		column.gap = split ? first ? 3 : 1 : column.group && first ? 3 : 2;
		place = vec_push(&layout->places);
		if (!place || layout_add(layout, column, err))
			return err_nomem(err);
		*place = (struct layout_place){f, event};
		first = false;
	}
	return 0;
}

int layout_init(struct layout *layout, const struct profile *profile, const struct names *names,
		const struct layout_choice *choice, struct err *err)
{
	size_t with_samples = 0, count = profile_event_count(profile);
	int rc = 0;

	*layout = (struct layout){.group_count = count};
	layout->groups = calloc(count + 1, sizeof(*layout->groups));
	if (!layout->groups)
		return err_nomem(err);
	for (uint32_t e = 0; e < count; e++)
		with_samples += names_event_has_samples(names, e);
	for (uint32_t e = 0; e < count && !rc; e++) {
		struct strbuf name = {0};

		if (!names_event_has_samples(names, e))
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
		rc = add_figures(layout, choice, choice->ranked, true, err);
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

void layout_cells(const struct layout *layout, struct table *table, const struct view_count *counts,
		  const uint64_t *period_total)
{
	for (size_t i = 0; i < layout->places.len; i++) {
		const struct layout_place *place = &layout->places.items[i];
		struct strbuf *cell = table_cell(table);

		if (counts)
			figure_text(place->figure, &counts[place->event],
				    period_total[place->event], cell);
	}
}
