#ifndef PYPERF_APPLY_H
#define PYPERF_APPLY_H

#include "base/map.h"
#include "base/vec.h"
#include "profile/account.h"
#include "profile/chain.h"
#include "profile/profile.h"
#include "ring/record.h"

/*
 * Records in the order of time, one after another, into a profile: side-band moves the process
 * model, a sample becomes a merged stack and counts in its cell. For whoever has records: the
 * loader of files, and the live view of `top`.
 *
 * A sample whose bytes (thread, event, maps, Python frames, call chain) hash to those of an earlier
 * one has the same cell: `repeats` remembers, and forgets when two fight for a place. The hash has
 * 64 bits and is trusted: among ten million different samples two would meet once in 400,000
 * recordings. Samples that carry a copy of their stack are never equal while they run, and to hash
 * 8 kB takes as long as half of the unwinding: they are not looked for.
 */
struct applier {
	struct profile *profile;
	struct chains *chains;
	struct account account;
	profile_on_sample *on_sample; /* may be NULL */
	void *ctx;
	uint64_t time; /* of the record at hand; set by the caller */
	uint64_t malformed;
	struct map tasks; /* pid << 32 | tid -> index into task_list */
	struct {
		VEC_OF(struct applier_task)
	} task_list;
	uint64_t changes; /* of anything that a task or a thread's name depends on */
	struct applier_repeat *repeats;
	uint64_t repeats_mask;
	uint64_t forgotten; /* samples that `repeats` was too small for */
};

struct applier_options {
	const struct arch *arch; /* of the recording; NULL: the host's */
	bool expand;		 /* functions that were inlined get frames of their own */
	enum profile_native native;
	const char *os_release; /* of the kernel that counted; may be NULL */
	struct account_ids ids;
	profile_on_sample *on_sample;
	void *ctx;
};

/* profile->events and ->objects are to be there when the first record comes. */
int applier_init(struct applier *applier, struct profile *profile,
		 const struct applier_options *options);
void applier_fini(struct applier *applier);

/* Processes, maps, throttling. `origin`: as its trailer says. */
int applier_record(struct applier *applier, const struct perf_event_header *record,
		   const struct record_id *origin, struct err *err);

struct applier_sample {
	const struct perf_event_header *record;
	uint32_t event;
	const void *frames; /* of Python: a payload that chain_frames_sound() takes, or NULL */
	uint64_t hash;	    /* of applier_hash() */
};
int applier_sample(struct applier *applier, const struct applier_sample *in, struct err *err);

/* Of what makes a sample's stack, but for the maps of its process; 0 where none can be equal. What
 * is known of it is fetched from memory meanwhile. */
uint64_t applier_hash(const struct applier *applier, const struct record_sample *sample,
		      uint16_t misc, const void *frames);

#endif
