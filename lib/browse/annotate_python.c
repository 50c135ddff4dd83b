#include "browse/annotate.h"

#include "browse/grid.h"
#include "browse/open_lines.h"
#include "output/details.h"
#include "output/extent.h"
#include "output/layout.h"
#include "perfmap/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * The source of one Python function, within its file, with its figures.
 *
 * The list has all lines of the file, and behind them lines with figures that the text does not
 * have; without a text these alone. Nothing is made for a line before it is seen, so that a file
 * may have any length. What is shown below a line is asked for when it is opened.
 */

#define HOT_SHARE 0.005	   /* of the whole: a line that is worth a stop */
#define SHOWN_SHARE 0.0005 /* of the whole: a call that is worth a row */
#define ABOVE 8		   /* lines that are seen above the first selection */

enum { PART_CALLS = 1, PART_BYTECODE = 2 };

struct annotated {
	struct annotate annotate;
	struct metric_columns metrics;
	struct names *names;
	const struct source *source; /* NULL: not in the recording */
	uint32_t text_lines;
	struct view *lines; /* of the function, by line */
	struct {
		VEC_OF(uint32_t)
	} others;	      /* numbers of lines that the text does not have */
	uint32_t first, last; /* lines of the function; 0 where that is not known */
	struct open_lines open;
	struct details details;
	bool has_calls, has_bytecode; /* of the details */
	struct layout layout;
	struct grid grid;
	bool fresh; /* the columns */
	struct screen_list list;
};

/* What stands in a row. */
struct place {
	uint32_t line; /* its number in the file */
	const struct view_row *row;
	const struct view_call *call;
	bool is_callee;
	const struct view_instruction *instruction;
	const char *note;
};

static uint32_t number_of(const struct annotated *a, uint32_t index)
{
	return index < a->text_lines ? index + 1 : a->others.items[index - a->text_lines];
}

static uint32_t index_of(const struct annotated *a, uint32_t number)
{
	if (number && number <= a->text_lines)
		return number - 1;
	for (size_t i = 0; i < a->others.len; i++)
		if (a->others.items[i] == number)
			return a->text_lines + (uint32_t)i;
	return 0;
}

static double share_of(const struct annotated *a, const struct view_count *counts)
{
	uint32_t event = a->annotate.event;

	return figure_share(counts[event].total, a->lines->period_total[event]);
}

/* The calls of a line that are worth a row, which come first. */
static const struct view_call *calls_of(const struct annotated *a, uint32_t number, bool callees,
					size_t *count)
{
	const struct details *d = &a->details;
	size_t found, shown = 0;
	const struct view_call *calls = details_line(callees ? d->callees : d->callers,
						     callees ? d->callee_count : d->caller_count,
						     number, &found);

	while (shown < found && share_of(a, calls[shown].counts) >= SHOWN_SHARE)
		shown++;
	*count = shown;
	return calls;
}

/* How many rows a part of a line has: a sentence where there is nothing. */
static size_t part_rows(const struct annotated *a, uint32_t number, unsigned int part)
{
	size_t callers, callees, rows;

	if (part == PART_BYTECODE) {
		view_bytecode_line(a->details.bytecode, number, &rows);
	} else {
		calls_of(a, number, false, &callers);
		calls_of(a, number, true, &callees);
		rows = callers + callees;
	}
	return rows ? rows : 1;
}

static void find_call(const struct annotated *a, uint32_t number, size_t at, struct place *place)
{
	size_t callers, callees;
	const struct view_call *caller = calls_of(a, number, false, &callers);
	const struct view_call *callee = calls_of(a, number, true, &callees);

	if (!callers && !callees)
		place->note = "no calls from here or to here";
	else if (at < callers)
		place->call = caller + at;
	else
		place->call = callee + (at - callers);
	place->is_callee = at >= callers;
}

static struct place place_of(const struct annotated *a, size_t row)
{
	const struct view_instruction *instructions;
	size_t below, count, calls = 0;
	uint32_t index = open_lines_line(&a->open, row, &below);
	unsigned int parts = open_lines_parts(&a->open, index);
	struct place place = {.line = number_of(a, index)};

