#ifndef PYPERF_MAPSET_H
#define PYPERF_MAPSET_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The mappings of one address space, sorted and disjoint; shared between a parent and the children
 * that have changed nothing yet. A copy of a large set lies over it as a base and holds only what
 * differs, so that thousands of forked servers do not each hold all that their parent maps.
 */
struct mapset_entry {
	uint64_t start, end; /* end is the first address behind, UINT64_MAX for the very last */
	uint64_t pgoff;
	uint32_t dso;
};

struct mapset {
	VEC_OF(struct mapset_entry)
	size_t last; /* where the last look-up hit */
	uint64_t generation;
	uint32_t users;
	struct mapset *base; /* maps what no entry covers; has no base itself. NULL: nothing */
};

/* A new set has one user; NULL when memory runs out. */
struct mapset *mapset_new(uint64_t generation);
/* The set may become the base of the copy: a set with more than one user must not be changed. */
struct mapset *mapset_copy(struct mapset *set, uint64_t generation);
struct mapset *mapset_share(struct mapset *set);
/* Freed when its last user releases it. */
void mapset_release(struct mapset *set);

/* The new mapping takes the place of what it covers. False, and nothing has changed, when memory
 * runs out. */
bool mapset_replace(struct mapset *set, const struct mapset_entry *entry);
/* The new mapping takes only what is free. For a set without a base. */
bool mapset_fill(struct mapset *set, const struct mapset_entry *entry);
/* The mapping at the address, as far as it is still mapped in one piece; false where there is none.
 */
bool mapset_find(struct mapset *set, uint64_t addr, struct mapset_entry *found);

#endif
