#ifndef PYPERF_HOLDERS_H
#define PYPERF_HOLDERS_H

#include "record/recorder.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Who holds the global interpreter lock, and for how long: looked at from outside at a steady pace,
 * whether or not a thread runs, so that the share of looks that find it held is the share of time.
 * (Samples would not do: they come while a thread is on a CPU only, and one may hold the lock while
 * it waits.) A look is one read of the process's memory, and stops nothing.
 */
struct holders;

/* `recorder` is borrowed. */
struct holders *holders_new(const struct recorder *recorder);
void holders_free(struct holders *holders);

/* Looks once; at a few processes of many, in turn. */
void holders_look(struct holders *holders);
/* Finds processes that are new and forgets those that have ended; what was seen before counts less
 * from now on: `keep` of what it did. */
void holders_turn(struct holders *holders, double keep);
void holders_reset(struct holders *holders);

struct holder_share {
	bool known;	    /* there is a lock, and it was looked at */
	bool lockless;	    /* the interpreter has none: a free-threaded build */
	double recent, all; /* parts of the time that it was held; 0 to 1 */
};
/* Of a process, by any of its threads. */
struct holder_share holders_process(const struct holders *holders, pid_t pid);
/* By one of them. */
struct holder_share holders_thread(const struct holders *holders, pid_t pid, pid_t tid);
/* The process whose lock is held most; its pid, 0 where there is none. `count`: how many there are.
 */
pid_t holders_busiest(const struct holders *holders, size_t *count);

#endif
