#ifndef PYPERF_TRACER_INTERNAL_H
#define PYPERF_TRACER_INTERNAL_H

#include "base/map.h"
#include "base/vec.h"
#include "process/memory.h"
#include "record/foresight.h"
#include "record/tracer.h"

/* What tracer.c, tracer_attach.c, tracer_events.c and tracer_frames.c share. */

struct fds {
	VEC_OF(int)
};

/* A process with threads that are traced. */
struct tracee {
	pid_t pid;
	unsigned int threads;
	bool python; /* `process` is known */
	struct py_process process;
	struct memory_process live;
	uint64_t cpu_ns; /* that it had used when the rate was looked at last */
};

/* A thread that is traced. */
struct task {
	pid_t tid;
	struct tracee *tracee;
	uint64_t pointer; /* its thread pointer; 0: not known yet */
	uint64_t stopped; /* time of its last stop at a sample */
	/* Its events, leaders first opened; and those that it had, which are off. Closing an event
	 * waits, on some kernels (6.10 to 6.14), for a signal that its thread has yet to send
	 * itself: they are closed when it was seen to run after they were put off. */
	struct fds events, retired;
	struct foresight foresight;
	uint32_t rate;	     /* that the events were opened for */
	unsigned int passes; /* while leaving: stops that were asked for and came */
	bool unblocked;	     /* `mask` is to be put back */
	uint64_t mask;
};

struct tracer {
	const struct channels *channels;
	struct mailbox *news;
	struct tracer_shared *shared;
	int socket;
	struct map tasks;   /* tid -> struct task * */
	struct map tracees; /* pid -> struct tracee * */
	struct map seen;    /* code objects that were sent */
	bool enabled, leaving;
	/* Since the rate was looked at last. */
	uint64_t since, stall_ns, stops;
	uint64_t busy_ns; /* CPU time of processes that are gone */
	uint32_t rate;	  /* parts of TRACER_RATE_ONE */
	struct {
		struct py_raw_frames head;
		struct py_raw_frame frames[PY_FRAMES_MAX];
	} walked;
};

struct task *tracer_find_task(const struct tracer *tracer, pid_t tid);
/* A thread that is traced; NULL where it has ended, or memory has. */
struct task *tracer_add_task(struct tracer *tracer, pid_t tid);
bool tracer_tell(struct tracer *tracer, uint32_t kind, const void *head, size_t head_len,
		 const void *body, size_t body_len);

/* tracer_attach.c: traces the targets that run, and opens their events. What ended is no failure.
 */
int tracer_attach(struct tracer *tracer, struct err *err);

/* Of /proc/TID/status. */
struct tracer_status {
	pid_t pid, parent, tracer;
	bool ended; /* a zombie */
	uint64_t pending, blocked;
};
bool tracer_read_status(pid_t tid, struct tracer_status *status);

/* tracer_events.c: opens the sampled events for a thread on every CPU. */
int tracer_open_events(struct tracer *tracer, struct task *task, struct err *err);
void tracer_switch_events(const struct tracer *tracer, const struct task *task, bool on);
void tracer_retire_events(struct task *task);
void tracer_close_retired(struct task *task);
void tracer_close_events(struct task *task);
/* CPU time of a process since it was asked for last; the last time while it is a zombie. */
uint64_t tracer_used(struct tracee *tracee);
/* Keeps the slow-down below what is promised: looks at what stops cost, now and then. */
void tracer_adjust_rate(struct tracer *tracer, uint64_t now);
/* Reopens the events of a stopped thread where the rate has changed. */
void tracer_follow_rate(struct tracer *tracer, struct task *task);

/* tracer_frames.c: walks a thread that executes nothing, and tells. */
void tracer_walk(struct tracer *tracer, struct task *task, uint64_t time);

/* The cookie in our signals (attr.sig_data). */
#define TRACER_COOKIE 0x7079706572660000ull

#endif
