#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_SIZE (256u << 10)
#define ALIGNMENT 16u

struct arena_chunk {
	struct arena_chunk *next;
	_Alignas(ALIGNMENT) char bytes[];
};

void arena_init(struct arena *arena)
{
	*arena = (struct arena){0};
}

void arena_fini(struct arena *arena)
{
	struct arena_chunk *chunk = arena->chunks;

	while (chunk) {
		struct arena_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	*arena = (struct arena){0};
}

static struct arena_chunk *add_chunk(struct arena *arena, size_t size)
{
	struct arena_chunk *chunk = calloc(1, sizeof(*chunk) + size);

	if (!chunk)
		return NULL;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->total += sizeof(*chunk) + size;
	return chunk;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_chunk *chunk;
	void *result;

	if (size > SIZE_MAX - CHUNK_SIZE)
		return NULL;
	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (size == 0)
		size = ALIGNMENT;
	if (size > CHUNK_SIZE / 4 && size > (size_t)(arena->end - arena->next)) {
		/* A large block gets a chunk of its own, so the rest of the open one is not wasted.
		 */
		chunk = add_chunk(arena, size);
		return chunk ? chunk->bytes : NULL;
	}
	if (size > (size_t)(arena->end - arena->next)) {
		chunk = add_chunk(arena, CHUNK_SIZE);
		if (!chunk)
			return NULL;
		arena->next = chunk->bytes;
		arena->end = chunk->bytes + CHUNK_SIZE;
	}
	result = arena->next;
	arena->next += size;
	return result;
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? arena_alloc(arena, len + 1) : NULL;

	if (copy && len)
		memcpy(copy, text, len);
	return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return arena_strndup(arena, text, strlen(text));
}
