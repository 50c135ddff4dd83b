#ifndef PYPERF_ACCOUNT_H
#define PYPERF_ACCOUNT_H

#include "base/vec.h"
#include "profile/profile.h"
#include "profile/reads.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What each sample counts for, and what was counted without a sample.
 *
 * Two ways of attribution:
 *  - An event that is sampled on its own: the sample stands for its period.
 *  - A group that is read: what the group counted since the stream's sample before counts for the
 *    place that this sample hits, for every event of the group. Since those counts come in pairs,
 *    triples and so on, their products are summed up too: profile/estimate.h says why.
 *
 * As in perf, a sample at which an event had counted nothing is none of that event.
 *
 * Counts of a group lie in one block per cell of the event that was sampled, while samples come in;
 * account_settle() turns them into cells of their own.
 *
 * While an event is throttled it counts nothing. What an event that is sampled on its own would
 * have counted is estimated by its rate in the samples just before; that, and records that were
 * lost, goes into the event's estimated total, as long as the recorder did not leave the exact one.
 * Of a group that is read Linux before 6.16 stops the leader alone, later the whole group: what
 * stood still for a part of the time since the last read is scaled up.
 */
#define RECENT 8 /* samples that tell an event's rate */

struct account_recent {
	uint64_t times[RECENT], periods[RECENT];
	unsigned int count;
	uint64_t throttled_at; /* 0: it is not */
	uint64_t throttled_ns; /* since the last read */
};

struct account_group {
	uint32_t members[READ_VALUES_MAX]; /* events */
	bool plays[READ_VALUES_MAX];	   /* has the member a role in metrics? */
	unsigned int count;
};

union account_word {
	uint64_t count;
	double product;
};

/* Which event an id belongs to; -1: none. */
struct account_ids {
	int (*event)(const void *ctx, uint64_t id);
	const void *ctx;
};

struct account {
	struct profile *profile;
	struct account_ids ids;
	struct reads reads;
	uint64_t records;     /* that came through the rings */
	bool throttles_alone; /* the leader, not its group */
	struct {
		VEC_OF(struct account_group)
	} groups; /* by the event that is sampled */
	struct {
		VEC_OF(uint64_t)
	} blocks; /* by cell: where its block starts in `words`, + 1 */
	struct {
		VEC_OF(union account_word)
	} words;
	struct map recent; /* event << 32 | cpu -> index into `rates` */
	struct {
		VEC_OF(struct account_recent)
	} rates;
};

/* `os_release`: of the kernel that counted; may be NULL. */
void account_init(struct account *account, struct profile *profile, struct account_ids ids,
		  const char *os_release);
void account_fini(struct account *account);

/* Counts the sample in its cell, and sets sample->period to what it counts for. */
int account_sample(struct account *account, uint32_t cell, uint32_t event,
		   struct record_sample *sample, struct err *err);
/* PERF_RECORD_THROTTLE and _UNTHROTTLE. */
int account_throttle(struct account *account, const struct perf_event_header *record,
		     const struct record_id *origin, struct err *err);
int account_exit(struct account *account, uint32_t tid, struct err *err);
/* PERF_RECORD_ID_INDEX of linux tools/perf. */
void account_id_index(struct account *account, const struct perf_event_header *record);
/* What groups counted so far becomes cells, and the events' totals are estimated: at the end, and
 * whenever counts are looked at. */
int account_settle(struct account *account, struct err *err);

#endif
