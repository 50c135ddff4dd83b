#include "base/intern.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct intern_entry {
	const char *bytes;
	uint64_t hash;
	size_t len;
};

void intern_init(struct intern *intern)
{
	*intern = (struct intern){0};
	arena_init(&intern->arena);
}

void intern_fini(struct intern *intern)
{
	arena_fini(&intern->arena);
	free(intern->entries);
	free(intern->slots);
	*intern = (struct intern){0};
}

/* The slot that holds the string, or the empty one where it belongs. Slots hold id, 0 is free. */
static uint32_t *locate(const struct intern *intern, const void *bytes, size_t len, uint64_t hash)
{
	uint32_t mask = intern->slot_cap - 1;

	for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
		uint32_t id = intern->slots[i];

		if (!id)
			return &intern->slots[i];
		if (intern->entries[id - 1].hash == hash && intern->entries[id - 1].len == len &&
		    memcmp(intern->entries[id - 1].bytes, bytes, len) == 0)
			return &intern->slots[i];
	}
}

static int grow(struct intern *intern)
{
	if (intern->count == intern->cap) {
		uint32_t cap = intern->cap ? intern->cap * 2 : 64;
		void *moved = realloc(intern->entries, cap * sizeof(*intern->entries));

		if (!moved)
			return -1;
		intern->entries = moved;
		intern->cap = cap;
	}
	if ((intern->count + 1) * 2 > intern->slot_cap) {
		uint32_t cap = intern->slot_cap ? intern->slot_cap * 2 : 128;
		uint32_t *slots = calloc(cap, sizeof(*slots));

		if (!slots)
			return -1;
		free(intern->slots);
		intern->slots = slots;
		intern->slot_cap = cap;
		for (uint32_t id = 1; id <= intern->count; id++) {
			const struct intern_entry *e = &intern->entries[id - 1];

			*locate(intern, e->bytes, e->len, e->hash) = id;
		}
	}
	return 0;
}

uint32_t intern_add(struct intern *intern, const void *bytes, size_t len)
{
	struct intern_entry *entry;
	uint64_t hash;
	uint32_t *slot;
	char *copy;

	if (len == 0)
		return 0;
	if (intern->count >= (1u << 30) || grow(intern) < 0)
		return INTERN_NONE;
	hash = XXH3_64bits(bytes, len);
	slot = locate(intern, bytes, len, hash);
	if (*slot)
		return *slot;
	copy = arena_strndup(&intern->arena, bytes, len);
	if (!copy)
		return INTERN_NONE;
	entry = &intern->entries[intern->count++];
	*entry = (struct intern_entry){.bytes = copy, .hash = hash, .len = len};
	*slot = intern->count;
	return intern->count;
}

uint32_t intern_str(struct intern *intern, const char *text)
{
	return intern_add(intern, text, strlen(text));
}

uint32_t intern_find(const struct intern *intern, const void *bytes, size_t len)
{
	uint32_t id;

	if (len == 0)
		return 0;
	if (!intern->slot_cap)
		return INTERN_NONE;
	id = *locate(intern, bytes, len, XXH3_64bits(bytes, len));
	return id ? id : INTERN_NONE;
}

const char *intern_text(const struct intern *intern, uint32_t id, size_t *len)
{
	if (id == 0 || id > intern->count) {
		if (len)
			*len = 0;
		return "";
	}
	if (len)
		*len = intern->entries[id - 1].len;
	return intern->entries[id - 1].bytes;
}
