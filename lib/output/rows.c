#include "output/rows.h"

#include "profile/origin.h"

static const struct profile_function *function_of(const struct report *report,
						  const struct view_row *row)
{
	return profile_function(report->profile, row->function);
}

static void add_name(const struct report *report, const struct names *names,
		     const struct view_row *row, struct strbuf *out)
{
	names_add_text(out, profile_text(report->profile, function_of(report, row)->name));
}

static void add_qualname(const struct report *report, const struct names *names,
			 const struct view_row *row, struct strbuf *out)
{
	names_add_function(names, row->function, out);
}

static void add_place(const struct report *report, const struct names *names,
		      const struct view_row *row, struct strbuf *out)
{
	names_add_place(names, row->function, out);
}

static void add_file(const struct report *report, const struct names *names,
		     const struct view_row *row, struct strbuf *out)
{
	names_add_text(out, profile_text(report->profile, function_of(report, row)->file));
}

static void add_line(const struct report *report, const struct names *names,
		     const struct view_row *row, struct strbuf *out)
{
	if (function_of(report, row)->line)
		strbuf_printf(out, "%u", function_of(report, row)->line);
}

static void add_kind(const struct report *report, const struct names *names,
		     const struct view_row *row, struct strbuf *out)
{
	strbuf_str(out, frame_kind_name(function_of(report, row)->kind));
}

static void add_origin(const struct report *report, const struct names *names,
		       const struct view_row *row, struct strbuf *out)
{
	strbuf_str(out, code_origin_name(code_origin(report->profile, row->function)));
}

const struct label row_labels[] = {
	{"name", "", false, true, TABLE_WHOLE, 0, add_name},
	{"qualname", "function", true, true, TABLE_CUT_MIDDLE, 3, add_qualname},
	{"place", "", true, false, TABLE_CUT_FRONT, 2, add_place},
	{"file", "", false, true, TABLE_WHOLE, 0, add_file},
	{"line", "", false, true, TABLE_WHOLE, 0, add_line},
	{"kind", "", false, true, TABLE_WHOLE, 0, add_kind},
	{"origin", "", false, true, TABLE_WHOLE, 0, add_origin},
	{0},
};

static void add_row_line(const struct report *report, const struct names *names,
			 const struct view_row *row, struct strbuf *out)
{
	if (row->line)
		strbuf_printf(out, "%u", row->line);
}

const struct label line_labels[] = {
	{"file", "", false, true, TABLE_WHOLE, 0, add_file},
	{"line", "", false, true, TABLE_WHOLE, 0, add_row_line},
	{"function", "", false, true, TABLE_WHOLE, 0, add_qualname},
	{0},
};

void rows_add_group(const struct report *report, const struct names *names,
		    const struct view_row *row, size_t key, struct strbuf *out)
{
	uint32_t value = view_group_value(report->groups, row, key);

	if (value == VIEW_GROUP_NONE) {
		strbuf_str(out, "[no stack]");
		return;
	}
	switch (report->groups->keys[key]) {
	case VIEW_PID:
	case VIEW_TID:
		strbuf_printf(out, "%u", value);
		break;
	case VIEW_COMM:
		names_add_text(out, profile_text(report->profile, value));
		break;
	case VIEW_DSO:
	case VIEW_FILE:
		if (value == VIEW_GROUP_PYTHON)
			strbuf_str(out, "[python]");
		else
			names_add_file(names, value, out);
		break;
	case VIEW_KIND:
		strbuf_str(out, frame_kind_name((enum frame_kind)value));
		break;
	case VIEW_ORIGIN:
		strbuf_str(out, code_origin_name((enum code_origin)value));
		break;
	case VIEW_FUNCTION:
		names_add_function(names, value, out);
		break;
	}
}

bool rows_event_shown(const struct report *report, uint32_t event)
{
	return profile_event(report->profile, event)->sampled;
}

/* Do the function's kind and the choice of functions let it through? */
static bool is_wanted(const struct report *report, const struct view_row *row)
{
	if (report->groups)
		return true;
	if (report->kind != OUTPUT_ANY_KIND && (int)function_of(report, row)->kind != report->kind)
		return false;
	for (size_t i = 0; report->only && i < report->only_count; i++)
		if (report->only[i] == row->function)
			return true;
	return !report->only;
}

bool rows_pass(const struct report *report, const struct view_row *row, bool *below_limit)
{
	*below_limit = false;
	if (!is_wanted(report, row))
		return false;
	for (size_t i = 0; i < report->view->events; i++) {
		const struct view_count *count = &row->counts[i];
		uint64_t period = report->no_children ? count->self : count->total;

		if (!period && !(report->no_children ? count->self_samples : count->total_samples))
			continue;
		if (100 * figure_share(period, report->view->period_total[i]) >=
		    report->percent_limit)
			return true;
		*below_limit = true;
	}
	return false;
}

static int add_labels(struct layout *layout, const struct report *report, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; report->groups && i < report->groups->key_count && !rc; i++)
		rc = layout_add(
			layout,
			(struct table_column){.heading = view_key_name(report->groups->keys[i]),
					      .left = true,
					      .cut = TABLE_CUT_MIDDLE,
					      .gap = 3},
			err);
	for (const struct label *l = row_labels; !report->groups && l->key && !rc; l++)
		if (l->in_text)
			rc = layout_add(layout,
					(struct table_column){.heading = l->heading,
							      .left = true,
							      .cut = l->cut,
							      .gap = l->gap,
							      .want = l->cut == TABLE_CUT_MIDDLE
									      ? LAYOUT_NAME_WANTED
									      : 0},
					err);
	return rc;
}

/* Does any row have time below it? Without call chains none has. */
static bool has_totals(const struct report *report)
{
	for (size_t i = 0; i < report->view->count; i++)
		for (size_t e = 0; e < report->view->events; e++)
			if (report->view->rows[i].counts[e].total !=
			    report->view->rows[i].counts[e].self)
				return true;
	return false;
}

int rows_layout(struct layout *layout, const struct report *report, const struct names *names,
		struct err *err)
{
	bool totals = !report->no_children && has_totals(report);
	struct layout_choice choice = {
		.ranked = report->event,
		.totals = totals,
		.samples = report->show_samples,
		.total_counts = report->show_samples && totals,
		.split = !report->groups && profile_summary(report->profile)->python &&
			 !profile_summary(report->profile)->folded,
		.metrics = report->metrics,
	};
	int rc = layout_init(layout, report->profile, names, &choice, err);

	if (rc)
		return rc;
	rc = add_labels(layout, report, err);
	if (rc)
		layout_fini(layout);
	return rc;
}
