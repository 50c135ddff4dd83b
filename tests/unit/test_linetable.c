#include "perfmap/linetable.h"

#include "live_python.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Texts of tests/data/make-linetables: what co_lines() of the interpreter itself says. */
struct oracle {
	unsigned int minor;
	char name[256], version[32];
	uint32_t firstlineno, code_len;
	uint8_t *table;
	size_t table_len;
	struct line_ranges expected, got;
	size_t codes, offsets, no_lines;
};

static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t len = 0;

	for (unsigned int byte; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		out[len++] = (uint8_t)byte;
	return len;
}

static void check_code(struct oracle *o)
{
	struct err err = {0};

	if (!o->name[0]) /* before the first */
		return;
	o->got.len = 0;
	if (linetable_expand(o->minor, o->table, o->table_len, o->firstlineno,
			     o->minor <= 9 ? o->code_len : UINT32_MAX, &o->got, &err))
		fail_msg("3.%u %s:%u: %s", o->minor, o->name, o->firstlineno, err.text);
	for (size_t i = 0; i < o->expected.len; i++) {
		const struct line_range *range = &o->expected.items[i];

		for (uint32_t offset = range->start; offset < range->end; offset++) {
			uint32_t line = linetable_find(&o->got, offset);

			if (line != range->line)
				fail_msg("3.%u %s:%u+%u: line %u, the interpreter says %u",
					 o->minor, o->name, o->firstlineno, offset, line,
					 range->line);
			o->offsets++;
		}
		o->no_lines += !range->line;
	}
	/* Nothing beyond, nothing empty, sorted, neighbours merged. */
	for (size_t i = 0; i < o->got.len; i++) {
		assert_true(o->got.items[i].start < o->got.items[i].end);
		if (i)
			assert_true(o->got.items[i - 1].end <= o->got.items[i].start);
	}
	if (o->expected.len) {
		assert_int_equal(o->got.items[0].start, o->expected.items[0].start);
		assert_int_equal(o->got.items[o->got.len - 1].end,
				 o->expected.items[o->expected.len - 1].end);
	}
	o->codes++;
}

static void check_stream(FILE *f, struct oracle *o)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, f) > 0) {
		struct line_range *range;
		uint32_t start, end, number = 0;

		if (sscanf(line, "version %u %31s", &o->minor, o->version) == 2)
			continue;
		if (strncmp(line, "code ", 5) == 0) {
			check_code(o);
			o->expected.len = 0;
			assert_int_equal(sscanf(line, "code %255s %u %u", o->name, &o->firstlineno,
						&o->code_len),
					 3);
		} else if (strncmp(line, "table ", 6) == 0) {
			o->table = realloc(o->table, strlen(line));
			assert_non_null(o->table);
			o->table_len = from_hex(line + 6, o->table);
		} else {
			assert_true(sscanf(line, "%u %u %u", &start, &end, &number) >= 2);
			range = vec_push(&o->expected);
			assert_non_null(range);
			*range = (struct line_range){start, end, number};
		}
	}
	check_code(o);
	free(line);
}

static void oracle_fini(struct oracle *o)
{
	free(o->table);
	vec_fini(&o->expected);
	vec_fini(&o->got);
}

static void test_recorded(void **state)
{
	for (unsigned int minor = 6; minor <= 13; minor++) {
		struct oracle o = {0};
		char path[64];
		FILE *f;

		snprintf(path, sizeof(path), "tests/data/linetables-3.%u.txt", minor);
		f = fopen(path, "r");
		assert_non_null(f);
		check_stream(f, &o);
		fclose(f);
		assert_int_equal(o.minor, minor);
		assert_true(o.codes > 20);
		assert_true(o.offsets > 1000);
		if (minor >= 11)
			assert_true(o.no_lines > 0);
		oracle_fini(&o);
	}
}

static void test_live(void **state)
{
	struct live_pythons pythons;

	live_pythons_find(&pythons);
	if (!pythons.count) {
		print_message("no CPython was found\n");
		skip();
	}
	for (size_t i = 0; i < pythons.count; i++) {
		struct oracle o = {0};
		char command[4500];
		FILE *f;

		snprintf(command, sizeof(command),
			 "'%s' -W ignore tests/data/make-linetables --stdlib 3000",
			 pythons.path[i]);
		f = popen(command, "r");
		assert_non_null(f);
		check_stream(f, &o);
		assert_int_equal(pclose(f), 0);
		print_message("CPython %s: %zu code objects, %zu offsets agree\n", o.version,
			      o.codes, o.offsets);
		assert_int_equal(o.codes, 3000);
		oracle_fini(&o);
	}
	live_pythons_free(&pythons);
}

