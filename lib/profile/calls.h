#ifndef PYPERF_CALLS_H
#define PYPERF_CALLS_H

#include "profile/view.h"

/*
 * Who calls the lines of a function, and whom they call: rows by the function's own line, then by
 * the total of `sort_event`, the largest first. A sample counts once in a row, however deep it
 * recurses.
 */
struct view_call {
	uint32_t line; /* of the function that was asked about */
	/* That calls it or is called: of any kind where it is called; where it calls, the next
	 * Python function, native code between them left out, or UINT32_MAX where there is none. */
	uint32_t function;
	uint32_t other_line;	   /* from which it calls; 0 for what is called */
	struct view_count *counts; /* total only */
};

int view_callees(struct view_call **rows, size_t *count, const struct profile *profile,
		 const struct view_filter *filter, uint32_t function, uint32_t sort_event,
		 struct err *err);
int view_callers(struct view_call **rows, size_t *count, const struct profile *profile,
		 const struct view_filter *filter, uint32_t function, uint32_t sort_event,
		 struct err *err);
void view_calls_free(struct view_call *rows);

#endif
