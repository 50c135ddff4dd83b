#include "browse/pages.h"

#include <stdlib.h>
#include <string.h>

struct text_view {
	struct screen_list list;
	struct pages pages;
	char *title, *text;
	size_t len;
	struct {
		VEC_OF(size_t)
	} starts; /* of lines */
	int width;
};

static void close_text(void *self)
{
	struct text_view *view = self;

	if (view->pages.close)
		view->pages.close(view->pages.self);
	screen_list_fini(&view->list);
	vec_fini(&view->starts);
	free(view->text);
	free(view->title);
	free(view);
}

static int find_lines(struct text_view *view, struct err *err)
{
	view->starts.len = 0;
	for (size_t at = 0; at < view->len;) {
		const char *end = memchr(view->text + at, '\n', view->len - at);
		size_t *start = vec_push(&view->starts);

		if (!start)
			return err_nomem(err);
		*start = at;
		at = end ? (size_t)(end - view->text) + 1 : view->len;
	}
	return 0;
}

static int write_text(struct text_view *view, int width, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int rc = out ? view->pages.write(out, view->pages.self, width, err) : err_nomem(err);

	if (out && fclose(out) && !rc)
		rc = err_nomem(err);
	free(view->text);
	view->text = text;
	view->len = rc ? 0 : len;
	view->width = width;
	return rc ? rc : find_lines(view, err);
}

static size_t count_lines(void *self)
{
	return ((struct text_view *)self)->starts.len;
}

static void prepare(void *self, size_t first, size_t count, int width)
{
	struct text_view *view = self;

	/* Where that fails there is no text to show. */
	if (width != view->width)
		write_text(view, width, NULL);
}

static void put_line(void *self, size_t row, struct screen_line *line)
{
	const struct text_view *view = self;
	size_t start, end;

	if (row >= view->starts.len)
		return;
	start = view->starts.items[row];
	end = row + 1 < view->starts.len ? view->starts.items[row + 1] : view->len;
	end -= end > start && view->text[end - 1] == '\n';
	strbuf_add(screen_line_part(line, SCREEN_PLAIN), view->text + start, end - start);
}

static void put_title(void *self, struct screen_line *line)
{
	screen_line_add(line, SCREEN_BAR, ((struct text_view *)self)->title);
}

static const struct screen_rows rows = {.count = count_lines, .prepare = prepare, .row = put_line};
static const struct screen_view text_view = {
	.name = "text", .title = put_title, .close = close_text};

int pages_open(struct screen *screen, const char *title, const struct pages *pages, struct err *err)
{
	struct text_view *view = calloc(1, sizeof(*view));
	int height, width, rc;

	if (!view) {
		if (pages->close)
			pages->close(pages->self);
		return err_nomem(err);
	}
	view->pages = *pages;
	view->list = (struct screen_list){.rows = &rows, .self = view};
	view->title = strdup(title);
	screen_size(screen, &height, &width);
	rc = view->title ? write_text(view, width, err) : err_nomem(err);
	if (!rc)
		return screen_push(screen, &text_view, view, &view->list, err);
	close_text(view);
	return rc;
}
