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

void keyed_fini(struct keyed *keyed)
{
	free(keyed->items);
	free(keyed->slots);
	keyed->items = NULL;
	keyed->slots = NULL;
	keyed->count = keyed->cap = keyed->slot_cap = 0;
}

/* The slot of the key, or the free one where it belongs. */
static uint32_t *locate(const struct keyed *keyed, const void *key)
{
	uint32_t mask = keyed->slot_cap - 1;
	uint32_t at = (uint32_t)XXH3_64bits(key, keyed->key_size) & mask;

	for (;; at = (at + 1) & mask) {
		uint32_t *slot = &keyed->slots[at];

		if (!*slot || memcmp(keyed_at(keyed, *slot - 1), key, keyed->key_size) == 0)
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
	uint32_t cap = keyed->slot_cap ? keyed->slot_cap * 2 : 128;
	uint32_t *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return false;
	free(keyed->slots);
	keyed->slots = slots;
	keyed->slot_cap = cap;
	for (uint32_t id = 0; id < keyed->count; id++)
		*locate(keyed, keyed_at(keyed, id)) = id + 1;
	return true;
}

uint32_t keyed_add(struct keyed *keyed, const void *key, bool *added)
{
	unsigned char *item;
	uint32_t *slot;

	if (added)
		*added = false;
	if (keyed->count >= COUNT_MAX)
		return KEYED_NONE;
	if (keyed->count + 1 > keyed->slot_cap / 4 * 3 && !grow_slots(keyed))
		return KEYED_NONE;
	slot = locate(keyed, key);
	if (*slot)
		return *slot - 1;
	if (keyed->count == keyed->cap && !grow_items(keyed))
		return KEYED_NONE;
	item = keyed_at(keyed, keyed->count);
	memcpy(item, key, keyed->key_size);
	memset(item + keyed->key_size, 0, keyed->item_size - keyed->key_size);
	*slot = ++keyed->count;
	if (added)
		*added = true;
	return keyed->count - 1;
}

uint32_t keyed_find(const struct keyed *keyed, const void *key)
{
	uint32_t slot = keyed->slot_cap ? *locate(keyed, key) : 0;

	return slot ? slot - 1 : KEYED_NONE;
}
