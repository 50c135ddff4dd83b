#include "screen/internal.h"

#include <string.h>

/* What `?` shows: the tables of keys that the view below has, as rows. */

#define NAMES_WIDTH 18

struct help {
	struct screen_list list;
	const char *name;
	const struct screen_key *tables[LAYER_TABLES];
};

/* Row `at` of all tables; NULL for the blank row between two of them. */
static const struct screen_key *row_at(const struct help *help, size_t at, bool *is_row)
{
	for (size_t t = 0; t < LAYER_TABLES; t++) {
		bool any = false;

		for (const struct screen_key *key = help->tables[t]; key && key->codes[0]; key++) {
			if (!key->help || !layer_reaches(help->tables, t, key))
				continue;
			any = true;
			*is_row = true;
			if (!at--)
				return key;
		}
		if (any && t + 1 < LAYER_TABLES && !at--) {
			*is_row = true;
			return NULL;
		}
	}
	*is_row = false;
	return NULL;
}

static size_t count_rows(void *self)
{
	size_t count = 0;
	bool is_row = true;

	for (;; count++) {
		row_at(self, count, &is_row);
		if (!is_row)
			return count;
	}
}

static void put_row(void *self, size_t row, struct screen_line *line)
{
	struct strbuf names = {0};
	bool is_row;
	const struct screen_key *key = row_at(self, row, &is_row);

	if (!key)
		return;
	screen_line_add(line, SCREEN_PLAIN, " ");
	screen_key_names(key, SCREEN_KEY_CODES, &names);
	screen_line_add(line, SCREEN_NAME, strbuf_text(&names));
	screen_line_pad(line, NAMES_WIDTH);
	screen_line_add(line, SCREEN_PLAIN, key->help);
	strbuf_fini(&names);
}

static void put_title(void *self, struct screen_line *line)
{
	screen_line_printf(line, SCREEN_BAR, " Keys of the %s view", ((struct help *)self)->name);
}

static void close_help(void *self)
{
	screen_list_fini(&((struct help *)self)->list);
	free(self);
}

static const struct screen_rows rows = {.count = count_rows, .row = put_row};
static const struct screen_view view = {.name = "help", .title = put_title, .close = close_help};

int help_open(struct screen *screen, void *self, int argument, struct err *err)
{
	const struct screen_layer *top = screen_top(screen);
	struct help *help;

	if (top->view == &view)
		return 0;
	help = calloc(1, sizeof(*help));
	if (!help)
		return err_nomem(err);
	help->name = top->view->name;
	help->list = (struct screen_list){.rows = &rows, .self = help};
	layer_tables(top, help->tables);
	return screen_push(screen, &view, help, &help->list, err);
}
