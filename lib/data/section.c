#include "data/file.h"
#include "data/output.h"

#include <zstd.h>

/*
 * Private sections: kept as they are, or as one zstd frame where that is smaller (text of sources
 * mostly). Which of the two it is, shows in the frame's magic number, which no section of ours
 * begins with.
 */
#define SECTION_MIN 1024 /* smaller ones are not worth it */
#define SECTION_FREE (UINT64_C(64) << 20)
#define SECTION_RATIO 1000u		 /* beyond both it is a bomb */
#define FRAME_MAGIC UINT32_C(0xfd2fb528) /* RFC 8878, 3.1.1 */

void section_pack(struct strbuf *out, const void *bytes, size_t len, int level)
{
	size_t bound = ZSTD_compressBound(len), size;
	void *place;

	strbuf_reset(out);
	if (level && len >= SECTION_MIN) {
		place = strbuf_extend(out, bound);
		size = place ? ZSTD_compress(place, bound, bytes, len, level) : len;
		if (!ZSTD_isError(size) && size < len) {
			out->len = size;
			return;
		}
		strbuf_reset(out);
	}
	strbuf_add(out, bytes, len);
}

int section_read(struct data_file *file, unsigned int feature, struct bytes in, struct err *err)
{
	struct bytes *section = &file->sections[feature - FEATURE_PRIVATE], peek = in;
	unsigned long long size;
	char *expanded;

	*section = in;
	if (bytes_u32(&peek) != FRAME_MAGIC || peek.bad)
		return 0;
	*section = bytes_of(NULL, 0);
	size = ZSTD_getFrameContentSize(in.at, bytes_left(&in));
	if ((size > SECTION_FREE && size / SECTION_RATIO > bytes_left(&in)) ||
	    ZSTD_isError(ZSTD_findFrameCompressedSize(in.at, bytes_left(&in))))
		/* In a stream the rest may follow. */
		return file->pipe ? 0
				  : file_lose(file, err, "private section %u cannot be expanded",
					      feature);
	expanded = arena_alloc(&file->arena, size);
	if (!expanded)
		return err_nomem(err);
	if (ZSTD_decompress(expanded, size, in.at, bytes_left(&in)) != size)
		return file_lose(file, err, "private section %u is broken", feature);
	*section = bytes_of(expanded, size);
	return 0;
}
