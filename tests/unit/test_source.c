#include "perfmap/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test_source.XXXXXX";

static void put(const char *name, const void *bytes, size_t len)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	fclose(f);
}

static const char *full(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void drop(const char *name)
{
	unlink(full(name));
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	return rmdir(folder);
}

/* What Python 3 itself makes of these bytes (checked with tokenize.open). */
static const struct {
	const char *bytes, *text;
} encodings[] = {
	{"x = 1\n", "x = 1\n"},
	{"s = '\xc3\xa9'\n", "s = '\xc3\xa9'\n"},
	{"\xef\xbb\xbfs = '\xc3\xa9'\n", "s = '\xc3\xa9'\n"},
	{"# -*- coding: latin-1 -*-\ns = '\xe9'\n", "# -*- coding: latin-1 -*-\ns = '\xc3\xa9'\n"},
	{"#!/usr/bin/python\n# vim: set fileencoding=iso-8859-15 :\n'\xa4'\n",
	 "#!/usr/bin/python\n# vim: set fileencoding=iso-8859-15 :\n'\xe2\x82\xac'\n"},
	{"# coding: cp1252\n'\x80'\n", "# coding: cp1252\n'\xe2\x82\xac'\n"},
	{"# coding: Latin_1\n'\xe9'\n", "# coding: Latin_1\n'\xc3\xa9'\n"},
	{"# coding: iso-latin-1-unix\n'\xe9'\n", "# coding: iso-latin-1-unix\n'\xc3\xa9'\n"},
	{"# coding: UTF-8\n'\xc3\xa9'\n", "# coding: UTF-8\n'\xc3\xa9'\n"},
	{"# coding=koi8-r\n'\xc1'\n", "# coding=koi8-r\n'\xd0\xb0'\n"},
	{"# coding: shift_jis\n'\x82\xa0'\n", "# coding: shift_jis\n'\xe3\x81\x82'\n"},
	{"# coding: mac-roman\n'\x8e'\n", "# coding: mac-roman\n'\xc3\xa9'\n"},
	/* no cookie where one may not stand */
	{"x = 1\n# coding: latin-1\n'\xc3\xa9'\n", "x = 1\n# coding: latin-1\n'\xc3\xa9'\n"},
	{"\n\n# coding: latin-1\n'\xc3\xa9'\n", "\n\n# coding: latin-1\n'\xc3\xa9'\n"},
	{"s = 'coding: latin-1 \xc3\xa9'\n", "s = 'coding: latin-1 \xc3\xa9'\n"},
	/* broken text is shown as far as it is sound */
	{"a\xff"
	 "b\xc3\n",
	 "a\xef\xbf\xbd"
	 "b\xef\xbf\xbd\n"},
	{"# coding: no-such-thing\n'\xc3\xa9'\n", "# coding: no-such-thing\n'\xc3\xa9'\n"},
	{"# coding: latin-1//TRANSLIT\n'\xe9'\n", "# coding: latin-1//TRANSLIT\n'\xc3\xa9'\n"},
	{"# coding:\n'\xc3\xa9'\n", "# coding:\n'\xc3\xa9'\n"},
	{"# coding", "# coding"},
	{"", ""},
};

static void test_encodings(void **state)
{
	for (size_t i = 0; i < sizeof(encodings) / sizeof(encodings[0]); i++) {
		struct sources *sources = sources_new();
		const struct source *source;

		put("e.py", encodings[i].bytes, strlen(encodings[i].bytes));
		assert_int_equal(sources_read(sources, full("e.py"), "", NULL, NULL), 1);
		source = sources_find(sources, full("e.py"));
		assert_non_null(source);
		if (strcmp(source->text, encodings[i].text))
			fail_msg("row %zu: %s", i, source->text);
		assert_int_equal(source->len, strlen(encodings[i].text));
		sources_free(sources);
	}
	drop("e.py");
}

static void expect_line(const struct source *source, uint32_t number, const char *text)
{
	size_t len;
	const char *line = source_line(source, number, &len);

	if (!text) {
		assert_null(line);
		return;
	}
	assert_non_null(line);
	assert_int_equal(len, strlen(text));
	assert_memory_equal(line, text, len);
}

static void test_lines(void **state)
{
	static const char text[] = "one\ntwo\r\nthree\rfo\fur\n\nsix\r\r\nlast";
	static const char *const lines[] = {"one", "two", "three", "fo\fur", "", "six", "", "last"};
	struct sources *sources = sources_new();
	const struct source *source;

	put("l.py", text, strlen(text));
	put("empty.py", "", 0);
	put("newline.py", "a\n", 2);
	assert_int_equal(sources_read(sources, full("l.py"), "", NULL, NULL), 1);
	source = sources_find(sources, full("l.py"));
	assert_int_equal(source_line_count(source), 8);
	for (uint32_t i = 0; i < 8; i++)
		expect_line(source, i + 1, lines[i]);
	expect_line(source, 0, NULL);
	expect_line(source, 9, NULL);
	expect_line(source, UINT32_MAX, NULL);
	assert_int_equal(sources_read(sources, full("empty.py"), "", NULL, NULL), 1);
	source = sources_find(sources, full("empty.py"));
	assert_int_equal(source_line_count(source), 0);
	expect_line(source, 1, NULL);
	assert_int_equal(sources_read(sources, full("newline.py"), "", NULL, NULL), 1);
	source = sources_find(sources, full("newline.py"));
	assert_int_equal(source_line_count(source), 1);
	sources_free(sources);
	drop("l.py");
	drop("empty.py");
	drop("newline.py");
}

static void test_paths(void **state)
{
	struct sources *sources = sources_new();
	const struct source *source;
	char name[300], big[4096] = {0};
	FILE *f;

	assert_int_equal(sources_read(sources, "<string>", "", "/", NULL), 0);
	assert_int_equal(sources_read(sources, "<frozen os>", "", "/", NULL), 0);
	assert_int_equal(sources_read(sources, "", "", "/", NULL), 0);
	assert_int_equal(sources_read(sources, "rel.py", "", NULL, NULL), 0);
	assert_int_equal(sources_read(sources, "rel.py", "", folder, NULL), 0);
	assert_null(sources_find(sources, "rel.py"));
	assert_null(sources_find(sources, ""));
	sources_free(sources);

	sources = sources_new();
	put("rel.py", "a\n", 2);
	assert_int_equal(sources_read(sources, "rel.py", "", folder, NULL), 1);
	source = sources_find(sources, "rel.py");
	assert_string_equal(source->filename, "rel.py");
	assert_string_equal(source->path, full("rel.py"));
	/* once is enough */
	drop("rel.py");
	assert_int_equal(sources_read(sources, "rel.py", "", folder, NULL), 1);

	/* within a root: a link that leads out of it stays in it */
	put("target.py", "outside\n", 8);
	snprintf(name, sizeof(name), "%s/in", folder);
	assert_int_equal(mkdir(name, 0700), 0);
	put("in/t.py", "inside\n", 7);
	assert_int_equal(symlink("../../../t.py", full("in/l.py")), 0);
	snprintf(name, sizeof(name), "%s", full("in"));
	assert_int_equal(sources_read(sources, "/l.py", name, "/", NULL), 1);
	source = sources_find(sources, "/l.py");
	assert_string_equal(source->text, "inside\n");
	assert_string_equal(source->path, full("in/l.py"));
	/* the root of this very process is where we are: the path needs no root */
	snprintf(big, 200, "%s/target.py", folder);
	assert_int_equal(sources_read(sources, big, "/proc/self/root", "/", NULL), 1);
	assert_string_equal(sources_find(sources, big)->path, big);
	drop("in/l.py");
	drop("in/t.py");
	rmdir(name);
	drop("target.py");

	/* what is no file */
	assert_true(sources_read(sources, "/dev/zero", "", NULL, NULL) < 0);
	assert_true(sources_read(sources, folder, "", NULL, NULL) < 0);
	assert_int_equal(mkfifo(full("fifo.py"), 0600), 0);
	alarm(10);
	assert_true(sources_read(sources, full("fifo.py"), "", NULL, NULL) < 0);
	alarm(0);
	drop("fifo.py");

	/* too large */
	f = fopen(full("big.py"), "w");
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), SOURCE_BYTES_MAX + 1), 0);
	fclose(f);
	assert_true(sources_read(sources, full("big.py"), "", NULL, NULL) < 0);
	assert_null(sources_find(sources, full("big.py")));
	drop("big.py");
	sources_free(sources);
}

