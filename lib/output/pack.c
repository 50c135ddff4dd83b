#include "output/pack.h"

#include "base/progress.h"

#include <string.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* zlib's word for the gzip format */

static int pack(struct strbuf *out, const struct strbuf *bytes, struct err *err)
{
	z_stream stream = {0};
	uint32_t work = progress_start("packing", PROGRESS_BYTES, bytes->len);
	uint8_t block[1 << 16];
	int state;

	if (bytes->len > UINT32_MAX)
		return err_set(err, ERR_UNSUPPORTED, "the page would be larger than 4 GB");
	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return err_nomem(err);
	stream.next_in = (Bytef *)bytes->buf;
	stream.avail_in = (uInt)bytes->len;
	do {
		stream.next_out = block;
		stream.avail_out = sizeof(block);
		state = deflate(&stream, Z_FINISH);
		strbuf_add(out, block, sizeof(block) - stream.avail_out);
		progress_at(work, bytes->len - stream.avail_in);
	} while (state == Z_OK);
	deflateEnd(&stream);
	progress_end(work);
	return state == Z_STREAM_END && !strbuf_failed(out) ? 0 : err_nomem(err);
}

static void encode(struct strbuf *out, const uint8_t *in, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
		"+/";
	char *to = strbuf_extend(out, (len + 2) / 3 * 4);

	for (size_t i = 0; to && i < len; i += 3, to += 4) {
		uint32_t word = (uint32_t)in[i] << 16;

		if (i + 1 < len)
			word |= (uint32_t)in[i + 1] << 8;
		if (i + 2 < len)
			word |= in[i + 2];
		to[0] = digits[word >> 18];
		to[1] = digits[word >> 12 & 63];
		to[2] = i + 1 < len ? digits[word >> 6 & 63] : '=';
		to[3] = i + 2 < len ? digits[word & 63] : '=';
	}
}

int pack_base64(struct strbuf *out, const struct strbuf *bytes, struct err *err)
{
	struct strbuf packed = {0};
	int rc = pack(&packed, bytes, err);

	if (!rc)
		encode(out, (const uint8_t *)strbuf_text(&packed), packed.len);
	if (!rc && strbuf_failed(out))
		rc = err_nomem(err);
	strbuf_fini(&packed);
	return rc;
}
