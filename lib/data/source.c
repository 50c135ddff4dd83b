#include "data/source.h"

#include "base/io.h"
#include "base/progress.h"
#include "base/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPARES_MAX 4u
#define MARK_BYTES (4u << 20)

struct block *chain_push(struct chain *chain, size_t size, uint64_t position)
{
	struct block *block = NULL;

	if (size <= BLOCK_SIZE && chain->spare) {
		block = chain->spare;
		chain->spare = block->next;
		chain->spares--;
	} else {
		size = size > BLOCK_SIZE ? size : BLOCK_SIZE;
		block = malloc(sizeof(*block) + size);
		if (!block)
			return NULL;
		block->cap = size;
	}
	block->next = NULL;
	block->fill = 0;
	block->end = UINT64_MAX;
	if (chain->last) {
		chain->last->end = position;
		chain->last->next = block;
	} else {
		chain->first = block;
	}
	chain->last = block;
	return block;
}

void chain_release(struct chain *chain, uint64_t position)
{
	while (chain->first != chain->last && chain->first->end <= position) {
		struct block *block = chain->first;

		chain->first = block->next;
		if (block->cap == BLOCK_SIZE && chain->spares < SPARES_MAX) {
			block->next = chain->spare;
			chain->spare = block;
			chain->spares++;
		} else {
			free(block);
		}
	}
}

static void free_blocks(struct block *block)
{
	while (block) {
		struct block *next = block->next;

		free(block);
		block = next;
	}
}

void chain_fini(struct chain *chain)
{
	free_blocks(chain->first);
	free_blocks(chain->spare);
	*chain = (struct chain){0};
}

static bool map_fd(struct source *source, int fd, uint64_t size)
{
	void *map;

	if (size > SIZE_MAX)
		return false;
	map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return false;
	madvise(map, size, MADV_SEQUENTIAL);
	source->mapped = true;
	source->map = map;
	source->map_size = source->end = size;
	return true;
}

/* Is it gzip's or zstd's, and not a recording, whose own records may be compressed? */
static bool is_packed(const struct source *source)
{
	return source->map_size >= 4 && (memcmp(source->map, "\x1f\x8b", 2) == 0 ||
					 memcmp(source->map, "\x28\xb5\x2f\xfd", 4) == 0);
}

static int copy_all(FILE *from, FILE *to, const char *path, uint64_t *size, struct err *err)
{
	uint32_t work = progress_start("unpacking", PROGRESS_BYTES, 0);
	unsigned char *buf = malloc(BLOCK_SIZE);
	size_t n;
	int rc = buf ? 0 : err_nomem(err);

	while (!rc && (n = fread(buf, 1, BLOCK_SIZE, from)) > 0) {
		*size += n;
		progress_at(work, *size);
		if (io_write_full(fileno(to), buf, n) < 0)
			rc = err_sys(err, errno, "cannot write the temporary file of %s", path);
	}
	progress_end(work);
	free(buf);
	return rc ? rc : unpack_failed(from, path, err);
}

/* Maps what a compressed file holds, by way of an unlinked file. */
static int unpack_file(struct source *source, const char *path, struct err *err)
{
	FILE *packed, *plain;
	uint64_t size = 0;
	int rc = unpack_open(&packed, path, err);

	if (rc)
		return rc;
	plain = tmpfile();
	rc = plain ? copy_all(packed, plain, path, &size, err)
		   : err_sys(err, errno, "cannot make a temporary file for %s", path);
	if (!rc && !size)
		rc = err_set(err, ERR_CORRUPT, "%s: there is nothing in it", path);
	if (!rc) {
		munmap((void *)source->map, source->map_size);
		source->mapped = false;
		if (!map_fd(source, fileno(plain), size))
			rc = err_sys(err, errno, "cannot map the temporary file of %s", path);
	}
	if (plain)
		fclose(plain);
	fclose(packed);
	return rc;
}

int source_open(struct source *source, const char *path, struct err *err)
{
	bool standard = !strcmp(path, "-");
	struct stat st;

	*source = (struct source){.end = UINT64_MAX};
	source->fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (source->fd < 0) {
		int rc = err_sys(err, errno, "cannot open %s", path);

		if (rc == ERR_NOT_FOUND)
			err_hint(err, "record one first: pyperf record -- COMMAND");
		return rc;
	}
	if (fstat(source->fd, &st) < 0)
		return err_sys(err, errno, "cannot stat %s", path);
	if (S_ISDIR(st.st_mode)) {
		err_set(err, ERR_UNSUPPORTED, "%s is a directory (perf record --threads?)", path);
		err_hint(err, "record without --threads, or inject it into one file with perf");
		return ERR_UNSUPPORTED;
	}
	/* A file that cannot be mapped is read as a stream. Files of /proc say size 0. */
	if (S_ISREG(st.st_mode) && st.st_size > 0)
		map_fd(source, source->fd, (uint64_t)st.st_size);
	return source->mapped && !standard && is_packed(source) ? unpack_file(source, path, err)
								: 0;
}

