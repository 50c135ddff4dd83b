#ifndef PYPERF_OUTPUT_NATIVE_CODE_H
#define PYPERF_OUTPUT_NATIVE_CODE_H

#include "base/strbuf.h"
#include "base/vec.h"
#include "profile/view.h"

#include <stdbool.h>

/*
 * The machine code of one native function with what each instruction cost: its instructions, and
 * in their order the sampled addresses that lie in none of them, which are all where the code is
 * not at hand.
 */
struct native_row {
	uint64_t addr;
	uint32_t size; /* 0: an address alone */
	uint32_t frame;
	size_t text;			 /* offset in native_code.text; raw */
	const struct view_count *counts; /* per event; NULL: no samples */
};

struct native_code {
	struct {
		VEC_OF(struct native_row)
	} rows;
	size_t instructions; /* of the rows, first; the others are addresses */
	struct strbuf text;
	struct err why; /* no instructions, since */
	struct view_address *addresses;
	size_t address_count;
	struct view_count *sums;
};

int native_code_open(struct native_code *code, struct profile *profile,
		     const struct view_filter *filter, uint32_t function, struct err *err);
void native_code_close(struct native_code *code);

static inline const char *native_code_text(const struct native_code *code,
					   const struct native_row *row)
{
	return row->size ? code->text.buf + row->text : "";
}
/* "sha256.c:312", by debug information: of a row with samples; nothing where there is none. */
void native_code_add_line(struct profile *profile, const struct native_row *row,
			  struct strbuf *out);

#endif
