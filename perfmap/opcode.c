#include "perfmap/opcode.h"

#include <string.h>

#define UNIT 2 /* bytes: an opcode and its argument */

bool py_bytecode_init(struct py_bytecode *bytecode, unsigned int minor, const uint8_t *code,
		      size_t len)
{
	*bytecode = (struct py_bytecode){.code = code, .len = len, .minor = minor};
	if (minor < py_opcode_tables_count)
		bytecode->table = py_opcode_tables[minor];
	return bytecode->table;
}

/* Jumps counted bytes up to 3.9; relative ones start behind the caches. */
static uint32_t jump_target(const struct py_bytecode *bytecode,
			    const struct py_instruction *instruction)
{
	uint32_t distance = (uint32_t)instruction->arg * (bytecode->minor >= 10 ? UNIT : 1);
	uint32_t end = instruction->offset + instruction->size;

	if (instruction->arg_kind == PY_ARG_JUMP_ABSOLUTE)
		return distance;
	return instruction->arg_kind == PY_ARG_JUMP_BACKWARD ? end - distance : end + distance;
}

bool py_bytecode_next(struct py_bytecode *bytecode, struct py_instruction *instruction)
{
	const struct py_opcode *opcode;
	uint8_t number;

	if (!bytecode->table || bytecode->at + UNIT > bytecode->len)
		return false;
	number = bytecode->table[bytecode->code[bytecode->at]].base;
	opcode = &bytecode->table[number];
	if (!opcode->name) /* the row of 0 is there in every version */
		number = bytecode->code[bytecode->at];
	*instruction = (struct py_instruction){
		.offset = (uint32_t)bytecode->at,
		.size = UNIT * (1u + opcode->caches),
		.name = opcode->name,
		.opcode = number,
		.arg_kind = opcode->arg,
	};
	if (opcode->arg != PY_ARG_NONE)
		instruction->arg = (int32_t)(bytecode->extended | bytecode->code[bytecode->at + 1]);
	bytecode->extended = 0;
	if (opcode->name && strcmp(opcode->name, "EXTENDED_ARG") == 0)
		bytecode->extended = (uint32_t)instruction->arg << 8;
	if (opcode->arg >= PY_ARG_JUMP_FORWARD)
		instruction->target = jump_target(bytecode, instruction);
	bytecode->at += instruction->size;
	return true;
}

bool py_bytecode_is_whole(unsigned int minor, const uint8_t *code, size_t len)
{
	static const char *const hiding[] = {"INSTRUMENTED_LINE", "INSTRUMENTED_INSTRUCTION",
					     "ENTER_EXECUTOR", "TRACE_RECORD"};
	struct py_bytecode bytecode;
	struct py_instruction instruction;

	if (!py_bytecode_init(&bytecode, minor, code, len))
		return false;
	while (py_bytecode_next(&bytecode, &instruction))
		for (size_t i = 0; i < sizeof(hiding) / sizeof(hiding[0]); i++)
			if (instruction.name && strcmp(instruction.name, hiding[i]) == 0)
				return false;
	return true;
}

/* How far the number is shifted to make room for flags. */
static unsigned int flag_bits(unsigned int minor, const char *opcode)
{
	static const struct {
		const char *opcode;
		unsigned int since, bits;
	} flagged[] = {
		{"LOAD_GLOBAL", 11, 1},
		{"LOAD_ATTR", 12, 1},
		{"LOAD_SUPER_ATTR", 12, 2},
		{"IMPORT_NAME", 15, 2},
	};

	for (size_t i = 0; i < sizeof(flagged) / sizeof(flagged[0]); i++)
		if (minor >= flagged[i].since && strcmp(opcode, flagged[i].opcode) == 0)
			return flagged[i].bits;
	return 0;
}

/* "LOAD_FAST_LOAD_FAST": 4 bits for each (3.13+). */
static bool is_double(const char *opcode)
{
	const char *first = strstr(opcode, "_FAST_");

	return first && strstr(first + strlen("_FAST_"), "_FAST");
}

unsigned int py_instruction_names(unsigned int minor, const struct py_instruction *instruction,
				  enum py_names_list *list, uint32_t numbers[2])
{
	uint32_t arg = (uint32_t)instruction->arg;

	switch (instruction->arg_kind) {
	case PY_ARG_NAME:
		*list = PY_NAMES_ANY;
		numbers[0] = arg >> flag_bits(minor, instruction->name);
		return 1;
	case PY_ARG_FREE:
		*list = minor <= 10 ? PY_NAMES_FREE : PY_NAMES_LOCALS;
		numbers[0] = arg;
		return 1;
	case PY_ARG_LOCAL:
		*list = PY_NAMES_LOCALS;
		numbers[0] = arg;
		if (!is_double(instruction->name))
			return 1;
		numbers[0] = arg >> 4;
		numbers[1] = arg & 15;
		return 2;
	default:
		return 0;
	}
}

/* Include/opcode.h: NB_ADD and so on; those in place follow in the same order. */
static const char *const operators[] = {"+",  "&",  "//", "<<",	 "@",	"*",  "%",   "|",   "**",
					">>", "-",  "/",  "^",	 "+=",	"&=", "//=", "<<=", "@=",
					"*=", "%=", "|=", "**=", ">>=", "-=", "/=",  "^=",  "[]"};
/* Those behind != are up to 3.8. */
static const char *const comparisons[] = {
	"<", "<=", "==", "!=", ">", ">=", "in", "not in", "is", "is not", "exception match", "BAD"};

const char *py_instruction_operator(unsigned int minor, const struct py_instruction *instruction)
{
	uint32_t arg = (uint32_t)instruction->arg;

	if (instruction->arg_kind == PY_ARG_COMPARE) {
		arg >>= minor >= 13 ? 5 : minor == 12 ? 4 : 0;
		return arg < sizeof(comparisons) / sizeof(comparisons[0]) ? comparisons[arg] : NULL;
	}
	if (!instruction->name || strcmp(instruction->name, "BINARY_OP") != 0)
		return NULL;
	return arg < sizeof(operators) / sizeof(operators[0]) ? operators[arg] : NULL;
}
