#include "perfmap/proof.h"

#include "base/err.h"
#include "perfmap/runtime.h"

#include "live_python.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

/*
 * The tables against the interpreters of this machine: their debug information must agree with the
 * table of their version and with no other, a running one's frames with what leads to them alone.
 */

#define FIRST_MINOR 6
#define TABLES_END 13 /* from here on versions describe themselves */

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Each field that is off by a word is found, and named. */
static void check_refusals(struct elf_file *elf, const struct py_version *version,
			   const struct py_layout *layout)
{
	static const struct {
		size_t field;
		const char *said;
	} cases[] = {
		{offsetof(struct py_layout, code_name), "PyCodeObject.co_name is at "},
		{offsetof(struct py_layout, code_linetable), "PyCodeObject.co_l"},
		{offsetof(struct py_layout, frame_previous), "is at "},
		{offsetof(struct py_layout, frame_code), ".f_code is at "},
		{offsetof(struct py_layout, tstate_frame), "PyThreadState."},
		{offsetof(struct py_layout, unicode_state), "PyASCIIObject.state is at "},
	};
	struct py_version other = *version;
	struct err err = {0};
	size_t proved;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct py_layout wrong = *layout;
		uint16_t *field = (uint16_t *)((char *)&wrong + cases[i].field);

		*field = (uint16_t)(*field + 8);
		assert_int_equal(py_prove_by_types(elf, version, &wrong, &proved, &err),
				 ERR_UNSUPPORTED);
		assert_non_null(strstr(err.text, cases[i].said));
		assert_non_null(strstr(err.text, "not built as others are"));
	}
	if (version->minor >= 7) {
		other.tss_key += 4;
		assert_int_equal(py_prove_by_types(elf, &other, layout, &proved, &err),
				 ERR_UNSUPPORTED);
		assert_non_null(strstr(err.text, "autoTSSkey"));
	}
}

static void check_types(const char *path, int minor)
{
	struct err err = {0};
	struct elf_file *elf;
	struct py_version own = {.major = 3, .minor = minor};
	double began = now_ms();
	struct py_layout table;
	size_t proved = 0;

	assert_int_equal(elf_open(&elf, path, &err), 0);
	assert_int_equal(py_layout_find(&own, NULL, 0, &table, &err), 0);
	assert_int_equal(py_prove_by_types(elf, &own, &table, &proved, &err), 0);
	print_message("3.%d: %zu offsets by debug information, in %.1f ms\n", minor, proved,
		      now_ms() - began);
	if (proved) {
		assert_true(proved >= 12);
		check_refusals(elf, &own, &table);
	}
	/* The table of another version is that of none of its types. */
	for (int m = FIRST_MINOR; proved && m < TABLES_END; m++) {
		struct py_version version = {.major = 3, .minor = m};
		struct py_layout layout;

		assert_int_equal(py_layout_find(&version, NULL, 0, &layout, &err), 0);
		if (m != minor)
			assert_int_equal(py_prove_by_types(elf, &version, &layout, &proved, &err),
					 ERR_UNSUPPORTED);
	}
	elf_close(elf);
}

static void check_frames(pid_t pid, const struct py_process *process)
{
	static const struct {
		size_t field;
		int off;
	} cases[] = {
		{offsetof(struct py_layout, frame_previous), 8},
		{offsetof(struct py_layout, frame_code), 16},
		{offsetof(struct py_layout, code_filename), -8},
		{offsetof(struct py_layout, unicode_length), -8},
	};
	struct memory_process live;
	struct memory memory;

	memory_process_init(&live, pid);
	memory = memory_of_process(&live);
	assert_int_equal(py_prove_by_frames(&memory, process), PY_PROOF_GOOD);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct py_process wrong = *process;
		uint16_t *field = (uint16_t *)((char *)&wrong.layout + cases[i].field);

		*field = (uint16_t)(*field + cases[i].off);

		assert_int_equal(py_prove_by_frames(&memory, &wrong), PY_PROOF_BAD);
	}
	if (process->tss_key) {
		struct py_process wrong = *process;

		wrong.tss_key = 8;
		assert_int_equal(py_prove_by_frames(&memory, &wrong), PY_PROOF_BAD);
	}
	memory_process_fini(&live);
}

static void check_python(const char *python)
{
	struct runtime_cache *cache = runtime_cache_new();
	struct live_child child = {0};
	struct runtime_info info;
	struct py_process process;
	struct err err = {0};
	char line[64] = "";

	/* In a loop, since 3.6 tells of no thread that waits. */
	assert_true(live_child_start(&child, python,
				     "def f():\n"
				     "    print('ready', flush=True)\n"
				     "    while True: pass\n"
				     "f()\n"));
	assert_true(live_child_line(&child, line, sizeof(line)));
	do
		assert_int_equal(runtime_find(cache, child.pid, &process, &info, &err),
				 RUNTIME_READY);
	while (info.unproved);
	if (info.minor < TABLES_END) {
		check_types(info.path, info.minor);
		check_frames(child.pid, &process);
	}
	live_child_stop(&child);
	runtime_cache_free(cache);
}

static void test_tables(void **state)
{
	struct live_pythons list;

	live_pythons_find(&list);
	for (size_t i = 0; i < list.count; i++)
		check_python(list.path[i]);
	live_pythons_free(&list);
	if (list.count == 0) {
		print_message("skipped: no python3.N was found\n");
		skip();
	}
}

/* No debug information, and no interpreter. */
static void test_nothing_to_prove(void **state)
{
	struct py_version version = {.major = 3, .minor = 9};
	struct py_layout layout;
	struct err err = {0};
	struct elf_file *elf;
	size_t proved = 1;

	assert_int_equal(py_layout_find(&version, NULL, 0, &layout, &err), 0);
	assert_int_equal(elf_open(&elf, "/proc/self/exe", &err), 0);
	assert_int_equal(py_prove_by_types(elf, &version, &layout, &proved, &err), 0);
	assert_int_equal(proved, 0);
	elf_close(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_nothing_to_prove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
