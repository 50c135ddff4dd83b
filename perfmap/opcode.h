#ifndef PYPERF_OPCODE_H
#define PYPERF_OPCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * CPython's bytecode, as instructions.
 *
 * What an opcode is differs in every minor version, so there is a table for each (opcode_table.c,
 * made of the versions' own opcode modules by scripts/opcodes). Since 3.11 the interpreter rewrites
 * its code while it runs: specialized forms take the place of opcodes, and inline caches lie behind
 * them. Instructions are given as the compiler made them, which is how `dis` shows them.
 */
enum py_arg {
	PY_ARG_NONE,
	PY_ARG_PLAIN, /* a number or flags */
	PY_ARG_NAME,  /* index into co_names */
	PY_ARG_LOCAL, /* into co_varnames */
	PY_ARG_FREE,  /* into the variables of closures; 3.11+: as PY_ARG_LOCAL */
	PY_ARG_CONST,
	PY_ARG_COMPARE,
	PY_ARG_JUMP_FORWARD, /* relative; so is BACKWARD */
	PY_ARG_JUMP_BACKWARD,
	PY_ARG_JUMP_ABSOLUTE,
};

struct py_opcode {
	const char *name; /* NULL: there is none */
	uint8_t base;	  /* the opcode of which it is a form; itself where it is none */
	uint8_t caches;	  /* units of 2 bytes behind it */
	uint8_t arg;	  /* enum py_arg */
};

/* By minor version of CPython 3; NULL for those that are not known. Each has 256 rows. */
extern const struct py_opcode *const py_opcode_tables[];
extern const unsigned int py_opcode_tables_count;

struct py_instruction {
	uint32_t offset; /* bytes */
	uint32_t size;	 /* with its caches */
	const char *name;
	uint8_t opcode, arg_kind; /* of what the compiler made */
	int32_t arg;
	uint32_t target; /* of a jump */
};

/* Reads the instructions of one code object, one after the other. */
struct py_bytecode {
	const uint8_t *code;
	size_t len, at;
	const struct py_opcode *table;
	unsigned int minor;
	uint32_t extended; /* what EXTENDED_ARG told */
};

/* False for a version whose opcodes are not known. */
bool py_bytecode_init(struct py_bytecode *bytecode, unsigned int minor, const uint8_t *code,
		      size_t len);
/* False at the end. */
bool py_bytecode_next(struct py_bytecode *bytecode, struct py_instruction *instruction);

/* False where opcodes stand in it that hide which one they replaced, and so what follows: those of
 * sys.monitoring for lines and instructions, and of the JIT (3.12+). */
bool py_bytecode_is_whole(unsigned int minor, const uint8_t *code, size_t len);

/* The lists of names that a code object has. */
enum py_names_list {
	PY_NAMES_ANY,	 /* co_names: globals, attributes, modules */
	PY_NAMES_LOCALS, /* co_varnames; since 3.11 with the variables of closures behind them */
	PY_NAMES_FREE,	 /* up to 3.10: co_cellvars, then co_freevars */
	PY_NAMES,
};

/* Which names an argument is the numbers of: how many it has, up to 2. Some opcodes have flags in
 * the low bits, some tell two local variables at once. */
unsigned int py_instruction_names(unsigned int minor, const struct py_instruction *instruction,
				  enum py_names_list *list, uint32_t numbers[2]);

/* What an instruction of BINARY_OP or COMPARE_OP does, "+="; NULL for others. */
const char *py_instruction_operator(unsigned int minor, const struct py_instruction *instruction);

#endif
