#ifndef PYPERF_WAY_H
#define PYPERF_WAY_H

#include "record/recorder.h"

#include <linux/perf_event.h>

/* Which way to the native callers of a sample is taken. */
struct strbuf;

/*
 * The one that gives complete stacks at the least cost, for what the target runs: frame pointers
 * where every binary is known and has them, unwind tables otherwise. Of a program that is yet to be
 * started (its file is `program`; NULL for other targets) the binaries are known when it is linked
 * statically; of processes, what they have mapped. Appends the reason, half a sentence.
 */
enum recorder_chain way_choose(const struct recorder_target *target, const char *program,
			       struct strbuf *why);

/* "dwarf", ... */
const char *way_name(enum recorder_chain chain);

/* What the attr of a sampled event needs for RECORDER_CHAIN_LBR. */
void way_lbr_attr(struct perf_event_attr *attr);
/* Does this machine record calls for all of these events? ERR_UNSUPPORTED with the reason. */
int way_lbr_probe(const struct event_list *events, struct err *err);

#endif
