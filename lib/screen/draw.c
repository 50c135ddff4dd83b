#include "screen/internal.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* The frame around views: title, headings, status; and the boxes of overlays. */

static void put_line(const struct screen_area *area, int row, struct screen_line *line,
		     bool selected)
{
	terminal_put(area->row + row, area->column, area->width, line, selected);
}

void screen_put(const struct screen_area *area, int row, int column, int width,
		const struct screen_line *line, bool selected)
{
	if (row < 0 || row >= area->height || column < 0 || column >= area->width)
		return;
	if (width > area->width - column)
		width = area->width - column;
	terminal_put(area->row + row, area->column + column, width, line, selected);
}

/* Headings and rows; area becomes that of the rows. */
static void draw_list(struct screen *screen, struct screen_layer *layer, struct screen_area *area)
{
	struct screen_list *list = layer->list;
	const struct screen_rows *rows = list->rows;
	struct screen_line *line = &screen->line;
	size_t height = (size_t)area->height, count = screen_list_count(list);

	height -= height > list->headings ? list->headings : height;
	screen_list_settle(list, height);
	if (rows->prepare)
		rows->prepare(list->self, list->top,
			      count - list->top < height ? count - list->top : height, area->width);
	count = screen_list_count(list);
	for (unsigned int i = 0; i < list->headings && rows->heading; i++) {
		screen_line_reset(line);
		rows->heading(list->self, i, line);
		put_line(area, (int)i, line, false);
	}
	area->row += (int)list->headings;
	area->height = (int)height;
	for (size_t i = 0; i < height && list->top + i < count; i++) {
		size_t row = list->top + i;

		screen_line_reset(line);
		rows->row(list->self, row, line);
		screen_line_skip(line, list->shift);
		put_line(area, (int)i, line, row == list->selected);
	}
}

static void draw_body(struct screen *screen, struct screen_layer *layer, struct screen_area area)
{
	if (layer->list)
		draw_list(screen, layer, &area);
	else if (layer->view->draw)
		layer->view->draw(screen, layer->self, &area);
	layer->area = area;
}

static void draw_full(struct screen *screen, struct screen_layer *layer, int rows, int columns)
{
	const struct screen_area area = {1, 0, rows - 2, columns};
	struct screen_line *line = &screen->line, bar = {0};

	screen_line_reset(line);
	if (layer->view->title)
		layer->view->title(layer->self, line);
	/* The bar goes from side to side, whatever its parts are. */
	screen_line_blanks(line, SCREEN_BAR, (size_t)columns);
	strbuf_add(screen_line_part(&bar, SCREEN_BAR), line->text.buf, line->text.len);
	terminal_put(0, 0, columns, &bar, false);
	screen_line_fini(&bar);
	draw_body(screen, layer, area);
}

/* Columns of the widest row; asks all of them, which are few in a box. */
static int box_width(struct screen *screen, struct screen_layer *layer)
{
	struct screen_line *line = &screen->line;
	size_t width = 0, count = screen_list_count(layer->list);

	screen_line_reset(line);
	layer->view->title(layer->self, line);
	width = screen_line_width(line) + 4;
	for (size_t i = 0; i < count; i++) {
		screen_line_reset(line);
		layer->list->rows->row(layer->list->self, i, line);
		if (screen_line_width(line) > width)
			width = screen_line_width(line);
	}
	return (int)width;
}

/* Corners and edges, from left to right; plain ones where the terminal has no others. */
static void put_edge(struct screen_area box, const char *const parts[3], const char *title)
{
	struct screen_line line = {0};

	screen_line_add(&line, SCREEN_PLAIN, parts[0]);
	if (title)
		screen_line_printf(&line, SCREEN_STRONG, " %s ", title);
	while ((int)screen_line_width(&line) < box.width - 1)
		screen_line_add(&line, SCREEN_PLAIN, parts[1]);
	screen_line_add(&line, SCREEN_PLAIN, parts[2]);
	terminal_put(box.row, box.column, box.width, &line, false);
	screen_line_fini(&line);
}

static void draw_frame(struct screen_area box, const char *title)
{
	static const char *const edges[2][3][3] = {
		{{"+", "-", "+"}, {"|", " ", "|"}, {"+", "-", "+"}},
		{{"┌", "─", "┐"}, {"│", " ", "│"}, {"└", "─", "┘"}},
	};
	const char *const(*edge)[3] = edges[terminal_is_utf8()];

	for (int i = 0; i < box.height; i++) {
		struct screen_area row = {box.row + i, box.column, 1, box.width};

		row.height = 1;
		row.width = box.width;
		put_edge(row, edge[i == 0 ? 0 : i == box.height - 1 ? 2 : 1], i ? NULL : title);
	}
}

