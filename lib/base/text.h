#ifndef PYPERF_TEXT_H
#define PYPERF_TEXT_H

#include "base/strbuf.h"

#include <stddef.h>
#include <stdint.h>

/* Text from profiles is hostile until it went through here. */

/*
 * Appends UTF-8 text so that it is safe on a terminal and stays one line: control characters (C0,
 * DEL, C1), line and paragraph separators, and bidirectional overrides become \n, \t, \xNN or
 * \uNNNN; bytes that are no UTF-8 become \xNN. A backslash stays itself.
 */
void text_escape(struct strbuf *out, const char *text, size_t len);

/* Appends text with every byte that is no UTF-8 replaced by U+FFFD: for formats that must be UTF-8
 * and escape control characters on their own. */
void text_repair(struct strbuf *out, const char *text, size_t len);

/* Decodes the first character of some UTF-8 (len > 0); its length, or 0 where the bytes are none.
 */
size_t text_decode(const void *text, size_t len, uint32_t *cp);

/* Copies UTF-8 text as far as it fits, and never a part of a character. */
void text_cut(char *buf, size_t size, const char *text);

/* Columns that escaped text takes on a terminal (wide characters take two, combining none). */
size_t text_width(const char *text, size_t len);

/* Appends the code points of a CPython string: kind 1 Latin-1, 2 UCS-2, 4 UCS-4 (`count` units at
 * `data`) as UTF-8. NUL, lone surrogates and values that are no code points become U+FFFD. */
void text_from_pyunicode(struct strbuf *out, unsigned int kind, const void *data, size_t count);

/* 1234567 -> "1.2 MB" (powers of 1024 with perf's unit names). */
void text_size(char *buf, size_t size, uint64_t bytes);

/* 1234567 -> "1,234,567". */
void text_count(char *buf, size_t size, uint64_t count);

/* Edit distance, for "did you mean"; case-insensitive, adjacent swaps count one. */
unsigned int text_distance(const char *a, const char *b);

#endif
