#ifndef PYPERF_TRACES_H
#define PYPERF_TRACES_H

#include "record/channel.h"
#include "record/outlet.h"

/*
 * Events that write a trace instead of samples: Arm's SPE. Each channel has an area beside its ring
 * which the PMU fills, and which goes into the file as it is (AUXTRACE); what becomes samples of it
 * is the reader's.
 */
struct data_writer;

/* Pages of a channel's area, or as many as may be locked. */
#define TRACES_PAGES 256

/* The event that traces, or NULL. ERR_UNSUPPORTED where events cannot be recorded so: more than one
 * of them, without a file, or by an engine that opens events itself. */
int traces_find(const struct event_spec **traced, const struct recorder_options *options,
		const struct pythons *pythons, struct err *err);

/* How the system's counter (`hz` a second) and a clock of ns go together, given a moment on both:
 * as TIME_CONV says it. */
struct traces_clock {
	uint64_t shift, mult, zero;
};
struct traces_clock traces_clock_of(uint64_t ticks, uint64_t hz, uint64_t ns);
/* Of this machine and CLOCK_MONOTONIC, now; false where there is no such counter. */
bool traces_clock_now(struct traces_clock *clock);

/* What a reader is to know before: TIME_CONV where there is a clock, AUXTRACE_INFO. */
int traces_tell(const struct outlet *out, uint32_t pmu, const struct traces_clock *clock,
		struct err *err);
/* What the channel's area holds now; how much there was is added to *bytes. `tid`: of whom it is
 * where nothing else tells. */
int traces_take(struct channels *channels, size_t channel, uint32_t tid, struct data_writer *writer,
		uint64_t *bytes, struct err *err);

#endif
