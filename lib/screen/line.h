#ifndef PYPERF_SCREEN_LINE_H
#define PYPERF_SCREEN_LINE_H

#include "base/strbuf.h"
#include "base/vec.h"

/*
 * What a part of the screen means. How that looks stands in one table (style.c), for terminals with
 * and without colours; nothing is told by colour alone.
 */
enum screen_role {
	SCREEN_PLAIN,
	SCREEN_FAINT, /* what matters less: library code, gaps */
	SCREEN_STRONG,
	SCREEN_BAR,	/* the line that tells what is shown */
	SCREEN_HEADING, /* of columns */
	SCREEN_NAME,	/* of a key, in help and hints */
	SCREEN_HOT,	/* 5% of the whole and more, as in perf */
	SCREEN_WARM,	/* 0.5% and more */
	SCREEN_NATIVE,	/* code by its kind; Python's is plain */
	SCREEN_KERNEL,
	SCREEN_ERROR,
	SCREEN_FLAME_PYTHON, /* boxes of a flame graph; neighbours take turns with the next row */
	SCREEN_FLAME_PYTHON2,
	SCREEN_FLAME_NATIVE,
	SCREEN_FLAME_NATIVE2,
	SCREEN_FLAME_KERNEL,
	SCREEN_FLAME_KERNEL2,
	SCREEN_ROLES,
};
enum screen_role screen_heat(double share); /* of the whole: 0 to 1 */

/* One line of the screen, made of parts with a role each. All zero is an empty line. Where memory
 * runs out the line is cut. */
struct screen_part {
	size_t start; /* in `text`; it ends where the next one starts */
	enum screen_role role;
};
struct screen_line {
	struct strbuf text;
	struct {
		VEC_OF(struct screen_part)
	} parts;
};

void screen_line_reset(struct screen_line *line); /* empty again, memory kept */
void screen_line_fini(struct screen_line *line);
/* Starts a part: what is appended to the buffer up to the next call belongs to it. The text must be
 * escaped already. */
struct strbuf *screen_line_part(struct screen_line *line, enum screen_role role);
/* Parts of a whole call. */
void screen_line_add(struct screen_line *line, enum screen_role role, const char *escaped);
void screen_line_escape(struct screen_line *line, enum screen_role role, const char *text,
			size_t len);
void screen_line_printf(struct screen_line *line, enum screen_role role, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void screen_line_blanks(struct screen_line *line, enum screen_role role, size_t count);
/* Plain blanks up to the column; one at least where the line is that long already. */
void screen_line_pad(struct screen_line *line, size_t column);
/* Takes the first columns away. */
void screen_line_skip(struct screen_line *line, size_t columns);
size_t screen_line_width(const struct screen_line *line); /* columns */

#endif