static void test_changed(void **state)
{
	struct sources *sources = sources_new();
	const struct source *source;

	put("c.py", "x = 1\n", 6);
	assert_int_equal(sources_read(sources, full("c.py"), "", NULL, NULL), 1);
	source = sources_find(sources, full("c.py"));
	assert_true(source->mtime_ns > 1500000000ll * 1000000000);
	assert_int_equal(source_changed(source), 0);
	put("c.py", "x = 2\n", 6);
	assert_int_equal(source_changed(source), 1);
	put("c.py", "x = 1\n", 6);
	assert_int_equal(source_changed(source), 0);
	drop("c.py");
	assert_int_equal(source_changed(source), -1);
	assert_int_equal(mkfifo(full("c.py"), 0600), 0);
	alarm(10);
	assert_int_equal(source_changed(source), -1);
	alarm(0);
	drop("c.py");
	sources_free(sources);
}

static void test_section(void **state)
{
	struct sources *sources = sources_new(), *back;
	struct strbuf section = {0};
	const struct source *a, *b;

	put("s.py", "# coding: latin-1\n'\xe9'\n", 22);
	put("t.py", "t\n", 2);
	assert_int_equal(sources_read(sources, "s.py", "", folder, NULL), 1);
	assert_int_equal(sources_read(sources, "gone.py", "", folder, NULL), 0);
	assert_int_equal(sources_read(sources, full("t.py"), "", NULL, NULL), 1);
	assert_int_equal(sources_encode(sources, &section), 0);

	back = sources_new();
	assert_int_equal(sources_decode(back, bytes_of(section.buf, section.len), NULL), 0);
	a = sources_find(sources, "s.py");
	b = sources_find(back, "s.py");
	assert_non_null(b);
	assert_string_equal(a->path, b->path);
	assert_string_equal(a->text, b->text);
	assert_int_equal(a->mtime_ns, b->mtime_ns);
	assert_int_equal(a->hash, b->hash);
	expect_line(b, 2, "'\xc3\xa9'");
	assert_int_equal(source_changed(b), 0);
	assert_non_null(sources_find(back, full("t.py")));
	assert_null(sources_find(back, "gone.py"));
	sources_free(back);

	/* Cut short anywhere: an error, and what came before is there. */
	for (size_t cut = 0; cut < section.len; cut++) {
		back = sources_new();
		assert_int_equal(sources_decode(back, bytes_of(section.buf, cut), NULL),
				 ERR_CORRUPT);
		sources_free(back);
	}
	section.buf[0] = 9;
	back = sources_new();
	assert_int_equal(sources_decode(back, bytes_of(section.buf, section.len), NULL),
			 ERR_UNSUPPORTED);
	sources_free(back);
	strbuf_fini(&section);
	sources_free(sources);
	sources_free(NULL);
	drop("s.py");
	drop("t.py");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encodings), cmocka_unit_test(test_lines),
		cmocka_unit_test(test_paths),	  cmocka_unit_test(test_changed),
		cmocka_unit_test(test_section),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
