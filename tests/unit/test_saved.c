#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbol/elf.h"
#include "symbol/saved.h"
#include "symbol/saved_inlines.h"

#include <string.h>

/* This program's own file is what is saved. */

static struct elf_file *elf;
static uint8_t id[ELF_BUILD_ID_MAX];
static uint32_t id_len;

static int open_self(void **state)
{
	if (elf_open(&elf, "/proc/self/exe", NULL) < 0)
		return -1;
	id_len = (uint32_t)elf_build_id(elf, id);
	return id_len ? 0 : -1;
}

static int close_self(void **state)
{
	elf_close(elf);
	return 0;
}

static const struct saved_function functions[] = {
	{0x3000, 0x100, "third", true},
	{0x1000, 0x1000, "outer", false},
	{0x1400, 0x10, "inner", false},
	{0x5000, 0x20, "", false},
};

static const struct elf_inlined deep[] = {{"leaf", 7, 2}, {"_ZN5shape3sumEv", 0, 1}},
				shallow[] = {{"_ZN5shape3sumEv", 12, 1}};

static void save(struct strbuf *section)
{
	struct saved_file named = {"/opt/py/lib.so", id, id_len, elf};
	struct saved_file nameless = {"/opt/py/musl.so", NULL, 0, elf};

	struct saved_inlines inlines;

	saved_inlines_init(&inlines);
	assert_true(saved_inlines_add(&inlines, 0x1500, deep, 2));
	assert_true(saved_inlines_add(&inlines, 0x1600, NULL, 0));
	assert_true(saved_inlines_add(&inlines, 0x1004, shallow, 1));
	saved_begin(section);
	saved_add(section, &named, functions, 4, &inlines);
	saved_inlines_fini(&inlines);
	saved_add(section, &nameless, functions, 1, NULL);
	assert_false(strbuf_failed(section));
}

static void test_round_trip(void **state)
{
	struct strbuf section = {0};
	struct saved_function f;
	const struct saved_object *object;
	struct saved *saved;
	uint64_t vaddr, expected;

	save(&section);
	assert_int_equal(saved_decode(&saved, bytes_of(section.buf, section.len), NULL), 0);
	/* A build-id tells more than a path. */
	object = saved_find(saved, "/elsewhere", id, id_len);
	assert_non_null(object);
	assert_null(saved_find(saved, "/opt/py/lib.so", NULL, 0));
	assert_non_null(saved_find(saved, "/opt/py/musl.so", NULL, 0));
	assert_null(saved_find(saved, "/opt/py/lib.so", id, id_len - 1));

	assert_true(saved_at(object, 0x1405, &f));
	assert_string_equal(f.name, "inner");
	assert_true(saved_at(object, 0x1410, &f));
	assert_string_equal(f.name, "outer");
	assert_false(f.eval);
	assert_true(saved_at(object, 0x30ff, &f));
	assert_true(f.eval && f.vaddr == 0x3000 && f.size == 0x100);
	assert_true(saved_at(object, 0x5000, &f));
	assert_string_equal(f.name, "");
	assert_false(saved_at(object, 0x3100, &f));
	assert_false(saved_at(object, 0xfff, &f));

	for (uint64_t offset = 0; offset < 0x8000; offset += 0x123) {
		bool there = elf_vaddr(elf, offset, &expected);

		assert_int_equal(saved_vaddr(object, offset, &vaddr), there);
		if (there)
			assert_true(vaddr == expected);
	}
	saved_free(saved);
	strbuf_fini(&section);
}

static void check_inlined(const struct saved_object *object, uint64_t vaddr,
			  const struct elf_inlined *wanted, size_t count)
{
	struct elf_inlined calls[4];

	assert_int_equal(saved_inlined(object, vaddr, calls, 4), count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(calls[i].name, wanted[i].name);
		assert_int_equal(calls[i].line, wanted[i].line);
	}
}

static void test_inlined(void **state)
{
	struct strbuf section = {0};
	const struct saved_object *object;
	struct elf_inlined call;
	struct saved *saved;

	save(&section);
	assert_int_equal(saved_decode(&saved, bytes_of(section.buf, section.len), NULL), 0);
	object = saved_find(saved, "", id, id_len);
	check_inlined(object, 0x1500, deep, 2);
	check_inlined(object, 0x1004, shallow, 1);
	check_inlined(object, 0x1600, NULL, 0);
	check_inlined(object, 0x1501, NULL, 0);
	assert_int_equal(saved_inlined(object, 0x1500, &call, 1), 1);
	assert_string_equal(call.name, "leaf");
	check_inlined(saved_find(saved, "/opt/py/musl.so", NULL, 0), 0x1500, NULL, 0);
	saved_free(saved);
	strbuf_fini(&section);
}

/* Version 1 has nothing behind the functions of a file. */
static void test_version_1(void **state)
{
	const struct saved_file file = {"/opt/py/old.so", NULL, 0, elf};
	struct strbuf section = {0};
	struct saved_function function;
	const struct saved_object *object;
	struct saved *saved;
	uint32_t version = 1;

	saved_begin(&section);
	saved_add(&section, &file, functions, 4, NULL);
	memcpy(section.buf, &version, sizeof(version));
	/* Neither names nor addresses: two counts. */
	assert_int_equal(saved_decode(&saved, bytes_of(section.buf, section.len - 8), NULL), 0);
	object = saved_find(saved, "/opt/py/old.so", NULL, 0);
	assert_true(object && saved_at(object, 0x3000, &function));
	assert_string_equal(function.name, "third");
	saved_free(saved);
	strbuf_fini(&section);
}

/* Cut anywhere: an error, and what came before is there. */
static void test_cut(void **state)
{
	struct strbuf section = {0};
	struct saved *saved;
	uint32_t version = 3;
	size_t sound = 0;

	save(&section);
	for (size_t len = 0; len < section.len; len++) {
		int ret = saved_decode(&saved, bytes_of(section.buf, len), NULL);

		sound += ret == 0;
		if (ret)
			assert_int_equal(ret, ERR_CORRUPT);
		saved_free(saved);
	}
	assert_int_equal(sound, 2); /* behind the version, behind the first file */
	memcpy(section.buf, &version, sizeof(version));
	assert_int_equal(saved_decode(&saved, bytes_of(section.buf, section.len), NULL),
			 ERR_UNSUPPORTED);
	saved_free(saved);
	strbuf_fini(&section);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, open_self, close_self);
}
