#ifndef PYPERF_TRACE_H
#define PYPERF_TRACE_H

#include "output/counters.h"
#include "output/export.h"
#include "output/fold.h"
#include "output/texts.h"

/*
 * Our part of a trace in Chrome's Trace Event Format, written where a trace has its place for it:
 * alone by trace.c, or within the trace of another tool by trace_merge.c.
 */
struct trace {
	FILE *out;
	const struct export_options *options;
	const struct profile *profile;
	struct samples_walk walk;
	struct folds folds;
	struct texts names;  /* functions, as JSON strings with their place */
	struct texts events; /* as JSON strings */
	struct counters counters;
	struct strbuf text;
	/* What is added to a time of the recording to get the trace's, in ns. */
	int64_t shift;
	uint64_t interval; /* ns that a sample stands for at most */
	/* Numbers that our threads go by in the trace, by thread of the profile; NULL: their own.
	 */
	const uint32_t *tids;
	bool (*is_named)(uint32_t pid, void *ctx); /* by the trace of another tool; may be NULL */
	void *ctx;
};

int trace_init(struct trace *trace, FILE *out, const struct export_options *options,
	       struct err *err);
void trace_fini(struct trace *trace);

/* The elements of the three containers; `comma` where something stands before them. */
int trace_put_events(struct trace *trace, bool comma, struct err *err);
void trace_put_frames(struct trace *trace, bool comma);	 /* of "stackFrames": an object */
void trace_put_samples(struct trace *trace, bool comma); /* of "samples": an array */

/* Writes the trace of another tool (options->merge) with ours in it. */
int trace_merge(struct trace *trace, struct err *err);

#endif
