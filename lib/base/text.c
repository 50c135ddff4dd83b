#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#define REPLACEMENT 0xfffdu

/* By RFC 3629. */
size_t text_decode(const void *text, size_t len, uint32_t *cp)
{
	const unsigned char *s = text;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t need;

	if (s[0] < 0x80) {
		*cp = s[0];
		return 1;
	}
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		need = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		need = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		need = 4;
	else
		return 0;
	if (len < need)
		return 0;
	*cp = s[0] & (0xffu >> (need + 1));
	for (size_t i = 1; i < need; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (s[i] & 0x3f);
	}
	if (*cp < least[need] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp <= 0xdfff))
		return 0;
	return need;
}

static void encode(struct strbuf *out, uint32_t cp)
{
	if (cp < 0x80) {
		strbuf_char(out, (char)cp);
	} else if (cp < 0x800) {
		strbuf_char(out, (char)(0xc0 | cp >> 6));
		strbuf_char(out, (char)(0x80 | (cp & 0x3f)));
	} else if (cp < 0x10000) {
		strbuf_char(out, (char)(0xe0 | cp >> 12));
		strbuf_char(out, (char)(0x80 | (cp >> 6 & 0x3f)));
		strbuf_char(out, (char)(0x80 | (cp & 0x3f)));
	} else {
		strbuf_char(out, (char)(0xf0 | cp >> 18));
		strbuf_char(out, (char)(0x80 | (cp >> 12 & 0x3f)));
		strbuf_char(out, (char)(0x80 | (cp >> 6 & 0x3f)));
		strbuf_char(out, (char)(0x80 | (cp & 0x3f)));
	}
}

/* Ranges that move the cursor, break the line or turn the writing direction. */
static bool is_unsafe(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
	} unsafe[] = {
		{0x00, 0x1f},	  {0x7f, 0x9f},	    {0x061c, 0x061c}, {0x200e, 0x200f},
		{0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f},
	};

	for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++)
		if (cp >= unsafe[i].first && cp <= unsafe[i].last)
			return true;
	return false;
}

static void escape_one(struct strbuf *out, uint32_t cp)
{
	static const char letters[] = "abtnvfr"; /* \a is 7 */

	if (cp >= 7 && cp <= 13)
		strbuf_printf(out, "\\%c", letters[cp - 7]);
	else if (cp < 0x100)
		strbuf_printf(out, "\\x%02x", cp);
	else
		strbuf_printf(out, cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
}

void text_escape(struct strbuf *out, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	while (len) {
		uint32_t cp;
		size_t n = text_decode(s, len, &cp);

		if (!n) {
			strbuf_printf(out, "\\x%02x", s[0]);
			n = 1;
		} else if (is_unsafe(cp)) {
			escape_one(out, cp);
		} else {
			strbuf_add(out, s, n);
		}
		s += n;
		len -= n;
	}
}

void text_repair(struct strbuf *out, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	while (len) {
		uint32_t cp;
		size_t n = text_decode(s, len, &cp);

		if (n)
			strbuf_add(out, s, n);
		else
			encode(out, REPLACEMENT);
		n += !n;
		s += n;
		len -= n;
	}
}

void text_cut(char *buf, size_t size, const char *text)
{
	size_t len = strnlen(text, size);

	if (len == size)
		for (len = size - 1; len && ((unsigned char)text[len] & 0xc0) == 0x80;)
			len--;
	memcpy(buf, text, len);
	buf[len] = '\0';
}

size_t text_width(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t width = 0;

	while (len) {
		uint32_t cp;
		size_t n = text_decode(s, len, &cp);
		int columns = 1;

		if (!n)
			n = 1;
		else if (cp >= 0x300)
			columns = wcwidth((wchar_t)cp);
		width += columns < 0 ? 1u : (unsigned int)columns;
		s += n;
		len -= n;
	}
	return width;
}

void text_from_pyunicode(struct strbuf *out, unsigned int kind, const void *data, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t cp = REPLACEMENT;
		uint16_t half;

		if (kind == 1) {
			cp = ((const unsigned char *)data)[i];
		} else if (kind == 2) {
			memcpy(&half, (const char *)data + 2 * i, sizeof(half));
			cp = half;
		} else if (kind == 4) {
			memcpy(&cp, (const char *)data + 4 * i, sizeof(cp));
		}
		/* NUL would end the name. */
		if (!cp || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
			cp = REPLACEMENT;
		encode(out, cp);
	}
}

void text_size(char *buf, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	snprintf(buf, size, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void text_count(char *buf, size_t size, uint64_t count)
{
	char digits[24];
	size_t len, out = 0;

	snprintf(digits, sizeof(digits), "%" PRIu64, count);
	len = strlen(digits);
	for (size_t i = 0; i < len && out + 2 < size; i++) {
		if (i && (len - i) % 3 == 0)
			buf[out++] = ',';
		buf[out++] = digits[i];
	}
	if (size)
		buf[out] = '\0';
}

#define DISTANCE_MAX 128

unsigned int text_distance(const char *a, const char *b)
{
	unsigned int rows[3][DISTANCE_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);
	unsigned int *before = rows[0], *last = rows[1], *now = rows[2];

	if (la > DISTANCE_MAX || lb > DISTANCE_MAX)
		return DISTANCE_MAX;
	for (size_t j = 0; j <= lb; j++)
		last[j] = (unsigned int)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned int *spare = before;

		now[0] = (unsigned int)i;
		for (size_t j = 1; j <= lb; j++) {
			int ca = tolower((unsigned char)a[i - 1]);
			int cb = tolower((unsigned char)b[j - 1]);
			unsigned int best = last[j - 1] + (ca != cb);

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
			    cb == tolower((unsigned char)a[i - 2]) && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[lb];
}