	if (!below) {
		place.row = view_line(a->lines, place.line);
		return place;
	}
	below--;
	if (parts & PART_CALLS)
		calls = part_rows(a, place.line, PART_CALLS);
	if (below < calls) {
		find_call(a, place.line, below, &place);
		return place;
	}
	instructions = view_bytecode_line(a->details.bytecode, place.line, &count);
	if (count)
		place.instruction = instructions + (below - calls);
	else
		place.note = "no bytecode of this line in the recording";
	return place;
}

static size_t count_rows(void *self)
{
	const struct annotated *a = self;

	return open_lines_rows(&a->open);
}

static void set_role(struct annotated *a, size_t column, enum screen_role role)
{
	grid_role(&a->grid, a->layout.places.len + column, role);
}

static bool is_outside(const struct annotated *a, uint32_t number)
{
	return a->last && (number < a->first || number > a->last);
}

static void add_source(struct annotated *a, const struct place *place)
{
	struct table *table = &a->grid.table;
	const char *text = NULL;
	struct strbuf *cell;
	size_t len;

	layout_row(&a->layout, table, a->lines, place->row);
	cell = table_cell(table);
	if (place->line)
		strbuf_printf(cell, "%" PRIu32, place->line);
	else
		strbuf_char(cell, '?');
	cell = table_cell(table);
	if (place->line && place->line <= a->text_lines)
		text = source_line(a->source, place->line, &len);
	if (text)
		names_add_source(cell, text, len);
	set_role(a, 0, SCREEN_FAINT);
	if (!place->row && is_outside(a, place->line))
		set_role(a, 1, SCREEN_FAINT);
	if (place->row)
		grid_heat(&a->grid, &a->layout, a->annotate.event, place->row->counts,
			  a->lines->period_total);
}

static enum screen_role role_of_kind(const struct annotated *a, const struct view_call *call)
{
	if (call->function == UINT32_MAX)
		return SCREEN_FAINT;
	switch (profile_function(a->annotate.profile, call->function)->kind) {
	case FRAME_NATIVE:
		return SCREEN_NATIVE;
	case FRAME_KERNEL:
		return SCREEN_KERNEL;
	default:
		return SCREEN_PLAIN;
	}
}

static void add_below(struct annotated *a, const struct place *place)
{
	const struct view_count *counts = place->instruction ? place->instruction->counts : NULL;
	struct table *table = &a->grid.table;
	enum screen_role role = SCREEN_FAINT;
	struct strbuf *cell;

	layout_cells(&a->layout, table, counts, a->lines->period_total);
	table_cell(table);
	cell = table_cell(table);
	if (place->instruction) {
		details_add_instruction(a->annotate.profile, a->details.bytecode,
					place->instruction, cell);
		role = counts ? SCREEN_PLAIN : SCREEN_FAINT;
	} else if (place->call) {
		strbuf_printf(cell, "  %s %5.1f%%  ", place->is_callee ? "->" : "<-",
			      100 * share_of(a, place->call->counts));
		details_add_call(a->annotate.profile, a->names, place->call, cell);
		role = role_of_kind(a, place->call);
	} else {
		strbuf_printf(cell, "  %s", place->note);
	}
	set_role(a, 1, role);
	grid_heat(&a->grid, &a->layout, a->annotate.event, counts, a->lines->period_total);
}

/* All lines with figures have a say in how wide columns are, not only those that are seen. */
static void fit_columns(struct annotated *a, int width)
{
	grid_reset(&a->grid);
	grid_begin(&a->grid, a->layout.columns.items, a->layout.columns.len);
	for (size_t i = 0; i < a->lines->count; i++) {
		struct place place = {.line = a->lines->rows[i].line, .row = &a->lines->rows[i]};

		add_source(a, &place);
	}
	grid_fit(&a->grid, width, NULL);
	a->fresh = false;
}

static void prepare(void *self, size_t first, size_t count, int width)
{
	struct annotated *a = self;
	struct grid *grid = &a->grid;

	if (a->fresh || width != grid->width)
		fit_columns(a, width);
	grid->first = first;
	grid_begin(grid, a->layout.columns.items, a->layout.columns.len);
	for (size_t row = first; row < first + count; row++) {
		struct place place = place_of(a, row);

		if (place.call || place.instruction || place.note)
			add_below(a, &place);
		else
			add_source(a, &place);
	}
	/* Where memory ran out rows stay blank. */
	grid_fit(grid, width, NULL);
	a->list.headings = grid_headings(grid);
}

