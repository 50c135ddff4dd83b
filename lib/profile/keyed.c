#include "profile/keyed.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define COUNT_MAX (1u << 30)

void keyed_init(struct keyed *keyed, size_t item_size, size_t key_size)
{
	*keyed = (struct keyed){.item_size = (uint32_t)item_size, .key_size = (uint32_t)key_size};
}

void keyed_init_hash(struct keyed *keyed, size_t item_size, size_t key_size,
		     uint64_t (*hash)(const void *key))
{
	keyed_init(keyed, item_size, key_size);
	keyed->hash = hash;
}

void keyed_fini(struct keyed *keyed)
{
	free(keyed->items);
	free(keyed->slots);
	keyed->items = NULL;
	keyed->slots = NULL;
	keyed->count = keyed->cap = keyed->slot_cap = 0;
}

static uint64_t hash_of(const struct keyed *keyed, const void *key)
{
	return keyed->hash ? keyed->hash(key) : XXH3_64bits(key, keyed->key_size);
}

/* The low bits of a hash choose the place, the high ones are the tag. */
static uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32);
}

/* The slot of the key, or the free one where it belongs. */
static struct keyed_slot *locate(const struct keyed *keyed, const void *key, uint64_t hash)
{
	uint32_t mask = keyed->slot_cap - 1;

	for (uint32_t at = (uint32_t)hash & mask;; at = (at + 1) & mask) {
		struct keyed_slot *slot = &keyed->slots[at];

		if (!slot->next ||
		    (slot->tag == tag_of(hash) &&
		     memcmp(keyed_at(keyed, slot->next - 1), key, keyed->key_size) == 0))
			return slot;
	}
}

static bool grow_items(struct keyed *keyed)
{
	/* By half, not by two: there may be a million, and realloc moves large blocks by remapping.
	 */
	uint32_t cap = keyed->cap ? keyed->cap + keyed->cap / 2 : 64;
	void *items = realloc(keyed->items, (size_t)cap * keyed->item_size);

	if (!items)
		return false;
	keyed->items = items;
	keyed->cap = cap;
	return true;
}

static bool grow_slots(struct keyed *keyed)
{
	uint32_t cap = keyed->slot_cap ? keyed->slot_cap * 2 : 128, mask = cap - 1;
	struct keyed_slot *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t id = 0; id < keyed->count; id++) {
		uint64_t hash = hash_of(keyed, keyed_at(keyed, id));
		uint32_t at = (uint32_t)hash & mask;

		while (slots[at].next)
			at = (at + 1) & mask;
		slots[at] = (struct keyed_slot){id + 1, tag_of(hash)};
	}
	free(keyed->slots);
	keyed->slots = slots;
	keyed->slot_cap = cap;
	return true;
}

uint32_t keyed_add(struct keyed *keyed, const void *key, bool *added)
{
	uint64_t hash = hash_of(keyed, key);
	struct keyed_slot *slot;
	unsigned char *item;

	if (added)
		*added = false;
	if (keyed->count >= COUNT_MAX)
		return KEYED_NONE;
	if (keyed->count + 1 > keyed->slot_cap / 4 * 3 && !grow_slots(keyed))
		return KEYED_NONE;
	slot = locate(keyed, key, hash);
	if (slot->next)
		return slot->next - 1;
	if (keyed->count == keyed->cap && !grow_items(keyed))
		return KEYED_NONE;
	item = keyed_at(keyed, keyed->count);
	memcpy(item, key, keyed->key_size);
	memset(item + keyed->key_size, 0, keyed->item_size - keyed->key_size);
	*slot = (struct keyed_slot){++keyed->count, tag_of(hash)};
	if (added)
		*added = true;
	return keyed->count - 1;
}

uint32_t keyed_find(const struct keyed *keyed, const void *key)
{
	uint32_t next = keyed->slot_cap ? locate(keyed, key, hash_of(keyed, key))->next : 0;

	return next ? next - 1 : KEYED_NONE;
}
