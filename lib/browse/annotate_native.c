#include "browse/annotate.h"

#include "browse/grid.h"
#include "output/layout.h"
#include "output/native_code.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The machine code of one native function with its figures; all of it, where the code is at hand.
 */

#define HOT_SHARE 0.005 /* of the whole: an instruction that is worth a stop */
#define ABOVE 8

struct disassembled {
	struct annotate annotate;
	struct metric_columns metrics;
	struct names *names;
	struct native_code code;
	struct layout layout;
	struct grid grid;
	bool fresh; /* the columns */
	struct screen_list list;
};

static const struct native_row *row_at(const struct disassembled *d, size_t row)
{
	return &d->code.rows.items[row];
}

static const uint64_t *whole(const struct disassembled *d)
{
	return d->annotate.functions->period_total;
}

static size_t count_rows(void *self)
{
	const struct disassembled *d = self;

	return d->code.rows.len;
}

static void add_row(struct disassembled *d, const struct native_row *row)
{
	struct table *table = &d->grid.table;

	layout_cells(&d->layout, table, row->counts, whole(d));
	strbuf_printf(table_cell(table), "%" PRIx64, row->addr);
	names_add_text(table_cell(table), native_code_text(&d->code, row));
	native_code_add_line(d->annotate.profile, row, table_cell(table));
	grid_role(&d->grid, d->layout.places.len, SCREEN_FAINT);
	grid_role(&d->grid, d->layout.places.len + 2, SCREEN_FAINT);
	grid_heat(&d->grid, &d->layout, d->annotate.event, row->counts, whole(d));
}

/* All rows with figures have a say in how wide columns are, not only those that are seen. */
static void fit_columns(struct disassembled *d, int width)
{
	grid_reset(&d->grid);
	grid_begin(&d->grid, d->layout.columns.items, d->layout.columns.len);
	for (size_t i = 0; i < d->code.rows.len; i++)
		if (row_at(d, i)->counts)
			add_row(d, row_at(d, i));
	grid_fit(&d->grid, width, NULL);
	d->fresh = false;
}

static void prepare(void *self, size_t first, size_t count, int width)
{
	struct disassembled *d = self;

	if (d->fresh || width != d->grid.width)
		fit_columns(d, width);
	d->grid.first = first;
	grid_begin(&d->grid, d->layout.columns.items, d->layout.columns.len);
	for (size_t row = first; row < first + count; row++)
		add_row(d, row_at(d, row));
	grid_fit(&d->grid, width, NULL);
	d->list.headings = grid_headings(&d->grid);
}

static void put_heading(void *self, unsigned int index, struct screen_line *line)
{
	grid_heading(&((struct disassembled *)self)->grid, index, line);
}

static void put_row(void *self, size_t row, struct screen_line *line)
{
	struct disassembled *d = self;

	grid_row(&d->grid, row - d->grid.first, line);
}

static void put_text(void *self, size_t row, struct strbuf *out)
{
	struct disassembled *d = self;

	strbuf_printf(out, "%" PRIx64 " %s", row_at(d, row)->addr,
		      native_code_text(&d->code, row_at(d, row)));
}

static const struct screen_rows rows = {
	.count = count_rows,
	.prepare = prepare,
	.heading = put_heading,
	.row = put_row,
	.text = put_text,
};

static void put_title(void *self, struct screen_line *line)
{
	struct disassembled *d = self;

	annotate_title(&d->annotate, d->names, line);
	if (d->code.instructions)
		return;
	screen_line_add(line, SCREEN_BAR, "   (");
	screen_line_escape(line, SCREEN_BAR, d->code.why.text, strlen(d->code.why.text));
	screen_line_add(line, SCREEN_BAR, ")");
}

static double share_of(const struct disassembled *d, size_t row)
{
	const struct view_count *counts = row_at(d, row)->counts;
	uint32_t event = d->annotate.event;

	return counts ? figure_share(counts[event].self, whole(d)[event]) : 0;
}

static int go_hot(struct screen *screen, void *self, int by, struct err *err)
{
	struct disassembled *d = self;
	size_t count = d->code.rows.len, at = d->list.selected;

	for (size_t i = 0; i < count; i++) {
		at = (at + count + (size_t)by) % count;
		if (share_of(d, at) >= HOT_SHARE) {
			d->list.selected = at;
			return 0;
		}
	}
	screen_say(screen, "no instruction has 0.5%% of the event");
	return 0;
}

static int go_hottest(struct screen *screen, void *self, int argument, struct err *err)
{
	struct disassembled *d = self;
	double most = 0;

	for (size_t i = 0; i < d->code.rows.len; i++)
		if (share_of(d, i) > most) {
			most = share_of(d, i);
			d->list.selected = i;
		}
	return 0;
}

static int make_columns(struct disassembled *d, struct err *err)
{
	static const struct table_column columns[] = {
		{.heading = "address", .gap = 3},
		{.heading = "instruction", .left = true, .gap = 2},
		{.heading = "source", .left = true, .cut = TABLE_CUT_FRONT, .gap = 2},
	};
	const struct layout_choice choice = {.ranked = d->annotate.event, .samples = true};
	int rc;

	layout_fini(&d->layout);
	d->fresh = true;
	rc = layout_init(&d->layout, d->annotate.profile, d->names, &choice, err);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]) && !rc; i++)
		rc = layout_add(&d->layout, columns[i], err);
	return rc;
}

static int next_event(struct screen *screen, void *self, int by, struct err *err)
{
	struct disassembled *d = self;
	uint32_t event = annotate_next_event(&d->annotate, d->names, by);

	if (event == d->annotate.event) {
		screen_say(screen, "the recording has no other event");
		return 0;
	}
	d->annotate.event = event;
	return make_columns(d, err);
}

static const struct screen_key keys[] = {
	{{SCREEN_TAB}, go_hot, 1, "hot", "next hot instruction (0.5% or more of the event)"},
	{{SCREEN_BACKTAB}, go_hot, -1, NULL, "previous hot instruction"},
	{{'H'}, go_hottest, 0, "hottest", "hottest instruction"},
	{{'e'}, next_event, 1, "event", "next event"},
	{{'E'}, next_event, -1, NULL, "previous event"},
	SCREEN_LAST_KEY,
};

static void close_view(void *self)
{
	struct disassembled *d = self;

	screen_list_fini(&d->list);
	layout_fini(&d->layout);
	grid_fini(&d->grid);
	native_code_close(&d->code);
	names_free(d->names);
	free(d);
}

static const struct screen_view view = {
	.name = "disassembly",
	.keys = keys,
	.title = put_title,
	.close = close_view,
};

int annotate_native_open(struct screen *screen, const struct annotate *annotate, struct err *err)
{
	struct disassembled *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return err_nomem(err);
	d->annotate = *annotate;
	d->metrics = *annotate->metrics;
	d->metrics.basis = MEASURE_SELF;
	d->annotate.metrics = &d->metrics;
	rc = names_new(&d->names, annotate->profile, err);
	if (!rc)
		rc = native_code_open(&d->code, annotate->profile, annotate->filter,
				      annotate->function, err);
	if (!rc)
		rc = make_columns(d, err);
	if (rc) {
		close_view(d);
		return rc;
	}
	d->list.rows = &rows;
	d->list.self = d;
	d->list.headings = 1;
	go_hottest(screen, d, 0, err);
	d->list.top = d->list.selected > ABOVE ? d->list.selected - ABOVE : 0;
	return screen_push(screen, &view, d, &d->list, err);
}
