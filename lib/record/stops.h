#ifndef PYPERF_STOPS_H
#define PYPERF_STOPS_H

#include "base/bytes.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Which frames belong to which sample, where threads were stopped for them.
 *
 * A thread that overflowed is stopped before it runs any further code of its own. So its frames at
 * a stop are those of all its samples since the stop before: of a sample the frames are those of
 * the first stop that is not older. Pure, and all zero is empty.
 */
struct stops {
	struct {
		VEC_OF(struct stop_of_thread)
	} all; /* by time */
	struct strbuf payloads;
	struct map of_thread; /* tid -> index of its first stop, + 1 */
	struct map last;      /* tid -> index of its last stop, + 1 */
};

struct stop_of_thread {
	uint64_t time;
	size_t offset, len; /* in payloads */
	size_t next;	    /* index of the thread's next stop, + 1 */
	uint32_t tid;
};

void stops_fini(struct stops *stops);
/* Stops of one thread come in the order of their times. False when memory runs out. */
bool stops_add(struct stops *stops, uint32_t tid, uint64_t time, struct bytes payload);
/* The stop that has the frames of a thread at that time; NULL while it is not known. Valid until
 * stops_add() or stops_forget(), as is its payload. */
const struct stop_of_thread *stops_find(const struct stops *stops, uint32_t tid, uint64_t time);
struct bytes stops_payload(const struct stops *stops, const struct stop_of_thread *stop);
/* Drops the first `count` stops. */
void stops_forget(struct stops *stops, size_t count);

#endif
