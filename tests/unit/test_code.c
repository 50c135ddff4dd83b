#include "perfmap/code.h"

#include "base/text.h"
#include "perfmap/frames.h"
#include "perfmap/runtime.h"
#include "perfmap/walk.h"

#include "live_python.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct intern strings;
	struct py_codes *codes;
};

static void fixture_init(struct fixture *f)
{
	intern_init(&f->strings);
	f->codes = py_codes_new(&f->strings);
	assert_non_null(f->codes);
}

static void fixture_fini(struct fixture *f)
{
	py_codes_free(f->codes);
	intern_fini(&f->strings);
}

static const char *text(const struct fixture *f, uint32_t id)
{
	return intern_text(&f->strings, id, NULL);
}

/* Writes a record as the walker does. */
struct raw {
	struct py_raw_code head;
	struct strbuf body;
};

static void raw_init(struct raw *raw, uint64_t code, uint8_t minor)
{
	*raw = (struct raw){.head = {.magic = PY_RAW_CODE,
				     .lineage = 3,
				     .code = code,
				     .fingerprint = 0xabcd,
				     .firstlineno = 10,
				     .minor = minor,
				     .pid = 77}};
}

static void raw_string(struct raw *raw, struct py_raw_string *string, unsigned int kind,
		       const void *units, uint32_t len)
{
	string->kind = (uint8_t)kind;
	string->len = len;
	strbuf_add(&raw->body, units, len * kind);
	strbuf_pad(&raw->body, 8);
}

static void raw_table(struct raw *raw, const void *table, uint32_t len)
{
	raw->head.table_len = len;
	strbuf_add(&raw->body, table, len);
	strbuf_pad(&raw->body, 8);
}

static void raw_end(struct raw *raw, struct strbuf *record)
{
	strbuf_reset(record);
	strbuf_add(record, &raw->head, sizeof(raw->head));
	if (raw->body.len)
		strbuf_add(record, raw->body.buf, raw->body.len);
	strbuf_fini(&raw->body);
}

static const uint8_t table_11[] = {0xf8, 0xd8, 0, 0, 0x81, 0, 0xe8, 0x0a}; /* -, 11, 11, 16 */

static void simple(struct strbuf *record, uint64_t code)
{
	struct raw raw;

	raw_init(&raw, code, 11);
	raw_string(&raw, &raw.head.name, 1, "f", 1);
	raw_string(&raw, &raw.head.qualname, 1, "A.f", 3);
	raw_string(&raw, &raw.head.filename, 1, "/a/b.py", 7);
	raw_table(&raw, table_11, sizeof(table_11));
	raw_end(&raw, record);
}

static void test_raw(void **state)
{
	struct strbuf record = {0};
	const struct py_code *code;
	struct fixture f;
	int index;

	fixture_init(&f);
	simple(&record, 0x1000);
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL), 0);
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL), 0);
	assert_int_equal(py_codes_count(f.codes), 1);
	index = py_codes_find(f.codes, 3, 0x1000, 0xabcd);
	assert_int_equal(index, 0);
	assert_int_equal(py_codes_find(f.codes, 4, 0x1000, 0xabcd), -1);
	assert_int_equal(py_codes_find(f.codes, 3, 0x1008, 0xabcd), -1);
	assert_int_equal(py_codes_find(f.codes, 3, 0x1000, 0xabce), -1);
	code = py_codes_get(f.codes, index);
	assert_string_equal(text(&f, code->name), "f");
	assert_string_equal(text(&f, code->qualname), "A.f");
	assert_string_equal(text(&f, code->filename), "/a/b.py");
	assert_int_equal(code->firstlineno, 10);
	assert_int_equal(code->minor, 11);
	assert_int_equal(code->missing, 0);
	assert_int_equal(py_codes_line(f.codes, index, 0), 0);
	assert_int_equal(py_codes_line(f.codes, index, 2), 11);
	assert_int_equal(py_codes_line(f.codes, index, 6), 11);
	assert_int_equal(py_codes_line(f.codes, index, 8), 16);
	assert_int_equal(py_codes_line(f.codes, index, 0), 0);
	assert_int_equal(py_codes_line(f.codes, index, 10), 0);
	assert_int_equal(py_codes_line(f.codes, index, PY_INSTR_MASK), 0);
	assert_int_equal(py_codes_line(f.codes, -1, 0), 0);
	assert_int_equal(py_codes_line(f.codes, 1, 0), 0);
	assert_null(py_codes_get(f.codes, 1));
	strbuf_fini(&record);
	fixture_fini(&f);
}

