#ifndef PYPERF_LINETABLE_H
#define PYPERF_LINETABLE_H

#include "base/err.h"
#include "base/vec.h"

#include <stdint.h>

/*
 * CPython's line tables: co_lnotab (<= 3.9), co_linetable (3.10, PEP 626), locations (3.11+,
 * Objects/locations.md). Expanded to ranges in order of their offsets, as co_lines() gives them.
 */
struct line_range {
	uint32_t start, end; /* byte offsets in co_code */
	uint32_t line;	     /* 0: no location */
};
struct line_ranges {
	VEC_OF(struct line_range)
};

/* ERR_CORRUPT when the table ends within an entry: what came before stays. `code_len` bounds the
 * last range of tables that do not say where they end (lnotab); UINT32_MAX where not known. */
int linetable_expand(unsigned int minor, const uint8_t *table, size_t len, uint32_t firstlineno,
		     uint32_t code_len, struct line_ranges *out, struct err *err);
/* The range that covers an offset, or NULL. Binary search. */
const struct line_range *linetable_at(const struct line_ranges *ranges, uint32_t offset);
/* Its line; 0 where no range covers the offset or it has no line. */
uint32_t linetable_find(const struct line_ranges *ranges, uint32_t offset);

#endif
