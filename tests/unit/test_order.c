#include "ring/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static const struct perf_event_header any = {.type = PERF_RECORD_SAMPLE, .size = 8};

struct seen {
	uint64_t time, position;
};

struct sink {
	struct seen *seen;
	size_t len, cap, stop_at;
};

static int take(const struct perf_event_header *record, uint64_t time, uint64_t position, void *ctx,
		struct err *err)
{
	struct sink *sink = ctx;

	assert_ptr_equal(record, &any);
	if (sink->stop_at && sink->len + 1 == sink->stop_at)
		return err_set(err, ERR_FAILED, "stop");
	if (sink->len == sink->cap) {
		sink->cap = sink->cap ? sink->cap * 2 : 1024;
		sink->seen = realloc(sink->seen, sink->cap * sizeof(*sink->seen));
	}
	sink->seen[sink->len++] = (struct seen){time, position};
	return 0;
}

static void add(struct order *order, uint64_t time, uint64_t position)
{
	struct err err = {0};

	assert_int_equal(order_add(order, &any, time, position, &err), 0);
}

static void check(const struct sink *sink, const struct seen *expected, size_t len)
{
	assert_int_equal(sink->len, len);
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(sink->seen[i].time, expected[i].time);
		assert_int_equal(sink->seen[i].position, expected[i].position);
	}
}

/* Two rings, two rounds: what the first mark may not deliver yet, the second does. */
static void test_rounds(void **state)
{
	static const struct seen expected[] = {{10, 0}, {20, 2}, {30, 1},
					       {40, 5}, {45, 3}, {60, 4}};
	struct sink sink = {0};
	struct order *order = order_new(take, &sink);
	struct err err = {0};

	(void)state;
	add(order, 10, 0);
	add(order, 30, 1);
	add(order, 20, 2);
	assert_int_equal(order_round(order, &err), 0);
	assert_int_equal(sink.len, 0); /* a record of time 5 could still come */
	assert_int_equal(order_low_water(order), 0);
	add(order, 45, 3);
	add(order, 60, 4);
	add(order, 40, 5);
	assert_int_equal(order_round(order, &err), 0);
	assert_int_equal(sink.len, 3);
	assert_int_equal(order_low_water(order), 3);
	assert_int_equal(order_flush(order, &err), 0);
	check(&sink, expected, 6);
	assert_int_equal(order_low_water(order), 6);
	assert_int_equal(order_late(order), 0);
	order_free(order);
	free(sink.seen);
}

/* Equal times keep the order of arrival; no time means the last one. */
static void test_ties(void **state)
{
	static const struct seen expected[] = {{0, 0}, {5, 1}, {5, 4}, {5, 5},
					       {5, 6}, {7, 2}, {7, 3}};
	struct sink sink = {0};
	struct order *order = order_new(take, &sink);
	struct err err = {0};

	(void)state;
	add(order, 0, 0);
	add(order, 5, 1);
	add(order, 7, 2);
	add(order, 0, 3);
	add(order, 5, 4);
	add(order, 5, 5);
	add(order, 0, 6);
	assert_int_equal(order_flush(order, &err), 0);
	check(&sink, expected, 7);
	order_free(order);
	free(sink.seen);
}

static void test_late(void **state)
{
	struct sink sink = {0};
	struct order *order = order_new(take, &sink);
	struct err err = {0};

	(void)state;
	add(order, 100, 0);
	order_round(order, &err);
	order_round(order, &err);
	assert_int_equal(sink.len, 1);
	add(order, 50, 1);
	add(order, 200, 2);
	assert_int_equal(order_late(order), 1);
	order_flush(order, &err);
	assert_int_equal(sink.len, 3);
	assert_int_equal(sink.seen[1].time, 50);
	order_free(order);
	free(sink.seen);
}

static void test_stop(void **state)
{
	struct sink sink = {.stop_at = 2};
	struct order *order = order_new(take, &sink);
	struct err err = {0};

	(void)state;
	add(order, 3, 0);
	add(order, 2, 1);
	add(order, 1, 2);
	assert_int_equal(order_flush(order, &err), ERR_FAILED);
	assert_string_equal(err.text, "stop");
	assert_int_equal(sink.len, 1);
	sink.stop_at = 0;
	assert_int_equal(order_flush(order, &err), 0);
	assert_int_equal(sink.len, 2); /* the one that was refused is not offered again */
	order_free(order);
	order_free(NULL);
	free(sink.seen);
}

static int by_time(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

/* Any input, no marks: what a stable sort gives. */
static void test_against_sort(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned int round = 0; round < 200; round++) {
		struct sink sink = {0};
		struct order *order = order_new(take, &sink);
		struct seen expected[500];
		struct err err = {0};
		uint64_t spread = 1 + round * round;

		for (unsigned int i = 0; i < 500; i++) {
			uint64_t time;

			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			time = 1 + (round & 1 ? i / 7 : 0) + (seed >> 33) % spread;
			expected[i] = (struct seen){time, i};
			add(order, time, i);
		}
		order_flush(order, &err);
		qsort(expected, 500, sizeof(expected[0]), by_time);
		check(&sink, expected, 500);
		order_free(order);
		free(sink.seen);
	}
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Four rings that are emptied in turn, as a recorder does: everything in order, nothing late, and
 * only two rounds kept. */
static void test_rings(void **state)
{
	enum { RINGS = 4, ROUNDS = 500, BATCH = 1000 };
	struct sink sink = {0};
	struct order *order = order_new(take, &sink);
	uint64_t position = 0, time = 1;
	struct err err = {0};
	double start = now();

	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (unsigned int ring = 0; ring < RINGS; ring++)
			for (unsigned int i = 0; i < BATCH; i++)
				add(order, time + i * RINGS + ring * 7 % RINGS, position++);
		time += BATCH * RINGS;
		assert_int_equal(order_round(order, &err), 0);
		assert_true(position - order_low_water(order) <= RINGS * BATCH);
	}
	order_flush(order, &err);
	print_message("2,000,000 records in %.0f ms\n", (now() - start) * 1e3);
	assert_int_equal(sink.len, RINGS * ROUNDS * BATCH);
	for (size_t i = 1; i < sink.len; i++)
		assert_true(by_time(&sink.seen[i - 1], &sink.seen[i]) < 0);
	assert_int_equal(order_late(order), 0);
	order_free(order);
	free(sink.seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounds), cmocka_unit_test(test_ties),
		cmocka_unit_test(test_late),   cmocka_unit_test(test_stop),
		cmocka_unit_test(test_rings),  cmocka_unit_test(test_against_sort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
