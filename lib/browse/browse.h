#ifndef PYPERF_BROWSE_H
#define PYPERF_BROWSE_H

#include "output/output.h"
#include "screen/screen.h"

/*
 * Interactive views of a recording: what lib/output knows of rows and figures, on the screens of
 * lib/screen.
 */
struct browse {
	/* What a text report would show; its view, groups and lines are made here. */
	struct report report;
	struct profile *profile;	  /* the report's */
	const struct view_filter *filter; /* of the command line */
	enum view_sort order;
	const enum view_key *keys; /* of --sort; groups may be zoomed into */
	size_t key_count;
};

/* The ranking of functions, as of `pyperf report`. The view is pushed on the stack; what `browse`
 * points to must live until screen_run() has ended. */
int browse_report(struct screen *screen, const struct browse *browse, struct err *err);

#endif
