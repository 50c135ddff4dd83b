#ifndef PYPERF_BYTECODE_H
#define PYPERF_BYTECODE_H

#include "base/strbuf.h"
#include "perfmap/opcode.h"
#include "profile/view.h"

/*
 * The bytecode of a Python function with what each instruction cost. Time in C code that an
 * instruction called is its own, as it is of lines.
 *
 * Most functions have one code object; where a function was compiled anew, or ran under several
 * versions of CPython, each that differs is a variant.
 */
struct view_instruction {
	uint32_t line; /* 0: none */
	uint32_t variant;
	struct py_instruction as;
	const struct view_count *counts; /* per event; NULL: no samples */
};

struct py_code;
struct view_bytecode {
	struct view_instruction *rows; /* by line, variant, offset */
	size_t count;
	const struct py_code **variants;
	size_t variant_count;
	bool partial; /* of some samples the bytecode or the instruction is not known, or hidden */
	struct view_count *counts;
};

int view_bytecode(struct view_bytecode **bytecode, const struct profile *profile,
		  const struct view_filter *filter, uint32_t function, struct err *err);
void view_bytecode_free(struct view_bytecode *bytecode);

/* The rows of a line: the first one, and how many. */
const struct view_instruction *view_bytecode_line(const struct view_bytecode *bytecode,
						  uint32_t line, size_t *count);
/* What its argument means, raw: "total", "a, b", "to 42"; else its number. Nothing without one. */
void view_instruction_argument(const struct profile *profile, const struct view_bytecode *bytecode,
			       const struct view_instruction *row, struct strbuf *out);

#endif
