#include "perfmap/merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/*
 * One row per case, leaf first. Native frames: k kernel, n native, e eval loop, t trampoline,
 * v the evaluator that calls it.
 * Python frames: p, and P for the root-most one of its run. The result names native frames by
 * their index in the native stack and Python frames as a, b, c...
 */
struct merge_case {
	const char *what, *native, *python, *result;
	size_t dropped;
};

static const struct merge_case cases[] = {
	{"no Python: unchanged", "knen", "", "0123", 0},
	{"nothing at all", "", "", "", 0},
	{"only Python", "", "pP", "ab", 0},
	{"the eval loop itself, broken chain", "e", "PPP", "abc", 0},
	{"one eval, one run of many", "en", "ppP", "abc1", 0},
	{"a C function called by Python", "nnen", "pP", "01ab3", 0},
	{"kernel, C, Python", "kknen", "P", "012a4", 0},
	{"each frame its own eval (3.10)", "nenen", "PP", "0a2b4", 0},
	{"callbacks: two runs of several", "nennen", "pPppP", "0ab23cde5", 0},
	{"fewer evals than runs: the rest follows, no root natives", "nenn", "PpP", "0abc", 2},
	{"chain never passes the eval loop", "nnn", "pP", "0ab", 2},
	{"kernel, then a chain that breaks", "kknn", "P", "012a", 1},
	{"kernel only", "kk", "pP", "01ab", 0},
	{"trampolines vanish", "ntenten", "PP", "0a3b6", 0},
	{"what calls trampolines vanishes", "ntventven", "PP", "0a4b8", 0},
	{"a trampoline at the leaf", "ten", "P", "a2", 0},
	{"a trampoline, broken chain", "ntn", "P", "0a", 1},
	{"more evals than runs", "nenen", "P", "0a24", 0},
	{"an eval frame that was just entered", "een", "P", "a2", 0},
	{"cut at the root: a run without end", "nennen", "Ppp", "0a23bc5", 0},
	{"kernel below user is no stack", "nken", "P", "0a3", 1},
	{"kernel below the last eval", "enk", "P", "a1", 1},
};

/* With the eval loop and trampolines. */
static const struct merge_case cases_of_all[] = {
	{"the eval loop above what it runs", "nenen", "pPP", "01ab23c4", 0},
	{"trampolines below what they call", "ntenten", "PP", "012a345b6", 0},
	{"the evaluator below the trampoline that it calls", "etven", "PP", "0a123b4", 0},
	{"the eval loop itself", "e", "PPP", "0abc", 0},
	{"a trampoline, broken chain", "ntn", "P", "0a", 1},
};

static uint8_t class_of(char c)
{
	return c == 'k'	  ? MERGE_KERNEL
	       : c == 'n' ? MERGE_NATIVE
	       : c == 'e' ? MERGE_EVAL
	       : c == 'v' ? MERGE_EVALUATOR
			  : MERGE_TRAMPOLINE;
}

static void check_case(const struct merge_case *row, bool all)
{
	struct py_raw_frame python[16] = {0};
	struct merge_item items[32];
	uint8_t native[16];
	char result[32];
	size_t n = strlen(row->native), p = strlen(row->python), dropped = 77, len;

	for (size_t j = 0; j < n; j++)
		native[j] = class_of(row->native[j]);
	for (size_t j = 0; j < p; j++)
		python[j].instr = row->python[j] == 'P' ? PY_FRAME_ENTRY : 0;
	len = merge_stacks(native, n, python, p, all, items, &dropped);
	for (size_t j = 0; j < len; j++)
		result[j] = (char)((items[j].python ? 'a' : '0') + (char)items[j].index);
	result[len] = '\0';
	if (strcmp(result, row->result) || dropped != row->dropped)
		fail_msg("%s: %s + %s = %s, %zu dropped; expected %s, %zu", row->what, row->native,
			 row->python, result, dropped, row->result, row->dropped);
}

static void test_cases(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_case(&cases[i], false);
}

static void test_cases_of_all(void **state)
{
	for (size_t i = 0; i < sizeof(cases_of_all) / sizeof(cases_of_all[0]); i++)
		check_case(&cases_of_all[i], true);
}

/* What must hold of every result, whatever went in. */
static void check_result(const uint8_t *native, size_t n, size_t p, const struct merge_item *items,
			 size_t len, size_t dropped)
{
	size_t next_python = 0, shown = 0, real = 0;
	int64_t last = -1;
	bool user = false;

	assert_true(len <= n + p);
	for (size_t i = 0; i < len; i++) {
		if (items[i].python) {
			assert_int_equal(items[i].index, next_python++);
			user = true;
			continue;
		}
		assert_true(items[i].index < n);
		assert_true((int64_t)items[i].index > last); /* in order, none twice */
		last = items[i].index;
		shown++;
		if (native[items[i].index] == MERGE_KERNEL)
			assert_false(user);
		else
			user = true;
		assert_true(native[items[i].index] <= MERGE_NATIVE);
	}
	assert_int_equal(next_python, p);
	for (size_t i = 0; i < n; i++)
		real += native[i] == MERGE_KERNEL || native[i] == MERGE_NATIVE;
	assert_int_equal(shown + dropped, real); /* nothing is lost unseen */
	for (size_t i = 0; i < n && native[i] == MERGE_KERNEL; i++)
		assert_int_equal(items[i].index, i);
}

static void test_properties(void **state)
{
	uint32_t seed = 12345;

	for (int round = 0; round < 50000; round++) {
		struct py_raw_frame python[24] = {0};
		uint8_t native[24];
		size_t n, p, dropped, len;
		struct merge_item *items;

		seed = seed * 1664525 + 1013904223;
		n = seed >> 24 & 15;
		p = 1 + (seed >> 16 & 15);
		/* Exactly the promised room, so that the sanitizer sees a step beyond it. */
		items = malloc((n + p) * sizeof(*items));
		assert_non_null(items);
		for (size_t i = 0; i < n; i++) {
			seed = seed * 1664525 + 1013904223;
			native[i] = (seed >> 20) % 5;
			if (round & 1 && native[i] == MERGE_KERNEL && i > 2)
				native[i] = MERGE_NATIVE;
		}
		for (size_t i = 0; i < p; i++) {
			seed = seed * 1664525 + 1013904223;
			python[i].instr = seed & 0x00100000 ? PY_FRAME_ENTRY : 0;
		}
		len = merge_stacks(native, n, python, p, false, items, &dropped);
		check_result(native, n, p, items, len, dropped);
		free(items);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_cases_of_all),
		cmocka_unit_test(test_properties),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
