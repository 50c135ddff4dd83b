#ifndef PYPERF_OUTPUT_MEMORY_H
#define PYPERF_OUTPUT_MEMORY_H

#include "output/output.h"
#include "profile/memuse.h"

/*
 * Figures about memory: one row each in the table, from which text, CSV and JSON take their
 * columns.
 */
enum memory_unit {
	MEMORY_BYTES,
	MEMORY_COUNT,
	MEMORY_PART,  /* fraction of the row's accesses */
	MEMORY_MEAN,  /* latency */
	MEMORY_ERROR, /* half of its interval */
};

struct memory_figure {
	const char *key, *heading;
	enum memory_unit unit;
	bool faults;	/* of page faults, else of accesses */
	bool lines;	/* of lines alone */
	bool functions; /* of functions alone */
	enum memuse_level level;
	double (*of)(const struct memory_figure *figure, const struct memuse_row *row);
};
extern const struct memory_figure memory_figures[]; /* ended by a row without key */

/* Has the recording got what the figure is made of, and does it fit the rows? */
bool memory_figure_shown(const struct memory_figure *figure, const struct memory_report *report,
			 const struct memuse_view *view);
/* Makes the view that the report shows; a recording without anything is ERR_NOT_FOUND. */
int memory_open(struct memuse_view **view, const struct memory_report *report, struct err *err);

#endif
