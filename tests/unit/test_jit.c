#include "profile/jit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jitdump_make.h"

#define PATH "/nowhere/jit-4711.dump"

static void add_dump(struct strbuf *section, uint32_t pid, struct maker *m)
{
	jitdump_section_add(section, pid, PATH, m->out.buf, m->out.len);
	strbuf_reset(&m->out);
}

static void expect(struct jit *jit, uint32_t pid, uint64_t time, uint64_t addr, const char *name)
{
	struct jit_hit hit;

	if (!jit_find(jit, pid, time, addr, &hit)) {
		assert_null(name);
		return;
	}
	assert_non_null(name);
	assert_string_equal(hit.entry.name, name);
	assert_true(addr >= hit.entry.start && addr - hit.entry.start < hit.entry.size);
}

/* A dump counts from its mapping on, by time; a child has it as of the fork, and its own first. */
static void test_fork(void **state)
{
	struct jit jit = {.timed = true};
	struct strbuf section = {0};
	struct maker m = {0};

	make_head(&m, 0);
	make_load(&m, 10, 0x1000, "first", "0123", 1);
	make_load(&m, 30, 0x1000, "second", "0123", 2);
	add_dump(&section, 1, &m);
	make_head(&m, 0);
	make_load(&m, 40, 0x1002, "child's", "01", 1);
	add_dump(&section, 2, &m);
	assert_int_equal(jit_load_dumps(&jit, bytes_of(section.buf, section.len), NULL), 0);

	assert_int_equal(jit_epoch(&jit, 1, 50), 0);
	expect(&jit, 1, 10, 0x1000, NULL);
	assert_int_equal(jit_mmap(&jit, 1, "/lib/libc.so.6", NULL), 0);
	assert_int_equal(jit_mmap(&jit, 1, PATH, NULL), 0);
	expect(&jit, 1, 9, 0x1000, NULL);
	expect(&jit, 1, 10, 0x1000, "first");
	expect(&jit, 1, 29, 0x1003, "first");
	expect(&jit, 1, 30, 0x1000, "second");
	expect(&jit, 1, 30, 0x1004, NULL);
	assert_int_not_equal(jit_epoch(&jit, 1, 29), jit_epoch(&jit, 1, 30));
	assert_int_equal(jit_epoch(&jit, 1, 30), jit_epoch(&jit, 1, 99));

	assert_int_equal(jit_fork(&jit, 2, 1, 20, NULL), 0);
	expect(&jit, 2, 50, 0x1003, "first");
	assert_int_equal(jit_mmap(&jit, 2, PATH, NULL), 0);
	expect(&jit, 2, 39, 0x1003, "first");
	expect(&jit, 2, 40, 0x1003, "child's");
	expect(&jit, 2, 40, 0x1000, "first");
	expect(&jit, 1, 40, 0x1003, "second");
	strbuf_fini(&section);
	strbuf_fini(&m.out);
	jit_fini(&jit);
}

/* exec drops the dump; the next program's may have the same name. */
static void test_exec(void **state)
{
	struct jit jit = {.timed = true};
	struct strbuf section = {0};
	struct maker m = {0};

	make_head(&m, 0);
	make_load(&m, 10, 0x1000, "before", "0123", 1);
	add_dump(&section, 1, &m);
	make_head(&m, 0);
	make_load(&m, 30, 0x1002, "after", "01", 1);
	add_dump(&section, 1, &m);
	assert_int_equal(jit_load_dumps(&jit, bytes_of(section.buf, section.len), NULL), 0);
	assert_int_equal(jit_mmap(&jit, 1, PATH, NULL), 0);
	expect(&jit, 1, 20, 0x1000, "before");
	jit_exec(&jit, 1);
	expect(&jit, 1, 25, 0x1000, NULL);
	assert_int_equal(jit_mmap(&jit, 1, PATH, NULL), 0);
	expect(&jit, 1, 30, 0x1000, NULL);
	expect(&jit, 1, 30, 0x1002, "after");
	strbuf_fini(&section);
	strbuf_fini(&m.out);
	jit_fini(&jit);
}

/* Without a common clock the latest code counts. The dump counts before the map. */
static void test_untimed_and_maps(void **state)
{
	static const char map[] = "1000 10 map's\n2000 10 map's other\nnonsense\n";
	struct strbuf dumps = {0}, maps = {0};
	struct maker m = {0};
	struct jit jit = {0};

	make_head(&m, 0);
	make_load(&m, 10, 0x1000, "first", "0123", 1);
	make_load(&m, 30, 0x1000, "py::A.second:/a.py", "0123", 2);
	make_load(&m, 30, 0x1000, "empty", "", 3);
	add_dump(&dumps, 1, &m);
	perfmap_section_add(&maps, 1, map, strlen(map));
	assert_int_equal(jit_load_maps(&jit, bytes_of(maps.buf, maps.len), NULL), 0);
	assert_int_equal(jit_load_dumps(&jit, bytes_of(dumps.buf, dumps.len), NULL), 0);
	expect(&jit, 1, 0, 0x1000, "map's");
	assert_int_equal(jit_mmap(&jit, 1, PATH, NULL), 0);
	expect(&jit, 1, 0, 0x1000, "py::A.second:/a.py");
	expect(&jit, 1, 0, 0x1008, "map's");
	expect(&jit, 1, 0, 0x2008, "map's other");
	assert_int_equal(jit.skipped, 2);
	jit_fork(&jit, 2, 1, 5, NULL);
	expect(&jit, 2, 0, 0x2008, "map's other");
	jit_exec(&jit, 2);
	expect(&jit, 2, 0, 0x2008, NULL);
	jit_fini(&jit);

	/* Cut anywhere. */
	for (size_t len = 1; len < dumps.len; len++) {
		struct jit cut = {0};

		assert_int_equal(jit_load_dumps(&cut, bytes_of(dumps.buf, len), NULL), ERR_CORRUPT);
		assert_int_equal(jit_mmap(&cut, 1, PATH, NULL), 0);
		expect(&cut, 1, 0, 0x1000, NULL);
		jit_fini(&cut);
	}
	strbuf_fini(&dumps);
	strbuf_fini(&maps);
	strbuf_fini(&m.out);
}

/* A process that is its own ancestor, as a broken recording may say. */
static void test_circle(void **state)
{
	struct jit jit = {.timed = true};

	jit_fork(&jit, 2, 1, 5, NULL);
	jit_fork(&jit, 1, 2, 5, NULL);
	expect(&jit, 1, 9, 0x1000, NULL);
	jit_fini(&jit);
}

/* A running process's map is read again where it has grown, but not at each miss. */
static void test_growing(void **state)
{
	struct jit jit = {.timed = true, .maps_live = true, .maps_grow = true};
	uint32_t pid = (uint32_t)getpid();
	uint64_t second = 1000000000u;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", pid);
	expect(&jit, pid, second, 0x1000, NULL);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("1000 100 early\n", file);
	fflush(file);
	expect(&jit, pid, second + second / 2, 0x1000, NULL);
	expect(&jit, pid, 3 * second, 0x1000, "early");
	fputs("2000 100 late\nno entry\n", file);
	fclose(file);
	expect(&jit, pid, 3 * second + second / 2, 0x2000, NULL);
	expect(&jit, pid, 5 * second, 0x2000, "late");
	expect(&jit, pid, 5 * second, 0x1000, "early");
	assert_int_equal(jit.skipped, 1);
	unlink(path);
	expect(&jit, pid, 9 * second, 0x3000, NULL);
	expect(&jit, pid, 9 * second, 0x2000, "late");
	jit_fini(&jit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_untimed_and_maps),
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_growing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
