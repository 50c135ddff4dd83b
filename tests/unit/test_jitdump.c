#include "perfmap/jitdump.h"

#include "base/io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jitdump_make.h"

static struct jitdump *parse(struct maker *m)
{
	struct jitdump *dump;

	assert_int_equal(jitdump_parse(&dump, m->out.buf, m->out.len, NULL), 0);
	strbuf_reset(&m->out);
	return dump;
}

static void expect(const struct jitdump *dump, uint64_t addr, uint64_t time, const char *name)
{
	const struct jitdump_code *code = jitdump_find(dump, addr, time);

	if (!name) {
		assert_null(code);
		return;
	}
	assert_non_null(code);
	assert_string_equal(code->name, name);
	assert_true(addr >= code->addr && addr - code->addr < code->size);
}

static void expect_line(const struct jitdump *dump, uint64_t addr, const char *file, uint32_t line)
{
	const struct jitdump_code *code = jitdump_find(dump, addr, UINT64_MAX);
	const char *at = NULL;
	uint32_t number = 0;

	assert_int_equal(jitdump_line(dump, code, addr, &at, &number), file != NULL);
	if (file) {
		assert_string_equal(at, file);
		assert_int_equal(number, line);
	}
}

/* Both byte orders; unwinding and line records belong to the load behind them. */
static void test_records(void **state)
{
	static const struct make_row rows[] = {{0x1000, 3, "/A.java"}, {0x1004, 9, "\xff"}};

	for (int swap = 0; swap < 2; swap++) {
		struct maker m = {.swap = swap};
		const struct jitdump_code *code;
		struct jitdump *dump;

		make_head(&m, 0);
		make_lines(&m, 0x1000, rows, 2);
		make_record(&m, 4, 24 + 7, 0);
		make_u64(&m, 7);
		make_u64(&m, 2);
		make_u64(&m, 0);
		strbuf_add(&m.out, "framehd", 7);
		make_load(&m, 10, 0x1000, "with tables", "123456789", 1);
		make_load(&m, 20, 0x2000, "without", "1234", 2);
		make_record(&m, 77, 4, 20); /* of a later version */
		make_u32(&m, 0);
		make_record(&m, 3, 0, 30);
		dump = parse(&m);
		assert_int_equal(jitdump_head_of(dump)->machine, 183);
		assert_int_equal(jitdump_head_of(dump)->pid, 4711);
		assert_int_equal(jitdump_head_of(dump)->time, 99);
		assert_int_equal(jitdump_count(dump), 2);
		assert_int_equal(jitdump_skipped(dump), 0);

		code = jitdump_find(dump, 0x1008, 10);
		assert_non_null(code);
		assert_memory_equal(code->code.at, "123456789", 9);
		assert_int_equal(bytes_left(&code->unwind.eh_frame), 5);
		assert_memory_equal(code->unwind.eh_frame.at, "frame", 5);
		assert_int_equal(bytes_left(&code->unwind.eh_frame_hdr), 2);
		assert_memory_equal(code->unwind.eh_frame_hdr.at, "hd", 2);
		assert_int_equal(code->unwind.eh_frame_addr, 0x1010);
		assert_int_equal(code->unwind.eh_frame_hdr_addr, 0x1015);
		expect_line(dump, 0x1000, "/A.java", 3);
		expect_line(dump, 0x1003, "/A.java", 3);
		expect_line(dump, 0x1008, "/A.java", 9);

		code = jitdump_find(dump, 0x2000, 20);
		assert_int_equal(bytes_left(&code->unwind.eh_frame), 0);
		expect_line(dump, 0x2000, NULL, 0);
		expect(dump, 0x1008, 9, NULL);
		expect(dump, 0x1009, 10, NULL);
		expect(dump, 0xfff, 10, NULL);
		jitdump_free(dump);
		strbuf_fini(&m.out);
	}
}

static void test_later_takes_the_place(void **state)
{
	struct maker m = {0};
	struct jitdump *dump;

	make_head(&m, 0);
	make_load(&m, 10, 0x1000, "old", "0123456789abcdef", 1);
	make_load(&m, 30, 0x1008, "new", "0123", 2);
	make_load(&m, 20, 0x1004, "between", "01234567", 3); /* written late, by another thread */
	dump = parse(&m);
	expect(dump, 0x100a, 9, NULL);
	expect(dump, 0x100a, 10, "old");
	expect(dump, 0x100a, 29, "between");
	expect(dump, 0x100a, 30, "new");
	expect(dump, 0x100c, UINT64_MAX, "old");
	expect(dump, 0x1005, UINT64_MAX, "between");
	assert_int_equal(jitdump_count_until(dump, 9), 0);
	assert_int_equal(jitdump_count_until(dump, 20), 2);
	assert_int_equal(jitdump_count_until(dump, UINT64_MAX), 3);
	jitdump_free(dump);
	strbuf_fini(&m.out);
}