void source_close(struct source *source)
{
	if (source->mapped)
		munmap((void *)source->map, source->map_size);
	if (source->fd >= 0)
		close(source->fd);
	chain_fini(&source->blocks);
	vec_fini(&source->marks);
	*source = (struct source){.fd = -1};
}

int source_spool(struct source *source, struct err *err)
{
	struct block *first = source->blocks.first;
	unsigned char *buf = NULL;
	uint64_t size = 0;
	FILE *spool = NULL;
	ssize_t n;
	int rc;

	spool = tmpfile();
	if (!spool)
		return err_sys(err, errno, "cannot make a temporary file for standard input");
	buf = malloc(BLOCK_SIZE);
	if (!buf) {
		rc = err_nomem(err);
		goto out;
	}
	if (first) {
		size = first->fill;
		if (io_write_full(fileno(spool), first->data, first->fill) < 0)
			goto write_failed;
	}
	while ((n = io_read_full(source->fd, buf, BLOCK_SIZE)) > 0) {
		if (io_write_full(fileno(spool), buf, (size_t)n) < 0)
			goto write_failed;
		size += (uint64_t)n;
	}
	if (n < 0) {
		rc = err_sys(err, errno, "cannot read the recording");
		goto out;
	}
	chain_fini(&source->blocks);
	source->block_at = 0;
	source->at = 0;
	rc = map_fd(source, fileno(spool), size)
		     ? 0
		     : err_sys(err, errno, "cannot map the temporary file of the recording");
	goto out;
write_failed:
	rc = err_sys(err, errno, "cannot write the temporary file of the recording");
out:
	free(buf);
	fclose(spool);
	return rc;
}

/* Reads until `want` bytes are unread in the last block, or the end. */
static int fill(struct source *source, size_t want, uint64_t position, struct err *err)
{
	struct block *block = source->blocks.last;

	if (!block || block->cap - source->block_at < want) {
		size_t left = block ? block->fill - source->block_at : 0;
		const unsigned char *from = block ? block->data + source->block_at : NULL;

		block = chain_push(&source->blocks, want, position);
		if (!block)
			return err_nomem(err);
		if (left)
			memcpy(block->data, from, left);
		block->fill = left;
		source->block_at = 0;
	}
	while (!source->eof && block->fill - source->block_at < want) {
		ssize_t n = read(source->fd, block->data + block->fill, block->cap - block->fill);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "cannot read the recording");
		if (n == 0)
			source->eof = true;
		block->fill += (size_t)n;
	}
	return 0;
}

int source_peek(struct source *source, size_t want, uint64_t position, const unsigned char **data,
		size_t *have, struct err *err)
{
	struct block *block;

	if (source->mapped) {
		uint64_t left = source->end - source->at;

		*data = source->map + source->at;
		*have = left < want ? (size_t)left : want;
		return 0;
	}
	block = source->blocks.last;
	if (!block || block->fill - source->block_at < want) {
		int rc = fill(source, want, position, err);

		if (rc < 0)
			return rc;
		block = source->blocks.last;
	}
	*data = block->data + source->block_at;
	*have = block->fill - source->block_at < want ? block->fill - source->block_at : want;
	return 0;
}

void source_take(struct source *source, size_t len)
{
	source->at += len;
	if (!source->mapped)
		source->block_at += len;
}

int source_skip(struct source *source, uint64_t len, uint64_t *skipped, struct err *err)
{
	unsigned char scratch[1 << 14];
	uint64_t done;

	if (source->mapped) {
		uint64_t left = source->end - source->at;

		*skipped = len < left ? len : left;
		source->at += *skipped;
		return 0;
	}
	done = source->blocks.last ? source->blocks.last->fill - source->block_at : 0;
	done = done < len ? done : len;
	source->block_at += done;
	while (done < len && !source->eof) {
		uint64_t want = len - done < sizeof(scratch) ? len - done : sizeof(scratch);
		ssize_t n = io_read_full(source->fd, scratch, (size_t)want);

		if (n < 0)
			return err_sys(err, errno, "cannot read the recording");
		done += (uint64_t)n;
		source->eof = (uint64_t)n < want;
	}
	source->at += done;
	*skipped = done;
	return 0;
}

void source_mark(struct source *source, uint64_t position)
{
	struct source_mark *mark;

	if (!source->mapped || source->at - source->marked < MARK_BYTES)
		return;
	mark = vec_push(&source->marks);
	/* Without a mark memory is kept a little longer, no more. */
	if (!mark)
		return;
	*mark = (struct source_mark){.position = position, .at = source->at};
	source->marked = source->at;
}

void source_release(struct source *source, uint64_t position)
{
	uint64_t upto = source->dropped;

	chain_release(&source->blocks, position);
	while (source->marks_done < source->marks.len &&
	       source->marks.items[source->marks_done].position <= position)
		upto = source->marks.items[source->marks_done++].at;
	upto &= ~(uint64_t)0xffff;
	if (upto > source->dropped) {
		madvise((void *)(source->map + source->dropped), upto - source->dropped,
			MADV_DONTNEED);
		source->dropped = upto;
	}
}
