#ifndef PYPERF_MAPSET_H
#define PYPERF_MAPSET_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/* The mappings of one address space, sorted and disjoint; shared between a parent and the children
 * that have changed nothing yet. */
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
};

/* A new set has one user; NULL when memory runs out. */
struct mapset *mapset_new(uint64_t generation);
struct mapset *mapset_copy(const struct mapset *set, uint64_t generation);
struct mapset *mapset_share(struct mapset *set);
/* Freed when its last user releases it. */
void mapset_release(struct mapset *set);

/* The new mapping takes the place of what it covers. False, and nothing has changed, when memory
 * runs out. */
bool mapset_replace(struct mapset *set, const struct mapset_entry *entry);
/* The new mapping takes only what is free. */
bool mapset_fill(struct mapset *set, const struct mapset_entry *entry);
/* NULL where nothing is mapped. Valid until the set changes. */
const struct mapset_entry *mapset_find(struct mapset *set, uint64_t addr);

#endif
