#include "record/doubt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SURE = 100, OWN = 200, YOUNGER = 300, THREAD = 7, OTHER = 8, COUNTER = 3 };

static bool keeps(struct doubt *doubt, uint32_t tid, uint64_t id, size_t expected)
{
	size_t redundant = 0;
	bool keep = doubt_keeps(doubt, tid, COUNTER, id, &redundant);

	assert_int_equal(redundant, expected);
	return keep;
}

/* Whichever of the two comes first. */
static void closes_the_later_opened(void **state)
{
	(void)state;
	for (int own_first = 0; own_first < 2; own_first++) {
		struct doubt doubt = {0};

		assert_true(doubt_add(&doubt, OWN, 5));
		assert_true(keeps(&doubt, THREAD, own_first ? OWN : SURE, DOUBT_NONE));
		assert_true(keeps(&doubt, THREAD, own_first ? OWN : SURE, DOUBT_NONE));
		assert_false(keeps(&doubt, THREAD, own_first ? SURE : OWN, 5));
		assert_false(keeps(&doubt, THREAD, OWN, DOUBT_NONE)); /* was on its way */
		assert_true(keeps(&doubt, THREAD, SURE, DOUBT_NONE));
		doubt_fini(&doubt);
	}
}

/* A child of a thread that was opened in doubt, opened in doubt itself. */
static void closes_the_youngest_of_a_line(void **state)
{
	struct doubt doubt = {0};

	(void)state;
	assert_true(doubt_add(&doubt, OWN, 5));
	assert_true(doubt_add(&doubt, YOUNGER, 9));
	assert_true(keeps(&doubt, THREAD, YOUNGER, DOUBT_NONE));
	assert_false(keeps(&doubt, THREAD, OWN, 9));
	assert_true(keeps(&doubt, THREAD, OWN, DOUBT_NONE));
	assert_false(keeps(&doubt, THREAD, SURE, 5));
	assert_true(keeps(&doubt, THREAD, SURE, DOUBT_NONE));
	doubt_fini(&doubt);
}

static void keeps_what_is_counted_once(void **state)
{
	struct doubt doubt = {0};
	size_t redundant;

	(void)state;
	assert_true(keeps(&doubt, THREAD, OWN, DOUBT_NONE)); /* nothing is in doubt */
	assert_true(doubt_add(&doubt, OWN, 5));
	for (int i = 0; i < 3; i++) {
		assert_true(keeps(&doubt, THREAD, OWN, DOUBT_NONE));
		assert_true(keeps(&doubt, OTHER, SURE, DOUBT_NONE));
		/* Another event, or another CPU. */
		assert_true(doubt_keeps(&doubt, THREAD, COUNTER + 1, SURE, &redundant));
		assert_int_equal(redundant, DOUBT_NONE);
	}
	doubt_fini(&doubt);
}

/* Its samples may still be on their way; the thread goes on with another event's. */
static void closed_for_another_reason(void **state)
{
	struct doubt doubt = {0};

	(void)state;
	assert_true(doubt_add(&doubt, OWN, 5));
	assert_true(keeps(&doubt, THREAD, OWN, DOUBT_NONE));
	doubt_close(&doubt, OWN);
	doubt_close(&doubt, SURE); /* not in doubt */
	assert_false(keeps(&doubt, THREAD, OWN, DOUBT_NONE));
	assert_true(keeps(&doubt, THREAD, SURE, DOUBT_NONE));
	doubt_fini(&doubt);
}

/* Threads that come and go take bounded memory. */
static void forgets(void **state)
{
	struct doubt doubt = {0};

	(void)state;
	assert_true(doubt_add(&doubt, OWN, 5));
	for (uint32_t tid = 1; tid < 1000000; tid++)
		assert_true(keeps(&doubt, tid, SURE, DOUBT_NONE));
	assert_true(doubt.seen.cap <= 1 << 18);
	assert_false(keeps(&doubt, 999999, OWN, 5));
	doubt_fini(&doubt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closes_the_later_opened),
		cmocka_unit_test(closes_the_youngest_of_a_line),
		cmocka_unit_test(keeps_what_is_counted_once),
		cmocka_unit_test(closed_for_another_reason),
		cmocka_unit_test(forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
