#include "profile/keyed.h"
#include "profile/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct pair_frames frames(const char *payload, uint32_t cpu, uint32_t tid, uint64_t time,
				 uint64_t position)
{
	return (struct pair_frames){
		.payload = payload,
		.len = (uint32_t)strlen(payload),
		.cpu = cpu,
		.tid = tid,
		.time = time,
		.position = position,
	};
}

static void offer(struct pairing *p, const char *payload, uint32_t cpu, uint32_t tid, uint64_t time,
		  uint64_t position)
{
	struct pair_frames f = frames(payload, cpu, tid, time, position);

	assert_true(pairing_frames(p, &f));
}

static void pairs_within_a_cpu(void **state)
{
	struct pairing p = {0};

	offer(&p, "a", 0, 7, 1000, 1);
	offer(&p, "b", 3, 7, 1001, 2);
	assert_string_equal(pairing_sample(&p, 3, 7, 1002).payload, "b");
	assert_string_equal(pairing_sample(&p, 0, 7, 1003).payload, "a");
	assert_null(pairing_sample(&p, 0, 7, 1004).payload);
	assert_int_equal(p.unpaired, 0);
	pairing_fini(&p);
}

static void sample_may_be_stamped_first(void **state)
{
	struct pairing p = {0};

	offer(&p, "a", 0, 7, 5000, 1);
	assert_string_equal(pairing_sample(&p, 0, 7, 4000).payload, "a");
	pairing_fini(&p);
}

/* The host of a virtual machine ran something else between frames and sample: for 30 ms. */
static void machine_may_stand_still(void **state)
{
	struct pairing p = {0};

	offer(&p, "a", 0, 7, 1000, 1);
	assert_string_equal(pairing_sample(&p, 0, 7, 1000 + 30000000).payload, "a");
	assert_int_equal(p.unpaired, 0);
	pairing_fini(&p);
}

static void refuses_what_is_not_its_own(void **state)
{
	struct pairing p = {0};

	offer(&p, "a", 0, 7, 1000, 1);
	assert_null(pairing_sample(&p, 0, 8, 1001).payload); /* another thread: a was lost */
	assert_null(pairing_sample(&p, 0, 7, 1002).payload);
	offer(&p, "b", 0, 7, 2000, 2);
	assert_null(pairing_sample(&p, 0, 7, 2000 + PAIR_WINDOW_NS).payload);
	offer(&p, "c", 0, 7, 3000, 3);
	offer(&p, "d", 0, 7, 3001, 4);
	assert_string_equal(pairing_sample(&p, 0, 7, 3002).payload, "d");
	assert_int_equal(p.unpaired, 3);
	/* Two CPUs that share a slot. */
	offer(&p, "e", PAIR_CPUS_MAX, 7, 4000, 5);
	assert_null(pairing_sample(&p, 0, 7, 4000).payload);
	pairing_fini(&p);
}

static void loss_ends_the_wait(void **state)
{
	struct pairing p = {0};

	offer(&p, "a", 0, 7, 1000, 1);
	offer(&p, "b", 1, 7, 1000, 2);
	pairing_lost(&p, 0);
	assert_null(pairing_sample(&p, 0, 7, 1001).payload);
	assert_string_equal(pairing_sample(&p, 1, 7, 1001).payload, "b");
	offer(&p, "c", 1, 7, 1000, 3);
	pairing_lost(&p, UINT32_MAX);
	assert_null(pairing_sample(&p, 1, 7, 1001).payload);
	pairing_lost(&p, 99);
	assert_int_equal(p.unpaired, 2);
	pairing_fini(&p);
}

static void expires(void **state)
{
	struct pairing p = {0};

	offer(&p, "a", 0, 7, 1000, 40);
	offer(&p, "b", 1, 7, 2 * PAIR_WINDOW_NS, 50);
	assert_int_equal(pairing_expire(&p, 1001), 40);
	assert_int_equal(pairing_expire(&p, 2 * PAIR_WINDOW_NS), 50);
	assert_int_equal(p.unpaired, 1);
	assert_true(pairing_expire(&p, 9 * PAIR_WINDOW_NS) == UINT64_MAX);
	pairing_fini(&p);
}

static void keyed_keeps_each_key_once(void **state)
{
	struct {
		uint32_t key[2], value;
	} item = {{0, 0}, 0};
	struct keyed keyed;
	bool added;

	keyed_init(&keyed, sizeof(item), sizeof(item.key));
	assert_int_equal(keyed_find(&keyed, &item), KEYED_NONE);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			item.key[0] = i % 71;
			item.key[1] = i;
			assert_int_equal(keyed_add(&keyed, &item, &added), i);
			assert_int_equal(added, round == 0);
			memcpy(&item, keyed_at(&keyed, i), sizeof(item));
			assert_int_equal(item.value, round * i);
			((uint32_t *)keyed_at(&keyed, i))[2] = i;
		}
	}
	assert_int_equal(keyed.count, 5000);
	item.key[0] = 99;
	assert_int_equal(keyed_find(&keyed, &item), KEYED_NONE);
	keyed_fini(&keyed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_within_a_cpu),
		cmocka_unit_test(sample_may_be_stamped_first),
		cmocka_unit_test(machine_may_stand_still),
		cmocka_unit_test(refuses_what_is_not_its_own),
		cmocka_unit_test(loss_ends_the_wait),
		cmocka_unit_test(expires),
		cmocka_unit_test(keyed_keeps_each_key_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
