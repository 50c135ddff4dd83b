#ifndef PYPERF_ORDER_H
#define PYPERF_ORDER_H

#include "base/err.h"

#include <linux/perf_event.h>
#include <stdint.h>

/*
 * Puts records of several rings into the order of their times.
 *
 * A recorder empties its rings in rounds and writes FINISHED_ROUND after each. Nothing reorders
 * across that mark by more than one round: when round n is finished, no record can come whose time
 * lies before the largest time that was seen by the end of round n-1 (linux tools/perf
 * ordered-events). So at each mark everything up to the previous mark's largest time is delivered.
 * Records without a time keep their place: they are delivered with the last time seen.
 * Records of equal time keep the order in which they came, so one ring's order is never disturbed.
 * A stream without marks is delivered at order_flush().
 *
 * Pure: no system calls, no knowledge of files. Records are not copied; they must stay valid until
 * they are delivered, which `low_water` tells.
 */
struct order;

/* Called in order; a negative return stops and is passed on. */
typedef int order_deliver(const struct perf_event_header *record, uint64_t time, uint64_t position,
			  void *ctx, struct err *err);

struct order *order_new(order_deliver *deliver, void *ctx);
void order_free(struct order *order);

/* `position` is the caller's, increasing with each call (the place in the stream). */
int order_add(struct order *order, const struct perf_event_header *record, uint64_t time,
	      uint64_t position, struct err *err);
int order_round(struct order *order, struct err *err);
int order_flush(struct order *order, struct err *err);

/* Everything at positions below this one was delivered. */
uint64_t order_low_water(const struct order *order);
/* Records that came too late for their round and were delivered out of order. */
uint64_t order_late(const struct order *order);

#endif