static void test_moves(void **state)
{
	static const struct make_row rows[] = {{0x1000, 3, "a"}};
	struct maker m = {0};
	struct jitdump *dump;

	make_head(&m, 0);
	make_lines(&m, 0x1000, rows, 1);
	make_load(&m, 10, 0x1000, "mover", "01234567", 1);
	make_move(&m, 20, 0x1000, 0x2000, 8, 1);
	make_move(&m, 30, 0x2000, 0x2004, 8, 1); /* over itself */
	make_move(&m, 40, 0x9000, 0x9100, 8, 1); /* was never there */
	make_move(&m, 40, 0x2004, 0x9100, 8, 5); /* nor this one */
	dump = parse(&m);
	expect(dump, 0x1000, 19, "mover");
	expect(dump, 0x1000, 20, NULL);
	expect(dump, 0x2000, 20, "mover");
	expect(dump, 0x2000, 30, NULL);
	expect(dump, 0x2004, 30, "mover");
	expect(dump, 0x200b, 30, "mover");
	expect_line(dump, 0x2005, "a", 3);
	assert_int_equal(jitdump_skipped(dump), 2);
	jitdump_free(dump);
	strbuf_fini(&m.out);
}

/* V8 and LLVM count the addresses of lines from behind an ELF header. */
static void test_biased_lines(void **state)
{
	static const struct make_row v8[] = {{0x1040, 3, "a"}, {0x1044, 4, "a"}};
	static const struct make_row late[] = {{0x1020, 3, "a"}};
	struct maker m = {0};
	struct jitdump *dump;

	make_head(&m, 0);
	make_lines(&m, 0x1000, v8, 2);
	make_load(&m, 10, 0x1000, "v8", "01234567", 1);
	dump = parse(&m);
	expect_line(dump, 0x1000, "a", 3);
	expect_line(dump, 0x1004, "a", 4);
	jitdump_free(dump);

	make_head(&m, 0);
	make_lines(&m, 0x1000, late, 1);
	make_load(&m, 10, 0x1000, "other", "0123456789012345678901234567890123456789", 1);
	dump = parse(&m);
	expect_line(dump, 0x101f, NULL, 0);
	expect_line(dump, 0x1020, "a", 3);
	jitdump_free(dump);
	strbuf_fini(&m.out);
}

/* Times of another clock cannot be compared: the last one counts. */
static void test_other_clock(void **state)
{
	struct maker m = {0};
	struct jitdump *dump;

	make_head(&m, 1);
	make_load(&m, 50, 0x1000, "first", "0123", 1);
	make_load(&m, 40, 0x1000, "last", "0123", 2);
	dump = parse(&m);
	expect(dump, 0x1000, 1, "last");
	jitdump_free(dump);
	strbuf_fini(&m.out);
}

static void test_broken(void **state)
{
	static const char *const wrong[] = {"", "JiTD",
					    "not a dump, and long enough to be one....."};
	struct jitdump_head found;
	struct maker m = {0};
	struct jitdump *dump;
	struct err err;
	size_t whole;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(jitdump_parse(&dump, wrong[i], strlen(wrong[i]), &err),
				 ERR_CORRUPT);
		assert_null(dump);
		assert_false(jitdump_head(wrong[i], strlen(wrong[i]), &found));
	}
	/* Cut anywhere: what was written is there, and nothing counts as broken. */
	make_head(&m, 0);
	make_load(&m, 10, 0x1000, "first", "0123", 1);
	whole = m.out.len;
	make_load(&m, 20, 0x2000, "second", "0123", 2);
	for (size_t len = whole; len < m.out.len; len++) {
		assert_int_equal(jitdump_parse(&dump, m.out.buf, len, NULL), 0);
		assert_int_equal(jitdump_count(dump), 1);
		assert_int_equal(jitdump_skipped(dump), 0);
		jitdump_free(dump);
	}
	/* A record without an end of its name, one of no size, one that wraps, one shorter than its
	 * own head. */
	make_record(&m, 0, 4, 30);
	make_u32(&m, 1);
	make_load(&m, 30, 0x3000, "empty", "", 3);
	make_load(&m, 30, UINT64_MAX - 1, "wraps", "0123", 4);
	make_record(&m, 0, (uint32_t)-10, 30);
	make_load(&m, 40, 0x5000, "unreachable", "0123", 5);
	dump = parse(&m);
	assert_int_equal(jitdump_count(dump), 2);
	assert_int_equal(jitdump_skipped(dump), 4);
	jitdump_free(dump);
	strbuf_fini(&m.out);
}

