#ifndef PYPERF_KALLSYMS_H
#define PYPERF_KALLSYMS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kernel symbols of the running machine. All addresses are 0 under kptr_restrict: then opening
 * fails with ERR_PERMISSION and says so. */
struct kallsyms;

struct kallsyms_symbol {
	const char *name, *module; /* module "" for the kernel image; valid until close */
	uint64_t start, end;
};

int kallsyms_open(struct kallsyms **ks, const char *path /* NULL: /proc/kallsyms */,
		  struct err *err);
void kallsyms_close(struct kallsyms *ks);
bool kallsyms_find(const struct kallsyms *ks, uint64_t addr, struct kallsyms_symbol *symbol);
/* Address of a symbol by name ("_text"); 0 where there is none. */
uint64_t kallsyms_address(const struct kallsyms *ks, const char *name);

#endif
