#ifndef PYPERF_ATTRS_H
#define PYPERF_ATTRS_H

#include "record/recorder.h"

#include <linux/perf_event.h>

/*
 * The kinds of events in a recording. All carry PERF_SAMPLE_IDENTIFIER, since their layouts
 * differ, and the monotonic clock, so that jitdumps and other traces can be aligned.
 */

struct native;

/* An event that the user asked for: sampled; of tasks it is inherited, of a command started by its
 * exec. `native` unwinds its stacks, where they are unwound. */
void attr_sampled(struct perf_event_attr *attr, const struct event_spec *spec,
		  const struct recorder_options *options, enum recorder_target_kind kind,
		  const struct native *native);
/* Makes a leader one whose samples read its group, and a member one that has no samples of its own,
 * with the layout of its leader's, as perf has it (lib/data/FORMAT.md, "Groups that are read"). */
void attr_reads_group(struct perf_event_attr *attr);
void attr_counted(struct perf_event_attr *attr);
/* Makes an event that is sampled one that stops its thread at each sample: it is that thread's
 * alone, and off. (Tracepoints do not stop.) */
void attr_stopping(struct perf_event_attr *attr, uint64_t cookie);
/* Makes an event one that is never to count: for its id. */
void attr_apart(struct perf_event_attr *attr);
/* Maps, names, forks and exits, in a ring of its own that wakes the reader at once. */
void attr_sideband(struct perf_event_attr *attr, enum recorder_target_kind kind);
/* Owns a ring that others write to, which wakes its reader every `watermark` bytes. It is opened
 * for ourselves and writes nothing. */
void attr_anchor(struct perf_event_attr *attr, size_t watermark);
/* The walker's frames; opened for a CPU, written to by bpf_perf_event_output() only. */
void attr_python(struct perf_event_attr *attr);

#endif
