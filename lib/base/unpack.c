#include "base/unpack.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define BUFFER (256u << 10)
#define GZIP_ONLY (15 + 16) /* zlib.h: the largest window, and only a gzip header */

struct unpack {
	int fd;
	bool ended;   /* nothing is left to read */
	bool between; /* a frame or member has ended, another may follow */
	bool full;    /* the last output had no room left, so more of it may wait inside */
	bool gzip;
	z_stream inflate;
	ZSTD_DCtx *zstd;
	size_t at, len;
	unsigned char in[BUFFER];
};

/* Makes sure of input; false at the end of the file, and errno is set where it could not be read.
 */
static bool refill(struct unpack *u)
{
	ssize_t got;

	if (u->at < u->len)
		return true;
	if (u->ended)
		return false;
	got = io_read_full(u->fd, u->in, sizeof(u->in));
	if (got < (ssize_t)sizeof(u->in))
		u->ended = true;
	u->at = 0;
	u->len = got > 0 ? (size_t)got : 0;
	return got > 0;
}

static ssize_t read_plain(struct unpack *u, char *out, size_t size)
{
	size_t len = u->len - u->at < size ? u->len - u->at : size;

	memcpy(out, u->in + u->at, len);
	u->at += len;
	return (ssize_t)len;
}

static ssize_t read_gzip(struct unpack *u, char *out, size_t size)
{
	int rc;

	if (u->between && inflateReset(&u->inflate) != Z_OK)
		return -1;
	u->between = false;
	u->inflate.next_in = u->in + u->at;
	u->inflate.avail_in = (unsigned int)(u->len - u->at);
	u->inflate.next_out = (unsigned char *)out;
	u->inflate.avail_out = (unsigned int)size;
	rc = inflate(&u->inflate, Z_NO_FLUSH);
	u->at = u->len - u->inflate.avail_in;
	u->between = rc == Z_STREAM_END;
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		return -1;
	return (ssize_t)(size - u->inflate.avail_out);
}

static ssize_t read_zstd(struct unpack *u, char *out, size_t size)
{
	ZSTD_inBuffer in = {u->in, u->len, u->at};
	ZSTD_outBuffer to = {out, size, 0};
	size_t rc = ZSTD_decompressStream(u->zstd, &to, &in);

	u->at = in.pos;
	u->between = rc == 0;
	return ZSTD_isError(rc) ? -1 : (ssize_t)to.pos;
}

static ssize_t unpack_read(void *cookie, char *out, size_t size)
{
	struct unpack *u = cookie;
	ssize_t got = 0;

	if (size > UINT32_MAX)
		size = UINT32_MAX;
	while (!got) {
		errno = 0;
		if (!u->full && !refill(u)) {
			if (!errno && (u->gzip || u->zstd) && !u->between)
				errno = EBADMSG;
			return errno ? -1 : 0;
		}
		got = u->gzip	? read_gzip(u, out, size)
		      : u->zstd ? read_zstd(u, out, size)
				: read_plain(u, out, size);
		u->full = (u->gzip || u->zstd) && got == (ssize_t)size;
		if (got < 0)
			errno = EBADMSG;
	}
	return got;
}

static int unpack_close(void *cookie)
{
	struct unpack *u = cookie;

	if (u->gzip)
		inflateEnd(&u->inflate);
	ZSTD_freeDCtx(u->zstd);
	if (u->fd != STDIN_FILENO)
		close(u->fd);
	free(u);
	return 0;
}

/* By its first bytes. */
static bool choose(struct unpack *u)
{
	static const unsigned char gzip_magic[] = {0x1f, 0x8b},
				   zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};

	if (!refill(u))
		return true;
	if (u->len >= sizeof(gzip_magic) && !memcmp(u->in, gzip_magic, sizeof(gzip_magic))) {
		u->gzip = inflateInit2(&u->inflate, GZIP_ONLY) == Z_OK;
		return u->gzip;
	}
	if (u->len >= sizeof(zstd_magic) && !memcmp(u->in, zstd_magic, sizeof(zstd_magic))) {
		u->zstd = ZSTD_createDCtx();
		return u->zstd;
	}
	return true;
}

int unpack_open(FILE **file, const char *path, struct err *err)
{
	struct unpack *u = calloc(1, sizeof(*u));

	*file = NULL;
	if (!u)
		return err_nomem(err);
	u->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (u->fd < 0) {
		int saved = errno;

		free(u);
		return err_sys(err, saved, "cannot open %s", path);
	}
	errno = 0;
	if (choose(u) && !errno)
		*file = fopencookie(
			u, "r",
			(cookie_io_functions_t){.read = unpack_read, .close = unpack_close});
	if (!*file) {
		int saved = errno ? errno : ENOMEM;

		unpack_close(u);
		return err_sys(err, saved, "cannot read %s", path);
	}
	setvbuf(*file, NULL, _IOFBF, BUFFER);
	return 0;
}

int unpack_failed(FILE *file, const char *path, struct err *err)
{
	int saved = errno;

	if (!ferror(file))
		return 0;
	if (saved == EBADMSG)
		return err_set(err, ERR_CORRUPT,
			       "cannot read %s: its compressed data is damaged or cut short", path);
	return err_sys(err, saved ? saved : EIO, "cannot read %s", path);
}
