#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static void test_escape(void **state)
{
	static const struct {
		const char *text;
		size_t len; /* 0: to the NUL */
		const char *want;
	} table[] = {
		{"", 0, ""},
		{"plain text.py:12", 0, "plain text.py:12"},
		{"back\\slash", 0, "back\\slash"},
		{"\a\b\t\n\v\f\r", 0, "\\a\\b\\t\\n\\v\\f\\r"},
		{"a\0b", 3, "a\\x00b"},
		{"\x1b[31mred", 0, "\\x1b[31mred"},
		{"\x7f", 0, "\\x7f"},
		/* C1, which some terminals obey: U+009B is a CSI. */
		{"\xc2\x9b", 0, "\\x9b"},
		/* Letters, a symbol beyond the BMP, the first and last that are allowed. */
		{"na\xc3\xafve \xce\xbb \xf0\x9f\x90\x8d", 0,
		 "na\xc3\xafve \xce\xbb \xf0\x9f\x90\x8d"},
		{"\xc2\xa0\xf4\x8f\xbf\xbf", 0, "\xc2\xa0\xf4\x8f\xbf\xbf"},
		/* Line and paragraph separators, bidirectional overrides and isolates, marks. */
		{"\xe2\x80\xa8\xe2\x80\xa9", 0, "\\u2028\\u2029"},
		{"\xe2\x80\xae"
		 "exe\xe2\x81\xa6",
		 0, "\\u202eexe\\u2066"},
		{"\xe2\x80\x8f\xef\xbb\xbf\xd8\x9c", 0, "\\u200f\\ufeff\\u061c"},
		{"\xf3\xa0\x80\x81", 0, "\\U000e0001"},
		/* No UTF-8: a stray tail, overlong forms, surrogates, beyond U+10FFFF, cut off. */
		{"\x80", 0, "\\x80"},
		{"\xc0\xaf", 0, "\\xc0\\xaf"},
		{"\xe0\x80\xaf", 0, "\\xe0\\x80\\xaf"},
		{"\xf0\x80\x80\xaf", 0, "\\xf0\\x80\\x80\\xaf"},
		{"\xed\xa0\x80", 0, "\\xed\\xa0\\x80"},
		{"\xf4\x90\x80\x80", 0, "\\xf4\\x90\\x80\\x80"},
		{"\xf5\xff\xfe", 0, "\\xf5\\xff\\xfe"},
		{"a\xe2\x82", 0, "a\\xe2\\x82"},
		{"\xe2(\xa1", 0, "\\xe2(\\xa1"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t len = table[i].len ? table[i].len : strlen(table[i].text);
		/* In memory of its own size, where a sanitizer sees a read past the end. */
		char *copy = malloc(len ? len : 1);
		struct strbuf out = {0};

		memcpy(copy, table[i].text, len);
		text_escape(&out, copy, len);
		assert_string_equal(strbuf_text(&out), table[i].want);
		strbuf_fini(&out);
		free(copy);
	}
}

/* Whatever goes in, what comes out is printable or UTF-8 beyond the C1 range. */
static void test_escape_all(void **state)
{
	for (unsigned int pair = 0; pair < 0x10000; pair++) {
		char text[2] = {(char)(pair >> 8), (char)pair};
		struct strbuf out = {0};

		text_escape(&out, text, 2);
		for (size_t i = 0; i < out.len; i++) {
			unsigned char c = (unsigned char)out.buf[i];

			assert_true(c >= 0x20 && c != 0x7f);
			assert_false(c == 0xc2 && (unsigned char)out.buf[i + 1] < 0xa0);
		}
		strbuf_fini(&out);
	}
}

static size_t width(const char *text)
{
	return text_width(text, strlen(text));
}

static void test_width(void **state)
{
	assert_int_equal(width(""), 0);
	assert_int_equal(width("abc"), 3);
	assert_int_equal(width("na\xc3\xafve"), 5);
	if (!setlocale(LC_CTYPE, "C.UTF-8")) {
		printf("no locale C.UTF-8\n");
		skip();
	}
	assert_int_equal(width("\xe6\xbc\xa2\xe5\xad\x97"), 4); /* wide */
	assert_int_equal(width("e\xcc\x81"), 1);		/* combining */
	assert_int_equal(text_width("a\xe2\x82", 3), 3);	/* no UTF-8: a column each */
	setlocale(LC_CTYPE, "C");
}

static void convert(unsigned int kind, const void *data, size_t count, const char *want)
{
	struct strbuf out = {0};

	text_from_pyunicode(&out, kind, data, count);
	assert_string_equal(strbuf_text(&out), want);
	strbuf_fini(&out);
}

static void test_pyunicode(void **state)
{
	static const uint16_t two[] = {'a',   0x7f,   0x80,   0x3bb, 0x7ff,
				       0x800, 0xffff, 0xd800, 0xdfff};
	static const uint32_t four[] = {'a', 0x1f40d, 0x10ffff, 0x110000, 0xd800, UINT32_MAX};
	unsigned char odd[9] = {0};

	convert(1, "", 0, "");
	convert(1, "a\0b", 3,
		"a\xef\xbf\xbd"
		"b");
	convert(1, "caf\xe9\xff", 5, "caf\xc3\xa9\xc3\xbf");
	convert(2, two, 9,
		"a\x7f\xc2\x80\xce\xbb\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xef\xbf\xbd\xef\xbf\xbd");
	convert(4, four, 6,
		"a\xf0\x9f\x90\x8d\xf4\x8f\xbf\xbf\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	/* Data from another process is not aligned. */
	memcpy(odd + 1, four, 8);
	convert(4, odd + 1, 2, "a\xf0\x9f\x90\x8d");
	/* A kind that CPython does not have. */
	convert(3, "abc", 1, "\xef\xbf\xbd");
}

static void test_size(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *want;
	} table[] = {
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1.0 kB"},
		{1234567, "1.2 MB"},
		{1048575, "1.0 MB"}, /* not 1024.0 kB */
		{1ull << 30, "1.0 GB"},
		{UINT64_MAX, "16384.0 PB"},
	};
	char buf[32];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		text_size(buf, sizeof(buf), table[i].bytes);
		assert_string_equal(buf, table[i].want);
	}
}

