#ifndef PYPERF_KEYED_H
#define PYPERF_KEYED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A growing array of equal items in which each key is there once: an item's index is its id.
 *
 * The key is the first `key_size` bytes of an item, padding included (so keys have none). Ids are
 * dense from 0 and never change; items move when the array grows: keep ids, not pointers. Threads,
 * functions, frames, stacks and cells are all kept in one of these.
 */
struct keyed {
	unsigned char *items;
	uint32_t *slots; /* id + 1; 0 is free */
	uint32_t count, cap, slot_cap;
	uint32_t item_size, key_size;
};

/* Memory ran out, or there is no such key. */
#define KEYED_NONE UINT32_MAX

void keyed_init(struct keyed *keyed, size_t item_size, size_t key_size);
void keyed_fini(struct keyed *keyed);

/* The id of the key, added where it was absent with the rest of the item zero. `added` may be
 * NULL. */
uint32_t keyed_add(struct keyed *keyed, const void *key, bool *added);
uint32_t keyed_find(const struct keyed *keyed, const void *key);

static inline void *keyed_at(const struct keyed *keyed, uint32_t id)
{
	return keyed->items + (size_t)id * keyed->item_size;
}

#endif
