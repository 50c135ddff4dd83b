#include "screen/internal.h"

#include "base/text.h"

#include <string.h>

/* Boxes over a view: words to choose from, and text, which are words that choose nothing. */
struct box {
	struct screen_list list;
	char *title;
	char **words;
	size_t count;
	int (*chosen)(struct screen *screen, void *self, size_t index, struct err *err);
	void *self;
};

static void close_box(void *self)
{
	struct box *box = self;

	for (size_t i = 0; i < box->count; i++)
		free(box->words[i]);
	free(box->words);
	free(box->title);
	screen_list_fini(&box->list);
	free(box);
}

static size_t count_words(void *self)
{
	return ((struct box *)self)->count;
}

static void put_word(void *self, size_t row, struct screen_line *line)
{
	const char *word = ((struct box *)self)->words[row];

	screen_line_escape(line, SCREEN_PLAIN, word, strlen(word));
}

static void put_title(void *self, struct screen_line *line)
{
	const struct box *box = self;

	screen_line_escape(line, SCREEN_STRONG, box->title, strlen(box->title));
}

static int choose(struct screen *screen, void *self, int argument, struct err *err)
{
	struct box *box = self;

	screen_pop(screen);
	return box->chosen ? box->chosen(screen, box->self, box->list.selected, err) : 0;
}

static const struct screen_rows rows = {.count = count_words, .row = put_word};

static const struct screen_key choice_keys[] = {
	{{SCREEN_ENTER, SCREEN_RIGHT, 'l'}, choose, 0, "choose", "choose the row"},
	SCREEN_LAST_KEY,
};
static const struct screen_view choice_view = {.name = "choice",
					       .keys = choice_keys,
					       .title = put_title,
					       .close = close_box,
					       .overlay = true};
static const struct screen_key text_keys[] = {
	{{SCREEN_ENTER}, choose, 0, "close", "close the box"},
	SCREEN_LAST_KEY,
};
static const struct screen_view text_view = {
	.name = "text", .keys = text_keys, .title = put_title, .close = close_box, .overlay = true};

static struct box *box_new(const char *title)
{
	struct box *box = calloc(1, sizeof(*box));

	if (!box)
		return NULL;
	box->title = strdup(title);
	box->list = (struct screen_list){.rows = &rows, .self = box};
	if (box->title)
		return box;
	close_box(box);
	return NULL;
}

static bool add_word(struct box *box, const char *word, size_t len)
{
	char **words = realloc(box->words, (box->count + 1) * sizeof(*words));

	if (!words)
		return false;
	box->words = words;
	words[box->count] = strndup(word, len);
	return words[box->count] && ++box->count;
}

int screen_choose(struct screen *screen, const char *title, const char *const *words, size_t count,
		  size_t selected,
		  int (*chosen)(struct screen *screen, void *self, size_t index, struct err *err),
		  void *self, struct err *err)
{
	struct box *box = box_new(title);

	for (size_t i = 0; box && i < count; i++)
		if (!add_word(box, words[i], strlen(words[i]))) {
			close_box(box);
			box = NULL;
		}
	if (!box)
		return err_nomem(err);
	box->chosen = chosen;
	box->self = self;
	box->list.selected = selected;
	return screen_push(screen, &choice_view, box, &box->list, err);
}

int screen_tell(struct screen *screen, const char *title, const char *text, struct err *err)
{
	struct box *box = box_new(title);

	while (box && *text) {
		size_t len = strcspn(text, "\n");

		if (!add_word(box, text, len)) {
			close_box(box);
			box = NULL;
		}
		text += len + (text[len] == '\n');
	}
	return box ? screen_push(screen, &text_view, box, &box->list, err) : err_nomem(err);
}
