#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/library.h"
#include "base/log.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* err */

static void test_err_set(void **state)
{
	struct err err = {0};

	assert_int_equal(err_set(&err, ERR_USAGE, "no %s", "sense"), ERR_USAGE);
	assert_int_equal(err.code, ERR_USAGE);
	assert_string_equal(err.text, "no sense");
	err_hint(&err, "try %d", 2);
	assert_string_equal(err.hint, "try 2");
	/* Setting again clears the hint of before. */
	err_set(&err, ERR_FAILED, "other");
	assert_string_equal(err.hint, "");
	assert_int_equal(err_set(NULL, ERR_CORRUPT, "x"), ERR_CORRUPT);
	err_hint(NULL, "x");
	assert_int_equal(err_nomem(NULL), ERR_NOMEM);
}

static void test_err_sys(void **state)
{
	static const struct {
		int sys, code;
	} table[] = {{EPERM, ERR_PERMISSION}, {EACCES, ERR_PERMISSION}, {ENOENT, ERR_NOT_FOUND},
		     {ENOMEM, ERR_NOMEM},     {EIO, ERR_SYSTEM},	{0, ERR_SYSTEM}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct err err = {0};
		char want[256];

		assert_int_equal(err_sys(&err, table[i].sys, "cannot open %s", "x"), table[i].code);
		snprintf(want, sizeof(want), "cannot open x: %s", strerror(table[i].sys));
		assert_string_equal(err.text, want);
		assert_int_equal(err_sys(NULL, table[i].sys, "x"), table[i].code);
	}
}

static void test_err_wrap(void **state)
{
	struct err err = {0};
	char big[sizeof(err.text) + 64];

	err_set(&err, ERR_CORRUPT, "short read");
	err_hint(&err, "copy it again");
	assert_int_equal(err_wrap(&err, "%s", "perf.data"), ERR_CORRUPT);
	assert_string_equal(err.text, "perf.data: short read");
	assert_string_equal(err.hint, "copy it again");
	/* Everywhere near the end of the buffer: a text that is cut stays a text. */
	for (size_t len = 0; len < sizeof(big); len++) {
		memset(big, 'a', len);
		big[len] = '\0';
		err_set(&err, ERR_FAILED, "inner");
		err_wrap(&err, "%s", big);
		assert_true(strlen(err.text) < sizeof(err.text));
		assert_int_equal(
			strncmp(err.text, big, strlen(err.text) < len ? strlen(err.text) : len), 0);
		err_set(&err, ERR_FAILED, "%s", big);
		err_wrap(&err, "outer");
		assert_int_equal(strncmp(err.text, "outer: ", 7), 0);
		assert_true(strlen(err.text) < sizeof(err.text));
		err_sys(&err, EIO, "%s", big);
		assert_true(strlen(err.text) < sizeof(err.text));
	}
	assert_true(err_wrap(NULL, "x") < 0);
}

static void test_err_exit(void **state)
{
	assert_int_equal(err_exit_status(ERR_OK), 0);
	assert_int_equal(err_exit_status(12), 0);
	assert_int_equal(err_exit_status(ERR_USAGE), 2);
	for (int code = ERR_UNSUPPORTED; code < 0; code++)
		assert_int_equal(err_exit_status(code), code == ERR_USAGE ? 2 : 1);
}

/* arena */

static void test_arena(void **state)
{
	static const size_t sizes[] = {0, 1, 15, 16, 17, 4096, 65536, 65537, 262144, 1 << 20};
	struct arena arena;
	char *blocks[2000];
	size_t total = 0;

	arena_init(&arena);
	for (size_t i = 0; i < 2000; i++) {
		size_t size = i % 100 ? i % 97 : sizes[i / 100 % 10];

		blocks[i] = arena_alloc(&arena, size);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % 16, 0);
		for (size_t b = 0; b < size; b++)
			assert_int_equal(blocks[i][b], 0);
		memset(blocks[i], (int)(i & 0xff), size);
		total += size;
	}
	/* Nothing moved and nothing overlaps. */
	for (size_t i = 0; i < 2000; i++) {
		size_t size = i % 100 ? i % 97 : sizes[i / 100 % 10];

		for (size_t b = 0; b < size; b++)
			assert_int_equal((unsigned char)blocks[i][b], i & 0xff);
	}
	assert_true(arena.total >= total);
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_alloc(&arena, SIZE_MAX - 15));
	assert_null(arena_strndup(&arena, "x", SIZE_MAX));
	arena_fini(&arena);
	arena_fini(&arena);
	assert_int_equal(arena.total, 0);
}

