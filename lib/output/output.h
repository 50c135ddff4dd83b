#ifndef PYPERF_OUTPUT_H
#define PYPERF_OUTPUT_H

#include "base/err.h"
#include "profile/profile.h"
#include "profile/view.h"

#include <stdio.h>

/*
 * Turning views into bytes: one file per format. Nothing here decides what is shown; that is the
 * view's and the command's. All text from a profile passes text_escape() on its way to a terminal;
 * JSON goes through the library. Functions return 0 or a negative code; a failed write shows in
 * ferror(out), which the command checks once at the end.
 */

/* Formats of `pyperf export`: one row each in output/export.c, ended by a row without name. */
struct export_format {
	const char *name, *summary;
	int (*write)(FILE *out, const struct profile *profile, const struct view_filter *filter,
		     struct err *err);
};
extern const struct export_format export_formats[];

struct report_style {
	double percent_limit; /* rows below this share (of 100) are left out and counted */
	int no_children;      /* sort by self and leave the total column out */
	const char *kind;     /* "python", "native", "kernel" or NULL */
	enum view_sort sort;
	uint32_t sort_event;
	int width; /* columns of the terminal; 0: no limit */
};

int output_report_text(FILE *out, const struct profile *profile, const struct view *view,
		       const struct report_style *style, struct err *err);
int output_report_csv(FILE *out, const struct profile *profile, const struct view *view,
		      const struct report_style *style, struct err *err);
/* The documented JSON of report and annotate: events, samples, functions, lines. `functions` or
 * `lines` may be NULL: an empty array. */
int output_json(FILE *out, const struct profile *profile, const struct view *functions,
		const struct view *lines, const struct report_style *style, struct err *err);

int output_annotate_python(FILE *out, struct profile *profile, uint32_t function,
			   const struct view_filter *filter, uint32_t sort_event, struct err *err);
int output_annotate_native(FILE *out, struct profile *profile, uint32_t function,
			   const struct view_filter *filter, uint32_t sort_event, struct err *err);

#endif
