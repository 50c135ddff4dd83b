#ifndef PYPERF_FALLBACK_H
#define PYPERF_FALLBACK_H

#include "base/map.h"
#include "unwind/files.h"

/*
 * The way on where no table covers an address, best first: generated code's own tables, code that
 * is known by its bytes, the frame pointer, a search of the stack.
 */

/* What a program's entry point needs at most to call on: the frame there is the outermost. */
#define FALLBACK_ENTRY_BYTES 128u

struct fallback {
	struct map known; /* ip -> rule by its bytes, also that there is none */
};

void fallback_fini(struct fallback *fallback);

/* By the tables that generated code has. RULE_NONE where it has none. */
uint32_t fallback_generated(struct modules *modules, uint64_t pc);
/* By the bytes around the ip, or where they are not known by what the source says of them. */
uint32_t fallback_code(struct fallback *fallback, struct modules *modules,
		       const struct unwind_regs *regs, bool exact);

/* These change the registers and set cfa; false, and nothing has changed, where they lead nowhere.
 */
typedef bool fallback_read(void *ctx, uint64_t addr, void *buf, size_t len);
bool fallback_frame_pointer(struct modules *modules, fallback_read *read, void *ctx,
			    struct unwind_regs *regs, uint64_t *cfa);
bool fallback_search(struct modules *modules, fallback_read *read, void *ctx, bool exact,
		     struct unwind_regs *regs, uint64_t *cfa);

#endif
