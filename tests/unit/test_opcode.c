#include "perfmap/opcode.h"

#include "live_python.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NAMES_MAX 65536

/* Texts of tests/data/make-bytecode: what the interpreter's dis module says. */
struct oracle {
	unsigned int minor;
	char version[32];
	uint8_t *code;
	size_t len;
	struct py_bytecode bytecode;
	size_t codes, instructions, rewritten;
};

/* Of the code object at hand. */
static char *all_names[PY_NAMES][NAMES_MAX];

static unsigned int hex_digit(char c)
{
	return c <= '9' ? (unsigned int)(c - '0') : (unsigned int)(c - 'a' + 10);
}

static void take_bytes(struct oracle *o, const char *hex)
{
	o->len = strlen(hex) / 2;
	free(o->code);
	o->code = malloc(o->len + 1);
	assert_non_null(o->code);
	for (size_t i = 0; i < o->len; i++)
		o->code[i] = (uint8_t)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
	assert_true(py_bytecode_init(&o->bytecode, o->minor, o->code, o->len));
	o->codes++;
}

static void forget_names(void)
{
	for (int list = 0; list < PY_NAMES; list++)
		for (size_t i = 0; i < NAMES_MAX && all_names[list][i]; i++) {
			free(all_names[list][i]);
			all_names[list][i] = NULL;
		}
}

static void take_names(char *text)
{
	char *save = NULL, *word = strtok_r(text, " ", &save);
	int list = atoi(word);
	size_t count = 0;

	while ((word = strtok_r(NULL, " ", &save))) {
		assert_true(count < NAMES_MAX);
		all_names[list][count++] = strdup(word);
	}
}

static void name_arguments(const struct oracle *o, const struct py_instruction *instruction,
			   char *text, size_t size)
{
	enum py_names_list list = 0;
	uint32_t numbers[2];
	unsigned int count = py_instruction_names(o->minor, instruction, &list, numbers);

	const char *operator= py_instruction_operator(o->minor, instruction);

	if (operator) {
		snprintf(text, size, "%s", operator);
		for (char *blank = text; (blank = strchr(blank, ' '));)
			*blank = '_';
		return;
	}
	for (unsigned int i = 0; i < count; i++)
		assert_true(numbers[i] < NAMES_MAX && all_names[list][numbers[i]]);
	snprintf(text, size, count == 2 ? "%s,%s" : "%s", count ? all_names[list][numbers[0]] : "-",
		 count == 2 ? all_names[list][numbers[1]] : "");
}

static void check_instruction(struct oracle *o, const char *line)
{
	struct py_instruction instruction;
	char name[64], arg[24], target[24], names[200], ours[400];

	assert_true(py_bytecode_next(&o->bytecode, &instruction));
	o->instructions++;
	o->rewritten += o->code[instruction.offset] != instruction.opcode;
	snprintf(arg, sizeof(arg), instruction.arg_kind == PY_ARG_NONE ? "-" : "%d",
		 instruction.arg);
	snprintf(target, sizeof(target), instruction.arg_kind < PY_ARG_JUMP_FORWARD ? "-" : "%u",
		 instruction.target);
	snprintf(name, sizeof(name), "%s", instruction.name ? instruction.name : "?");
	name_arguments(o, &instruction, names, sizeof(names));
	snprintf(ours, sizeof(ours), "%u %s %s %s %s", instruction.offset, name, arg, target,
		 names);
	assert_string_equal(ours, line);
}

static void check_end(struct oracle *o)
{
	struct py_instruction instruction;

	assert_false(o->code && py_bytecode_next(&o->bytecode, &instruction));
}

static void check_stream(FILE *f, struct oracle *o)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	while ((len = getline(&line, &size, f)) > 0) {
		line[len - 1] = '\0';
		if (strncmp(line, "code ", 5) == 0) {
			check_end(o);
			forget_names();
		} else if (strncmp(line, "bytes ", 6) == 0)
			take_bytes(o, line + 6);
		else if (strncmp(line, "list ", 5) == 0)
			take_names(line + 5);
		else if (sscanf(line, "version %u %31s", &o->minor, o->version) != 2)
			check_instruction(o, line);
	}
	check_end(o);
	forget_names();
	free(line);
	free(o->code);
}

static void test_samples(void **state)
{
	for (unsigned int minor = 6; minor < py_opcode_tables_count; minor++) {
		struct oracle o = {0};
		char path[64];
		FILE *f;

		snprintf(path, sizeof(path), "tests/data/bytecode-3.%u.txt", minor);
		f = fopen(path, "r");
		assert_non_null(f);
		check_stream(f, &o);
		fclose(f);
		assert_int_equal(o.minor, minor);
		assert_true(o.codes > 10 && o.instructions > 1000);
		/* Since 3.11 what runs is rewritten. */
		assert_int_equal(o.rewritten > 20, minor >= 11);
	}
}

