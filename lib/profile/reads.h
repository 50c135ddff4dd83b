#ifndef PYPERF_READS_H
#define PYPERF_READS_H

#include "base/map.h"
#include "profile/keyed.h"
#include "ring/record.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What groups of counters counted between two samples.
 *
 * A sample with PERF_SAMPLE_READ has running totals (data/FORMAT.md, "Groups that are read"). They
 * belong to streams: to the id, and where events are inherited to the id and the thread. Here the
 * last totals of each stream are kept, and each read becomes the counts since then, scaled up where
 * the group was on the counters for a part of the time only. (Not where streams are threads': a
 * thread's event on one CPU is enabled while the thread runs on another. Nor in our own recordings,
 * which tell the whole.)
 *
 * A read of which any value went backwards, or forward further than a counter can, is worth nothing
 * as a whole, and so is one of a time in which the group never ran; the next differs from it all
 * the same.
 */
#define READ_VALUES_MAX 32 /* more events are in no group */

struct read_counts {
	struct {
		uint64_t id, count;
	} values[READ_VALUES_MAX];
	unsigned int count;
	uint64_t enabled, running; /* ns since the last read; 0 where they are not to be used */
	uint64_t ran;		   /* running, in any case */
};

enum read_fate {
	READ_GOOD,
	READ_BACKWARDS, /* or too far */
	READ_IDLE,	/* the group did not run */
	READ_NONE,	/* the sample has no read, or one that breaks its layout */
	READ_NOMEM,
};

struct reads {
	struct keyed streams;
	struct map lives; /* tid -> how many threads of this number have ended */
	bool by_cpu;	  /* inherited events that belong to CPUs all the same */
	bool unscaled;	  /* times are not to be looked at */
};

void reads_init(struct reads *reads);
void reads_fini(struct reads *reads);
enum read_fate reads_take(struct reads *reads, const struct record_sample *sample,
			  const struct perf_event_attr *attr, struct read_counts *out);
/* The thread ended: another one may get its number. False when memory ran out. */
bool reads_exit(struct reads *reads, uint32_t tid);

#endif
