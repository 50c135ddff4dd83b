#ifndef PYPERF_ATTRS_H
#define PYPERF_ATTRS_H

#include "record/recorder.h"

#include <linux/perf_event.h>

/*
 * The three kinds of events in a recording. All carry PERF_SAMPLE_IDENTIFIER, since their layouts
 * differ, and the monotonic clock, so that jitdumps and other traces can be aligned.
 */

/* An event that the user asked for: sampled, inherited, started by exec. */
void attr_sampled(struct perf_event_attr *attr, const struct event_spec *spec,
		  const struct recorder_options *options);
/* Maps, names, forks and exits, in a ring of its own that wakes the reader at once. */
void attr_sideband(struct perf_event_attr *attr, const struct recorder_options *options);
/* The walker's frames; opened for a CPU, written to by bpf_perf_event_output() only. */
void attr_python(struct perf_event_attr *attr);

#endif
