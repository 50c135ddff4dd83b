#ifndef PYPERF_DATA_SOURCE_H
#define PYPERF_DATA_SOURCE_H

#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where the bytes of a recording come from, and the memory that records live in.
 *
 * A regular file is mapped and its records are used in place. A stream is read into a chain of
 * blocks, and so is what compressed records expand to. A record never spans two blocks: its
 * beginning is moved to the next one. Memory is given back in the order of positions (data.h): a
 * block notes the position that reading had reached when the block was left, and a mapped file
 * gets such a mark every few megabytes.
 */
struct block {
	struct block *next;
	uint64_t end; /* every record in it lies below this position; known once it is left */
	size_t cap, fill;
	_Alignas(16) unsigned char data[];
};

#define BLOCK_SIZE (1u << 20)

struct chain {
	struct block *first, *last, *spare;
	unsigned int spares;
};

/* A new last block of at least `size` bytes; what was last ends at `position`. NULL: no memory. */
struct block *chain_push(struct chain *chain, size_t size, uint64_t position);
void chain_release(struct chain *chain, uint64_t position);
void chain_fini(struct chain *chain);

struct source_mark {
	uint64_t position, at;
};

struct source {
	int fd;
	bool mapped, eof;
	const unsigned char *map;
	uint64_t map_size;
	uint64_t at;  /* offset of the next byte */
	uint64_t end; /* offset to stop at; UINT64_MAX for a stream */

	struct chain blocks; /* of a stream; unread is [block_at, last->fill) */
	size_t block_at;

	struct {
		VEC_OF(struct source_mark)
	} marks; /* of a map */
	size_t marks_done;
	uint64_t marked, dropped;
};

int source_open(struct source *source, const char *path, struct err *err);
void source_close(struct source *source);
/* Turns a stream of which nothing was taken into a map by way of an unlinked file. */
int source_spool(struct source *source, struct err *err);

/* Makes up to `want` (at most BLOCK_SIZE) bytes visible at *data without taking them; *have is less
 * than `want` only at the end. They stay where they are until source_release(). */
int source_peek(struct source *source, size_t want, uint64_t position, const unsigned char **data,
		size_t *have, struct err *err);
/* Takes what was seen. */
void source_take(struct source *source, size_t len);
/* Skips bytes that nobody wants; *skipped is less than `len` only at the end. */
int source_skip(struct source *source, uint64_t len, uint64_t *skipped, struct err *err);
/* Notes that all records in what was taken so far lie below `position`. */
void source_mark(struct source *source, uint64_t position);
void source_release(struct source *source, uint64_t position);

#endif
