#ifndef PYPERF_CMD_FILTER_H
#define PYPERF_CMD_FILTER_H

#include "cmd/cmd.h"
#include "profile/profile.h"
#include "profile/view.h"

/* What every command that reads a recording shares: which file, which samples, which event. */

/* To be included in an option table; what it parses goes to `view_given`. */
extern const struct poptOption view_options[];
struct view_given {
	char *input, *event;
	char *comm, *pid, *tid, *dso, *phase, *time;
	char *native;
	struct profile_shown shown;
	int by_pmu, with_inline, no_inline, reduced, quiet, verbose;
};
extern struct view_given view_given;

/* Of --native: values of enum profile_native. */
extern const struct word native_words[];

struct opened {
	struct data_file *file;
	struct profile *profile;
	struct view_filter filter;
	char *filter_text; /* "--comm python3 --tid 7"; NULL without a filter */
	uint32_t event;	   /* the one that -e names, or the first with samples */
};

/* Which functions are shown, by their files: a part of view_options, too. */
extern const struct poptOption shown_options[];

/* Help of --metrics; the keys are those of profile/metric.c. */
#define METRICS_HELP                                                                          \
	"columns of metrics: ipc, mpki, miss, br-miss, br-mpki, l1-mpki, l1-miss, tlb-mpki, " \
	"stalled, ghz, kernel, ns"

/* To be included beside them by the commands that show functions that were inlined. */
extern const struct poptOption inline_options[];

/* Likewise by those that show lines. */
extern const struct poptOption reduced_options[];

/* The recording's path, or perf.data. */
const char *view_input(void);
/* Reads the recording. A missing file says how to make one. */
int view_open(struct opened *opened, const struct profile_options *options, struct err *err);
void view_close(struct opened *opened);

/* Columns of the terminal that stdout is; 0 where it is none. */
int view_width(void);

#endif
