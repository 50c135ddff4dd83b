#ifndef PYPERF_UNWIND_H
#define PYPERF_UNWIND_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Native stacks from registers and memory, by unwind tables.
 *
 * The boundary behind which a library does it: no type of the library leaks. A back end is one row
 * of `struct unwind_backend`; one unwinder serves one process generation (its maps do not change
 * under it) and is used for many stacks.
 */
struct unwind_module {
	const char *path;    /* as this process can open it */
	uint64_t start, end; /* of the executable mapping */
	uint64_t file_offset;
};

struct unwind_source {
	/* Memory of the target; 0 or -1. */
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	/* The module mapped at an address; 0, or -1 where there is none. */
	int (*module)(void *ctx, uint64_t addr, struct unwind_module *module);
	void *ctx;
};

struct unwind_regs {
	/* By DWARF register number of the host's architecture (System V psABI); x86-64: 7 is rsp,
	 * 16 the return address column, where ip goes. */
	uint64_t reg[33];
	uint64_t ip, sp;
};

struct unwinder;
struct unwind_backend {
	const char *name;
	struct unwinder *(*open)(const struct unwind_source *source, struct err *err);
	/* Fills ips leaf first; the count, at least 1 (ips[0] is regs->ip). *complete tells whether
	 * the walk reached the root. */
	size_t (*stack)(struct unwinder *unwinder, const struct unwind_regs *regs, uint64_t *ips,
			size_t max, int *complete);
	void (*close)(struct unwinder *unwinder);
};

/* The back ends that were built in, best first; NULL ends the list. */
const struct unwind_backend *const *unwind_backends(void);

#endif
