#include "output/annotate.h"

#include "output/native_code.h"
#include "output/summary.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * The machine code of one native function with its figures. Instructions far from any sample are
 * left out. Where there is no code to disassemble the sampled addresses are listed all the same.
 */

#define CONTEXT 3 /* instructions around one with samples */

struct body {
	const struct annotate *annotate;
	struct native_code code;
	bool *shown; /* by row */
};

static void add_row(struct body *body, const struct layout *layout, struct table *table,
		    const struct native_row *row)
{
	layout_cells(layout, table, row->counts, body->annotate->functions->period_total);
	strbuf_printf(table_cell(table), "%" PRIx64, row->addr);
	names_add_text(table_cell(table), native_code_text(&body->code, row));
	native_code_add_line(body->annotate->profile, row, table_cell(table));
}

static void mark_shown(struct body *body)
{
	size_t count = body->code.rows.len, instructions = body->code.instructions;

	for (size_t i = 0; i < count; i++) {
		size_t from = i > CONTEXT ? i - CONTEXT : 0;

		if (!body->code.rows.items[i].counts)
			continue;
		body->shown[i] = true;
		for (size_t j = from; i < instructions && j <= i + CONTEXT && j < instructions; j++)
			body->shown[j] = true;
	}
}

static void add_gap(const struct layout *layout, struct table *table)
{
	layout_cells(layout, table, NULL, NULL);
	strbuf_str(table_cell(table), "...");
	table_cell(table);
	table_cell(table);
}

static void add_rows(struct body *body, const struct layout *layout, struct table *table)
{
	size_t after = 0, instructions = body->code.instructions;

	mark_shown(body);
	for (size_t i = 0; i < body->code.rows.len; i++) {
		if (i == instructions && after != instructions)
			add_gap(layout, table);
		if (!body->shown[i])
			continue;
		if (i < instructions && i != after)
			add_gap(layout, table);
		add_row(body, layout, table, &body->code.rows.items[i]);
		after = i + 1;
	}
	if (body->code.rows.len == instructions && after != instructions)
		add_gap(layout, table);
}

static int put_table(FILE *out, struct body *body, const struct names *names, struct err *err)
{
	static const struct table_column columns[] = {
		{.heading = "address", .gap = 3},
		{.heading = "instruction", .left = true, .gap = 2},
		{.heading = "source", .left = true, .cut = TABLE_CUT_FRONT, .gap = 2},
	};
	struct layout_choice choice = {.ranked = body->annotate->event, .samples = true};
	struct layout layout;
	struct table table;
	int rc = layout_init(&layout, body->annotate->profile, names, &choice, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]) && !rc; i++)
		rc = layout_add(&layout, columns[i], err);
	table_init(&table, layout.columns.items, layout.columns.len);
	if (!rc) {
		add_rows(body, &layout, &table);
		rc = table_print(out, &table, body->annotate->width, err);
	}
	table_fini(&table);
	layout_fini(&layout);
	return rc;
}

static void put_head(FILE *out, const struct body *body, const struct names *names)
{
	struct strbuf safe = {0};

	annotate_head(out, body->annotate, names, 0);
	if (!body->code.instructions) {
		names_add_text(&safe, body->code.why.text);
		fprintf(out, "Its instructions cannot be shown: %s.\n", strbuf_text(&safe));
		strbuf_fini(&safe);
	}
	fputc('\n', out);
}

int output_annotate_native(FILE *out, const struct annotate *annotate, struct err *err)
{
	struct body body = {.annotate = annotate};
	struct names *names = NULL;
	int rc = names_new(&names, annotate->profile, err);

	if (!rc)
		rc = native_code_open(&body.code, annotate->profile, annotate->filter,
				      annotate->function, err);
	body.shown = calloc(body.code.rows.len + 1, sizeof(*body.shown));
	if (!rc && !body.shown)
		rc = err_nomem(err);
	if (!rc) {
		if (!annotate->quiet)
			put_head(out, &body, names);
		rc = put_table(out, &body, names, err);
	}
	if (!rc && !annotate->quiet) {
		fputc('\n', out);
		summary_losses(out, annotate->profile, true);
	}
	free(body.shown);
	native_code_close(&body.code);
	names_free(names);
	return rc;
}
