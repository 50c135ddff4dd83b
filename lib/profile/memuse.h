#ifndef PYPERF_PROFILE_MEMUSE_H
#define PYPERF_PROFILE_MEMUSE_H

#include "base/map.h"
#include "profile/keyed.h"
#include "profile/view.h"
#include "ring/record.h"

/*
 * Where memory is touched, and how long accesses take.
 *
 * Page faults: a page that faults for the first time in its process makes what is resident grow by
 * its size; one that faults again had been given back in between, or was only read before. Nothing
 * tells when pages are given back. A sample stands for `period` faults of which one has an address:
 * the others are taken to be like it.
 *
 * Accesses: hardware tells of each sampled load or store how long it took and where the data was.
 */
enum memuse_level {
	MEMUSE_L1,
	MEMUSE_LFB, /* was on its way already: line fill buffer */
	MEMUSE_L2,
	MEMUSE_L3,
	MEMUSE_RAM,
	MEMUSE_REMOTE, /* memory or caches of another socket */
	MEMUSE_OTHER,
	MEMUSE_UNKNOWN,
	MEMUSE_LEVELS,
};
extern const char *const memuse_level_names[MEMUSE_LEVELS];
/* Of PERF_SAMPLE_DATA_SRC. */
enum memuse_level memuse_level_of(uint64_t data_src);
/* Did the access miss the first level of the TLB? */
bool memuse_tlb_missed(uint64_t data_src);

/* Sums of accesses or faults: of a stack, or of a row. */
struct memuse_count {
	uint64_t accesses, tlb_misses, levels[MEMUSE_LEVELS]; /* samples */
	uint64_t weighed; /* samples with a latency, in the hardware's unit, mostly cycles */
	double weight, weight_square;
	uint64_t faults;       /* periods of samples */
	uint64_t grown, again; /* bytes that became resident for the first time, and once more */
	uint64_t usage;	       /* bytes that the process had grown to at the last of them */
	uint64_t last;	       /* when that was */
};

/* Of one thread in one stack. */
struct memuse_cell {
	uint32_t thread, stack;
	struct memuse_count count;
};

struct memuse {
	struct keyed cells;
	struct keyed pages;	 /* process and page: seen */
	struct map grown;	 /* by process: bytes */
	uint64_t sized, unsized; /* faults whose page's size is known, or not */
	bool specific; /* minor and major faults are there: page-faults would count them twice */
};

void memuse_init(struct memuse *memuse);
void memuse_fini(struct memuse *memuse);
/* Events of which nothing is known about memory are ignored. False when memory ran out. */
bool memuse_add(struct memuse *memuse, const struct perf_event_attr *attr,
		const struct record_sample *sample, uint32_t thread, uint32_t stack);
/* The process began a new program: nothing of it is resident. */
bool memuse_exec(struct memuse *memuse, uint32_t pid);

struct memuse_row {
	uint32_t function, line; /* line 0: of the function table */
	struct memuse_count self, total;
};
struct memuse_view {
	struct memuse_row *rows; /* lines by number; functions by what grew, then by accesses */
	size_t count;
	struct memuse_count whole; /* after the filter */
	bool sizes_known;	   /* of all but a few faulting pages */
};
/* Lines of one Python function, or with UINT32_MAX all functions. As in view_lines() and
 * view_functions(), self is that of the innermost Python frame for lines, of the leaf for
 * functions. */
int memuse_view(struct memuse_view **view, const struct profile *profile,
		const struct view_filter *filter, uint32_t function, struct err *err);
void memuse_view_free(struct memuse_view *view);

#endif
