#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbol/elf.h"
#include "symbol/saved.h"

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

static void save(struct strbuf *section)
{
	struct saved_file named = {"/opt/py/lib.so", id, id_len, elf};
	struct saved_file nameless = {"/opt/py/musl.so", NULL, 0, elf};

	saved_begin(section);
	saved_add(section, &named, functions, 4);
	saved_add(section, &nameless, functions, 1);
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

/* Cut anywhere: an error, and what came before is there. */
static void test_cut(void **state)
{
	struct strbuf section = {0};
	struct saved *saved;
	uint32_t version = 2;
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
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, open_self, close_self);
}