static void test_count(void **state)
{
	static const struct {
		uint64_t count;
		const char *want;
	} table[] = {
		{0, "0"},
		{999, "999"},
		{1000, "1,000"},
		{1234567, "1,234,567"},
		{100000, "100,000"},
		{UINT64_MAX, "18,446,744,073,709,551,615"},
	};
	char buf[32];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		text_count(buf, sizeof(buf), table[i].count);
		assert_string_equal(buf, table[i].want);
	}
	/* A buffer that is too small is not overrun. */
	for (size_t size = 0; size < 12; size++) {
		memset(buf, '#', sizeof(buf));
		text_count(buf, size, 1234567890);
		for (size_t i = size; i < sizeof(buf); i++)
			assert_int_equal(buf[i], '#');
		if (size)
			assert_true(strlen(buf) < size);
	}
}

/* The optimal string alignment distance by its definition. */
static unsigned int slow_distance(const char *a, size_t la, const char *b, size_t lb)
{
	unsigned int best, other;

	if (!la || !lb)
		return (unsigned int)(la + lb);
	best = slow_distance(a, la - 1, b, lb - 1) + (a[la - 1] != b[lb - 1]);
	other = slow_distance(a, la - 1, b, lb) + 1;
	best = other < best ? other : best;
	other = slow_distance(a, la, b, lb - 1) + 1;
	best = other < best ? other : best;
	if (la > 1 && lb > 1 && a[la - 1] == b[lb - 2] && a[la - 2] == b[lb - 1]) {
		other = slow_distance(a, la - 2, b, lb - 2) + 1;
		best = other < best ? other : best;
	}
	return best;
}

static void test_distance(void **state)
{
	char a[8], b[8], big[300];

	assert_int_equal(text_distance("", ""), 0);
	assert_int_equal(text_distance("", "abc"), 3);
	assert_int_equal(text_distance("cycels", "cycles"), 1);
	assert_int_equal(text_distance("CYCLES", "cycles"), 0);
	assert_int_equal(text_distance("kitten", "sitting"), 3);
	/* All words of up to five letters of an alphabet of two, against each other, in part. */
	for (unsigned int i = 0; i < 64; i++) {
		for (unsigned int j = 0; j < 64; j++) {
			size_t la = i % 6, lb = j % 6;

			for (size_t k = 0; k < 6; k++) {
				a[k] = (char)('a' + (i >> k & 1));
				b[k] = (char)('a' + (j >> k & 1));
			}
			a[la] = b[lb] = '\0';
			assert_int_equal(text_distance(a, b), slow_distance(a, la, b, lb));
			assert_int_equal(text_distance(a, b), text_distance(b, a));
		}
	}
	/* Text of any length is bounded work. */
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_true(text_distance(big, "x") >= 128);
	assert_true(text_distance("x", big) >= 128);
	big[128] = '\0';
	assert_int_equal(text_distance(big, big), 0);
}

static void cut_between_characters(void **state)
{
	char buf[5];

	(void)state;
	text_cut(buf, sizeof(buf), "abcd");
	assert_string_equal(buf, "abcd");
	text_cut(buf, sizeof(buf), "abcde");
	assert_string_equal(buf, "abcd");
	text_cut(buf, sizeof(buf), "abc\u00e4");
	assert_string_equal(buf, "abc");
	text_cut(buf, sizeof(buf), "ab\u00e4x");
	assert_string_equal(buf, "ab\u00e4");
	text_cut(buf, sizeof(buf), "\U0001f600\U0001f600");
	assert_string_equal(buf, "\U0001f600");
	text_cut(buf, sizeof(buf), "\x80\x80\x80\x80\x80");
	assert_string_equal(buf, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_between_characters),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_escape_all),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_pyunicode),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_distance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
