#ifndef PYPERF_MAP_H
#define PYPERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A hash map from a 64-bit key to a 64-bit value (an id, an index, a count).
 *
 * Open addressing with linear probing; every key is allowed. A map that is all zero is empty and
 * ready. Values are small on purpose: what is large lives in a vec or an arena and the map holds
 * its index. For keys that are bytes use struct intern.
 */
struct map {
	struct map_slot *slots;
	size_t count, cap; /* cap is 0 or a power of two; count includes no tombstones */
	size_t used;	   /* count plus tombstones */
};

void map_fini(struct map *map);

/* The value's place, or NULL where the key is absent. Valid until the next map_put(). */
uint64_t *map_get(const struct map *map, uint64_t key);

/* The value's place, made with value 0 where the key was absent (*added says so; may be NULL).
 * NULL when memory runs out. */
uint64_t *map_put(struct map *map, uint64_t key, bool *added);

/* Returns whether the key was there. */
bool map_remove(struct map *map, uint64_t key);

/* Walks all entries in no order: *pos starts at 0; false at the end. */
bool map_next(const struct map *map, size_t *pos, uint64_t *key, uint64_t **value);

/* Bytes that the map holds from malloc. */
size_t map_bytes(const struct map *map);

/* Mixes two words into one key; a good hash, not an injective one. */
uint64_t map_mix(uint64_t a, uint64_t b);

#endif
