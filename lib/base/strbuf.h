#ifndef PYPERF_STRBUF_H
#define PYPERF_STRBUF_H

#include <stddef.h>
#include <stdint.h>

/*
 * A growing byte buffer, for text and for binary records alike.
 *
 * Invariant: after the first successful write buf[len] is NUL. All zero is a valid empty buffer.
 * When memory runs out the buffer becomes `failed`, further writes do nothing, and len stays: a
 * caller may write a whole record and check once with strbuf_failed().
 */
struct strbuf {
	char *buf;
	size_t len, cap;
	int failed;
};

void strbuf_fini(struct strbuf *sb);
void strbuf_reset(struct strbuf *sb); /* empty again, memory kept */
int strbuf_failed(const struct strbuf *sb);
const char *strbuf_text(const struct strbuf *sb); /* "" when empty */
/* Hands the bytes over to the caller, who frees them; NULL when empty or failed. */
char *strbuf_detach(struct strbuf *sb, size_t *len);

void strbuf_add(struct strbuf *sb, const void *bytes, size_t len);
void strbuf_str(struct strbuf *sb, const char *text);
void strbuf_char(struct strbuf *sb, char c);
void strbuf_printf(struct strbuf *sb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends len zero bytes and returns the place of the first, or NULL. Valid until the next write.
 */
void *strbuf_extend(struct strbuf *sb, size_t len);
/* Zeroes up to the next multiple of `align`, a power of two. */
void strbuf_pad(struct strbuf *sb, size_t align);

/* Little-endian words, as in our private sections. */
void strbuf_u8(struct strbuf *sb, uint8_t v);
void strbuf_u16(struct strbuf *sb, uint16_t v);
void strbuf_u32(struct strbuf *sb, uint32_t v);
void strbuf_u64(struct strbuf *sb, uint64_t v);
/* u32 length, then the bytes. */
void strbuf_blob(struct strbuf *sb, const void *bytes, size_t len);

#endif
