#include "browse/pages.h"
#include "browse/report.h"

#include <stdlib.h>

/* A function's lines or instructions, as the text of `pyperf annotate`. */
struct annotated {
	struct annotate annotate;
	struct metric_columns metrics;
};

static int write_annotated(FILE *out, void *self, int width, struct err *err)
{
	struct annotated *annotated = self;
	struct annotate *annotate = &annotated->annotate;
	enum frame_kind kind = profile_function(annotate->profile, annotate->function)->kind;

	annotate->width = width;
	return kind == FRAME_PYTHON ? output_annotate_python(out, annotate, err)
				    : output_annotate_native(out, annotate, err);
}

int annotate_open(struct screen *screen, const struct report_view *report, uint32_t function,
		  struct err *err)
{
	struct annotated *annotated = calloc(1, sizeof(*annotated));
	const struct pages pages = {.write = write_annotated, .self = annotated, .close = free};
	struct strbuf title = {0};
	int rc;

	if (!annotated)
		return err_nomem(err);
	annotated->metrics = report->metrics;
	annotated->metrics.basis = MEASURE_SELF;
	annotated->annotate = (struct annotate){
		.profile = report->browse->profile,
		.functions = report->functions,
		.filter = zooms_filter(&report->zooms),
		.function = function,
		.event = report->report.event,
		.reduced = report->report.reduced,
		.metrics = &annotated->metrics,
	};
	strbuf_str(&title, " ");
	names_add_function(report->names, function, &title);
	rc = pages_open(screen, strbuf_text(&title), &pages, err);
	strbuf_fini(&title);
	return rc;
}
