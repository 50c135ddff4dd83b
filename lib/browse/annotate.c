#include "browse/annotate.h"

#include "browse/report.h"
#include "output/annotate.h"

int annotate_view_open(struct screen *screen, const struct annotate *annotate, uint32_t line,
		       struct err *err)
{
	if (profile_function(annotate->profile, annotate->function)->kind == FRAME_PYTHON)
		return annotate_python_open(screen, annotate, line, err);
	return annotate_native_open(screen, annotate, err);
}

/* From a report, with its filter and its columns. */
int annotate_open(struct screen *screen, const struct report_view *report, uint32_t function,
		  struct err *err)
{
	struct metric_columns metrics = report->metrics;
	const struct annotate annotate = {
		.profile = report->browse->profile,
		.functions = report->functions,
		.filter = zooms_filter(&report->zooms),
		.function = function,
		.event = report->report.event,
		.metrics = &metrics,
	};

	return annotate_view_open(screen, &annotate, 0, err);
}

void annotate_title(const struct annotate *annotate, const struct names *names,
		    struct screen_line *line)
{
	const struct view_row *row = annotate_row(annotate);
	uint64_t whole = annotate->functions->period_total[annotate->event];
	struct strbuf *text = screen_line_part(line, SCREEN_BAR);

	strbuf_char(text, ' ');
	names_add_function(names, annotate->function, text);
	strbuf_str(text, "  ");
	names_add_place(names, annotate->function, text);
	if (!row)
		return;
	strbuf_printf(text, "   %.1f%% of ",
		      100 * figure_share(row->counts[annotate->event].total, whole));
	names_add_event(names, annotate->event, text);
}

uint32_t annotate_next_event(const struct annotate *annotate, const struct names *names, int by)
{
	uint32_t count = (uint32_t)annotate->functions->events, event = annotate->event;

	do
		event = (event + count + (uint32_t)by) % count;
	while (event != annotate->event && !names_event_has_samples(names, event));
	return event;
}