static void draw_box(struct screen *screen, struct screen_layer *layer, int rows, int columns)
{
	int width = box_width(screen, layer) + 4;
	int height = (int)screen_list_count(layer->list) + 2;
	struct screen_area box;
	struct screen_line title = {0};

	if (width > columns)
		width = columns;
	if (height > rows - 1)
		height = rows - 1;
	box = (struct screen_area){(rows - 1 - height) / 2, (columns - width) / 2, height, width};
	layer->view->title(layer->self, &title);
	draw_frame(box, strbuf_text(&title.text));
	screen_line_fini(&title);
	draw_body(screen, layer,
		  (struct screen_area){box.row + 1, box.column + 2, height - 2, width - 4});
}

/* "Enter annotate  / search": as many as there is room for; what every view has comes first. */
static void put_hints(struct screen *screen, struct screen_line *line, int columns)
{
	const struct screen_key *tables[LAYER_TABLES];

	layer_tables(screen_top(screen), tables);
	for (size_t i = 0; i < LAYER_TABLES; i++) {
		/* Help and the way back are worth more than anything: they come first. */
		size_t table = (i + LAYER_TABLES - 1) % LAYER_TABLES;
		const struct screen_key *key = tables[table];

		for (; key && key->codes[0]; key++) {
			struct strbuf name = {0};

			if (!key->hint || !layer_reaches(tables, table, key))
				continue;
			screen_key_name(key->codes[0], &name);
			if (screen_line_width(line) + name.len + strlen(key->hint) + 1 <
			    (size_t)columns) {
				screen_line_add(line, SCREEN_NAME, strbuf_text(&name));
				screen_line_printf(line, SCREEN_PLAIN, " %s  ", key->hint);
			}
			strbuf_fini(&name);
		}
	}
}

/* Returns the column of the cursor, or -1. */
static int draw_status(struct screen *screen, int row, int columns)
{
	struct screen_line *line = &screen->line;
	const struct prompt *prompt = &screen->prompt;
	int cursor = -1;

	screen_line_reset(line);
	if (prompt->question) {
		size_t before;

		screen_line_add(line, SCREEN_STRONG, prompt->question);
		before = screen_line_width(line);
		screen_line_escape(line, SCREEN_PLAIN, strbuf_text(&prompt->text),
				   prompt->text.len);
		cursor = (int)(before + text_width(strbuf_text(&prompt->text), prompt->cursor));
		if (cursor >= columns)
			cursor = columns - 1;
	} else if (screen->message.len) {
		screen_line_escape(line, screen->message_is_error ? SCREEN_ERROR : SCREEN_STRONG,
				   screen->message.buf, screen->message.len);
	} else {
		put_hints(screen, line, columns);
	}
	terminal_put(row, 0, columns, line, false);
	return cursor;
}

static void draw_too_small(struct screen *screen, int rows, int columns)
{
	struct screen_line *line = &screen->line;

	screen_line_reset(line);
	screen_line_printf(line, SCREEN_PLAIN, "%dx%d is too small: %dx%d at least; q ends.",
			   columns, rows, SCREEN_MIN_COLUMNS, SCREEN_MIN_ROWS);
	terminal_put(0, 0, columns, line, false);
}

/* The topmost view that fills the screen, and the boxes over it. */
void draw_screen(struct screen *screen)
{
	size_t first = screen->layers.len - 1;
	int rows, columns, cursor = -1;

	terminal_begin(screen->anew);
	terminal_size(&rows, &columns);
	if (rows < SCREEN_MIN_ROWS || columns < SCREEN_MIN_COLUMNS) {
		draw_too_small(screen, rows, columns);
	} else {
		while (first && screen->layers.items[first].view->overlay)
			first--;
		draw_full(screen, &screen->layers.items[first], rows, columns);
		for (size_t i = first + 1; i < screen->layers.len; i++)
			draw_box(screen, &screen->layers.items[i], rows, columns);
		cursor = draw_status(screen, rows - 1, columns);
	}
	terminal_end();
	terminal_cursor(cursor < 0 ? -1 : rows - 1, cursor);
}
