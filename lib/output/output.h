#ifndef PYPERF_OUTPUT_H
#define PYPERF_OUTPUT_H

#include "base/err.h"
#include "output/columns.h"
#include "profile/compare.h"
#include "profile/group.h"
#include "profile/profile.h"
#include "profile/view.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Turning views into bytes: one file per format. Which samples and which function are shown is
 * decided by the command; what a row is called and how a figure is written lies in names.c and
 * figure.c, once for all formats. All text from a profile passes text_escape() on its way to a
 * terminal; JSON goes through its library.
 *
 * Functions return 0 or a negative code. A failed write shows in ferror(out), which the command
 * checks once at the end.
 */

#define OUTPUT_ANY_KIND (-1)
/* What --reduced keeps has at least this share (of 100) of some event. */
#define REDUCED_PERCENT 1.0

/* What report and annotate show; the views stay the caller's. */
struct report {
	const struct profile *profile;
	const struct view *view;	  /* of functions, or the one inside `groups` */
	const struct view_groups *groups; /* NULL: rows are functions */
	const struct view *lines;	  /* for JSON; may be NULL */
	const struct details *details;	  /* for JSON: of some functions' lines; may be NULL */
	size_t detail_count;
	const uint32_t *only; /* restricts rows to these functions; NULL: all */
	size_t only_count;
	uint32_t event;	      /* that ranks the rows */
	double percent_limit; /* rows below this share (of 100) of every event are left out */
	bool no_children;     /* no column of totals */
	bool reduced;	      /* what is left out below the limit shows as "..." */
	bool show_samples;    /* columns of sample counts too */
	int kind;	      /* an enum frame_kind, or OUTPUT_ANY_KIND */
	bool quiet;	      /* the table alone */
	const char *filter;   /* "--comm python3": what the user's filter was; NULL without one */
	int width;	      /* columns of the terminal; 0: no limit */
	struct metric_columns *metrics; /* NULL: none */
};

int output_report_text(FILE *out, const struct report *report, struct err *err);
int output_report_csv(FILE *out, const struct report *report, struct err *err);
/* The same of the report's lines. */
int output_lines_csv(FILE *out, const struct report *report, struct err *err);
/* The documented JSON of report and annotate: events, samples, functions, lines. */
int output_json(FILE *out, const struct report *report, struct err *err);

struct annotate {
	struct profile *profile;
	const struct view *functions; /* all of them: for the head line */
	const struct view_filter *filter;
	uint32_t function, event;
	bool reduced;	      /* only lines that matter: see REDUCED_PERCENT */
	unsigned int details; /* DETAIL_* below the lines: details.h */
	bool quiet;
	int width;
	struct metric_columns *metrics; /* NULL: none */
};
/* Source with figures; without the text still lines with figures. */
int output_annotate_python(FILE *out, const struct annotate *annotate, struct err *err);
/* Of all files the lines that matter, grouped by whose code it is; `lines` are all lines. */
int output_annotate_overview(FILE *out, const struct annotate *annotate, const struct view *lines,
			     struct err *err);
/* Disassembly with figures; addresses with figures where it cannot be disassembled. */
int output_annotate_native(FILE *out, const struct annotate *annotate, struct err *err);

/* Resident memory and memory accesses, of a Python function's lines or of all functions. */
struct memory_report {
	struct profile *profile;
	const struct view_filter *filter;
	uint32_t function; /* UINT32_MAX: all of them */
	bool quiet;
	int width;
};
int output_memory_text(FILE *out, const struct memory_report *report, struct err *err);
int output_memory_json(FILE *out, const struct memory_report *report, struct err *err);

/* One self-contained page for browsers. */
struct samples;
struct page {
	struct profile *profile;
	const struct samples *samples; /* of the same recording */
	const struct view_filter *filter;
	const char *filter_text; /* as in struct report */
	uint32_t event;		 /* shown first */
	bool reduced;		 /* only what has REDUCED_PERCENT, until that is turned off */
};
int output_page(FILE *out, const struct page *page, struct err *err);

/* Two recordings, A and B. */
struct diff {
	const struct compare_side *sides;
	const char *paths[2];
	const struct compare *functions, *lines;
	double percent_limit; /* rows that changed by less of the whole are left out */
	bool quiet;
	int width;
};
int output_diff(FILE *out, const struct diff *diff, struct err *err);
/* Rows that grew by more than so many percent of the whole, surely. */
size_t diff_regressions(const struct compare *compare, double percent);

/* perf script's layout: samples of the event, or of all where UINT32_MAX. */
int output_script(FILE *out, const struct profile *profile, const struct samples *samples,
		  const struct view_filter *filter, uint32_t event, struct err *err);

struct export_options {
	const struct profile *profile;
	const struct data_info *info;  /* of the recording's clock; may be NULL */
	const struct samples *samples; /* where the format needs them */
	const struct view_filter *filter;
	uint32_t event;	       /* for formats that hold one */
	bool all_events;       /* the others write all of them */
	bool by_period;	       /* weigh by period instead of counting samples */
	uint64_t min_duration; /* of slices in a time line; ns */
	const char *merge;     /* trace of another tool to be put on the same time line, or NULL */
	int64_t offset;	       /* ns that its times are late by; without a base time: after ours */
	bool has_offset, offset_is_epoch; /* its times count from 1970 */
	/* The recording itself, and its path: for what is a recording again. NULL otherwise. */
	const struct data_file *file;
	const char *input;
};

enum export_needs {
	EXPORT_SAMPLES = 1, /* options->samples, since it shows time */
	EXPORT_BINARY = 2,  /* nothing for a terminal */
};

/* Formats of `pyperf export`: one row each in output/export.c, ended by a row without name. */
struct export_format {
	const char *name, *summary;
	int (*write)(FILE *out, const struct export_options *options, struct err *err);
	int needs; /* of enum export_needs */
	/* Instead of write(): where it is no stream. */
	int (*write_file)(const char *path, const struct export_options *options, struct err *err);
};
extern const struct export_format export_formats[];
const struct export_format *export_format_find(const char *name);

#endif
