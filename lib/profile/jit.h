#ifndef PYPERF_JIT_H
#define PYPERF_JIT_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "perfmap/jitdump.h"
#include "perfmap/perfmap.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The code that the processes of a recording made at run time, by their jitdumps and perf maps:
 * from the file or, where it has none of them and was made on this host, from where they lie.
 *
 * A dump tells the time of its code, a map does not. A forked child has what its parent had, of
 * dumps as of the fork; exec drops that. What a process says itself counts before what its parent
 * said, and its dump before its map. Side-band and samples come in order of time.
 *
 * A map of a process that runs is read again, where it has grown, when it does not know an address.
 */
struct jit_map {
	struct perfmap *map; /* NULL: there is none */
	uint64_t size;	     /* of the file */
	uint64_t asked;	     /* when */
};

struct jit {
	struct {
		VEC_OF(struct jit_map)
	} maps;
	struct {
		VEC_OF(struct jit_dump)
	} dumps;
	struct {
		VEC_OF(struct jit_process)
	} processes;
	struct map by_pid;     /* index + 1 into processes */
	struct map map_by_pid; /* index + 1 into maps */
	bool live;	       /* dumps may be read from this host */
	bool maps_live;	       /* and maps */
	bool maps_grow;	       /* whose processes run */
	bool timed;	       /* the recording's clock is that of dumps */
	uint64_t skipped;      /* lines and records that make no sense */
};

/* What lies at an address. */
struct jit_hit {
	struct perfmap_entry entry;
	const struct jitdump *dump; /* NULL: from a perf map */
	const struct jitdump_code *code;
};

void jit_fini(struct jit *jit);
int jit_load_maps(struct jit *jit, struct bytes section, struct err *err);
int jit_load_dumps(struct jit *jit, struct bytes section, struct err *err);

/* A process maps a file: nothing happens unless it is named like a jitdump. */
int jit_mmap(struct jit *jit, uint32_t pid, const char *path, struct err *err);
int jit_fork(struct jit *jit, uint32_t pid, uint32_t ppid, uint64_t time, struct err *err);
void jit_exec(struct jit *jit, uint32_t pid);

/* Changes whenever jit_find() may find something else for the process; 0 while it has no dump. */
uint64_t jit_epoch(struct jit *jit, uint32_t pid, uint64_t time);
bool jit_find(struct jit *jit, uint32_t pid, uint64_t time, uint64_t addr, struct jit_hit *hit);

#endif
