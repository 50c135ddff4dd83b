#ifndef PYPERF_JSON_TEXT_H
#define PYPERF_JSON_TEXT_H

#include "base/strbuf.h"

#include <stdint.h>
#include <stdio.h>

/*
 * Pieces of JSON for formats of millions of rows, where an object for each would take longer than
 * all else: strings are quoted by the JSON library, once each, and rows are put together from them.
 */

/* The text as a JSON string, with its quotes; what is no UTF-8 becomes U+FFFD. */
void json_add_text(struct strbuf *out, const char *text);
void json_add_u64(struct strbuf *out, uint64_t value);
/* value / 10^digits with so many decimals: nanoseconds as microseconds with 3. */
void json_add_scaled(struct strbuf *out, int64_t value, unsigned int digits);

/* Writes and empties it. */
static inline void json_flush(FILE *out, struct strbuf *text)
{
	if (text->len)
		fwrite(text->buf, 1, text->len, out);
	strbuf_reset(text);
}

/* The same when it has grown large. */
#define JSON_ROWS (64u << 10)
static inline void json_flush_rows(FILE *out, struct strbuf *text)
{
	if (text->len >= JSON_ROWS)
		json_flush(out, text);
}

#endif
