#include "base/map.h"

#include <stdlib.h>

enum { EMPTY = 0, FULL = 1, TOMBSTONE = 2 };

struct map_slot {
	uint64_t key, value;
	uint8_t state;
};

/* The finaliser of MurmurHash3: every input bit reaches every output bit. */
static uint64_t scramble(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	x ^= x >> 33;
	return x;
}

uint64_t map_mix(uint64_t a, uint64_t b)
{
	return scramble(a + 0x9e3779b97f4a7c15ull) ^ (scramble(b) * 0x9ddfea08eb382d69ull);
}

void map_fini(struct map *map)
{
	free(map->slots);
	*map = (struct map){0};
}

static struct map_slot *find(const struct map *map, uint64_t key)
{
	size_t mask = map->cap - 1;

	if (!map->cap)
		return NULL;
	for (size_t i = scramble(key) & mask;; i = (i + 1) & mask) {
		struct map_slot *slot = &map->slots[i];

		if (slot->state == EMPTY)
			return NULL;
		if (slot->state == FULL && slot->key == key)
			return slot;
	}
}

static bool rehash(struct map *map, size_t cap)
{
	struct map_slot *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < map->cap; i++) {
		size_t at;

		if (map->slots[i].state != FULL)
			continue;
		at = scramble(map->slots[i].key) & (cap - 1);
		while (slots[at].state == FULL)
			at = (at + 1) & (cap - 1);
		slots[at] = map->slots[i];
	}
	free(map->slots);
	map->slots = slots;
	map->cap = cap;
	map->used = map->count;
	return true;
}

uint64_t *map_get(const struct map *map, uint64_t key)
{
	struct map_slot *slot = find(map, key);

	return slot ? &slot->value : NULL;
}

uint64_t *map_put(struct map *map, uint64_t key, bool *added)
{
	struct map_slot *slot = find(map, key);
	size_t at;

	if (added)
		*added = !slot;
	if (slot)
		return &slot->value;
	/* Keep a quarter free; grow only when live entries need it, else sweep tombstones. */
	if ((map->used + 1) * 4 > map->cap * 3) {
		size_t cap = map->cap ? map->cap : 16;

		while ((map->count + 1) * 2 > cap)
			cap *= 2;
		if (!rehash(map, cap))
			return NULL;
	}
	at = scramble(key) & (map->cap - 1);
	while (map->slots[at].state == FULL)
		at = (at + 1) & (map->cap - 1);
	if (map->slots[at].state == EMPTY)
		map->used++;
	map->slots[at] = (struct map_slot){.key = key, .state = FULL};
	map->count++;
	return &map->slots[at].value;
}

bool map_remove(struct map *map, uint64_t key)
{
	struct map_slot *slot = find(map, key);

	if (!slot)
		return false;
	slot->state = TOMBSTONE;
	map->count--;
	return true;
}

bool map_next(const struct map *map, size_t *pos, uint64_t *key, uint64_t **value)
{
	for (; *pos < map->cap; (*pos)++) {
		struct map_slot *slot = &map->slots[*pos];

		if (slot->state != FULL)
			continue;
		*key = slot->key;
		*value = &slot->value;
		(*pos)++;
		return true;
	}
	return false;
}

size_t map_bytes(const struct map *map)
{
	return map->cap * sizeof(*map->slots);
}
