#ifndef PYPERF_SCREEN_INTERNAL_H
#define PYPERF_SCREEN_INTERNAL_H

#include "screen/screen.h"
#include "screen/terminal.h"

struct screen_layer {
	const struct screen_view *view;
	void *self;
	struct screen_list *list;
	struct screen_area
		area;	  /* of the list's rows or of what the view draws, when it was drawn */
	uint64_t tick_at; /* ns; UINT64_MAX: no more */
};

struct screen_watched {
	int fd;
	int (*ready)(struct screen *screen, void *self, struct err *err);
	void *self;
};

/* A line of text that is being typed. */
struct prompt {
	const char *question; /* NULL: nothing is asked */
	struct strbuf text;
	size_t cursor; /* in bytes */
	int (*done)(struct screen *screen, void *self, const char *text, struct err *err);
	void *self;
};

struct screen {
	struct {
		VEC_OF(struct screen_layer)
	} layers;
	size_t pops; /* layers to take off */
	struct screen_watched watched[SCREEN_WATCHED];
	size_t watched_count;
	struct prompt prompt;
	struct strbuf message;
	bool message_is_error;
	bool quit, stale, anew;
	struct screen_line line; /* for drawing */
};

extern const struct screen_key screen_list_keys[], screen_common_keys[];
/* The tables that the layer's keys are looked for in, in that order. */
#define LAYER_TABLES 3
void layer_tables(const struct screen_layer *layer, const struct screen_key *tables[LAYER_TABLES]);
/* Does its first code reach the key of a table, or does a table before have it? */
bool layer_reaches(const struct screen_key *const tables[LAYER_TABLES], size_t table,
		   const struct screen_key *key);

struct screen_layer *screen_top(struct screen *screen);
/* Draws everything; ends with the cursor where the prompt has it. */
void draw_screen(struct screen *screen);

void prompt_open(struct screen *screen, const char *question, const char *initial,
		 int (*done)(struct screen *screen, void *self, const char *text, struct err *err),
		 void *self);
int prompt_key(struct screen *screen, int code, struct err *err);
void prompt_close(struct prompt *prompt);

/* `?`: the keys of the view below. */
int help_open(struct screen *screen, void *self, int argument, struct err *err);

#endif
