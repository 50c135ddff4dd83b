#ifndef PYPERF_TRACE_READ_H
#define PYPERF_TRACE_READ_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A trace in Chrome's Trace Event Format, read as a stream: an object with "traceEvents", or the
 * bare array of events. Files of gigabytes are read in little memory; what is hostile (deep, or a
 * single value without end) is an error. The file may be compressed.
 */
struct trace_event {
	char phase; /* "ph": 'X', 'M', ...; 0 where there is none */
	bool has_time, has_duration;
	int64_t time, duration; /* ns */
	int64_t pid, tid;	/* what is no whole number is made one by a hash */
	bool names_process;	/* metadata: "process_name" */
	uint64_t number;	/* 0, 1, ... in the order of the file */
};

enum trace_container { TRACE_EVENTS, TRACE_FRAMES, TRACE_SAMPLES, TRACE_CONTAINERS };

struct trace_visitor {
	FILE *out; /* where the trace is copied to; NULL: it is only read */
	/* Is the event to be copied? Negative stops with that code. */
	int (*event)(const struct trace_event *event, void *ctx, struct err *err);
	/* May write more elements before a container ends; `comma` where something stands before
	 * them. Called once for each container: for those that are missing, at the end. */
	int (*end)(enum trace_container container, bool comma, void *ctx, struct err *err);
	/* Called for the base time: ns since 1970 at time 0, or a sentence that says why not. */
	void (*base)(bool usable, int64_t base, void *ctx);
	/* Called where the trace is VizTracer's. */
	void (*viztracer)(void *ctx);
	void *ctx;
};

int trace_read(const char *path, const struct trace_visitor *visitor, struct err *err);

#endif
