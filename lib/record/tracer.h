#ifndef PYPERF_TRACER_H
#define PYPERF_TRACER_H

#include "base/err.h"
#include "perfmap/frames.h"
#include "perfmap/layout.h"
#include "record/channel.h"
#include "record/mailbox.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The process that stops the target's threads at their samples and reads their frames: what it is
 * told, and what it tells. See tracer.c for how it works and why it is a process of its own.
 */

/* Orders, over a socket of whole messages. Its end is an order to leave, too. */
enum tracer_order_kind {
	TRACER_ADD_PROCESS,  /* pid, process */
	TRACER_DROP_PROCESS, /* pid */
	TRACER_ENABLE,
	TRACER_DISABLE,
	TRACER_LOOK,  /* tid: it had a sample at `time` and was not stopped since */
	TRACER_LEAVE, /* answered by a byte when all is left, or soon will be */
};

struct tracer_order {
	uint32_t kind;
	pid_t pid; /* or tid */
	uint64_t time;
	struct py_process process;
};

/* The first answer over the socket, once the target is traced. */
struct tracer_answer {
	int code;
	struct err err;
};

/* News, through the mailbox. */
enum tracer_news_kind {
	TRACER_EVENT, /* struct tracer_event: opened, nothing was sampled by it yet */
	TRACER_STOP,  /* struct tracer_stop, then a payload of frames, or nothing */
	TRACER_CODE,  /* struct tracer_code, then the sections of code and of bytecode (engine.h) */
	TRACER_ENDED, /* struct tracer_stop: the thread is gone */
	TRACER_CANNOT, /* struct tracer_stop: it blocks SIGTRAP, and is not stopped */
};

struct tracer_event {
	uint64_t id;
	uint32_t event; /* in channels.events */
	uint32_t reserved;
};

struct tracer_stop {
	uint64_t time;
	uint32_t tid, reserved;
};

struct tracer_code {
	pid_t pid;
	uint32_t lineage;
	uint64_t code;
	uint32_t fingerprint, reserved;
};

/* Counts that both see. */
struct tracer_shared {
	_Atomic uint64_t stops, faults, code_unread, news_lost, not_sampled;
	/* Time from a sample to the stop, as the reader of the rings sees it: running mean, ns. */
	_Atomic uint64_t delay_ns;
	/* How often was sampled of what was asked for, weighted by time: parts of 1024. */
	_Atomic uint64_t rate_sum, rate_count;
	_Atomic uint32_t rate;	      /* now */
	_Atomic unsigned int knocked; /* a bool: the reader was woken, since the mailbox fills up
					 (a word, for riscv64 exchanges no bytes) */
};

#define TRACER_RATE_ONE 1024u

struct tracer_setup {
	const struct channels *channels;
	struct mailbox *news;
	struct tracer_shared *shared;
	int socket;
	bool enabled; /* a thread's events start when they are opened */
};

/* In the child of a fork: never returns. */
void tracer_run(const struct tracer_setup *setup) __attribute__((noreturn));

/* Whether the kernel knows such events and lets us trace that task (0: a child of ours). */
int tracer_probe(pid_t tid, struct err *err);

#endif