static void test_strings(void **state)
{
	static const uint16_t ucs2[] = {'n', 0x4e2d, 0xd800};
	static const uint32_t ucs4[] = {0x1f40d, 'x'};
	const struct py_code *code;
	struct strbuf record = {0};
	struct fixture f;
	struct raw raw;

	fixture_init(&f);
	raw_init(&raw, 8, 12);
	raw_string(&raw, &raw.head.name, 1, "na\xefve", 5);
	raw_string(&raw, &raw.head.qualname, 2, ucs2, 3);
	raw_string(&raw, &raw.head.filename, 4, ucs4, 2);
	raw_table(&raw, "", 0);
	raw_end(&raw, &record);
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL), 0);
	code = py_codes_get(f.codes, 0);
	assert_string_equal(text(&f, code->name), "na\xc3\xafve");
	assert_string_equal(text(&f, code->qualname), "n\xe4\xb8\xad\xef\xbf\xbd");
	assert_string_equal(text(&f, code->filename), "\xf0\x9f\x90\x8dx");
	/* <= 3.10 has no qualified name */
	raw_init(&raw, 16, 10);
	raw_string(&raw, &raw.head.name, 1, "old", 3);
	raw.head.missing = PY_CODE_MISSING_QUALNAME;
	raw_end(&raw, &record);
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL), 0);
	code = py_codes_get(f.codes, 1);
	assert_string_equal(text(&f, code->qualname), "old");
	assert_int_equal(code->missing, 0);
	strbuf_fini(&record);
	fixture_fini(&f);
}

/* What was missing or cut is gained later; what is there is not lost. */
static void test_gain(void **state)
{
	struct strbuf record = {0};
	const struct py_code *code;
	char longest[PY_STRING_BYTES_MAX + 1];
	struct fixture f;
	struct raw raw;

	fixture_init(&f);
	memset(longest, 'q', sizeof(longest));
	raw_init(&raw, 0x1000, 11);
	raw.head.missing = PY_CODE_MISSING_TABLE | PY_CODE_MISSING_NAME;
	raw_string(&raw, &raw.head.qualname, 1, longest, PY_STRING_BYTES_MAX);
	raw_string(&raw, &raw.head.filename, 1, "/f.py", 5);
	raw_end(&raw, &record);
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL), 0);
	code = py_codes_get(f.codes, 0);
	assert_int_equal(code->missing,
			 PY_CODE_MISSING_TABLE | PY_CODE_MISSING_NAME | PY_CODE_MISSING_QUALNAME);
	assert_int_equal(strlen(text(&f, code->qualname)), PY_STRING_BYTES_MAX);
	assert_int_equal(py_codes_line(f.codes, 0, 2), 0);
	simple(&record, 0x1000);
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL), 0);
	assert_int_equal(py_codes_count(f.codes), 1);
	assert_int_equal(code->missing, 0);
	assert_string_equal(text(&f, code->name), "f");
	assert_string_equal(text(&f, code->qualname), "A.f");
	assert_string_equal(text(&f, code->filename), "/f.py");
	assert_int_equal(py_codes_line(f.codes, 0, 2), 11);
	strbuf_fini(&record);
	fixture_fini(&f);
}

static void test_raw_broken(void **state)
{
	struct strbuf record = {0};
	struct fixture f;
	size_t need;

	fixture_init(&f);
	simple(&record, 0x1000);
	need = record.len;
	for (size_t cut = 0; cut < need; cut++) {
		void *exact = malloc(cut ? cut : 1);

		memcpy(exact, record.buf, cut);
		assert_int_equal(py_codes_add_raw(f.codes, bytes_of(exact, cut), NULL),
				 ERR_CORRUPT);
		free(exact);
	}
	assert_int_equal(py_codes_count(f.codes), 0);
	record.buf[offsetof(struct py_raw_code, name)] = 3; /* kind */
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL),
			 ERR_CORRUPT);
	simple(&record, 0x1000);
	memset(record.buf + offsetof(struct py_raw_code, name.len), 0xff, 4);
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL),
			 ERR_CORRUPT);
	simple(&record, 0x1000);
	memset(record.buf + offsetof(struct py_raw_code, table_len), 0xff, 4);
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL),
			 ERR_CORRUPT);
	record.buf[0] ^= 1;
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL),
			 ERR_CORRUPT);
	strbuf_fini(&record);
	fixture_fini(&f);
}

