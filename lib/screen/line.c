#include "screen/line.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* perf's thresholds: what users of its browser have learnt to see. */
#define HOT 0.05
#define WARM 0.005

enum screen_role screen_heat(double share)
{
	return share >= HOT ? SCREEN_HOT : share >= WARM ? SCREEN_WARM : SCREEN_PLAIN;
}

void screen_line_reset(struct screen_line *line)
{
	strbuf_reset(&line->text);
	line->parts.len = 0;
}

void screen_line_fini(struct screen_line *line)
{
	strbuf_fini(&line->text);
	vec_fini(&line->parts);
}

struct strbuf *screen_line_part(struct screen_line *line, enum screen_role role)
{
	struct screen_part *part = vec_push(&line->parts);

	if (part)
		*part = (struct screen_part){line->text.len, role};
	return &line->text;
}

void screen_line_add(struct screen_line *line, enum screen_role role, const char *escaped)
{
	strbuf_str(screen_line_part(line, role), escaped);
}

void screen_line_escape(struct screen_line *line, enum screen_role role, const char *text,
			size_t len)
{
	text_escape(screen_line_part(line, role), text, len);
}

void screen_line_printf(struct screen_line *line, enum screen_role role, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	screen_line_add(line, role, text);
}

void screen_line_blanks(struct screen_line *line, enum screen_role role, size_t count)
{
	strbuf_printf(screen_line_part(line, role), "%*s", (int)count, "");
}

void screen_line_pad(struct screen_line *line, size_t column)
{
	size_t width = screen_line_width(line);

	screen_line_blanks(line, SCREEN_PLAIN, width < column ? column - width : width > 0);
}

void screen_line_skip(struct screen_line *line, size_t columns)
{
	size_t cut = 0;

	while (columns && cut < line->text.len) {
		uint32_t character;
		size_t len = text_decode(line->text.buf + cut, line->text.len - cut, &character);
		size_t width = text_width(line->text.buf + cut, len + !len);

		cut += len + !len;
		columns -= width < columns ? width : columns;
	}
	if (!cut)
		return;
	memmove(line->text.buf, line->text.buf + cut, line->text.len - cut + 1);
	line->text.len -= cut;
	for (size_t i = 0; i < line->parts.len; i++) {
		struct screen_part *part = &line->parts.items[i];

		part->start -= part->start < cut ? part->start : cut;
	}
}

size_t screen_line_width(const struct screen_line *line)
{
	return text_width(strbuf_text(&line->text), line->text.len);
}