static void put_heading(void *self, unsigned int index, struct screen_line *line)
{
	grid_heading(&((struct annotated *)self)->grid, index, line);
}

static void put_row(void *self, size_t row, struct screen_line *line)
{
	struct annotated *a = self;

	grid_row(&a->grid, row - a->grid.first, line);
}

/* What is searched: the text, not the figures. */
static void put_text(void *self, size_t row, struct strbuf *out)
{
	struct annotated *a = self;
	struct place place = place_of(a, row);
	const char *text;
	size_t len;

	if (place.instruction)
		details_add_instruction(a->annotate.profile, a->details.bytecode, place.instruction,
					out);
	else if (place.call)
		details_add_call(a->annotate.profile, a->names, place.call, out);
	else if (!place.note && place.line && place.line <= a->text_lines &&
		 (text = source_line(a->source, place.line, &len)))
		strbuf_add(out, text, len);
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
	struct annotated *a = self;

	annotate_title(&a->annotate, a->names, line);
	if (!a->source)
		screen_line_add(line, SCREEN_BAR, "   (the source text is not in the recording)");
}

/* Goes to a line; what is selected is its own row, and of what is below it as much is seen as there
 * is room for. */
static void select_line(struct annotated *a, uint32_t number)
{
	uint32_t index = index_of(a, number);
	size_t row = open_lines_row(&a->open, index);
	size_t end = open_lines_row(&a->open, index + 1);

	a->list.selected = row;
	if (row < a->list.top || row + 1 >= a->list.top + a->list.height)
		a->list.top = row > a->list.height / 3 ? row - a->list.height / 3 : 0;
	if (end > a->list.top + a->list.height)
		a->list.top = end - row < a->list.height ? end - a->list.height : row;
}

static uint32_t selected_line(const struct annotated *a)
{
	size_t below;

	return number_of(a, open_lines_line(&a->open, a->list.selected, &below));
}

static bool is_hot(const struct annotated *a, const struct view_row *row)
{
	return share_of(a, row->counts) >= HOT_SHARE;
}

/* The next line that is hot, in the order of the text, and on from the other end. */
static int go_hot(struct screen *screen, void *self, int by, struct err *err)
{
	struct annotated *a = self;
	size_t count = a->lines->count, at = 0;
	uint32_t line = selected_line(a);

	while (at < count && a->lines->rows[at].line < line)
		at++;
	if (by > 0 && (at == count || a->lines->rows[at].line != line))
		at += count - 1; /* the first step takes it to the one behind the selection */
	for (size_t i = 0; i < count; i++) {
		at = (at + count + (size_t)by) % count;
		if (is_hot(a, &a->lines->rows[at])) {
			select_line(a, a->lines->rows[at].line);
			return 0;
		}
	}
	screen_say(screen, "no line has 0.5%% of the event");
	return 0;
}

static const struct view_row *hottest(const struct annotated *a)
{
	uint32_t event = a->annotate.event;
	const struct view_row *best = NULL;

	for (size_t i = 0; i < a->lines->count; i++) {
		const struct view_row *row = &a->lines->rows[i];

		if (!best || row->counts[event].self > best->counts[event].self ||
		    (row->counts[event].self == best->counts[event].self &&
		     row->counts[event].total > best->counts[event].total))
			best = row;
	}
	return best;
}

static int go_hottest(struct screen *screen, void *self, int argument, struct err *err)
{
	struct annotated *a = self;
	const struct view_row *row = hottest(a);

	if (row)
		select_line(a, row->line);
	return 0;
}

/* Details are made when they are first asked for, and anew for another event. */
static int need_details(struct annotated *a, unsigned int part, struct err *err)
{
	struct details *d = &a->details, made;
	const struct annotate *as = &a->annotate;
	bool bytecode = part == PART_BYTECODE;
	int rc;

	if (bytecode ? a->has_bytecode : a->has_calls)
		return 0;
	rc = details_open(&made, as->profile, as->filter, as->function, as->event,
			  bytecode ? DETAIL_BYTECODE : DETAIL_CALLERS | DETAIL_CALLEES, err);
	if (rc) {
		details_close(&made);
		return rc;
	}
	if (bytecode) {
		d->bytecode = made.bytecode;
		a->has_bytecode = true;
	} else {
		d->callers = made.callers;
		d->caller_count = made.caller_count;
		d->callees = made.callees;
		d->callee_count = made.callee_count;
		a->has_calls = true;
	}
	return 0;
}

