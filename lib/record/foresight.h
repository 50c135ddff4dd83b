#ifndef PYPERF_FORESIGHT_H
#define PYPERF_FORESIGHT_H

#include "process/memory.h"

#include <stdbool.h>

/*
 * Reading a process at places that will, for the most part, be those of the time before: they are
 * all read with one system call, where each would cost one of its own. Walking a stack that has not
 * changed much since is such a case.
 *
 *      foresight_begin(foresight, pid);
 *      ... read through memory_of_foresight() ...
 *
 * What it gives is the memory as of foresight_begin() or later. All zero is a foresight that has
 * seen nothing; it owns its memory.
 */
#define FORESIGHT_PLACES 128
#define FORESIGHT_BYTES (32u << 10)

struct foresight_place {
	uint64_t addr;
	uint32_t len, offset; /* in bytes */
};

struct foresight {
	struct memory_process *live;
	struct foresight_place *places; /* those that were read ahead, then those of this time */
	unsigned char *bytes;
	unsigned int ahead, count, cursor;
	uint32_t used; /* of bytes, by the places of this time */
};

/* Out of memory it reads nothing ahead. */
void foresight_begin(struct foresight *foresight, struct memory_process *live);
struct memory memory_of_foresight(struct foresight *foresight);
void foresight_fini(struct foresight *foresight);

#endif
