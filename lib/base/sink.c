#include "base/sink.h"

#include "base/draft.h"
#include "base/io.h"
#include "base/progress.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* Exports are large and mostly repetition: what takes little time already makes them small. */
#define GZIP_MODE "wb3"
#define ZSTD_LEVEL 3
#define BUFFER (256u << 10)

struct sink {
	FILE *file;
	struct draft draft; /* where it is not in place; its descriptor is `fd` */
	struct strbuf path;
	bool in_place;
	int fd;
	uint32_t work; /* of progress.h */
	uint64_t written;
	gzFile gzip;
	ZSTD_CCtx *zstd;
	char packed[BUFFER];
};

static void count(struct sink *sink, size_t len)
{
	sink->written += len;
	progress_at(sink->work, sink->written);
}

static ssize_t write_plain(void *cookie, const char *bytes, size_t len)
{
	struct sink *sink = cookie;

	count(sink, len);
	return io_write_full(sink->fd, bytes, len) ? 0 : (ssize_t)len;
}

static ssize_t write_gzip(void *cookie, const char *bytes, size_t len)
{
	struct sink *sink = cookie;
	int written = gzwrite(sink->gzip, bytes, (unsigned int)len);

	count(sink, len);

	if (written <= 0 && !errno)
		errno = EIO;
	return written > 0 ? written : 0;
}

/* 0, or -1 with errno. */
static int pack_zstd(struct sink *sink, const char *bytes, size_t len, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = {bytes, len, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {sink->packed, sizeof(sink->packed), 0};

		left = ZSTD_compressStream2(sink->zstd, &out, &in, end);
		if (ZSTD_isError(left)) {
			errno = EIO;
			return -1;
		}
		if (out.pos && io_write_full(sink->fd, sink->packed, out.pos))
			return -1;
	} while (left && (end == ZSTD_e_end || in.pos < in.size));
	return 0;
}

static ssize_t write_zstd(void *cookie, const char *bytes, size_t len)
{
	count(cookie, len);
	return pack_zstd(cookie, bytes, len, ZSTD_e_continue) ? 0 : (ssize_t)len;
}

static bool ends_in(const char *path, const char *suffix)
{
	size_t len = strlen(path), tail = strlen(suffix);

	return len > tail && strcmp(path + len - tail, suffix) == 0;
}

/* The stream that compresses into sink->fd as the name wants it; NULL with errno. */
static FILE *open_stream(struct sink *sink, const char *path)
{
	bool gzip = ends_in(path, ".gz"), zstd = ends_in(path, ".zst");
	int copy;

	if (zstd) {
		sink->zstd = ZSTD_createCCtx();
		if (!sink->zstd) {
			errno = ENOMEM;
			return NULL;
		}
		ZSTD_CCtx_setParameter(sink->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
		ZSTD_CCtx_setParameter(sink->zstd, ZSTD_c_checksumFlag, 1);
		return fopencookie(sink, "w", (cookie_io_functions_t){.write = write_zstd});
	}
	if (!gzip)
		return fopencookie(sink, "w", (cookie_io_functions_t){.write = write_plain});
	/* The descriptor stays ours, so that closing is the same for all. */
	copy = dup(sink->fd);
	if (copy < 0)
		return NULL;
	sink->gzip = gzdopen(copy, GZIP_MODE);
	if (!sink->gzip) {
		close(copy);
		errno = ENOMEM;
		return NULL;
	}
	gzbuffer(sink->gzip, BUFFER);
	return fopencookie(sink, "w", (cookie_io_functions_t){.write = write_gzip});
}

static void sink_free(struct sink *sink)
{
	ZSTD_freeCCtx(sink->zstd);
	strbuf_fini(&sink->path);
	free(sink);
}

/* What is behind the stream: the file itself, or a draft of it. */
static int open_file(struct sink *sink, const char *path, struct err *err)
{
	int rc = 0;

	if (!sink->in_place) {
		rc = draft_open(&sink->draft, path, 0666, err);
		sink->fd = sink->draft.fd;
		return rc;
	}
	sink->fd = open(path, O_WRONLY | O_CLOEXEC);
	return sink->fd < 0 ? err_sys(err, errno, "cannot write %s", path) : 0;
}

static int close_file(struct sink *sink, int rc, struct err *err)
{
	if (!sink->in_place)
		return draft_close(&sink->draft, rc, err);
	close(sink->fd);
	return rc;
}

int sink_open(struct sink **out, const char *path, struct err *err)
{
	struct sink *sink = calloc(1, sizeof(*sink));
	struct stat st;
	int rc;

	*out = NULL;
	if (!sink)
		return err_nomem(err);
	sink->in_place = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
	strbuf_str(&sink->path, path);
	rc = strbuf_failed(&sink->path) ? err_nomem(err) : open_file(sink, path, err);
	if (rc) {
		sink_free(sink);
		return rc;
	}
	sink->file = open_stream(sink, path);
	if (!sink->file) {
		rc = err_sys(err, errno, "cannot write %s", path);
		rc = close_file(sink, rc, NULL);
		sink_free(sink);
		return rc;
	}
	setvbuf(sink->file, NULL, _IOFBF, BUFFER);
	sink->work = progress_start("writing", PROGRESS_BYTES, 0);
	*out = sink;
	return 0;
}

FILE *sink_file(struct sink *sink)
{
	return sink->file;
}

/* 0, or the errno of the first write that failed. */
static int finish(struct sink *sink)
{
	int failed;

	errno = 0;
	failed = fflush(sink->file) || ferror(sink->file) ? (errno ? errno : EIO) : 0;
	errno = 0;
	if (fclose(sink->file) && !failed)
		failed = errno ? errno : EIO;
	if (sink->gzip && gzclose(sink->gzip) != Z_OK && !failed)
		failed = errno ? errno : EIO;
	if (sink->zstd && !failed && pack_zstd(sink, NULL, 0, ZSTD_e_end))
		failed = errno;
	return failed;
}

int sink_close(struct sink *sink, int rc, struct err *err)
{
	int failed;

	if (!sink)
		return rc;
	failed = finish(sink);
	progress_end(sink->work);
	if (rc >= 0 && failed)
		rc = err_sys(err, failed, "cannot write %s", sink->path.buf);
	rc = close_file(sink, rc, err);
	sink_free(sink);
	return rc;
}
