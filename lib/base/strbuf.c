#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void strbuf_fini(struct strbuf *sb)
{
	free(sb->buf);
	*sb = (struct strbuf){0};
}

void strbuf_reset(struct strbuf *sb)
{
	sb->len = 0;
	sb->failed = 0;
	if (sb->buf)
		sb->buf[0] = '\0';
}

int strbuf_failed(const struct strbuf *sb)
{
	return sb->failed;
}

const char *strbuf_text(const struct strbuf *sb)
{
	return sb->buf ? sb->buf : "";
}

char *strbuf_detach(struct strbuf *sb, size_t *len)
{
	char *bytes = sb->buf;

	if (len)
		*len = sb->failed ? 0 : sb->len;
	if (sb->failed) {
		free(bytes);
		bytes = NULL;
	}
	*sb = (struct strbuf){0};
	return bytes;
}

/* Makes room for `extra` bytes and the NUL. */
static int grow(struct strbuf *sb, size_t extra)
{
	size_t cap = sb->cap ? sb->cap : 64;
	char *moved;

	if (sb->failed)
		return -1;
	if (extra >= SIZE_MAX / 4 - sb->len) {
		sb->failed = 1;
		return -1;
	}
	if (sb->len + extra + 1 <= sb->cap)
		return 0;
	while (cap < sb->len + extra + 1)
		cap *= 2;
	moved = realloc(sb->buf, cap);
	if (!moved) {
		sb->failed = 1;
		return -1;
	}
	sb->buf = moved;
	sb->cap = cap;
	return 0;
}

void *strbuf_extend(struct strbuf *sb, size_t len)
{
	char *place;

	if (grow(sb, len) < 0)
		return NULL;
	place = sb->buf + sb->len;
	memset(place, 0, len + 1);
	sb->len += len;
	return place;
}

void strbuf_add(struct strbuf *sb, const void *bytes, size_t len)
{
	if (grow(sb, len) < 0)
		return;
	if (len)
		memcpy(sb->buf + sb->len, bytes, len);
	sb->len += len;
	sb->buf[sb->len] = '\0';
}

void strbuf_str(struct strbuf *sb, const char *text)
{
	strbuf_add(sb, text, strlen(text));
}

void strbuf_char(struct strbuf *sb, char c)
{
	strbuf_add(sb, &c, 1);
}

void strbuf_printf(struct strbuf *sb, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0 || grow(sb, (size_t)len) < 0) {
		sb->failed = 1;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(sb->buf + sb->len, (size_t)len + 1, fmt, ap);
	va_end(ap);
	sb->len += (size_t)len;
}

void strbuf_pad(struct strbuf *sb, size_t align)
{
	strbuf_extend(sb, -sb->len & (align - 1));
}

static void little_endian(struct strbuf *sb, uint64_t v, unsigned int size)
{
	unsigned char bytes[8];

	for (unsigned int i = 0; i < size; i++)
		bytes[i] = (unsigned char)(v >> (8 * i));
	strbuf_add(sb, bytes, size);
}

void strbuf_u8(struct strbuf *sb, uint8_t v)
{
	little_endian(sb, v, 1);
}

void strbuf_u16(struct strbuf *sb, uint16_t v)
{
	little_endian(sb, v, 2);
}

void strbuf_u32(struct strbuf *sb, uint32_t v)
{
	little_endian(sb, v, 4);
}

void strbuf_u64(struct strbuf *sb, uint64_t v)
{
	little_endian(sb, v, 8);
}

void strbuf_blob(struct strbuf *sb, const void *bytes, size_t len)
{
	strbuf_u32(sb, (uint32_t)len);
	strbuf_add(sb, bytes, len);
}
