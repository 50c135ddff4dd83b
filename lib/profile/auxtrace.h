#ifndef PYPERF_AUXTRACE_H
#define PYPERF_AUXTRACE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "data/data.h"
#include "ring/record.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Samples of a hardware trace: what Arm's SPE wrote into buffers of its own (ring/spe.h), which
 * lies in the file behind AUXTRACE records, each operation as one PERF_RECORD_SAMPLE of the event
 * that traced, as though the kernel had made it. Loads and stores have address, latency and source.
 * Other traces are left to be skipped.
 *
 * Buffers are drained when they are full, so that a record may be seconds older than what lies
 * around it in the file, whatever the rounds say: see auxtrace_unordered().
 */
struct auxtrace {
	const struct data_file *file;
	bool decodes; /* the file has an SPE, and its event */
	bool timed;   /* records of the file have times */
	uint32_t event;
	struct {
		uint64_t shift, mult, zero, cycles, mask;
		bool wraps; /* the counter has the bits of `mask` alone */
	} clock;
	struct {
		VEC_OF(struct auxtrace_cpu)
	} cpus;		    /* models, where AUXTRACE_INFO has them */
	struct map buffers; /* number of a buffer -> struct auxtrace_buffer */
	struct map pids;    /* tid -> pid, as of the record that was delivered last */
	struct map running; /* cpu -> tid, likewise */
	struct arena arena; /* buffers and samples */
	uint64_t broken;    /* records that could not be decoded */
	uint64_t truncated, gaps, collisions; /* pieces of which the kernel says so */
};

void auxtrace_init(struct auxtrace *trace, const struct data_file *file);
void auxtrace_fini(struct auxtrace *trace);

/* AUXTRACE_INFO, TIME_CONV and AUX: what is to be known of the trace. */
int auxtrace_note(struct auxtrace *trace, const struct perf_event_header *record, struct err *err);
/* The layout of the samples: that of the event's own attr says nothing of them. */
void auxtrace_attr(struct perf_event_attr *attr);

/* Takes the payload of an AUXTRACE record. Samples stay valid until auxtrace_fini(). */
typedef int auxtrace_emit(const struct perf_event_header *sample, uint64_t time, void *ctx,
			  struct err *err);
int auxtrace_read(struct auxtrace *trace, struct data_file *file,
		  const struct perf_event_header *record, auxtrace_emit *emit, void *ctx,
		  struct err *err);
/* Everything was read: counts what has no end. */
void auxtrace_finish(struct auxtrace *trace);

/* The trace's samples may belong before anything that was read, so rounds mean nothing. */
bool auxtrace_unordered(const struct auxtrace *trace);

/* In the order of time. Which threads there are, and which one runs where, from side-band records;
 * then the thread of a sample, into a copy of it. */
int auxtrace_follow(struct auxtrace *trace, const struct perf_event_header *record,
		    const struct record_id *origin, struct err *err);
struct auxtrace_sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time, addr;
	uint32_t cpu, reserved;
	uint64_t period, weight, data_src;
};
void auxtrace_attribute(const struct auxtrace *trace, const struct perf_event_header *record,
			struct auxtrace_sample *sample);

#endif
