#include "output/annotate.h"

#include "output/details.h"
#include "output/extent.h"
#include "output/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * The source of one Python function with its figures.
 *
 * A function is shown whole, from its first line to the end of its body. Lines outside it (a
 * generator's code object may have such) and the long body of a module are shown where they have
 * figures, with a little around them. Text, figures and callees are three sorted lists that are
 * merged by line number; each may be missing.
 */

#define CONTEXT 2	    /* lines around a line with figures, outside the function */
#define CALLEES_FROM 0.02   /* share of the whole from which a line's callees are listed */
#define CALLEES_SHOWN 0.005 /* share of the whole from which one is */
#define CALLEES_MAX 6
#define CALLEES_WIDTH 80 /* no more are added behind this many bytes */

struct body {
	const struct annotate *annotate;
	struct names *names;
	const struct source *source; /* NULL: not in the recording */
	struct view *lines;
	struct details details;
	uint32_t first, last; /* of the function; 0 where the text is missing or is a module */
};

static double share(const struct body *body, const struct view_count *counts)
{
	uint32_t event = body->annotate->event;

	return figure_share(counts[event].total, body->lines->period_total[event]);
}

/* The most important of what the line calls, on one line. */
static void add_callees(struct body *body, struct table *table, uint32_t line)
{
	struct strbuf *note = NULL;
	unsigned int shown = 0;
	size_t start = 0, count;
	const struct view_call *callee = details_line(body->details.callees,
						      body->details.callee_count, line, &count);

	for (; count-- && shown < CALLEES_MAX; callee++) {
		if (share(body, callee->counts) < CALLEES_SHOWN)
			continue;
		if (!note) {
			note = table_note(table);
			start = note->len;
			strbuf_printf(note, "called on %" PRIu32 ":", line);
		}
		if (note->len - start > CALLEES_WIDTH)
			break;
		strbuf_char(note, ' ');
		if (shown++)
			strbuf_char(note, ' ');
		names_add_function(body->names, callee->function, note);
		strbuf_char(note, ' ');
		figure_share_text(share(body, callee->counts), note);
	}
}

/* All that calls the line, or that it calls, one to a line. */
static void add_calls(struct body *body, struct table *table, const char *what,
		      const struct view_call *calls, size_t count, uint32_t line)
{
	for (calls = details_line(calls, count, line, &count); count--; calls++) {
		struct strbuf *note = table_note(table);

		strbuf_printf(note, "%s ", what);
		details_add_call(body->annotate->profile, body->names, calls, note);
		strbuf_str(note, "  ");
		figure_share_text(share(body, calls->counts), note);
	}
}

static void add_instructions(struct body *body, const struct layout *layout, struct table *table,
			     uint32_t line)
{
	const struct view_bytecode *bytecode = body->details.bytecode;
	size_t count;
	const struct view_instruction *row = view_bytecode_line(bytecode, line, &count);

	for (; count--; row++) {
		layout_cells(layout, table, row->counts, body->lines->period_total);
		table_cell(table);
		details_add_instruction(body->annotate->profile, bytecode, row, table_cell(table));
	}
}

static void add_details(struct body *body, const struct layout *layout, struct table *table,
			uint32_t line, bool hot)
{
	const struct details *details = &body->details;
	unsigned int wanted = body->annotate->details;

	if (wanted & DETAIL_CALLERS)
		add_calls(body, table, "called from", details->callers, details->caller_count,
			  line);
	if (wanted & DETAIL_CALLEES)
		add_calls(body, table, "calls", details->callees, details->callee_count, line);
	else if (hot)
		add_callees(body, table, line);
	if (wanted & DETAIL_BYTECODE)
		add_instructions(body, layout, table, line);
}

static void add_line(struct body *body, const struct layout *layout, struct table *table,
		     uint32_t line)
{
	const struct view_row *row = view_line(body->lines, line);
	struct strbuf *cell;
	const char *text;
	size_t len;

	layout_row(layout, table, body->lines, row);
	cell = table_cell(table);
	if (line)
		strbuf_printf(cell, "%" PRIu32, line);
	else
		strbuf_char(cell, '?');
	cell = table_cell(table);
	text = body->source && line ? source_line(body->source, line, &len) : NULL;
	if (text)
		names_add_source(cell, text, len);
	if (row)
		add_details(body, layout, table, line, share(body, row->counts) >= CALLEES_FROM);
}

static void add_gap(const struct layout *layout, struct table *table)
{
	layout_row(layout, table, NULL, NULL);
	strbuf_str(table_cell(table), "...");
	table_cell(table);
}

static bool is_inside(const struct body *body, uint32_t line)
{
	return line >= body->first && line <= body->last;
}

/* Is the line part of the function, or near a line outside it that has figures? */
static bool is_shown(const struct body *body, uint32_t line)
{
	uint32_t from = line > CONTEXT ? line - CONTEXT : 1;
	const struct view_row *row;

	if (body->annotate->reduced) {
		row = view_line(body->lines, line);
		return row && annotate_is_hot(body->lines, row);
	}
	if (is_inside(body, line))
		return true;
	for (uint32_t l = from; l <= line + CONTEXT; l++)
		if (!is_inside(body, l) && view_line(body->lines, l))
			return true;
	return false;
}

static void add_lines(struct body *body, const struct layout *layout, struct table *table)
{
	const struct view_row *rows = body->lines->rows;
	uint32_t end = body->source ? source_line_count(body->source) : 0, shown = 0;
	bool reduced = body->annotate->reduced;
	size_t count = body->lines->count;

	/* What is left out of the function's own beginning and end is a gap, too. */
	if (reduced && body->first)
		shown = body->first - 1;

	if (count && !rows[0].line && (!reduced || annotate_is_hot(body->lines, &rows[0])))
		add_line(body, layout, table, 0);
	for (uint32_t line = 1; line <= end; line++) {
		if (!is_shown(body, line))
			continue;
		if (shown && line != shown + 1)
			add_gap(layout, table);
		add_line(body, layout, table, line);
		shown = line;
	}
	if (reduced && shown < body->last)
		add_gap(layout, table);
	for (size_t i = 0; i < count; i++)
		if (rows[i].line > end && (!reduced || annotate_is_hot(body->lines, &rows[i])))
			add_line(body, layout, table, rows[i].line);
}

/* Does any line spend time in Python functions that it calls? */
static bool has_totals(const struct body *body)
{
	for (size_t i = 0; i < body->lines->count; i++)
		for (size_t e = 0; e < body->lines->events; e++)
			if (body->lines->rows[i].counts[e].total !=
			    body->lines->rows[i].counts[e].self)
				return true;
	return false;
}

static void put_head(FILE *out, const struct body *body)
{
	const struct annotate *annotate = body->annotate;

	annotate_head(out, annotate, body->names, body->last);
	annotate_metrics(out, annotate, body->lines);
	summary_shown(out, annotate->profile);
	if (!body->source)
		fputs("The source text is not in the recording.\n", out);
	else if (source_changed(body->source) > 0)
		fputs("The file has changed since; this is the text that was recorded.\n", out);
	if (annotate->details & DETAIL_BYTECODE && body->details.bytecode->partial)
		fputs("Of some samples the bytecode is not in the recording, or sys.monitoring or "
		      "the JIT replaced it.\n",
		      out);
	fputc('\n', out);
}

static int put_table(FILE *out, struct body *body, struct err *err)
{
	struct layout_choice choice = {
		.ranked = body->annotate->event,
		.totals = has_totals(body),
		.samples = true,
		.split = !profile_summary(body->annotate->profile)->folded,
		.metrics = body->annotate->metrics,
	};
	struct layout layout;
	struct table table;
	int rc = layout_init(&layout, body->annotate->profile, body->names, &choice, err);

	if (rc)
		return rc;
	rc = layout_add_source(&layout, err);
	table_init(&table, layout.columns.items, layout.columns.len);
	if (!rc) {
		add_lines(body, &layout, &table);
		rc = table_print(out, &table, body->annotate->width, err);
	}
	table_fini(&table);
	layout_fini(&layout);
	return rc;
}

int output_annotate_python(FILE *out, const struct annotate *annotate, struct err *err)
{
	const struct profile *profile = annotate->profile;
	const struct profile_function *function = profile_function(profile, annotate->function);
	struct body body = {.annotate = annotate};
	int rc = names_new(&body.names, profile, err);

	if (!rc)
		rc = view_lines(&body.lines, profile, annotate->filter, annotate->function,
				annotate->event, err);
	if (!rc)
		rc = details_open(&body.details, profile, annotate->filter, annotate->function,
				  annotate->event, annotate->details | DETAIL_CALLEES, err);
	if (!rc) {
		body.source = profile_source(profile, function->file);
		if (body.source && function->line &&
		    strcmp(profile_text(profile, function->name), "<module>") != 0) {
			body.first = function->line;
			body.last = extent_end(body.source, function->line);
		}
		if (!annotate->quiet)
			put_head(out, &body);
		rc = put_table(out, &body, err);
	}
	if (!rc && !annotate->quiet) {
		fputc('\n', out);
		summary_metrics(out, annotate->metrics);
		summary_losses(out, profile, true);
	}
	details_close(&body.details);
	view_free(body.lines);
	names_free(body.names);
	return rc;
}