/* A record of a machine of the other byte order. */
static void test_raw_swapped(void **state)
{
	static const uint16_t name[] = {0x2d4e}; /* U+4E2D, turned around */
	struct strbuf record = {0};
	struct bytes view;
	struct fixture f;
	struct raw raw;

	fixture_init(&f);
	raw_init(&raw, __builtin_bswap64(0x1000), 12);
	raw_string(&raw, &raw.head.name, 2, name, 1);
	raw.head.magic = __builtin_bswap32(raw.head.magic);
	raw.head.lineage = __builtin_bswap32(3);
	raw.head.fingerprint = __builtin_bswap32(0xabcd);
	raw.head.firstlineno = __builtin_bswap32(10);
	raw.head.name.len = __builtin_bswap32(1);
	raw_end(&raw, &record);
	view = bytes_of(record.buf, record.len);
	view.swap = true;
	assert_int_equal(py_codes_add_raw(f.codes, view, NULL), 0);
	assert_int_equal(py_codes_find(f.codes, 3, 0x1000, 0xabcd), 0);
	assert_string_equal(text(&f, py_codes_get(f.codes, 0)->name), "\xe4\xb8\xad");
	strbuf_fini(&record);
	fixture_fini(&f);
}

static void test_section(void **state)
{
	struct strbuf record = {0}, section = {0};
	struct fixture f, back;
	uint8_t only[100] = {0};

	fixture_init(&f);
	for (uint64_t i = 0; i < 100; i++) {
		simple(&record, 0x1000 + 8 * i);
		assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL),
				 0);
	}
	assert_int_equal(py_codes_count(f.codes), 100);
	only[5] = only[99] = 1;
	assert_int_equal(py_codes_encode(f.codes, only, &section), 0);
	fixture_init(&back);
	assert_int_equal(py_codes_decode(back.codes, bytes_of(section.buf, section.len), NULL), 0);
	assert_int_equal(py_codes_count(back.codes), 2);
	assert_int_equal(py_codes_find(back.codes, 3, 0x1000 + 8 * 99, 0xabcd), 1);
	assert_string_equal(text(&back, py_codes_get(back.codes, 1)->qualname), "A.f");
	assert_string_equal(text(&back, py_codes_get(back.codes, 1)->filename), "/a/b.py");
	assert_int_equal(py_codes_get(back.codes, 1)->missing, 0);
	assert_int_equal(py_codes_line(back.codes, 1, 8), 16);
	fixture_fini(&back);
	for (size_t cut = 0; cut < section.len; cut++) {
		fixture_init(&back);
		assert_int_equal(py_codes_decode(back.codes, bytes_of(section.buf, cut), NULL),
				 ERR_CORRUPT);
		fixture_fini(&back);
	}
	strbuf_reset(&section);
	assert_int_equal(py_codes_encode(f.codes, NULL, &section), 0);
	fixture_init(&back);
	assert_int_equal(py_codes_decode(back.codes, bytes_of(section.buf, section.len), NULL), 0);
	assert_int_equal(py_codes_count(back.codes), 100);
	section.buf[0] = 7;
	assert_int_equal(py_codes_decode(back.codes, bytes_of(section.buf, section.len), NULL),
			 ERR_UNSUPPORTED);
	fixture_fini(&back);
	fixture_fini(&f);
	strbuf_fini(&section);
	strbuf_fini(&record);
}

