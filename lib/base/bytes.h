#ifndef PYPERF_BYTES_H
#define PYPERF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A bounds-checked view that is read from front to back: the only way a parser here touches input.
 *
 * Reading past the end yields zero and sets `bad`, which stays set; a parser may read a whole
 * record and look once. Words are in the byte order of the file: `swap` turns them around. Views
 * own nothing and are valid as long as the memory below them.
 */
struct bytes {
	const unsigned char *at, *end;
	bool bad, swap;
};

/* Nothing may be NULL, to which C allows no addition, not even of 0. */
static inline struct bytes bytes_of(const void *data, size_t len)
{
	return (struct bytes){.at = data, .end = len ? (const unsigned char *)data + len : data};
}

static inline size_t bytes_left(const struct bytes *b)
{
	return (size_t)(b->end - b->at);
}

/* The next len bytes, or NULL (and bad) when fewer are left. */
static inline const void *bytes_take(struct bytes *b, size_t len)
{
	const void *at = b->at;

	if (len > bytes_left(b)) {
		b->bad = true;
		b->at = b->end;
		return NULL;
	}
	if (len)
		b->at += len;
	return at;
}

/* A view of the next len bytes; empty and bad when fewer are left. */
static inline struct bytes bytes_sub(struct bytes *b, size_t len)
{
	const void *at = bytes_take(b, len);
	struct bytes sub = {.swap = b->swap, .bad = !at};

	if (at) {
		sub.at = at;
		sub.end = sub.at + len;
	} else {
		sub.at = sub.end = b->end;
	}
	return sub;
}

static inline uint8_t bytes_u8(struct bytes *b)
{
	const uint8_t *at = bytes_take(b, 1);

	return at ? *at : 0;
}

static inline uint16_t bytes_u16(struct bytes *b)
{
	const void *at = bytes_take(b, sizeof(uint16_t));
	uint16_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return b->swap ? __builtin_bswap16(v) : v;
}

static inline uint32_t bytes_u32(struct bytes *b)
{
	const void *at = bytes_take(b, sizeof(uint32_t));
	uint32_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return b->swap ? __builtin_bswap32(v) : v;
}

static inline uint64_t bytes_u64(struct bytes *b)
{
	const void *at = bytes_take(b, sizeof(uint64_t));
	uint64_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return b->swap ? __builtin_bswap64(v) : v;
}

/* The text up to a NUL within the view; NULL (and bad) when there is no NUL. Skips the NUL. */
static inline const char *bytes_cstr(struct bytes *b)
{
	const unsigned char *nul = bytes_left(b) ? memchr(b->at, 0, bytes_left(b)) : NULL;
	const char *text = (const char *)b->at;

	if (!nul) {
		b->bad = true;
		b->at = b->end;
		return NULL;
	}
	b->at = nul + 1;
	return text;
}

/* What strbuf_blob() wrote: u32 length, then the bytes. */
static inline struct bytes bytes_blob(struct bytes *b)
{
	uint32_t len = bytes_u32(b);

	return bytes_sub(b, len);
}

#endif
