#include "output/extent.h"

#include <stdbool.h>
#include <string.h>

/* What a line leaves open for the next one. */
struct lexer {
	unsigned int depth; /* of brackets */
	char quote;	    /* of the triple-quoted string that is open, or 0 */
	bool continued;	    /* by a backslash */
	bool colon;	    /* the line's last token outside brackets: a block follows */
};

static bool is_open(const struct lexer *lexer)
{
	return lexer->depth || lexer->quote || lexer->continued;
}

static bool is_triple(const char *s, size_t left, char quote)
{
	return left >= 3 && s[0] == quote && s[1] == quote && s[2] == quote;
}

/* Skips a string that starts at its opening quote; returns the place behind it. One that spans
 * lines stays open. */
static size_t skip_string(struct lexer *lexer, const char *s, size_t len, size_t at)
{
	char quote = lexer->quote ? lexer->quote : s[at];
	bool triple = lexer->quote || is_triple(s + at, len - at, quote);

	if (!lexer->quote)
		at += triple ? 3 : 1;
	for (; at < len; at++) {
		if (s[at] == '\\') {
			at++;
		} else if (triple && is_triple(s + at, len - at, quote)) {
			lexer->quote = 0;
			return at + 3;
		} else if (!triple && s[at] == quote) {
			return at + 1;
		}
	}
	if (triple)
		lexer->quote = quote;
	return len;
}

static void feed(struct lexer *lexer, const char *s, size_t len)
{
	size_t at = 0;

	lexer->continued = false;
	if (lexer->quote)
		at = skip_string(lexer, s, len, 0);
	while (at < len) {
		char c = s[at];

		if (c == '#')
			return;
		if (c == '"' || c == '\'') {
			at = skip_string(lexer, s, len, at);
			lexer->colon = false;
			continue;
		}
		if (strchr("([{", c))
			lexer->depth++;
		else if (strchr(")]}", c) && lexer->depth)
			lexer->depth--;
		if (c == '\\' && at + 1 == len)
			lexer->continued = true;
		if (c != ' ' && c != '\t' && c != '\r' && c != '\f')
			lexer->colon = c == ':' && !lexer->depth;
		at++;
	}
}

/* Columns of the indentation and the first character behind it; false for a line without code. */
static bool start_of(const char *s, size_t len, size_t *columns, char *start)
{
	*columns = 0;
	for (size_t at = 0; at < len; at++) {
		*start = s[at];
		if (s[at] == ' ')
			++*columns;
		else if (s[at] == '\t')
			*columns = (*columns / 8 + 1) * 8;
		else
			return !strchr("#\r\f", s[at]);
	}
	return false;
}

uint32_t extent_end(const struct source *source, uint32_t first)
{
	struct lexer lexer = {0};
	size_t margin = 0, len;
	bool body = false, decorator = false;
	uint32_t end = first, count = source_line_count(source);

	for (uint32_t number = first; number <= count; number++) {
		const char *text = source_line(source, number, &len);
		size_t columns = 0;
		char start = 0;

		if (!text)
			break;
		if (!is_open(&lexer)) {
			if (!start_of(text, len, &columns, &start))
				continue;
			if (body && columns <= margin)
				break;
			if (!body) {
				margin = columns;
				decorator = start == '@';
			}
		}
		feed(&lexer, text, len);
		end = number;
		if (body || is_open(&lexer))
			continue;
		if (lexer.colon)
			body = true;
		else if (!decorator)
			break;
	}
	return end;
}
