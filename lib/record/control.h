#ifndef PYPERF_CONTROL_H
#define PYPERF_CONTROL_H

#include "base/err.h"
#include "record/phases.h"

#include <stdbool.h>

/*
 * Orders that come while recording, a line each, as of `perf record --control`:
 *
 *      enable, disable, ping, stop     answered by "ack", what is not understood by "nak"
 *      source PATH<TAB>NAME            the text of code that is in no file: of a notebook's cell
 *      begin NAME, end NAME, mark NAME spans and moments; not answered
 *
 * The latter take now for the time, or what stands before the name: "@TIME,PID,TID"
 * (CLOCK_MONOTONIC in ns). Answers that nobody reads are dropped.
 */
struct control;
struct recorder;
struct sources;

/* What orders work on; borrowed. */
struct control_scope {
	struct recorder *recorder;
	struct phases *phases;
	struct sources *sources;
	bool stop; /* set where the recording is to end */
};

/* "fifo:PATH[,PATH]" or "fd:N[,N]": where orders come from, and where answers go to. */
int control_open(struct control **control, const char *where, struct err *err);
int control_fd(const struct control *control); /* readable when there are orders; -1 for NULL */
/* Carries them out. The fd is -1 when its other side is closed. */
int control_read(struct control *control, struct control_scope *scope, struct err *err);
void control_free(struct control *control);

#endif
