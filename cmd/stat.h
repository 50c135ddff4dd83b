#ifndef PYPERF_CMD_STAT_H
#define PYPERF_CMD_STAT_H

#include "output/counts.h"
#include "record/recorder.h"
#include "record/target.h"

#include <stdio.h>

/* `pyperf stat`: stat.c runs and counts, stat_share.c parts the counts by what samples say. */

struct stat_setup {
	struct recorder_options options;
	struct recorder_target *target;
	uint64_t duration_us;
	FILE *out;
	/* Fits the events to the machine, and starts the counts with them. */
	int (*prepare)(const struct stat_setup *setup, struct recorder *recorder,
		       struct event_list *events, struct counts *counts, struct err *err);
	bool metrics;
	bool by_thread; /* rows of a recording are threads, else Python functions */
	bool all;	/* also small ones */
	int memory_fd;	/* of a recording; -1: none */
	char path[32];	/* its name */
};

/* Makes it a recording, in memory, of samples that read all events. */
int stat_sample(struct stat_setup *setup, struct err *err);
/* Reads that recording, if there is one: a row for each Python function or thread, and what is left
 * to none. */
int stat_share(const struct stat_setup *setup, struct counts *counts, struct err *err);
void stat_close(struct stat_setup *setup);

#endif
