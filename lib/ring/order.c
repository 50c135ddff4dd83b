#include "ring/order.h"

#include "base/vec.h"

#include <stdbool.h>
#include <string.h>

/*
 * Records mostly come in order already: one ring after the other, each sorted. So what waits is
 * kept as it came, cut into runs of times that do not decrease, and a delivery merges the runs with
 * a heap of their heads. A run's entries lie one behind the other, runs lie in the order of their
 * arrival; where times are equal the earlier run goes first, which keeps the order of arrival.
 *
 * The winner of the heap delivers on for as long as it stays ahead of the next best, so that the
 * heap is touched once per change of ring, not once per record.
 */
struct entry {
	const struct perf_event_header *record;
	uint64_t time, position;
};

struct run {
	size_t at, end; /* what is left: [at, end) of entries */
};

struct order {
	order_deliver *deliver;
	void *ctx;
	struct {
		VEC_OF(struct entry)
	} entries;
	struct {
		VEC_OF(struct run)
	} runs;
	struct {
		VEC_OF(size_t)
	} heap;		    /* indices of runs */
	uint64_t last_time; /* of the last record that came, for those without one */
	uint64_t max_time, round_max;
	uint64_t delivered; /* the largest time that was delivered */
	uint64_t next;	    /* position behind the last record that came */
	uint64_t low_water;
	uint64_t late;
	bool any;
};

struct order *order_new(order_deliver *deliver, void *ctx)
{
	struct order *order = calloc(1, sizeof(*order));

	if (!order)
		return NULL;
	order->deliver = deliver;
	order->ctx = ctx;
	return order;
}

void order_free(struct order *order)
{
	if (!order)
		return;
	vec_fini(&order->entries);
	vec_fini(&order->runs);
	vec_fini(&order->heap);
	free(order);
}

int order_add(struct order *order, const struct perf_event_header *record, uint64_t time,
	      uint64_t position, struct err *err)
{
	size_t len = order->entries.len;
	struct entry *entry;

	if (!time)
		time = order->last_time;
	if (!len || time < order->entries.items[len - 1].time) {
		struct run *run = vec_push(&order->runs);

		if (!run)
			return err_nomem(err);
		*run = (struct run){.at = len, .end = len};
	}
	if (len == order->entries.cap && !vec_reserve(&order->entries, len + 1)) {
		struct run *run = &order->runs.items[order->runs.len - 1];

		if (run->at == run->end)
			order->runs.len--;
		return err_nomem(err);
	}
	entry = &order->entries.items[order->entries.len++];
	*entry = (struct entry){.record = record, .time = time, .position = position};
	order->runs.items[order->runs.len - 1].end = order->entries.len;
	order->last_time = time;
	if (time > order->max_time)
		order->max_time = time;
	if (order->any && time < order->delivered)
		order->late++;
	order->next = position + 1;
	return 0;
}

static uint64_t head_time(const struct order *order, size_t run)
{
	return order->entries.items[order->runs.items[run].at].time;
}

static bool before(const struct order *order, size_t a, size_t b)
{
	uint64_t time_a = head_time(order, a), time_b = head_time(order, b);

	return time_a < time_b || (time_a == time_b && a < b);
}

static void sift_down(struct order *order, size_t at)
{
	size_t *heap = order->heap.items, len = order->heap.len, run = heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= len)
			break;
		if (child + 1 < len && before(order, heap[child + 1], heap[child]))
			child++;
		if (!before(order, heap[child], run))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = run;
}

/* The runs that have something up to `limit`. */
static bool build_heap(struct order *order, uint64_t limit)
{
	order->heap.len = 0;
	if (!vec_reserve(&order->heap, order->runs.len))
		return false;
	for (size_t i = 0; i < order->runs.len; i++)
		if (head_time(order, i) <= limit)
			order->heap.items[order->heap.len++] = i;
	for (size_t i = order->heap.len / 2; i-- > 0;)
		sift_down(order, i);
	return true;
}

/* Delivers from the best run until it ends, passes the limit, or another is better. */
static int deliver_run(struct order *order, uint64_t limit, struct err *err)
{
	const size_t *heap = order->heap.items;
	size_t best = heap[0], second = 0;
	struct run *run = &order->runs.items[best];
	uint64_t until = limit;

	if (order->heap.len > 1) {
		second = heap[1];
		if (order->heap.len > 2 && before(order, heap[2], second))
			second = heap[2];
		/* At equal times the run that came first goes on. */
		until = head_time(order, second);
		if (best > second)
			until = until ? until - 1 : 0;
		if (until > limit)
			until = limit;
	}
	/* The head is the best in any case. */
	do {
		const struct entry *entry = &order->entries.items[run->at++];
		int rc;

		if (entry->time > order->delivered || !order->any)
			order->delivered = entry->time;
		order->any = true;
		rc = order->deliver(entry->record, entry->time, entry->position, order->ctx, err);
		if (rc < 0)
			return rc;
	} while (run->at < run->end && order->entries.items[run->at].time <= until);
	return 0;
}

/* Moves what is left to the front. */
static void compact(struct order *order)
{
	size_t kept = 0, runs = 0;

	for (size_t i = 0; i < order->runs.len; i++) {
		struct run run = order->runs.items[i];
		size_t len = run.end - run.at;

		if (!len)
			continue;
		memmove(&order->entries.items[kept], &order->entries.items[run.at],
			len * sizeof(struct entry));
		order->runs.items[runs++] = (struct run){.at = kept, .end = kept + len};
		kept += len;
	}
	order->entries.len = kept;
	order->runs.len = runs;
	order->low_water = kept ? order->entries.items[0].position : order->next;
}

static int deliver_until(struct order *order, uint64_t limit, struct err *err)
{
	int rc = 0;

	if (!build_heap(order, limit))
		return err_nomem(err);
	while (!rc && order->heap.len) {
		const struct run *run = &order->runs.items[order->heap.items[0]];

		rc = deliver_run(order, limit, err);
		if (run->at == run->end || order->entries.items[run->at].time > limit)
			order->heap.items[0] = order->heap.items[--order->heap.len];
		if (order->heap.len)
			sift_down(order, 0);
	}
	compact(order);
	return rc;
}

int order_round(struct order *order, struct err *err)
{
	int rc = deliver_until(order, order->round_max, err);

	order->round_max = order->max_time;
	return rc;
}

int order_flush(struct order *order, struct err *err)
{
	order->round_max = order->max_time;
	return deliver_until(order, UINT64_MAX, err);
}

uint64_t order_low_water(const struct order *order)
{
	return order->low_water;
}

uint64_t order_late(const struct order *order)
{
	return order->late;
}