static void test_long_names(void **state)
{
	char name[JITDUMP_NAME_MAX + 2];
	struct maker m = {0};
	struct jitdump *dump;

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	make_head(&m, 0);
	make_load(&m, 10, 0x1000, name + 1, "0123", 1);
	make_load(&m, 10, 0x2000, name, "0123", 2);
	dump = parse(&m);
	expect(dump, 0x1000, 10, name + 1);
	assert_int_equal(strlen(jitdump_code(dump, 1)->name), JITDUMP_NAME_MAX);
	assert_string_equal(jitdump_code(dump, 1)->name + JITDUMP_NAME_MAX - 4, "x...");
	jitdump_free(dump);
	strbuf_fini(&m.out);
}

/* Against the plainest model there is: an array of addresses, painted load by load. */
static void test_overlaps_like_paint(void **state)
{
	static char code[65];
	uint32_t seed = 7;

	memset(code, 'c', sizeof(code) - 1);
	for (int round = 0; round < 200; round++) {
		int16_t painted[320];
		struct maker m = {0};
		struct jitdump *dump;
		int count = 1 + round % 50, until;

		make_head(&m, 0);
		memset(painted, -1, sizeof(painted));
		seed = seed * 1664525 + 1013904223;
		until = (int)(seed >> 20) % count;
		for (int i = 0; i < count; i++) {
			unsigned int start, size;
			char name[16];

			seed = seed * 1664525 + 1013904223;
			start = seed >> 24 & 0xff;
			size = 1 + (seed >> 16 & 0x3f);
			snprintf(name, sizeof(name), "n%d", i);
			make_load(&m, (uint64_t)i, start, name, code + sizeof(code) - 1 - size,
				  (uint64_t)i);
			for (unsigned int j = start; i <= until && j < start + size; j++)
				painted[j] = (int16_t)i;
		}
		dump = parse(&m);
		for (unsigned int j = 0; j < 320; j++) {
			char name[16];

			snprintf(name, sizeof(name), "n%d", painted[j]);
			expect(dump, j, (uint64_t)until, painted[j] < 0 ? NULL : name);
		}
		jitdump_free(dump);
		strbuf_fini(&m.out);
	}
}

/* A dump of CPython 3.13.0's: its first functions, each with unwinding tables. */
static void test_cpython(void **state)
{
	struct strbuf text = {0};
	struct jitdump *dump;

	assert_int_equal(
		io_read_file("tests/fuzz/corpus/fuzz_jitdump/cpython-3.13", &text, 1 << 20, NULL),
		0);
	assert_int_equal(jitdump_parse(&dump, text.buf, text.len, NULL), 0);
	assert_int_equal(jitdump_head_of(dump)->machine, 0);
	assert_int_equal(jitdump_count(dump), 4);
	assert_string_equal(jitdump_code(dump, 0)->name,
			    "py::_find_and_load:<frozen importlib._bootstrap>");
	for (size_t i = 0; i < 4; i++) {
		const struct jitdump_code *code = jitdump_code(dump, i);

		assert_int_equal(code->size, 11);
		assert_int_equal(bytes_left(&code->code), 11);
		assert_int_equal(bytes_left(&code->unwind.eh_frame), 48);
		assert_int_equal(bytes_left(&code->unwind.eh_frame_hdr), 20);
	}
	jitdump_free(dump);
	strbuf_fini(&text);
}

static void test_names(void **state)
{
	static const struct {
		const char *path;
		uint32_t pid;
	} rows[] = {
		{"/tmp/jit-12.dump", 12},
		{"jit-1.dump", 1},
		{"/a/jit-2147483647.dump", 2147483647},
		{"/a/jit-2147483648.dump", 0},
		{"/a/jit-.dump", 0},
		{"/a/jit-1.dump (deleted)", 0},
		{"/a/jit-1x.dump", 0},
		{"/jit-1.dump/x", 0},
		{"//anon", 0},
		{"", 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(jitdump_name_pid(rows[i].path), rows[i].pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),	    cmocka_unit_test(test_later_takes_the_place),
		cmocka_unit_test(test_moves),	    cmocka_unit_test(test_biased_lines),
		cmocka_unit_test(test_other_clock), cmocka_unit_test(test_broken),
		cmocka_unit_test(test_long_names),  cmocka_unit_test(test_overlaps_like_paint),
		cmocka_unit_test(test_cpython),	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
