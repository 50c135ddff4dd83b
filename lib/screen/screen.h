#ifndef PYPERF_SCREEN_H
#define PYPERF_SCREEN_H

#include "base/err.h"
#include "screen/key.h"
#include "screen/line.h"
#include "screen/list.h"

#include <stdbool.h>

/*
 * Interactive views on a terminal, a thin layer over ncurses.
 *
 * A view is a table of keys and what draws it; views lie on a stack, the topmost one is seen and
 * has the keys, q and Esc take it off, and with the last one screen_run() ends. A screen is laid
 * out so:
 *
 *      title                       what is shown, one line
 *      headings                    of the list's columns
 *      rows                        a list (list.h, tree.h), or whatever the view draws
 *      status                      a message, a prompt, or the most useful keys
 *
 *      static const struct screen_key keys[] = {
 *              {{'s'}, sort_rows, 0, "sort", "sort by the next column"},
 *              {{SCREEN_ENTER, 'a'}, annotate, 0, "annotate", "show the function's source"},
 *              SCREEN_LAST_KEY,
 *      };
 *      static const struct screen_view view = {.name = "report", .keys = keys, .title = put_title};
 *
 *      rc = screen_open(&screen, err);
 *      rc = rc ? rc : screen_push(screen, &view, self, &self->list, err);
 *      rc = rc ? rc : screen_run(screen, err);
 *      screen_close(screen);
 *
 * Keys are looked for in the view's table, then, where it has a list, among those that move in
 * lists and search, then among those of every view (help, back): list.c, screen.c. Text passes
 * text_escape() where it enters a line.
 *
 * The terminal is given back however the process ends (restore.h). SIGINT, SIGTERM and SIGHUP end
 * the process, as without a screen; who has more to end blocks them, takes them from a signalfd
 * (cmd/session.h does), watches that with screen_watch() and calls screen_quit().
 *
 * Drawing happens once for all keys that have come, and after whatever called screen_redraw().
 */

/* Smaller terminals get a sentence instead of the view. */
#define SCREEN_MIN_ROWS 12
#define SCREEN_MIN_COLUMNS 60

struct screen_area {
	int row, column, height, width;
};

struct screen_view {
	const char *name;	       /* for the title of its help */
	const struct screen_key *keys; /* ended by a row without codes; may be NULL */
	void (*title)(void *self, struct screen_line *line);
	/* Optional: instead of a list. Uses screen_put(). */
	void (*draw)(struct screen *screen, void *self, const struct screen_area *area);
	/* Optional: a click there, where there is no list; row and column within the area. */
	int (*click)(struct screen *screen, void *self, int row, int column, struct err *err);
	/* Optional: called `tick_ms` after it was pushed, and again until it returns 1, whether the
	 * view is topmost or not. What it changes it has drawn by screen_redraw(). */
	int (*tick)(struct screen *screen, void *self, struct err *err);
	int tick_ms;
	/* Optional: frees `self` when the view leaves the stack. */
	void (*close)(void *self);
	bool overlay; /* a box over the view below, as large as its list */
};

/* ERR_UNSUPPORTED with the reason where there is no terminal to draw on, or where pyperf was built
 * without ncurses: text is what remains. The first tells what can be told without opening. */
int screen_check(struct err *err);
int screen_open(struct screen **screen, struct err *err);
/* Closes views that are left. Takes NULL. */
void screen_close(struct screen *screen);

/* The list stays the caller's, as long as the view is there; NULL where the view draws. Where this
 * fails the view is closed. */
int screen_push(struct screen *screen, const struct screen_view *view, void *self,
		struct screen_list *list, struct err *err);
/* Takes the topmost view off, once the key's action has returned. */
void screen_pop(struct screen *screen);
/* Ends screen_run(). */
void screen_quit(struct screen *screen);
/* Shows and serves until there is no view left, or screen_quit(), or the terminal is gone. */
int screen_run(struct screen *screen, struct err *err);

/* `ready` is called when the descriptor is readable. At most SCREEN_WATCHED. */
#define SCREEN_WATCHED 8
int screen_watch(struct screen *screen, int fd,
		 int (*ready)(struct screen *screen, void *self, struct err *err), void *self,
		 struct err *err);
void screen_unwatch(struct screen *screen, int fd);

void screen_redraw(struct screen *screen);
/* The tick of the view that has this `self`, if it was pushed, is called again. */
void screen_tick(struct screen *screen, const void *self);
/* The width that lists of full views have, the height of their area. */
void screen_size(const struct screen *screen, int *rows, int *columns);
/* Draws a line of a view that draws itself: row and column within the area. */
void screen_put(const struct screen_area *area, int row, int column, int width,
		const struct screen_line *line, bool selected);

/* A sentence on the status line, until the next key. */
void screen_say(struct screen *screen, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void screen_say_err(struct screen *screen, const struct err *err);
/* Asks for a line of text on the status line; `done` is not called where the user leaves it by Esc.
 */
void screen_ask(struct screen *screen, const char *question, const char *initial,
		int (*done)(struct screen *screen, void *self, const char *text, struct err *err),
		void *self);
/* Text in a box, over the view, until a key is pressed. Lines end at newlines. */
int screen_tell(struct screen *screen, const char *title, const char *text, struct err *err);
/* Lets the user choose one of the words in a box; they are copied. */
int screen_choose(struct screen *screen, const char *title, const char *const *words, size_t count,
		  size_t selected,
		  int (*chosen)(struct screen *screen, void *self, size_t index, struct err *err),
		  void *self, struct err *err);

#endif