/* Bytecode that is in the stream, and bytecode and names that are in a section. */
static void test_bytecode(void **state)
{
	static const uint8_t code[] = {0x97, 0, 0x53, 0};
	struct strbuf record = {0}, section = {0};
	const uint8_t only[] = {1};
	struct fixture f, back;
	struct raw raw;

	raw_init(&raw, 0x1000, 11);
	raw_string(&raw, &raw.head.name, 1, "f", 1);
	raw_table(&raw, table_11, sizeof(table_11) - 1);
	raw.head.bytecode_len = sizeof(code);
	strbuf_add(&raw.body, code, sizeof(code));
	raw_end(&raw, &record);
	fixture_init(&f);
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len), NULL), 0);
	assert_int_equal(py_codes_get(f.codes, 0)->bytecode_len, sizeof(code));
	assert_memory_equal(py_codes_get(f.codes, 0)->bytecode, code, sizeof(code));
	assert_int_equal(py_codes_add_raw(f.codes, bytes_of(record.buf, record.len - 1), NULL),
			 ERR_CORRUPT);

	assert_int_equal(py_codes_encode_bytecode(f.codes, only, &section), 0);
	for (size_t cut = 1; cut <= section.len; cut++) {
		bool whole = cut == section.len, edge = cut == 4;

		fixture_init(&back);
		simple(&record, 0x1000);
		py_codes_add_raw(back.codes, bytes_of(record.buf, record.len), NULL);
		assert_null(py_codes_get(back.codes, 0)->bytecode);
		assert_int_equal(
			py_codes_decode_bytecode(back.codes, bytes_of(section.buf, cut), NULL),
			whole || edge ? 0 : ERR_CORRUPT);
		assert_int_equal(py_codes_get(back.codes, 0)->bytecode_len,
				 whole ? sizeof(code) : 0);
		assert_int_equal(py_codes_count(back.codes), 1);
		fixture_fini(&back);
	}
	section.buf[0] = 2;
	assert_int_equal(
		py_codes_decode_bytecode(f.codes, bytes_of(section.buf, section.len), NULL),
		ERR_UNSUPPORTED);
	fixture_fini(&f);
	strbuf_fini(&section);
	strbuf_fini(&record);
}

/*
 * Functions with names of each kind of string, a name longer than the walker sends, and a str that
 * is not compact (an instance of a subclass). The oracle is the interpreter itself: each line is
 * the address, the first line, name, qualified name, file name, and pairs of offset and line.
 */
static const char script[] =
	"import sys, os\n"
	"long = 'L' * 3000\n"
	"class S(str): pass\n"
	"src = 'def %s():\\n  a = [1,\\n  2]\\n  return max(\\n   a)\\n'\n"
	"fs = []\n"
	"for name, file in (('plain', '/a/b.py'), ('na\\xefve', '/l\\xe9.py'), ('\\u4e2d\\u6587', "
	"'/u2\\u4e2d'),\n"
	"                   (long, '/x' * 2000), ('f', '/\\U0001f40d/s.py'), ('g', "
	"S('/sub.py'))):\n"
	"    ns = {}\n"
	"    exec(compile(src % name, file, 'exec'), ns)\n"
	"    f = ns[name]\n"
	"    code = f.__code__.replace(co_filename=file)\n"
	"    fs.append(code)\n"
	"def nested():\n"
	"    def inner(): pass\n"
	"    return inner\n"
	"fs.append(nested().__code__)\n"
	"h = lambda s: s.encode().hex()\n"
	"for c in fs:\n"
	"    t = ' '.join('%d %d' % (s, l or 0) for s, e, l in c.co_lines())\n"
	"    names = [list(c.co_names),\n"
	"             list(dict.fromkeys(c.co_varnames + c.co_cellvars + c.co_freevars))]\n"
	"    print(id(c), c.co_firstlineno, h(c.co_name), h(c.co_qualname), h(c.co_filename),\n"
	"          c._co_code_adaptive.hex(), *(h('|'.join(n) + '|') for n in names), t)\n"
	"print('end', flush=True)\n"
	"sys.stdin.read()\n"
	"import time; time.sleep(60)\n";

static void check_hex(const struct fixture *f, uint32_t id, const char *hex)
{
	size_t len;
	const char *got = intern_text(&f->strings, id, &len);

	assert_int_equal(len * 2, strlen(hex));
	for (size_t i = 0; i < len; i++) {
		unsigned int byte;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		assert_int_equal((unsigned char)got[i], byte);
	}
}

