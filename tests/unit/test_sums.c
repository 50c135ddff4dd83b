#include "record/sums.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Values of threads that share an id, come and go, and what a reader that subtracts gets back. */

static const struct perf_event_attr attr = {
	.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
		       PERF_SAMPLE_READ,
	.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
		       PERF_FORMAT_TOTAL_TIME_RUNNING,
	.inherit = 1,
};

struct sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time, nr, enabled, running, values[2][2];
};

/* Events that were opened late have ids from 100 on; the file has them under those below. */
static uint64_t file_id(uint64_t id, void *ctx)
{
	return id % 100;
}

/* The sums that the file gets, as "leader+member @running". */
static void expect(struct sums *sums, uint64_t id, uint32_t tid, uint64_t time, uint64_t leader,
		   uint64_t member, uint64_t want_leader, uint64_t want_member)
{
	struct sample sample = {
		.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(sample)},
		.id = id,
		.tid = tid,
		.time = time,
		.nr = 2,
		.enabled = 2 * leader,
		.running = leader,
		.values = {{leader, id}, {member, id + 1}},
	};
	struct record_sample decoded;
	struct sample got;

	assert_true(record_decode_sample(&sample.header, &attr, &decoded));
	memcpy(&got, sums_of_sample(sums, &sample.header, &attr, &decoded, file_id, NULL),
	       sizeof(got));
	assert_int_equal(got.values[0][0], want_leader);
	assert_int_equal(got.values[1][0], want_member);
	assert_int_equal(got.values[0][1], id % 100);
	assert_int_equal(got.values[1][1], id % 100 + 1);
	assert_int_equal(got.running, want_leader);
	assert_int_equal(got.enabled, sums->of_tasks ? want_leader : 2 * want_leader);
	assert_int_equal(got.tid, tid);
}

static void test_threads(void **state)
{
	struct sums sums = {.of_tasks = true};

	expect(&sums, 1, 10, 100, 1000, 5, 1000, 5);
	expect(&sums, 1, 11, 200, 300, 7, 1300, 12); /* another thread, from 0 on */
	expect(&sums, 1, 10, 300, 1500, 6, 1800, 13);
	expect(&sums, 3, 10, 400, 40, 1, 40, 1); /* another CPU */
	expect(&sums, 1, 11, 500, 300, 7, 1800, 13);
	sums_fork(&sums, 10, 600);		      /* a new one has the number */
	expect(&sums, 1, 10, 550, 1600, 6, 1900, 13); /* the old one's last */
	expect(&sums, 1, 10, 700, 2000, 9, 3900, 22);
	assert_int_equal(sums.dropped, 0);
	sums_fini(&sums);
}

/* An event was opened anew, or late for a thread of its own. */
static void test_late(void **state)
{
	struct sums sums = {.of_tasks = true};

	expect(&sums, 101, 10, 100, 1000, 5, 1000, 5);
	expect(&sums, 201, 10, 200, 400, 2, 1400, 7);
	expect(&sums, 1, 11, 300, 1, 1, 1401, 8);
	expect(&sums, 201, 10, 400, 500, 2, 1501, 8);
	sums_fini(&sums);
}

static void test_backwards(void **state)
{
	struct sums sums = {0};

	expect(&sums, 1, 10, 100, 1000, 5, 1000, 5);
	expect(&sums, 1, 10, 200, 900, 6, 1000, 5);
	expect(&sums, 1, 10, 300, 950, 7, 1050, 6);
	expect(&sums, 1, 10, 400, UINT64_MAX / 4, 3, 1050, 6);
	assert_int_equal(sums.dropped, 2);
	sums_fini(&sums);
}

/* Of one event alone, or none, a sample stays as it is. */
static void test_others(void **state)
{
	struct perf_event_attr alone = attr, none = attr;
	struct sample sample = {.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(sample)}};
	struct record_sample decoded;
	struct sums sums = {0};

	alone.read_format = PERF_FORMAT_ID;
	none.sample_type &= ~(uint64_t)PERF_SAMPLE_READ;
	assert_true(record_decode_sample(&sample.header, &alone, &decoded));
	assert_ptr_equal(sums_of_sample(&sums, &sample.header, &alone, &decoded, file_id, NULL),
			 &sample.header);
	assert_true(record_decode_sample(&sample.header, &none, &decoded));
	assert_ptr_equal(sums_of_sample(&sums, &sample.header, &none, &decoded, file_id, NULL),
			 &sample.header);
	assert_true(record_decode_sample(&sample.header, &attr, &decoded)); /* of no event */
	assert_ptr_equal(sums_of_sample(&sums, &sample.header, &attr, &decoded, file_id, NULL),
			 &sample.header);
	sums_fini(&sums);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_backwards),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
