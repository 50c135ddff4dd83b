#ifndef PYPERF_SCREEN_TERMINAL_H
#define PYPERF_SCREEN_TERMINAL_H

#include "base/err.h"
#include "screen/key.h"
#include "screen/line.h"

#include <stdbool.h>

/*
 * The terminal itself: the one part that knows the library it is drawn with. There is one at most,
 * as there is one terminal.
 *
 * While it is open, lines written to a standard error that is the same terminal are kept, and shown
 * when it is closed.
 */

/* A key, or what the mouse did. */
struct terminal_input {
	int key; /* SCREEN_MOUSE: the rest is set */
	enum { TERMINAL_CLICK, TERMINAL_WHEEL_UP, TERMINAL_WHEEL_DOWN } mouse;
	int row, column;
};

/* ERR_UNSUPPORTED with the reason where it cannot be drawn on: what is known before, and all. */
int terminal_check(struct err *err);
int terminal_open(struct err *err);
void terminal_close(void);

/* Signals that stop the process, resume it or change the size make this one readable. */
int terminal_signal_fd(void);
/* Does what they ask for; the screen is to be drawn anew after that. */
void terminal_signalled(void);

void terminal_size(int *rows, int *columns);
/* False when there is none; *gone when the terminal is. */
bool terminal_read(struct terminal_input *input, bool *gone);
/* Everything is drawn between these two; what did not change costs nothing. `anew`: as if nothing
 * stood there. */
void terminal_begin(bool anew);
void terminal_end(void);
/* From the column on, at most `width` columns; the rest of the width becomes blank. `selected`
 * marks it all. */
void terminal_put(int row, int column, int width, const struct screen_line *line, bool selected);
/* Where the cursor is seen, after terminal_end(); a negative row hides it. */
void terminal_cursor(int row, int column);
/* Can it show box-drawing characters? */
bool terminal_is_utf8(void);

#endif