/* Large blocks do not waste what is left of an open chunk. */
static void test_arena_waste(void **state)
{
	struct arena arena;

	arena_init(&arena);
	for (size_t i = 0; i < 100; i++) {
		assert_non_null(arena_alloc(&arena, 100000));
		assert_non_null(arena_alloc(&arena, 1000));
	}
	assert_true(arena.total < 100 * 101100 + (512u << 10));
	arena_fini(&arena);
}

static void test_arena_text(void **state)
{
	struct arena arena;
	char *text;

	arena_init(&arena);
	assert_string_equal(arena_strdup(&arena, ""), "");
	assert_string_equal(arena_strdup(&arena, "abc"), "abc");
	text = arena_strndup(&arena, "a\0b", 3);
	assert_memory_equal(text, "a\0b", 4);
	assert_string_equal(arena_strndup(&arena, NULL, 0), "");
	arena_fini(&arena);
}

/* vec */

static void test_vec(void **state)
{
	struct {
		VEC_OF(struct {
			uint64_t a;
			char b;
		})
	} vec = {0};

	for (size_t i = 0; i < 1000; i++) {
		__typeof__(vec.items) item = vec_push(&vec);

		assert_non_null(item);
		assert_int_equal(item->a, 0);
		assert_int_equal(item->b, 0);
		item->a = i;
		item->b = (char)i;
	}
	assert_int_equal(vec.len, 1000);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(vec.items[i].a, i);
	/* Pushed again after a cut, an item is zero again. */
	vec.len = 10;
	assert_int_equal(vec_push(&vec)->a, 0);
	assert_true(vec_reserve(&vec, 5));
	assert_true(vec_reserve(&vec, 5000));
	assert_true(vec.cap >= 5000);
	assert_int_equal(vec.items[9].a, 9);
	assert_false(vec_reserve(&vec, SIZE_MAX));
	assert_false(vec_reserve(&vec, SIZE_MAX / 16));
	assert_int_equal(vec.items[9].a, 9);
	vec_fini(&vec);
	assert_null(vec.items);
	assert_int_equal(vec.len + vec.cap, 0);
	vec_fini(&vec);
}

/* map */

static void test_map_basics(void **state)
{
	static const uint64_t keys[] = {0, 1, UINT64_MAX, 1ull << 63, 16, 32, 48};
	struct map map = {0};
	bool added;

	assert_null(map_get(&map, 0));
	assert_false(map_remove(&map, 0));
	for (size_t i = 0; i < 7; i++) {
		uint64_t *value = map_put(&map, keys[i], &added);

		assert_true(added);
		assert_int_equal(*value, 0);
		*value = i + 100;
	}
	assert_int_equal(map.count, 7);
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(*map_get(&map, keys[i]), i + 100);
		assert_int_equal(*map_put(&map, keys[i], &added), i + 100);
		assert_false(added);
	}
	assert_true(map_remove(&map, 1));
	assert_false(map_remove(&map, 1));
	assert_null(map_get(&map, 1));
	/* What comes back is new. */
	assert_int_equal(*map_put(&map, 1, &added), 0);
	assert_true(added);
	map_fini(&map);
	assert_null(map_get(&map, 1));
	map_fini(&map);
}

