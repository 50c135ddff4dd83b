#include "data/file.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/*
 * Expands the payloads of compressed records into a chain of blocks.
 *
 * perf writes one zstd frame over many records and cuts it, and the stream of records inside,
 * wherever a buffer ended; we write one frame per record. So one decoder lives as long as the file,
 * and what is expanded is one stream of bytes. Expansion is lazy: a block is filled when its
 * records are asked for, so that a caller who discards keeps few of them. A frame whose size is
 * told gets room for all of it, which lets zstd write the block directly.
 */
struct expander {
	ZSTD_DStream *stream;
	struct chain blocks;
	size_t at; /* unread is [at, last->fill) */
	const unsigned char *in;
	size_t in_len;
	bool new_frame, held_back;
	uint64_t total_in, total_out;
};

/* Records compress 5 to 40 times. Far beyond that it is no recording but a bomb. */
#define EXPANSION_FREE (64ull << 20)
#define EXPANSION_MAX 1000u

struct expander *expander_new(void)
{
	struct expander *expander = calloc(1, sizeof(*expander));

	if (!expander)
		return NULL;
	expander->stream = ZSTD_createDStream();
	expander->new_frame = true;
	if (!expander->stream) {
		free(expander);
		return NULL;
	}
	return expander;
}

void expander_free(struct expander *expander)
{
	if (!expander)
		return;
	ZSTD_freeDStream(expander->stream);
	chain_fini(&expander->blocks);
	free(expander);
}

void expander_feed(struct expander *expander, const void *in, size_t len)
{
	expander->in = in;
	expander->in_len = len;
	expander->total_in += len;
}

/* A last block with room for what is expanded next, what is unread at its front if it is new. */
static struct block *make_room(struct expander *expander, uint64_t position)
{
	struct block *block = expander->blocks.last;
	size_t unread = block ? block->fill - expander->at : 0;
	size_t want = FORMAT_RECORD_MAX;
	const unsigned char *from;

	if (expander->new_frame && expander->in_len) {
		unsigned long long size = ZSTD_getFrameContentSize(expander->in, expander->in_len);

		if (size <= BLOCK_SIZE - FORMAT_RECORD_MAX)
			want = (size_t)size;
	}
	if (block && block->fill < block->cap && block->cap - block->fill >= want)
		return block;
	from = block ? block->data + expander->at : NULL;
	block = chain_push(&expander->blocks, BLOCK_SIZE, position);
	if (!block)
		return NULL;
	if (unread)
		memcpy(block->data, from, unread);
	block->fill = unread;
	expander->at = 0;
	return block;
}

int expander_peek(struct expander *expander, size_t want, uint64_t position,
		  const unsigned char **data, size_t *have, struct err *err)
{
	struct block *block = expander->blocks.last;

	while ((!block || block->fill - expander->at < want) &&
	       (expander->in_len || expander->held_back)) {
		ZSTD_inBuffer in = {.src = expander->in, .size = expander->in_len};
		ZSTD_outBuffer out;
		size_t rc;

		block = make_room(expander, position);
		if (!block)
			return err_nomem(err);
		out = (ZSTD_outBuffer){.dst = block->data + block->fill,
				       .size = block->cap - block->fill};
		rc = ZSTD_decompressStream(expander->stream, &out, &in);
		if (ZSTD_isError(rc))
			return err_set(err, ERR_CORRUPT, "compressed data is broken: %s",
				       ZSTD_getErrorName(rc));
		expander->in += in.pos;
		expander->in_len -= in.pos;
		block->fill += out.pos;
		expander->total_out += out.pos;
		expander->new_frame = rc == 0;
		expander->held_back = rc != 0 && out.pos == out.size;
		if (expander->total_out > EXPANSION_FREE &&
		    (expander->total_out - EXPANSION_FREE) / EXPANSION_MAX > expander->total_in)
			return err_set(err, ERR_CORRUPT,
				       "compressed data expands more than %u times", EXPANSION_MAX);
	}
	*data = block ? block->data + expander->at : NULL;
	*have = block ? block->fill - expander->at : 0;
	return 0;
}

void expander_take(struct expander *expander, size_t len)
{
	expander->at += len;
}

void expander_release(struct expander *expander, uint64_t position)
{
	chain_release(&expander->blocks, position);
}