static int set_parts(struct annotated *a, uint32_t number, unsigned int parts, struct err *err)
{
	size_t below = 0;

	if (parts & PART_CALLS)
		below += part_rows(a, number, PART_CALLS);
	if (parts & PART_BYTECODE)
		below += part_rows(a, number, PART_BYTECODE);
	return open_lines_set(&a->open, index_of(a, number), parts, below) ? err_nomem(err) : 0;
}

/* Shows or hides a part below the line at the cursor. */
static int toggle(struct screen *screen, void *self, int part, struct err *err)
{
	struct annotated *a = self;
	uint32_t number = selected_line(a);
	unsigned int parts = open_lines_parts(&a->open, index_of(a, number));
	int rc = need_details(a, (unsigned int)part, err);

	if (!rc)
		rc = set_parts(a, number, parts ^ (unsigned int)part, err);
	select_line(a, number);
	return rc;
}

/* The same for all lines that have figures: hides it where the line at the cursor shows it. */
static int toggle_all(struct screen *screen, void *self, int part, struct err *err)
{
	struct annotated *a = self;
	uint32_t number = selected_line(a);
	bool hide = open_lines_parts(&a->open, index_of(a, number)) & (unsigned int)part;
	int rc = need_details(a, (unsigned int)part, err);

	for (size_t i = 0; i < a->lines->count && !rc; i++) {
		uint32_t line = a->lines->rows[i].line;
		unsigned int parts = open_lines_parts(&a->open, index_of(a, line));

		parts = hide ? parts & ~(unsigned int)part : parts | (unsigned int)part;
		rc = set_parts(a, line, parts, err);
	}
	select_line(a, number);
	return rc;
}

static int go_to(struct screen *screen, struct annotated *a, const struct view_call *call,
		 struct err *err)
{
	struct annotate annotate = a->annotate;

	if (call->function == UINT32_MAX) {
		screen_say(screen, "no Python code called this");
		return 0;
	}
	annotate.function = call->function;
	return annotate_view_open(screen, &annotate, call->other_line, err);
}

/* Of a call: the function. Of a line: what it calls and who calls it. */
static int enter(struct screen *screen, void *self, int argument, struct err *err)
{
	struct annotated *a = self;
	struct place place = place_of(a, a->list.selected);

	if (place.call)
		return go_to(screen, a, place.call, err);
	return toggle(screen, self, PART_CALLS, err);
}

/* The machine code of the native function at the cursor, or of the costliest that the line calls.
 */
static int disassemble(struct screen *screen, void *self, int argument, struct err *err)
{
	struct annotated *a = self;
	struct place place = place_of(a, a->list.selected);
	const struct view_call *calls;
	size_t count;
	int rc = need_details(a, PART_CALLS, err);

	if (rc)
		return rc;
	if (place.call && place.is_callee && place.call->function != UINT32_MAX &&
	    profile_function(a->annotate.profile, place.call->function)->kind != FRAME_PYTHON)
		return go_to(screen, a, place.call, err);
	calls = calls_of(a, place.line, true, &count);
	for (size_t i = 0; i < count; i++)
		if (profile_function(a->annotate.profile, calls[i].function)->kind != FRAME_PYTHON)
			return go_to(screen, a, &calls[i], err);
	screen_say(screen, "this line called no native code that was sampled");
	return 0;
}

static int make_columns(struct annotated *a, struct err *err)
{
	struct layout_choice choice = {
		.ranked = a->annotate.event,
		.samples = true,
		.split = !profile_summary(a->annotate.profile)->folded,
		.metrics = a->annotate.metrics,
	};
	int rc;

	for (size_t i = 0; i < a->lines->count; i++)
		for (size_t e = 0; e < a->lines->events; e++)
			choice.totals |= a->lines->rows[i].counts[e].total !=
					 a->lines->rows[i].counts[e].self;
	layout_fini(&a->layout);
	a->fresh = true;
	rc = layout_init(&a->layout, a->annotate.profile, a->names, &choice, err);
	return rc ? rc : layout_add_source(&a->layout, err);
}

