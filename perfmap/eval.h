#ifndef PYPERF_EVAL_H
#define PYPERF_EVAL_H

#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Where CPython's interpreter loop lies in a file: the native frames that Python frames belong to.
 */
struct elf_file;

struct eval_range {
	uint64_t start, end;
};
struct eval_ranges {
	VEC_OF(struct eval_range)
};

/* Adds those of a file; either may be NULL: `debug` has the symbols that `elf` was stripped of. */
int eval_find(struct eval_ranges *ranges, struct elf_file *elf, struct elf_file *debug,
	      struct err *err);
bool eval_covers(const struct eval_ranges *ranges, uint64_t vaddr);

#endif