/* Against a table of flags: random puts and removes over a small range of keys. */
static void test_map_model(void **state)
{
	static uint64_t model[4096];
	static bool in_model[4096];
	struct map map = {0};
	uint64_t seed = 88172645463325252ull, key, *value;
	size_t count = 0, seen = 0, pos = 0;

	for (size_t step = 0; step < 200000; step++) {
		size_t at;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		at = seed % 4096;
		/* Keys that share their low bits, as addresses do. */
		key = (uint64_t)at << 20;
		if (seed >> 32 & 1) {
			bool added;

			value = map_put(&map, key, &added);
			assert_int_equal(added, !in_model[at]);
			count += added;
			in_model[at] = true;
			model[at] = *value = seed;
		} else {
			assert_int_equal(map_remove(&map, key), in_model[at]);
			count -= in_model[at];
			in_model[at] = false;
		}
	}
	assert_int_equal(map.count, count);
	for (size_t at = 0; at < 4096; at++) {
		value = map_get(&map, (uint64_t)at << 20);
		assert_int_equal(value != NULL, in_model[at]);
		if (value)
			assert_int_equal(*value, model[at]);
	}
	while (map_next(&map, &pos, &key, &value)) {
		assert_true(in_model[key >> 20]);
		assert_int_equal(*value, model[key >> 20]);
		seen++;
	}
	assert_int_equal(seen, count);
	/* Tombstones are swept, so a map that only churns does not grow. */
	assert_true(map.cap <= 16384);
	map_fini(&map);
}

static void test_map_churn(void **state)
{
	struct map map = {0};

	for (uint64_t key = 0; key < 100000; key++) {
		assert_non_null(map_put(&map, key, NULL));
		if (key >= 4)
			assert_true(map_remove(&map, key - 4));
	}
	assert_int_equal(map.count, 4);
	assert_true(map.cap <= 64);
	/* A key that is absent is found absent, not looked for forever. */
	assert_null(map_get(&map, 1ull << 40));
	map_fini(&map);
}

static void test_map_mix(void **state)
{
	struct map seen = {0};
	bool added;

	/* Pairs that differ in order or in one bit. */
	for (uint64_t a = 0; a < 100; a++) {
		for (uint64_t b = 0; b < 100; b++) {
			map_put(&seen, map_mix(a, b), &added);
			assert_true(added);
		}
	}
	map_fini(&seen);
}

/* intern */

static void test_intern(void **state)
{
	struct intern intern;
	char text[32];
	size_t len;

	intern_init(&intern);
	assert_int_equal(intern_find(&intern, "a", 1), INTERN_NONE);
	assert_int_equal(intern_str(&intern, ""), 0);
	assert_int_equal(intern_add(&intern, NULL, 0), 0);
	assert_int_equal(intern_find(&intern, "", 0), 0);
	/* Dense ids from 1, the same for the same bytes, across growth. */
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 1; i <= 5000; i++) {
			snprintf(text, sizeof(text), "string %u", i);
			assert_int_equal(intern_str(&intern, text), i);
		}
	}
	for (uint32_t i = 1; i <= 5000; i++) {
		snprintf(text, sizeof(text), "string %u", i);
		assert_string_equal(intern_text(&intern, i, &len), text);
		assert_int_equal(len, strlen(text));
		assert_int_equal(intern_find(&intern, text, len), i);
	}
	/* NULs count; prefixes differ. */
	assert_int_equal(intern_add(&intern, "a\0b", 3), 5001);
	assert_int_equal(intern_add(&intern, "a\0c", 3), 5002);
	assert_int_equal(intern_add(&intern, "a", 1), 5003);
	assert_int_equal(intern_add(&intern, "a\0", 2), 5004);
	assert_memory_equal(intern_text(&intern, 5001, &len), "a\0b", 4);
	assert_int_equal(len, 3);
	assert_string_equal(intern_text(&intern, 0, &len), "");
	assert_int_equal(len, 0);
	assert_string_equal(intern_text(&intern, 5005, NULL), "");
	assert_string_equal(intern_text(&intern, INTERN_NONE, &len), "");
	intern_fini(&intern);
	intern_fini(&intern);
}

/* strbuf */

