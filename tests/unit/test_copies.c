/* Copies of stacks that the walker sends: each belongs to the sample behind it, and to no other. */
#include "record/copies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define TID 7

static void take(struct copies *copies, uint32_t magic, uint64_t sp, uint64_t handler_end)
{
	struct {
		struct py_raw_stack head;
		uint64_t words[2];
	} raw = {.head = {magic, TID, sp, handler_end}, .words = {sp, sp + 1}};
	struct record_sample record = {.raw = &raw, .raw_len = sizeof(raw), .id = {.tid = TID}};

	assert_true(copies_take(copies, 0, &record));
}

static const struct copy *of_sample(struct copies *copies)
{
	struct record_sample sample = {.id = {.tid = TID}};

	return copies_of(copies, 0, &sample);
}

static void test_one_sample_each(void **state)
{
	struct copies copies = {0};

	(void)state;
	take(&copies, PY_RAW_STACK, 0x1000, 0);
	assert_non_null(of_sample(&copies));
	assert_null(of_sample(&copies));
	copies_fini(&copies);
}

/* Where the copy of the interrupted stack was lost, that of an earlier signal is not it. */
static void test_interrupted_of_its_own(void **state)
{
	struct copies copies = {0};
	const struct copy *copy;

	(void)state;
	take(&copies, PY_RAW_INTERRUPTED, 0x9000, 0);
	take(&copies, PY_RAW_STACK, 0x1000, 0x2000);
	copy = of_sample(&copies);
	assert_int_equal(copy->interrupted.bytes.len, 16);
	assert_int_equal(copy->interrupted.sp, 0x9000);
	assert_int_equal(copy->top.sp, 0x1000);

	take(&copies, PY_RAW_STACK, 0x1000, 0x2000);
	copy = of_sample(&copies);
	assert_int_equal(copy->interrupted.bytes.len, 0);
	assert_int_equal(copy->top.bytes.len, 16);

	take(&copies, PY_RAW_INTERRUPTED, 0x9000, 0);
	take(&copies, PY_RAW_STACK, 0x1000, 0); /* not of a handler */
	assert_int_equal(of_sample(&copies)->interrupted.bytes.len, 0);
	copies_fini(&copies);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_sample_each),
		cmocka_unit_test(test_interrupted_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
