#include "browse/report.h"

#include "base/clock.h"
#include "base/text.h"
#include "profile/origin.h"

#include <stdlib.h>
#include <string.h>

/* Blanks before a row for each level that it is below another: where columns are few just one, and
 * never more than a share of them, or deep rows would have no room for their names. */
#define INDENT 2
#define INDENT_WIDTH 100
#define INDENT_SHARE 4

/* Once the first screen is there, what expanding needs is got ready, bit by bit. */
#define PREPARE_MS 1
#define SLICE_NS 10000000u

/* Whose code a function is, in the screen's terms: the user's own stands out. */
static enum screen_role role_of(const struct report_view *view, uint32_t function)
{
	static const enum screen_role roles[CODE_ORIGINS] = {
		[CODE_OWN] = SCREEN_STRONG,    [CODE_PACKAGES] = SCREEN_PLAIN,
		[CODE_STDLIB] = SCREEN_PLAIN,  [CODE_SYSTEM] = SCREEN_NATIVE,
		[CODE_KERNEL] = SCREEN_KERNEL, [CODE_UNKNOWN] = SCREEN_PLAIN,
	};

	if (profile_function(view->browse->profile, function)->kind == FRAME_NATIVE)
		return SCREEN_NATIVE;
	return roles[code_origin(view->browse->profile, function)];
}

static int indent_of(const struct report_view *view, const struct screen_tree_row *row)
{
	int width = view->width, indent = (int)row->depth * (width < INDENT_WIDTH ? 1 : INDENT);

	return indent < width / INDENT_SHARE ? indent : width / INDENT_SHARE;
}

static void add_mark(const struct report_view *view, const struct screen_tree_row *row,
		     struct strbuf *cell)
{
	strbuf_printf(cell, "%*s%c ", indent_of(view, row), "",
		      row->leaf	  ? ' '
		      : row->open ? '-'
				  : '+');
}

static void add_labels(struct report_view *view, const struct screen_tree_row *row,
		       const struct view_row *shown)
{
	size_t column = view->layout.places.len;
	struct strbuf *cell;

	for (size_t i = 0; view->groups && i < view->groups->key_count; i++)
		rows_add_group(&view->report, view->names, shown, i, table_cell(&view->grid.table));
	for (const struct label *l = row_labels; !view->groups && l->key; l++) {
		if (!l->in_text)
			continue;
		cell = table_cell(&view->grid.table);
		if (column == view->layout.places.len)
			add_mark(view, row, cell);
		l->add(&view->report, view->names, shown, cell);
		grid_role(&view->grid, column++, role_of(view, shown->function));
	}
}

/* "called by", "calls": what the rows below are. */
static void add_side(struct report_view *view, const struct screen_tree_row *row,
		     enum calltree_side side)
{
	struct table *table = &view->grid.table;
	struct strbuf *cell;

	layout_cells(&view->layout, table, NULL, NULL);
	cell = table_cell(table);
	add_mark(view, row, cell);
	strbuf_str(cell, side == CALLTREE_CALLERS ? "called by" : "calls");
	while (table->cells.len % table->column_count)
		table_cell(table);
}

static void add_row(struct report_view *view, const struct screen_tree_row *row)
{
	const struct view *rows = view->report.view;
	size_t index = NODE_INDEX(row->node);
	const struct calltree_branch *branch;
	struct view_row shown;

	if (NODE_KIND(row->node) == NODE_ROW) {
		shown = rows->rows[index];
		layout_row(&view->layout, &view->grid.table, rows, &shown);
		add_labels(view, row, &shown);
		grid_heat(&view->grid, &view->layout, view->report.event, shown.counts,
			  rows->period_total);
		return;
	}
	branch = &view->calls.branches.items[index];
	if (NODE_KIND(row->node) == NODE_SIDE) {
		add_side(view, row, branch->side);
		return;
	}
	shown = (struct view_row){.function = branch->function};
	layout_cells(&view->layout, &view->grid.table, branch->counts, rows->period_total);
	add_labels(view, row, &shown);
	grid_heat(&view->grid, &view->layout, view->report.event, branch->counts,
		  rows->period_total);
}

static size_t count_rows(void *self)
{
	return ((struct report_view *)self)->tree.rows.len;
}

static void prepare(void *self, size_t first, size_t count, int width)
{
	struct report_view *view = self;
	struct grid *grid = &view->grid;

	view->width = width;
	grid->first = first;
	grid_begin(grid, view->layout.columns.items, view->layout.columns.len);
	for (size_t i = first; i < first + count; i++)
		add_row(view, &view->tree.rows.items[i]);
	/* Where memory ran out rows stay blank. */
	grid_fit(grid, width, NULL);
	view->list.headings = grid_headings(grid);
}