/* What is open below lines is closed: its order was another event's. */
static int next_event(struct screen *screen, void *self, int by, struct err *err)
{
	struct annotated *a = self;
	uint32_t number = selected_line(a);
	uint32_t event = annotate_next_event(&a->annotate, a->names, by);
	int rc;

	if (event == a->annotate.event) {
		screen_say(screen, "the recording has no other event");
		return 0;
	}
	a->annotate.event = event;
	a->open.open.len = 0;
	details_close(&a->details);
	a->details = (struct details){0};
	a->has_calls = a->has_bytecode = false;
	rc = make_columns(a, err);
	select_line(a, number);
	return rc;
}

static const struct screen_key keys[] = {
	{{SCREEN_ENTER, SCREEN_RIGHT, 'l'},
	 enter,
	 0,
	 "go",
	 "go to the function that is called or calls; of a line: show them"},
	{{SCREEN_TAB}, go_hot, 1, "hot line", "next hot line (0.5% or more of the event)"},
	{{SCREEN_BACKTAB}, go_hot, -1, NULL, "previous hot line"},
	{{'H'}, go_hottest, 0, NULL, "hottest line"},
	{{'c'}, toggle, PART_CALLS, "calls", "who calls the line, what it calls"},
	{{'C'}, toggle_all, PART_CALLS, NULL, "the same below all lines"},
	{{'b'}, toggle, PART_BYTECODE, "bytecode", "bytecode of the line"},
	{{'B'}, toggle_all, PART_BYTECODE, NULL, "the same below all lines"},
	{{'d', 'o'},
	 disassemble,
	 0,
	 "disassemble",
	 "machine code of the costliest native function that the line calls"},
	{{'e'}, next_event, 1, "event", "next event"},
	{{'E'}, next_event, -1, NULL, "previous event"},
	SCREEN_LAST_KEY,
};

static void close_view(void *self)
{
	struct annotated *a = self;

	screen_list_fini(&a->list);
	layout_fini(&a->layout);
	grid_fini(&a->grid);
	details_close(&a->details);
	open_lines_fini(&a->open);
	vec_fini(&a->others);
	view_free(a->lines);
	names_free(a->names);
	free(a);
}

static const struct screen_view view = {
	.name = "annotate",
	.keys = keys,
	.title = put_title,
	.close = close_view,
};

/* The text, and the lines that it does not have. */
static int find_lines(struct annotated *a, struct err *err)
{
	const struct profile *profile = a->annotate.profile;
	const struct profile_function *function = profile_function(profile, a->annotate.function);
	int rc = view_lines(&a->lines, profile, a->annotate.filter, a->annotate.function,
			    a->annotate.event, err);

	if (rc)
		return rc;
	a->source = profile_source(profile, function->file);
	a->text_lines = a->source ? source_line_count(a->source) : 0;
	if (a->source && function->line &&
	    strcmp(profile_text(profile, function->name), "<module>") != 0) {
		a->first = function->line;
		a->last = extent_end(a->source, function->line);
	}
	for (size_t i = 0; i < a->lines->count; i++) {
		uint32_t number = a->lines->rows[i].line, *other;

		if (number && number <= a->text_lines)
			continue;
		other = vec_push(&a->others);
		if (!other)
			return err_nomem(err);
		*other = number;
	}
	a->open.lines = a->text_lines + (uint32_t)a->others.len;
	return 0;
}

static void select_first(struct annotated *a, uint32_t line)
{
	const struct view_row *row = hottest(a);
	size_t top;

	select_line(a, line ? line : row ? row->line : a->first);
	/* The function's head is seen, too, where it is near. */
	top = a->list.selected > ABOVE ? a->list.selected - ABOVE : 0;
	if (a->first && a->first - 1 < top && top - (a->first - 1) < ABOVE)
		top = a->first - 1;
	a->list.top = top;
}

int annotate_python_open(struct screen *screen, const struct annotate *annotate, uint32_t line,
			 struct err *err)
{
	struct annotated *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return err_nomem(err);
	a->annotate = *annotate;
	a->metrics = *annotate->metrics;
	a->metrics.basis = MEASURE_SELF;
	a->annotate.metrics = &a->metrics;
	rc = names_new(&a->names, annotate->profile, err);
	if (!rc)
		rc = find_lines(a, err);
	if (!rc)
		rc = make_columns(a, err);
	if (rc) {
		close_view(a);
		return rc;
	}
	a->list.rows = &rows;
	a->list.self = a;
	a->list.headings = 1;
	select_first(a, line);
	return screen_push(screen, &view, a, &a->list, err);
}