static void test_strbuf(void **state)
{
	struct strbuf sb = {0};
	char *bytes;
	size_t len;

	assert_string_equal(strbuf_text(&sb), "");
	strbuf_str(&sb, "ab");
	strbuf_char(&sb, 'c');
	strbuf_printf(&sb, "%d%s", 42, "");
	assert_string_equal(strbuf_text(&sb), "abc42");
	strbuf_add(&sb, NULL, 0);
	assert_int_equal(sb.len, 5);
	strbuf_reset(&sb);
	assert_string_equal(strbuf_text(&sb), "");
	for (int i = 0; i < 10000; i++)
		strbuf_printf(&sb, "%d,", i);
	assert_int_equal(sb.len, 10 * 2 + 90 * 3 + 900 * 4 + 9000 * 5);
	assert_int_equal(sb.buf[sb.len], '\0');
	bytes = strbuf_detach(&sb, &len);
	assert_int_equal(strncmp(bytes, "0,1,2,", 6), 0);
	assert_int_equal(strlen(bytes), len);
	free(bytes);
	assert_null(strbuf_detach(&sb, &len));
	assert_int_equal(len, 0);
	strbuf_fini(&sb);
}

static void test_strbuf_binary(void **state)
{
	static const unsigned char want[] = {1,	 3, 2, 7, 6, 5, 4, 15,	14, 13,	 12, 11,
					     10, 9, 8, 3, 0, 0, 0, 'a', 0,  'b', 0,  0};
	struct strbuf sb = {0};
	unsigned char *place;

	strbuf_u8(&sb, 1);
	strbuf_u16(&sb, 0x0203);
	strbuf_u32(&sb, 0x04050607);
	strbuf_u64(&sb, 0x08090a0b0c0d0e0full);
	strbuf_blob(&sb, "a\0b", 3);
	strbuf_pad(&sb, 8);
	assert_int_equal(sb.len, sizeof(want));
	assert_memory_equal(sb.buf, want, sizeof(want));
	strbuf_pad(&sb, 8); /* aligned already */
	assert_int_equal(sb.len, sizeof(want));
	place = strbuf_extend(&sb, 5000);
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(place[i], 0);
	strbuf_fini(&sb);
}

static void test_strbuf_failed(void **state)
{
	struct strbuf sb = {0};
	size_t len = 9;

	strbuf_str(&sb, "kept");
	assert_null(strbuf_extend(&sb, SIZE_MAX - 2));
	assert_true(strbuf_failed(&sb));
	/* Nothing more is written, what was there stays. */
	strbuf_str(&sb, "lost");
	strbuf_printf(&sb, "%d", 1);
	assert_string_equal(strbuf_text(&sb), "kept");
	assert_null(strbuf_detach(&sb, &len));
	assert_int_equal(len, 0);
	assert_false(strbuf_failed(&sb));
	strbuf_fini(&sb);
}

/* bytes */

static void test_bytes(void **state)
{
	static const unsigned char data[] = {1,	 2,  3,	 4,  5,	 6,  7,	  8, 9,
					     10, 11, 12, 13, 14, 15, 'x', 0};
	struct bytes b = bytes_of(data, sizeof(data)), sub;

	assert_int_equal(bytes_u8(&b), 1);
	assert_int_equal(bytes_u16(&b), 0x0302);
	assert_int_equal(bytes_u32(&b), 0x07060504);
	assert_int_equal(bytes_u64(&b), 0x0f0e0d0c0b0a0908ull);
	assert_string_equal(bytes_cstr(&b), "x");
	assert_int_equal(bytes_left(&b), 0);
	assert_false(b.bad);
	assert_non_null(bytes_take(&b, 0));
	assert_false(b.bad);
	assert_int_equal(bytes_u8(&b), 0);
	assert_true(b.bad);

	/* Half a word is none, and what follows is gone too. */
	b = bytes_of(data, 3);
	assert_int_equal(bytes_u32(&b), 0);
	assert_true(b.bad);
	assert_int_equal(bytes_u8(&b), 0);

	/* The other byte order reaches views of views. */
	b = bytes_of(data, sizeof(data));
	b.swap = true;
	sub = bytes_sub(&b, 14);
	assert_int_equal(bytes_u16(&sub), 0x0102);
	assert_int_equal(bytes_u32(&sub), 0x03040506);
	assert_int_equal(bytes_u64(&sub), 0x0708090a0b0c0d0eull);
	assert_int_equal(bytes_left(&b), sizeof(data) - 14);

	/* Lengths near the end of the address space. */
	b = bytes_of(data, sizeof(data));
	assert_null(bytes_take(&b, SIZE_MAX));
	assert_true(b.bad);
	b = bytes_of(data, sizeof(data));
	sub = bytes_sub(&b, sizeof(data) + 1);
	assert_true(b.bad && sub.bad);
	assert_int_equal(bytes_left(&sub), 0);
	assert_int_equal(bytes_u64(&sub), 0);

	/* Text without an end. */
	b = bytes_of(data, 15);
	assert_null(bytes_cstr(&b));
	assert_true(b.bad);
	b = bytes_of(NULL, 0);
	assert_null(bytes_cstr(&b));
	assert_true(b.bad);
}