static void put_heading(void *self, unsigned int index, struct screen_line *line)
{
	grid_heading(&((struct report_view *)self)->grid, index, line);
}

static void put_row(void *self, size_t row, struct screen_line *line)
{
	struct report_view *view = self;

	grid_row(&view->grid, row - view->grid.first, line);
}

/* What is searched in: the name and the place. */
static void put_text(void *self, size_t row, struct strbuf *out)
{
	struct report_view *view = self;
	uint64_t node = view->tree.rows.items[row].node;
	uint32_t function = report_function(view, row);

	if (function != UINT32_MAX && NODE_KIND(node) != NODE_SIDE) {
		names_add_function(view->names, function, out);
		strbuf_char(out, ' ');
		names_add_place(view->names, function, out);
	}
	for (size_t i = 0; view->groups && i < view->groups->key_count; i++) {
		rows_add_group(&view->report, view->names,
			       &view->report.view->rows[NODE_INDEX(node)], i, out);
		strbuf_char(out, ' ');
	}
}

static const struct screen_rows rows = {
	.count = count_rows,
	.prepare = prepare,
	.heading = put_heading,
	.row = put_row,
	.text = put_text,
};

/* " cycles: 2,996 samples   by self   thread 4711   python train.py" */
static void put_title(void *self, struct screen_line *line)
{
	const struct report_view *view = self;
	const char *command = profile_summary(view->browse->profile)->command;
	struct strbuf event = {0};
	char count[32];

	names_add_event(view->names, view->report.event, &event);
	text_count(count, sizeof(count), view->report.view->samples[view->report.event]);
	screen_line_printf(line, SCREEN_BAR, " %s: %s samples   by %s", strbuf_text(&event), count,
			   report_sort_name(view, view->sort));
	strbuf_fini(&event);
	for (size_t i = 0; i < view->zooms.stack.len; i++) {
		const char *label = view->zooms.stack.items[i].label;

		screen_line_add(line, SCREEN_BAR, "  > ");
		screen_line_escape(line, SCREEN_BAR, label, strlen(label));
	}
	if (view->report.filter) {
		screen_line_add(line, SCREEN_BAR, "   ");
		screen_line_escape(line, SCREEN_BAR, view->report.filter,
				   strlen(view->report.filter));
	}
	if (command) {
		screen_line_add(line, SCREEN_BAR, "   ");
		screen_line_escape(line, SCREEN_BAR, command, strlen(command));
	}
}

/* Call trees are made between keys; then comes what waited for them. */
static int tick(struct screen *screen, void *self, struct err *err)
{
	struct report_view *view = self;
	int rc = report_data_calls(view, clock_now_ns() + SLICE_NS, err);

	if (rc != 1 || !view->waiting)
		return rc;
	if (view->waiting_row == view->list.selected)
		rc = view->waiting(screen, view, 0, err);
	view->waiting = NULL;
	screen_redraw(screen);
	return rc < 0 ? rc : 1;
}

static void close_report(void *self)
{
	struct report_view *view = self;

	report_data_fini(view);
	grid_fini(&view->grid);
	screen_list_fini(&view->list);
	free(view);
}

static const struct screen_view report_screen = {
	.name = "report",
	.keys = report_keys,
	.title = put_title,
	.tick = tick,
	.tick_ms = PREPARE_MS,
	.close = close_report,
};

int browse_report(struct screen *screen, const struct browse *browse, struct err *err)
{
	struct report_view *view = calloc(1, sizeof(*view));
	int rc;

	if (!view)
		return err_nomem(err);
	view->screen = screen;
	view->browse = browse;
	view->report = browse->report;
	view->metrics = *browse->report.metrics;
	view->report.metrics = &view->metrics;
	view->zooms.base = *browse->filter;
	view->sort = browse->order == VIEW_BY_TOTAL ? SORT_TOTAL : SORT_SELF;
	view->list = (struct screen_list){.rows = &rows, .self = view, .headings = 1};
	view->tree.children = report_data_children;
	view->tree.self = view;
	rc = names_new(&view->names, browse->profile, err);
	if (!rc)
		rc = report_data_load(view, err);
	if (!rc)
		return screen_push(screen, &report_screen, view, &view->list, err);
	close_report(view);
	return rc;
}
