#ifndef PYPERF_ATTACH_H
#define PYPERF_ATTACH_H

#include "record/channel.h"
#include "record/recorder.h"
#include "ring/record.h"

/*
 * Opens the events of a target's tasks: of a held command, of a CPU's whatever, or of all threads
 * that run and those that are being created meanwhile.
 */
struct attach {
	struct channels *channels;
	const struct recorder_target *target;
	struct {
		VEC_OF(struct attached)
	} tasks;
	struct map by_tid;   /* -> index in tasks */
	uint64_t settled_ns; /* clone() calls from before are over then; 0: nothing to settle */
};

int attach_open(struct attach *attach, struct channels *channels,
		const struct recorder_target *target, struct err *err);
void attach_fini(struct attach *attach);

/* Side-band records since then; `id` is that of the event that wrote it. They open what was left
 * out, for a short time. */
int attach_record(struct attach *attach, const struct perf_event_header *header, uint64_t id,
		  struct err *err);

#endif
