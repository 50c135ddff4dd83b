#ifndef PYPERF_THREADS_H
#define PYPERF_THREADS_H

#include "base/map.h"
#include "base/vec.h"
#include "record/recorder.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The threads of what is looked at: those of the target's processes and of all interpreters that
 * are walked, and how long each was on a CPU between two turns. All zero is
 * ready.
 */
struct thread_table {
	struct {
		VEC_OF(struct thread_row)
	} rows;		   /* those that there are; by process */
	struct map by_tid; /* tid -> index + 1 */
	uint64_t turn_ns;
	size_t processes;
	size_t active; /* were on a CPU for 1% of the time at least */
	double cpu;    /* all together: 1 is one CPU, all the time */
	bool cut;      /* there are more than are looked at */
};

struct thread_row {
	pid_t pid, tid;
	char comm[32];
	char state;	 /* as /proc has it: 'R' runs or would, 'S' sleeps, ... */
	double cpu;	 /* part of the time since the last turn that it was on a CPU */
	uint64_t ran_ns; /* since it began */
};

void thread_table_fini(struct thread_table *table);
/* False when memory ran out. */
bool thread_table_turn(struct thread_table *table, const struct recorder *recorder,
		       const struct recorder_target *target, uint64_t now);

#endif
