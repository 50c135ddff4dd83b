#ifndef PYPERF_SAVED_INLINES_H
#define PYPERF_SAVED_INLINES_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "symbol/elf.h"

/*
 * What the compiler put into its callers at the addresses of one file that were hit: the part of
 * the section SYMBOL that spares a report the file's DWARF (lib/data/FORMAT.md).
 */
struct saved_call {
	uint32_t name; /* in names */
	uint32_t line;
};

struct saved_site {
	uint64_t vaddr;
	uint32_t first, count; /* in calls, innermost first */
};

struct saved_inlines {
	struct intern names;
	struct {
		VEC_OF(struct saved_site)
	} sites; /* by vaddr once decoded */
	struct {
		VEC_OF(struct saved_call)
	} calls;
};

void saved_inlines_init(struct saved_inlines *inlines);
void saved_inlines_fini(struct saved_inlines *inlines);

/* An address, once, and what elf_inlined() says of it. False when memory runs out. */
bool saved_inlines_add(struct saved_inlines *inlines, uint64_t vaddr,
		       const struct elf_inlined *calls, size_t count);
void saved_inlines_encode(const struct saved_inlines *inlines, struct strbuf *section);

/* Into one that was initialised. `section` turns bad where it is cut short or makes no sense. */
int saved_inlines_decode(struct saved_inlines *inlines, struct bytes *section, struct err *err);
/* As elf_inlined(), without depths; names are valid as long as `inlines`. */
size_t saved_inlines_at(const struct saved_inlines *inlines, uint64_t vaddr,
			struct elf_inlined *calls, size_t max);

#endif
