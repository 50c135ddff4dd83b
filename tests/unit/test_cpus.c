#include "base/cpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void parses_ranges(void **state)
{
	static const int expected[] = {0, 1, 2, 3, 8, 10, 11};
	struct cpus cpus = {0};

	(void)state;
	assert_int_equal(cpus_parse(&cpus, "0-3,8,10-11", NULL), 0);
	assert_int_equal(cpus.len, 7);
	assert_memory_equal(cpus.items, expected, sizeof(expected));
	vec_fini(&cpus);
}

static void refuses_what_is_no_list(void **state)
{
	static const char *const bad[] = {
		"",   "a",    "-1",  "3-1",	 "1,",
		"1-", "1,,2", "1 2", "99999999", "0-99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cpus cpus = {0};
		struct err err = {0};

		if (cpus_parse(&cpus, bad[i], &err) != ERR_USAGE)
			fail_msg("'%s' was taken", bad[i]);
		assert_true(err.hint[0]);
		vec_fini(&cpus);
	}
}

static void knows_this_machine(void **state)
{
	struct cpus cpus = {0};

	(void)state;
	assert_int_equal(cpus_online(&cpus, NULL), 0);
	assert_true(cpus.len > 0);
	vec_fini(&cpus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_ranges),
		cmocka_unit_test(refuses_what_is_no_list),
		cmocka_unit_test(knows_this_machine),
	};

	return cmocka_run_group_tests_name("cpus", tests, NULL, NULL);
}