struct hand {
	unsigned int minor;
	const char *hex;
	uint32_t firstlineno, code_len;
	int ret;
	struct line_range ranges[6];
};

/* Worked out by hand from CPython's descriptions of the formats. */
static const struct hand hands[] = {
	/* lnotab: bytes, then lines; 255 steps continue; negative lines */
	{9, "", 7, 10, 0, {{0, 10, 7}}},
	{9, "0201", 7, 10, 0, {{0, 2, 7}, {2, 10, 8}}},
	{9, "02ff0401", 7, 10, 0, {{0, 2, 7}, {2, 6, 6}, {6, 10, 7}}},
	{9, "ff00 2d02", 1, 400, 0, {{0, 300, 1}, {300, 400, 3}}},
	{9, "027f0064", 1, 4, 0, {{0, 2, 1}, {2, 4, 228}}},
	{9, "0a01", 1, 6, 0, {{0, 6, 1}}},
	{9, "020102", 5, 8, ERR_CORRUPT, {{0, 2, 5}, {2, 8, 6}}},
	{9, "02800201", 1, 6, 0, {{0, 2, 1}, {2, 6, 0}}},
	/* 3.10: lines, then bytes; -128 is none and leaves the running line */
	{10, "0400", 7, 0, 0, {{0, 4, 7}}},
	{10, "0280 0201", 7, 0, 0, {{0, 2, 0}, {2, 4, 8}}},
	{10, "007f 0264", 1, 0, 0, {{0, 2, 228}}},
	{10, "0400 0280 0200", 3, 0, 0, {{0, 4, 3}, {4, 6, 0}, {6, 8, 3}}},
	{10, "040002", 7, 0, ERR_CORRUPT, {{0, 4, 7}}},
	/* locations: none (15), no columns (13), long (14), one line (10..12), short (0..9) */
	{11, "f8 d80800", 7, 0, 0, {{0, 2, 0}, {2, 4, 8}}},
	{11, "e80a", 7, 0, 0, {{0, 2, 12}}},
	{11, "e80b f9 8500", 7, 0, 0, {{0, 2, 2}, {2, 6, 0}, {6, 18, 2}}},
	{11, "f0 02000102 d90000", 3, 0, 0, {{0, 2, 4}, {2, 6, 5}}},
	{11, "e84001", 1, 0, 0, {{0, 2, 33}}},
	{11, "8000 e8", 7, 0, ERR_CORRUPT, {{0, 2, 7}}},
	{11, "8000 e840", 7, 0, ERR_CORRUPT, {{0, 2, 7}}},
	{11, "8000 f00200", 7, 0, ERR_CORRUPT, {{0, 2, 7}}},
	{11, "0000", 7, 0, ERR_CORRUPT, {{0}}},
	{13, "e8 7f7f7f7f7f7f7f7f7f7f7f7f7f7f3f f8", 7, 0, 0, {{0, 4, 0}}},
};

static void test_by_hand(void **state)
{
	for (size_t i = 0; i < sizeof(hands) / sizeof(hands[0]); i++) {
		struct line_ranges got = {0};
		uint8_t table[64];
		char hex[128];
		size_t len = 0, n;

		for (const char *s = hands[i].hex; *s; s++)
			if (*s != ' ')
				hex[len++] = *s;
		hex[len] = '\0';
		n = from_hex(hex, table);
		assert_int_equal(linetable_expand(hands[i].minor, table, n, hands[i].firstlineno,
						  hands[i].code_len, &got, NULL),
				 hands[i].ret);
		for (n = 0; n < 6 && hands[i].ranges[n].end; n++)
			;
		if (got.len != n ||
		    (n && memcmp(got.items, hands[i].ranges, n * sizeof(*got.items))))
			fail_msg("row %zu: %s", i, hands[i].hex);
		vec_fini(&got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
