#ifndef PYPERF_RECORDER_INTERNAL_H
#define PYPERF_RECORDER_INTERNAL_H

#include "record/recorder.h"

#include "base/strbuf.h"
#include "record/attach.h"
#include "record/channel.h"
#include "record/meta.h"
#include "record/outlet.h"
#include "record/sums.h"

/* The inside of a recorder, shared by recorder.c and intake.c. */

/* A side-band record that is not yet taken. */
struct pending {
	const struct perf_event_header *header; /* NULL: none */
	uint64_t time;
};

/* Frames that lie directly before the next sample of a channel. */
struct frames_before {
	uint32_t tid;	       /* whose they are, or 0 */
	struct strbuf payload; /* kept for a listener */
};

struct recorder {
	const struct recorder_options *options;
	const struct recorder_target *target;
	enum recorder_python engine;
	struct roots *roots; /* trees that processes see */
	struct pythons *pythons;
	struct hits *hits;
	struct native *native; /* NULL: stacks are not unwound here */
	struct channels channels;
	struct outlet out;
	struct data_writer *writer; /* NULL: a listener is told */
	struct machine_facts facts;
	struct strbuf tracing; /* formats of tracepoints */
	struct attach attach;
	struct sums sums;
	struct strbuf renamed; /* a record with another id */
	struct strbuf frames;  /* a record of frames that an engine gave */
	bool held;	       /* a sample waits for its frames */
	struct recorder_result result;
	uint64_t started_ns;
	uint64_t enable_ns; /* 0: counting, or by exec */
	uint64_t round_ns;  /* when all rings were read last */
	bool starting;	    /* an interpreter is, and cannot be walked yet */
	int epoll_fd;
	bool pid_namespace; /* pyperf's is not the initial one */
	bool kept_old;	    /* PATH.old holds what was there before */
	bool created;
	struct {
		VEC_OF(int)
	} ends; /* pidfds: readable when a target has ended */
	struct {
		VEC_OF(struct pending)
	} pending; /* by channel */
	struct {
		VEC_OF(struct frames_before)
	} frames_before; /* by channel */
};

/* intake.c: takes what is in the rings. A round is one reading of all of them. */
int recorder_read_sideband(struct recorder *recorder, struct err *err);
int recorder_read_round(struct recorder *recorder, struct err *err);

/* recorder_file.c: a file as the outlet. Closing completes it, whatever `failed` before. */
int recorder_file_open(struct recorder *recorder, struct err *err);
int recorder_file_close(struct recorder *recorder, int exit_status, int failed, struct err *err);
/* One that was never closed goes, and the older one comes back. */
void recorder_file_abandon(struct recorder *recorder);

#endif
