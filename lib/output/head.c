#include "output/annotate.h"

#include "base/text.h"

#include <inttypes.h>

const struct view_row *annotate_row(const struct annotate *annotate)
{
	for (size_t i = 0; i < annotate->functions->count; i++)
		if (annotate->functions->rows[i].function == annotate->function)
			return &annotate->functions->rows[i];
	return NULL;
}

bool annotate_is_hot(const struct view *lines, const struct view_row *row)
{
	for (size_t e = 0; e < lines->events; e++)
		if (100 * figure_share(row->counts[e].total, lines->period_total[e]) >=
		    REDUCED_PERCENT)
			return true;
	return false;
}

/* How much of the function's time is its own: of Python code, that on its own lines. */
static void add_own(const struct view_count *count, uint64_t whole, bool python, struct strbuf *out)
{
	uint64_t own = python ? figure_innermost(count) : count->self;

	if (own == count->total)
		return;
	if (own)
		strbuf_printf(out, ", %.1f%% %s", 100 * figure_share(own, whole),
			      python ? "on its own lines" : "in itself");
	else
		strbuf_printf(out, ", all of it in functions that it calls");
}

/* "61.0% of cycles, 58.4% on its own lines (7,559 samples)" */
static void add_event(const struct annotate *annotate, const struct names *names,
		      const struct view_row *row, uint32_t event, struct strbuf *out)
{
	const struct view_count *count = &row->counts[event];
	const struct profile_event *profiled = profile_event(annotate->profile, event);
	uint64_t whole = annotate->functions->period_total[event];
	bool python = profile_function(annotate->profile, annotate->function)->kind == FRAME_PYTHON;
	char samples[32];

	strbuf_printf(out, "%.1f%% of ", 100 * figure_share(count->total, whole));
	names_add_event(names, event, out);
	add_own(count, whole, python, out);
	text_count(samples, sizeof(samples), count->total_samples);
	strbuf_printf(out, " (%s sample%s", samples, count->total_samples == 1 ? "" : "s");
	if (profile_event_counter_time(profiled) < 1)
		strbuf_printf(out, "; on a counter for %.0f%% of the time, scaled up",
			      100 * profile_event_counter_time(profiled));
	strbuf_str(out, ")\n");
}

void annotate_head(FILE *out, const struct annotate *annotate, const struct names *names,
		   uint32_t last)
{
	const struct profile *profile = annotate->profile;
	const struct profile_function *f = profile_function(profile, annotate->function);
	const struct view_row *row = annotate_row(annotate);
	struct strbuf text = {0};

	names_add_function(names, annotate->function, &text);
	strbuf_str(&text, "   ");
	names_add_text(&text, profile_text(profile, f->file));
	if (f->kind == FRAME_PYTHON && f->line) {
		strbuf_printf(&text, ":%" PRIu32, f->line);
		if (last > f->line)
			strbuf_printf(&text, "-%" PRIu32, last);
	}
	strbuf_char(&text, '\n');
	for (uint32_t e = 0; row && e < annotate->functions->events; e++)
		if (names_event_has_columns(names, e, annotate->event) &&
		    row->counts[e].total_samples)
			add_event(annotate, names, row, e, &text);
	fputs(strbuf_text(&text), out);
	strbuf_fini(&text);
}

void annotate_metrics(FILE *out, const struct annotate *annotate, const struct view *lines)
{
	struct row_metrics metrics = {0};
	struct strbuf text = {0};

	if (!annotate->metrics || !annotate->metrics->count)
		return;
	metric_columns_all(annotate->metrics, lines, &metrics);
	metric_columns_line(annotate->metrics, &metrics, &text);
	if (text.len)
		fprintf(out, "%s\n", strbuf_text(&text));
	strbuf_fini(&text);
}
