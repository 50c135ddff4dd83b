#ifndef PYPERF_OUTPUT_FIGURE_H
#define PYPERF_OUTPUT_FIGURE_H

#include "base/strbuf.h"
#include "profile/view.h"

#include <stdbool.h>

/*
 * The figures that every row has per event: one row each in the table, from which text, CSV and
 * JSON take their columns. A figure that would read as nothing is left blank in text.
 */
enum figure_unit {
	FIGURE_SHARE, /* fraction of the event's period */
	FIGURE_COUNT, /* of samples */
	FIGURE_PART,  /* fraction of the row's own time */
};

/* Which choice of layout.h brings the figure's column. */
enum figure_when {
	FIGURE_ALWAYS,
	FIGURE_TOTAL,
	FIGURE_SAMPLES,
	FIGURE_TOTAL_SAMPLES,
	FIGURE_SPLIT,
};

struct figure {
	const char *key;     /* in CSV and JSON */
	const char *heading; /* in text */
	enum figure_unit unit;
	enum figure_when when;
	double (*of)(const struct view_count *count, uint64_t period_total);
};
extern const struct figure figures[]; /* ended by a row without key */

/* True where the row has no such figure: nothing was split up. */
bool figure_absent(const struct figure *figure, const struct view_count *count);
void figure_text(const struct figure *figure, const struct view_count *count, uint64_t period_total,
		 struct strbuf *out);
/* "12.3%"; nothing where it rounds to 0.0%. */
void figure_share_text(double share, struct strbuf *out);
/* 0 where the whole is. */
double figure_share(uint64_t part, uint64_t whole);
/* Period of the samples in which the row is the innermost Python code. */
uint64_t figure_innermost(const struct view_count *count);

#endif
