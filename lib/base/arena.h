#ifndef PYPERF_ARENA_H
#define PYPERF_ARENA_H

#include <stddef.h>

/*
 * Memory that is freed all at once.
 *
 * Pointers stay valid until arena_fini(); nothing moves. Allocation is aligned to 16 bytes and
 * zeroed. NULL means that memory ran out.
 */

struct arena {
	struct arena_chunk *chunks;
	char *next, *end;
	size_t total; /* bytes held from malloc */
};

void arena_init(struct arena *arena);
void arena_fini(struct arena *arena);
void *arena_alloc(struct arena *arena, size_t size);
/* Copies len bytes and appends a NUL. */
char *arena_strndup(struct arena *arena, const char *text, size_t len);
char *arena_strdup(struct arena *arena, const char *text);

#endif
