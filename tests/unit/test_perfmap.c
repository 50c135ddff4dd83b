#include "perfmap/perfmap.h"

#include <errno.h>
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

static struct perfmap *parse(const char *text)
{
	struct perfmap *map;

	assert_int_equal(perfmap_parse(&map, text, strlen(text), NULL), 0);
	return map;
}

static void expect(const struct perfmap *map, uint64_t addr, const char *name)
{
	struct perfmap_entry entry;

	if (!perfmap_find(map, addr, &entry)) {
		if (name)
			fail_msg("%#llx is not found", (unsigned long long)addr);
		return;
	}
	if (!name)
		fail_msg("%#llx is %s", (unsigned long long)addr, entry.name);
	assert_string_equal(entry.name, name);
	assert_true(addr >= entry.start && addr - entry.start < entry.size);
}

static void test_lines(void **state)
{
	struct perfmap *map = parse("1000 10 plain\n"
				    "0x2000 0x20 LazyCompile:~foo bar /a b.js:1\n"
				    "ffffffffffff0000 ff high\n"
				    "\n"
				    "3000 0 empty\n"
				    "zz 10 bad\n"
				    "4000 10\n"
				    "4000 10 \n"
				    "5000\n"
				    "fffffffffffffff0 20 wraps\n"
				    "11112222333344445 1 too long\n"
				    "6000 8 last without newline");

	assert_int_equal(perfmap_count(map), 4);
	assert_int_equal(perfmap_skipped(map), 7);
	expect(map, 0xfff, NULL);
	expect(map, 0x1000, "plain");
	expect(map, 0x100f, "plain");
	expect(map, 0x1010, NULL);
	expect(map, 0x201f, "LazyCompile:~foo bar /a b.js:1");
	expect(map, 0xffffffffffff00fe, "high");
	expect(map, 0xffffffffffff00ff, NULL);
	expect(map, 0x6007, "last without newline");
	perfmap_free(map);
	map = parse("");
	assert_int_equal(perfmap_count(map), 0);
	expect(map, 0, NULL);
	perfmap_free(map);
	perfmap_free(NULL);
}

static void test_python_names(void **state)
{
	static const struct {
		const char *line, *qualname, *filename;
	} rows[] = {
		{"1 1 py::f:/a/b.py", "f", "/a/b.py"},
		{"1 1 py::A.f.<locals>.<lambda>:/a b/c.py", "A.f.<locals>.<lambda>", "/a b/c.py"},
		{"1 1 py::_find:<frozen importlib._bootstrap>", "_find",
		 "<frozen importlib._bootstrap>"},
		{"1 1 py::<module>:C:/x:y.py", "<module>", "C:/x:y.py"},
		{"1 1 py::alone", "alone", ""},
		{"1 1 py:::", "", ""},
		{"1 1 pyx::f:g", NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct perfmap *map = parse(rows[i].line);
		struct perfmap_entry entry;

		assert_true(perfmap_find(map, 1, &entry));
		assert_int_equal(entry.python, rows[i].qualname != NULL);
		if (entry.python) {
			assert_int_equal(entry.qualname_len, strlen(rows[i].qualname));
			assert_memory_equal(entry.qualname, rows[i].qualname, entry.qualname_len);
			assert_int_equal(entry.filename_len, strlen(rows[i].filename));
			assert_memory_equal(entry.filename, rows[i].filename, entry.filename_len);
		}
		perfmap_free(map);
	}
}

static void test_later_wins(void **state)
{
	struct perfmap *map = parse("1000 100 outer\n"
				    "1040 20 inner\n"
				    "2000 10 old\n"
				    "2000 10 new\n"
				    "3010 10 right\n"
				    "3000 20 over\n"
				    "4000 10 a\n"
				    "4008 10 b\n");
	struct perfmap_entry entry;

	expect(map, 0x103f, "outer");
	expect(map, 0x1040, "inner");
	expect(map, 0x105f, "inner");
	expect(map, 0x1060, "outer");
	assert_true(perfmap_find(map, 0x1060, &entry));
	assert_int_equal(entry.start, 0x1060);
	assert_int_equal(entry.size, 0xa0);
	expect(map, 0x2005, "new");
	expect(map, 0x3015, "over");
	expect(map, 0x4007, "a");
	expect(map, 0x4008, "b");
	expect(map, 0x4017, "b");
	assert_int_equal(perfmap_count(map), 3 + 1 + 1 + 2);
	perfmap_free(map);
}

/* Against the plainest model there is: an array of addresses, painted line by line. */
static void test_overlaps_like_paint(void **state)
{
	uint32_t seed = 99;

	for (int round = 0; round < 300; round++) {
		int16_t painted[256];
		char text[4096], name[16];
		size_t len = 0;
		struct perfmap *map;

		memset(painted, -1, sizeof(painted));
		for (int i = 0; i < 1 + round % 40; i++) {
			unsigned int start, size;

			seed = seed * 1664525 + 1013904223;
			start = seed >> 24 & 0xff;
			size = 1 + (seed >> 16 & 0x3f);
			if (start + size > 256)
				size = 256 - start;
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%x %x n%d\n",
						start, size, i);
			for (unsigned int j = start; j < start + size; j++)
				painted[j] = (int16_t)i;
		}
		map = parse(text);
		for (unsigned int j = 0; j < 256; j++) {
			snprintf(name, sizeof(name), "n%d", painted[j]);
			expect(map, j, painted[j] < 0 ? NULL : name);
		}
		perfmap_free(map);
	}
}

