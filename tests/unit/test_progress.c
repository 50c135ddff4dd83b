#include "base/clock.h"
#include "base/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct progress last;
static unsigned int calls, ends;

static void take(const struct progress *progress)
{
	last = *progress;
	calls++;
	ends += !progress->what;
}

static int setup(void **state)
{
	(void)state;
	calls = ends = 0;
	last = (struct progress){0};
	progress_set_sink(take);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	progress_set_sink(NULL);
	return 0;
}

/* Counts on for that long; how often progress_tell() was called for. */
static uint64_t count_for(uint32_t work, uint64_t ns, uint64_t *done)
{
	uint64_t end = clock_now_ns() + ns, told = 0;

	while (clock_now_ns() < end) {
		uint64_t due = progress_due;

		progress_at(work, ++*done);
		told += progress_due != due;
	}
	return told;
}

static void work_is_told_of_now_and_then(void **state)
{
	uint32_t work = progress_start("counting", PROGRESS_COUNT, 7);
	uint64_t done = 0, looks;

	(void)state;
	assert_int_not_equal(work, 0);
	looks = count_for(work, 450000000, &done);
	/* However fast the steps are, the clock is looked at seldom and the sink called less. */
	assert_in_range(calls, 1, 5);
	assert_true(looks < 400 && looks < done / 10);
	assert_string_equal(last.what, "counting");
	assert_int_equal(last.total, 7);
	assert_true(last.done > 0 && last.done <= done);
	progress_end(work);
	assert_int_equal(ends, 1);
	assert_null(last.what);
	assert_int_equal(progress_due, UINT64_MAX);
}

static void short_work_is_not_told_of(void **state)
{
	uint32_t work = progress_start("counting", PROGRESS_COUNT, 0);

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		progress_at(work, i);
	assert_int_equal(calls, 0);
	progress_end(work);
}

static void the_work_that_started_last_counts(void **state)
{
	uint32_t outer = progress_start("outer", PROGRESS_BYTES, 0), inner;
	uint64_t done = 0;

	(void)state;
	inner = progress_start("inner", PROGRESS_COUNT, 0);
	assert_int_not_equal(outer, inner);
	count_for(outer, 150000000, &done);
	assert_null(last.what);
	progress_end(outer);
	count_for(inner, 150000000, &done);
	assert_string_equal(last.what, "inner");
	progress_end(inner);
	calls = 0;
	count_for(inner, 150000000, &done);
	assert_int_equal(calls, 0);
}

static void nobody_listens(void **state)
{
	uint32_t work;
	uint64_t done = 0;

	(void)state;
	progress_set_sink(NULL);
	work = progress_start("counting", PROGRESS_COUNT, 0);
	assert_int_equal(progress_due, UINT64_MAX);
	assert_int_equal(count_for(work, 1000000, &done), 0);
	progress_end(work);
	assert_int_equal(calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(work_is_told_of_now_and_then, setup, teardown),
		cmocka_unit_test_setup_teardown(short_work_is_not_told_of, setup, teardown),
		cmocka_unit_test_setup_teardown(the_work_that_started_last_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_listens, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
