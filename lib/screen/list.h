#ifndef PYPERF_SCREEN_LIST_H
#define PYPERF_SCREEN_LIST_H

#include "screen/line.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * A list that scrolls. It asks for the rows that are seen and for no others, so a million rows cost
 * what a screenful costs. Rows are numbers; what they are is the view's.
 */
struct screen_rows {
	size_t (*count)(void *self);
	/* Optional: rows `first` to `first + count` are about to be asked for, in so many columns:
	 * the time to lay out columns together. */
	void (*prepare)(void *self, size_t first, size_t count, int width);
	/* Optional: the lines of headings, above all rows. */
	void (*heading)(void *self, unsigned int index, struct screen_line *line);
	/* Appends the row's parts; text wider than the screen is cut. */
	void (*row)(void *self, size_t row, struct screen_line *line);
	/* Optional: what `/` looks in, where that is not the row's line; appends to an empty
	 * buffer. Worth having where rows are many: a search asks for all of them. */
	void (*text)(void *self, size_t row, struct strbuf *out);
};

struct screen_list {
	const struct screen_rows *rows;
	void *self;
	unsigned int headings; /* lines of headings; may change between draws */
	size_t selected;       /* a view may set it: of a new selection it is made visible */
	size_t top;	       /* the row that is seen first */
	size_t height;	       /* rows that are seen, as of the last draw */
	size_t shift; /* columns that rows are seen from on: what is wider is on the right */
	char *wanted; /* what was searched for last; NULL before */
	/* A search goes on between keys: rows left to look at from `search_at`. */
	size_t search_at, search_left;
	int search_step;
};

void screen_list_fini(struct screen_list *list);
size_t screen_list_count(const struct screen_list *list);
/* Selects, within the list; `by` may be anything. */
void screen_list_move(struct screen_list *list, long by);
/* Keeps the selection within the list and `top` so that it is seen in `height` rows. */
void screen_list_settle(struct screen_list *list, size_t height);
/* Turns what is seen, and takes the selection along only where it would be left behind. */
void screen_list_scroll(struct screen_list *list, long by);

/* Starts to look for a text (regardless of case) behind the selection, or for the last one where
 * NULL; `step` 1 down, -1 up, and on from the other end. False where there is nothing to look for.
 */
bool screen_list_search(struct screen_list *list, const char *text, int step);
enum screen_found { SCREEN_FOUND, SCREEN_NOT_FOUND, SCREEN_SEARCHING };
/* Goes on until the time on CLOCK_MONOTONIC; selects what is found. */
enum screen_found screen_list_search_on(struct screen_list *list, uint64_t until_ns);

#endif