static void test_bytes_blob(void **state)
{
	struct strbuf sb = {0};
	struct bytes b, blob;

	strbuf_blob(&sb, "hello", 5);
	strbuf_blob(&sb, "", 0);
	strbuf_u32(&sb, UINT32_MAX);
	b = bytes_of(sb.buf, sb.len);
	blob = bytes_blob(&b);
	assert_int_equal(bytes_left(&blob), 5);
	assert_memory_equal(bytes_take(&blob, 5), "hello", 5);
	blob = bytes_blob(&b);
	assert_int_equal(bytes_left(&blob), 0);
	assert_false(b.bad || blob.bad);
	/* A length that lies. */
	blob = bytes_blob(&b);
	assert_true(b.bad && blob.bad);
	strbuf_fini(&sb);
}

/* log */

static char last_line[2048];
static enum log_level last_level;

static void sink(enum log_level level, const char *line, void *ctx)
{
	last_level = level;
	snprintf(last_line, sizeof(last_line), "%s%s", (const char *)ctx, line);
}

static void test_log(void **state)
{
	static char prefix[] = ">", big[4000];

	log_info("nobody listens");
	log_set_sink(sink, prefix);
	log_warn("%d lost", 3);
	assert_string_equal(last_line, ">3 lost");
	assert_int_equal(last_level, LOG_WARN);
	memset(big, 'a', sizeof(big) - 1);
	log_debug("%s", big);
	assert_int_equal(strlen(last_line), 1024);
	log_set_sink(NULL, NULL);
	log_warn("gone");
	assert_int_equal(strlen(last_line), 1024);
}

/* A library of every glibc that nobody is linked with. */
#define SPARE_LIBRARY "libBrokenLocale.so.1"

static void test_library(void **state)
{
	void *there = NULL, *missing = NULL;
	const struct library_call calls[] = {{"__ctype_get_mb_cur_max", &there},
					     {"pyperf_has_no_such_call", &missing}};
	struct err err = {0};

	assert_int_equal(library_load("libpyperf-has-none.so.9", calls, 1, &err), ERR_UNSUPPORTED);
	assert_non_null(strstr(err.hint, "libpyperf-has-none.so.9"));
	assert_null(there);
	assert_int_equal(library_load(SPARE_LIBRARY, calls, 2, &err), ERR_UNSUPPORTED);
	assert_null(there);
	assert_null(dlopen(SPARE_LIBRARY, RTLD_NOLOAD | RTLD_LAZY));
	if (library_load(SPARE_LIBRARY, calls, 1, &err))
		skip(); /* another C library */
	assert_non_null(there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_err_set),	      cmocka_unit_test(test_err_sys),
		cmocka_unit_test(test_err_wrap),      cmocka_unit_test(test_err_exit),
		cmocka_unit_test(test_arena),	      cmocka_unit_test(test_arena_waste),
		cmocka_unit_test(test_arena_text),    cmocka_unit_test(test_vec),
		cmocka_unit_test(test_map_basics),    cmocka_unit_test(test_map_model),
		cmocka_unit_test(test_map_churn),     cmocka_unit_test(test_map_mix),
		cmocka_unit_test(test_intern),	      cmocka_unit_test(test_strbuf),
		cmocka_unit_test(test_strbuf_binary), cmocka_unit_test(test_strbuf_failed),
		cmocka_unit_test(test_bytes),	      cmocka_unit_test(test_bytes_blob),
		cmocka_unit_test(test_log),	      cmocka_unit_test(test_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