static void map_path(char *path, size_t size, int pid)
{
	snprintf(path, size, "/tmp/perf-%d.map", pid);
}

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int read_map(pid_t pid, pid_t ns_pid, uid_t uid, struct strbuf *text, struct err *err)
{
	int fd = perfmap_open("", pid, ns_pid, uid, err), ret;
	uint64_t refused;

	if (fd < 0)
		return fd;
	ret = perfmap_read(fd, text, &refused, err);
	close(fd);
	assert_int_equal(refused, 0);
	return ret;
}

/* Larger than any pid of Linux, so that no process has it. */
#define NO_PID 0x7ffffff0

static void test_read(void **state)
{
	char path[64], other[80];
	struct strbuf text = {0};
	struct err err = {0};

	map_path(path, sizeof(path), NO_PID);
	snprintf(other, sizeof(other), "%s.other", path);
	unlink(path);
	assert_int_equal(read_map(getpid(), NO_PID, getuid(), &text, &err), ERR_NOT_FOUND);

	put_file(path, "1 1 x\n");
	assert_int_equal(read_map(getpid(), NO_PID, getuid(), &text, &err), 0);
	assert_string_equal(strbuf_text(&text), "1 1 x\n");
	strbuf_reset(&text);
	assert_int_equal(read_map(NO_PID, NO_PID, getuid(), &text, &err), 0);
	assert_int_equal(text.len, 6);

	if (getuid() != 0) {
		assert_int_equal(read_map(getpid(), NO_PID, getuid() + 1, &text, &err),
				 ERR_PERMISSION);
	} else {
		/* root's files are trusted, those of a third are not */
		assert_int_equal(read_map(getpid(), NO_PID, 12345, &text, &err), 0);
		assert_int_equal(chown(path, 54321, 54321), 0);
		assert_int_equal(read_map(getpid(), NO_PID, 12345, &text, &err), ERR_PERMISSION);
		assert_non_null(strstr(err.text, "belongs to neither"));
		assert_int_equal(read_map(getpid(), NO_PID, 54321, &text, &err), 0);
		assert_int_equal(chown(path, 0, 0), 0);
	}
	unlink(other);
	assert_int_equal(link(path, other), 0);
	assert_int_equal(read_map(getpid(), NO_PID, getuid(), &text, &err), ERR_PERMISSION);
	assert_non_null(strstr(err.text, "hard link"));
	unlink(path);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(read_map(getpid(), NO_PID, getuid(), &text, &err), ERR_PERMISSION);
	assert_int_equal(read_map(NO_PID, NO_PID, getuid(), &text, &err), ERR_PERMISSION);
	unlink(path);
	unlink(other);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(10); /* a FIFO that blocks ends the test */
	assert_int_equal(read_map(getpid(), NO_PID, getuid(), &text, &err), ERR_PERMISSION);
	alarm(0);
	unlink(path);
	strbuf_fini(&text);
}

static void test_section(void **state)
{
	struct strbuf section = {0};
	struct bytes view, text;
	uint32_t pid;

	perfmap_section_add(&section, 7, "1 1 x\n", 6);
	perfmap_section_add(&section, 9, "", 0);
	view = bytes_of(section.buf, section.len);
	assert_true(perfmap_section_next(&view, &pid, &text));
	assert_int_equal(pid, 7);
	assert_int_equal(bytes_left(&text), 6);
	assert_true(perfmap_section_next(&view, &pid, &text));
	assert_int_equal(pid, 9);
	assert_int_equal(bytes_left(&text), 0);
	assert_false(perfmap_section_next(&view, &pid, &text));
	assert_false(view.bad);
	for (size_t cut = 1; cut < 14; cut++) {
		view = bytes_of(section.buf, cut);
		assert_false(perfmap_section_next(&view, &pid, &text));
		assert_true(view.bad);
	}
	strbuf_fini(&section);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_python_names),
		cmocka_unit_test(test_later_wins),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_overlaps_like_paint),
		cmocka_unit_test(test_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
