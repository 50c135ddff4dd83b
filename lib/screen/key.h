#ifndef PYPERF_SCREEN_KEY_H
#define PYPERF_SCREEN_KEY_H

#include "base/err.h"
#include "base/strbuf.h"

/*
 * Keys and what they do. A view has one table; pressing a key and the text of `?` both come from
 * it, so that neither can know what the other does not.
 */

/* Characters are their code points; the others follow them. */
enum {
	SCREEN_NO_KEY = 0,
	SCREEN_TAB = '\t',
	SCREEN_ENTER = '\n',
	SCREEN_ESC = 27,
	SCREEN_UP = 0x110000,
	SCREEN_DOWN,
	SCREEN_LEFT,
	SCREEN_RIGHT,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_END,
	SCREEN_BACKSPACE,
	SCREEN_DELETE,
	SCREEN_BACKTAB,
	SCREEN_F1,
	SCREEN_MOUSE, /* see struct terminal_input */
	SCREEN_KEYS_END,
};
#define SCREEN_CTRL(letter) ((letter)&0x1f)

#define SCREEN_KEY_CODES 4

struct screen;

/* `self` is the view's. An error is shown on the status line, and the view goes on. */
typedef int screen_act(struct screen *screen, void *self, int argument, struct err *err);

struct screen_key {
	int codes[SCREEN_KEY_CODES]; /* any of them; filled up with 0 */
	screen_act *act;
	int argument;	  /* for `act` */
	const char *hint; /* a word for the status line; NULL: not there */
	const char *help; /* a sentence for `?`; NULL: the row belongs to the one above it */
};

/* The row that ends a table. */
#define SCREEN_LAST_KEY       \
	{                     \
		.codes = {0}, \
	}

/* The row that has the code; NULL where none has. */
const struct screen_key *screen_key_find(const struct screen_key *keys, int code);
/* "Enter", "^L", "PgUp", "x". */
void screen_key_name(int code, struct strbuf *out);
/* "Enter, a": all of a row, up to `most` of them. */
void screen_key_names(const struct screen_key *key, size_t most, struct strbuf *out);

#endif