/* The names with bars behind them. */
static void check_names(const struct fixture *f, const struct py_names *names, const char *hex)
{
	struct strbuf all = {0};
	uint32_t id;

	for (uint32_t i = 0; i < names->count; i++)
		strbuf_printf(&all, "%s|", text(f, names->ids[i]));
	if (!names->count)
		strbuf_char(&all, '|');
	id = intern_add((struct intern *)&f->strings, all.buf, all.len);
	check_hex(f, id, hex);
	strbuf_fini(&all);
}

static void check_live_code(struct fixture *f, const struct memory *memory,
			    const struct py_layout *layout, char *line)
{
	char *save = NULL, *field[8], *at;
	const struct py_code *code;
	uint32_t fingerprint;
	struct err err = {0};
	uint64_t addr;
	int index;

	for (int i = 0; i < 8; i++) {
		field[i] = strtok_r(i ? NULL : line, " ", &save);
		assert_non_null(field[i]);
	}
	addr = strtoull(field[0], NULL, 10);
	assert_int_equal(py_code_fingerprint(layout, memory, addr, &fingerprint), 0);
	assert_int_equal(py_codes_read(f->codes, memory, layout, 1, addr, fingerprint ^ 1, &err),
			 ERR_NOT_FOUND);
	if (py_codes_read(f->codes, memory, layout, 1, addr, fingerprint, &err))
		fail_msg("3.%u %s: %s", layout->minor, field[2], err.text);
	index = py_codes_find(f->codes, 1, addr, fingerprint);
	assert_true(index >= 0);
	code = py_codes_get(f->codes, index);
	assert_int_equal(code->missing, 0);
	assert_int_equal(code->firstlineno, atoi(field[1]));
	check_hex(f, code->name, field[2]);
	check_hex(f, code->qualname, field[3]);
	check_hex(f, code->filename, field[4]);
	check_hex(f, intern_add(&f->strings, code->bytecode, code->bytecode_len), field[5]);
	assert_int_equal(py_codes_read_names(f->codes, memory, layout, index, &err), 0);
	check_names(f, &code->names[PY_NAMES_ANY], field[6]);
	check_names(f, &code->names[PY_NAMES_LOCALS], field[7]);
	assert_int_equal(code->names[PY_NAMES_FREE].count, 0);
	while ((at = strtok_r(NULL, " ", &save))) {
		uint32_t offset = (uint32_t)atoi(at);

		at = strtok_r(NULL, " ", &save);
		assert_non_null(at);
		assert_int_equal(py_codes_line(f->codes, index, offset), atoi(at));
	}
}

static void check_live(const char *python, int minor)
{
	static char line[1 << 16];
	struct runtime_cache *cache = runtime_cache_new();
	struct memory_process memory_process;
	struct runtime_info info = {0};
	struct py_process process = {0};
	struct live_child child = {0};
	struct memory memory;
	struct fixture f;
	size_t count = 0;

	assert_true(live_child_start(&child, python, script));
	fixture_init(&f);
	memory_process_init(&memory_process, child.pid);
	memory = memory_of_process(&memory_process);
	while (live_child_line(&child, line, sizeof(line)) && strcmp(line, "end")) {
		if (!count++)
			assert_int_equal(runtime_find(cache, child.pid, &process, &info, NULL),
					 RUNTIME_READY);
		check_live_code(&f, &memory, &process.layout, line);
	}
	assert_int_equal(count, 7);
	print_message("CPython 3.%d: %zu code objects read\n", minor, py_codes_count(f.codes));
	live_child_stop(&child);
	memory_process_fini(&memory_process);
	runtime_cache_free(cache);
	fixture_fini(&f);
}

static void test_read_live(void **state)
{
	struct live_pythons pythons;
	size_t done = 0;

	live_pythons_find(&pythons);
	for (size_t i = 0; i < pythons.count; i++) {
		if (pythons.minor[i] < 11 || pythons.minor[i] > 13)
			continue;
		check_live(pythons.path[i], pythons.minor[i]);
		done++;
	}
	live_pythons_free(&pythons);
	if (!done) {
		print_message("no CPython 3.11 to 3.13 was found\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raw),	    cmocka_unit_test(test_strings),
		cmocka_unit_test(test_gain),	    cmocka_unit_test(test_raw_broken),
		cmocka_unit_test(test_raw_swapped), cmocka_unit_test(test_section),
		cmocka_unit_test(test_bytecode),    cmocka_unit_test(test_read_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
