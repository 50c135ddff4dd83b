#ifndef PYPERF_CODE_TABLE_H
#define PYPERF_CODE_TABLE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "perfmap/code.h"
#include "perfmap/linetable.h"

/* The inside of the table of code objects, shared by the code_*.c files only; see code.c. */
struct entry {
	struct py_code code;
	uint64_t addr;
	uint32_t lineage, fingerprint;
	uint32_t next; /* of the same mixed key */
	bool expanded;
	uint32_t recent; /* index into ranges */
	struct line_ranges ranges;
};

struct py_codes {
	struct intern *strings;
	struct arena arena;
	struct map by_key;
	struct {
		VEC_OF(struct entry *)
	} entries;
};

struct name_ids {
	VEC_OF(uint32_t)
};
/* Copies the lists; -1 when memory ran out. */
int py_codes_set_names(struct py_codes *codes, int index, const struct name_ids lists[PY_NAMES]);

#endif
