#ifndef PYPERF_SUMS_H
#define PYPERF_SUMS_H

#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "ring/record.h"

/*
 * What samples read of their groups, as it goes into the file.
 *
 * The kernel counts for each thread apart, from 0 on, though all that inherited an event have its
 * id. In the file the values of an id are the sum of its threads', and its events have no inherit:
 * so whoever reads the file subtracts by the id alone, which every version of perf does.
 * (Since 6.12 it also looks at the thread where an event has inherit.) Threads come and go, and one
 * may get another event in the place of its own; here it is known when. All zero is ready.
 *
 * The time that a task's event was enabled does not tell how long it shared its counter: the event
 * belongs to one CPU, but its time goes on while the task runs on another one
 * (perf_event_update_time(), kernel/events/core.c). In the file it is the time that it was running;
 * who wants to scale finds the totals in META.
 */
struct sums {
	bool of_tasks;	       /* events are theirs, not the CPUs' */
	struct map streams;    /* id and tid -> index + 1 in `all` */
	struct map by_file_id; /* id in the file -> index + 1 */
	struct map forked;     /* tid -> when the thread was made that has the number now */
	struct {
		VEC_OF(struct sums_stream)
	} all;
	struct {
		VEC_OF(uint64_t)
	} values;
	struct strbuf record;
	uint64_t dropped; /* samples whose values made no sense: nothing was added for them */
};

/* Its last values lie at `place`: time_enabled, time_running, the group's counts. */
struct sums_stream {
	uint64_t time;
	size_t place, count;
};

void sums_fini(struct sums *sums);
/* A thread was made: what had its number before has ended. */
void sums_fork(struct sums *sums, uint32_t tid, uint64_t time);
/* The sample with the sums in the place of its values, under the ids that the file has; itself
 * where it reads no group, or where memory ran out. Samples of one id come in the order of their
 * time. Valid until the next call. */
const struct perf_event_header *
sums_of_sample(struct sums *sums, const struct perf_event_header *header,
	       const struct perf_event_attr *attr, const struct record_sample *sample,
	       uint64_t (*file_id)(uint64_t id, void *ctx), void *ctx);

#endif
