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
struct keyed_slot {
	uint32_t next; /* id + 1; 0: free */
	uint32_t tag;  /* of the key's hash: others are told apart without a look at the item */
};

struct keyed {
	unsigned char *items;
	struct keyed_slot *slots;
	uint32_t count, cap, slot_cap;
	uint32_t item_size, key_size;
	uint64_t (*hash)(const void *key); /* NULL: XXH3 */
};

/* Memory ran out, or there is no such key. */
#define KEYED_NONE UINT32_MAX

void keyed_init(struct keyed *keyed, size_t item_size, size_t key_size);
/* With a hash of its own, where keys that follow each other should lie near each other: the low
 * half chooses the place, the high half tells keys apart. */
void keyed_init_hash(struct keyed *keyed, size_t item_size, size_t key_size,
		     uint64_t (*hash)(const void *key));
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
