#ifndef PYPERF_JIT_H
#define PYPERF_JIT_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "perfmap/perfmap.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The perf maps of a recording's processes: from the file or, where it has none and was made on
 * this host, from /tmp. A forked child that has no entry for an address has its parent's.
 */
struct jit {
	struct {
		VEC_OF(struct perfmap *)
	} maps;
	struct map by_pid;  /* index + 1 into maps; 0: looked for in vain */
	struct map parents; /* pid -> ppid */
	bool live;	    /* may be read from this host */
};

void jit_fini(struct jit *jit);
int jit_load(struct jit *jit, struct bytes section, struct err *err);
/* Notes a fork; false when memory ran out. */
bool jit_fork(struct jit *jit, uint32_t pid, uint32_t ppid);
bool jit_find(struct jit *jit, uint32_t pid, uint64_t addr, struct perfmap_entry *entry);

#endif