static void test_live(void **state)
{
	struct live_pythons pythons;

	live_pythons_find(&pythons);
	for (size_t i = 0; i < pythons.count; i++) {
		struct oracle o = {0};
		char command[512];
		FILE *f;

		if (pythons.minor[i] < 6 || pythons.minor[i] >= (int)py_opcode_tables_count)
			continue;
		snprintf(command, sizeof(command),
			 "'%s' -W ignore tests/data/make-bytecode --stdlib 150", pythons.path[i]);
		f = popen(command, "r");
		assert_non_null(f);
		check_stream(f, &o);
		assert_int_equal(pclose(f), 0);
		print_message("CPython %s: %zu code objects, %zu instructions agree\n", o.version,
			      o.codes, o.instructions);
		assert_int_equal(o.codes, 150);
	}
	live_pythons_free(&pythons);
}

/* Of any bytes, every step goes on, and none beyond the end. */
static void test_any_bytes(void **state)
{
	uint8_t code[511];

	for (unsigned int minor = 0; minor < py_opcode_tables_count + 2; minor++) {
		struct py_bytecode bytecode;
		struct py_instruction instruction;
		size_t steps = 0;

		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = (uint8_t)(i * 37 + minor);
		if (!py_bytecode_init(&bytecode, minor, code, sizeof(code))) {
			assert_true(minor < 6 || minor >= py_opcode_tables_count);
			continue;
		}
		while (py_bytecode_next(&bytecode, &instruction)) {
			assert_true(instruction.offset + 2 <= sizeof(code));
			steps++;
		}
		assert_true(steps > 10 && steps <= sizeof(code) / 2);
	}
}

/* 3.12: RESUME, then INSTRUMENTED_LINE in the place of who knows what. */
static void test_hidden(void **state)
{
	static const uint8_t plain[] = {151, 0, 121, 0}, hidden[] = {151, 0, 254, 0};

	assert_true(py_bytecode_is_whole(12, plain, sizeof(plain)));
	assert_false(py_bytecode_is_whole(12, hidden, sizeof(hidden)));
	assert_false(py_bytecode_is_whole(5, plain, sizeof(plain)));
}

static void test_names(void **state)
{
	const struct py_instruction global = {
		.name = "LOAD_GLOBAL", .arg_kind = PY_ARG_NAME, .arg = 5};
	const struct py_instruction plain = {.name = "RESUME", .arg_kind = PY_ARG_PLAIN};

	const struct py_instruction pair = {
		.name = "STORE_FAST_LOAD_FAST", .arg_kind = PY_ARG_LOCAL, .arg = 0x4f};
	const struct py_instruction free = {
		.name = "LOAD_DEREF", .arg_kind = PY_ARG_FREE, .arg = 3};
	enum py_names_list list;
	uint32_t numbers[2];

	assert_int_equal(py_instruction_names(10, &global, &list, numbers), 1);
	assert_int_equal(list, PY_NAMES_ANY);
	assert_int_equal(numbers[0], 5);
	assert_int_equal(py_instruction_names(11, &global, &list, numbers), 1);
	assert_int_equal(numbers[0], 2);
	assert_int_equal(py_instruction_names(11, &plain, &list, numbers), 0);
	assert_int_equal(py_instruction_names(13, &pair, &list, numbers), 2);
	assert_int_equal(list, PY_NAMES_LOCALS);
	assert_int_equal(numbers[0], 4);
	assert_int_equal(numbers[1], 15);
	assert_int_equal(py_instruction_names(10, &free, &list, numbers), 1);
	assert_int_equal(list, PY_NAMES_FREE);
	assert_int_equal(py_instruction_names(11, &free, &list, numbers), 1);
	assert_int_equal(list, PY_NAMES_LOCALS);
}

/* With names of such texts: those instead. */
static int check_files(char **paths)
{
	for (; *paths; paths++) {
		struct oracle o = {0};
		FILE *f = fopen(*paths, "r");

		assert_non_null(f);
		check_stream(f, &o);
		fclose(f);
		printf("CPython %s: %zu code objects, %zu instructions agree\n", o.version, o.codes,
		       o.instructions);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),	  cmocka_unit_test(test_live),
		cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_names),
	};

	if (argc > 1)
		return check_files(argv + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
