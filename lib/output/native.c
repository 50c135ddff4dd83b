#include "output/annotate.h"

#include "output/summary.h"
#include "symbol/disasm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * The machine code of one native function with its figures. Instructions far from any sample are
 * left out. Where there is no code to disassemble the sampled addresses are listed all the same.
 */

#define CONTEXT 3 /* instructions around one with samples */

struct instruction {
	uint64_t addr;
	uint32_t size;
	size_t text; /* offset in body.text */
	bool shown;
};

struct body {
	const struct annotate *annotate;
	struct names *names;
	struct view_address *rows; /* by address */
	size_t count;
	struct {
		VEC_OF(struct instruction)
	} code;
	struct strbuf text;
	struct view_count *sum; /* of one instruction, per event */
};

static int keep(const struct disasm_line *line, void *ctx)
{
	struct body *body = ctx;
	struct instruction *instruction = vec_push(&body->code);

	if (!instruction)
		return ERR_NOMEM;
	*instruction = (struct instruction){line->addr, line->size, body->text.len, false};
	strbuf_add(&body->text, line->text, strlen(line->text) + 1);
	return 0;
}

static int load_code(struct body *body, struct err *err)
{
	const struct annotate *annotate = body->annotate;
	uint64_t vaddr;
	uint8_t *bytes;
	size_t len;
	uint16_t machine;
	int rc = profile_native_code(annotate->profile, annotate->function, &vaddr, &bytes, &len,
				     &machine, err);

	if (rc)
		return rc;
	rc = disasm(machine, vaddr, bytes, len, keep, body, err);
	free(bytes);
	if (strbuf_failed(&body->text))
		rc = err_nomem(err);
	return rc;
}

static void add_counts(struct view_count *sum, const struct view_count *counts, size_t events)
{
	for (size_t e = 0; e < events; e++) {
		sum[e].self += counts[e].self;
		sum[e].total += counts[e].total;
		sum[e].self_samples += counts[e].self_samples;
		sum[e].total_samples += counts[e].total_samples;
	}
}

static void add_row(struct body *body, const struct layout *layout, struct table *table,
		    uint64_t addr, const char *text, const struct view_count *counts,
		    uint32_t frame)
{
	const char *file;
	uint32_t line;
	struct strbuf *cell;

	layout_cells(layout, table, counts, body->annotate->functions->period_total);
	strbuf_printf(table_cell(table), "%" PRIx64, addr);
	names_add_text(table_cell(table), text);
	cell = table_cell(table);
	if (counts && profile_native_line(body->annotate->profile, frame, &file, &line)) {
		const char *base = strrchr(file, '/');

		names_add_text(cell, base ? base + 1 : file);
		strbuf_printf(cell, ":%" PRIu32, line);
	}
}

/* Index of the first sampled address at or above `addr`. */
static size_t first_row(const struct body *body, uint64_t addr)
{
	size_t low = 0, high = body->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (body->rows[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool has_samples(const struct body *body, const struct instruction *instruction)
{
	size_t i = first_row(body, instruction->addr);

	return i < body->count && body->rows[i].addr - instruction->addr < instruction->size;
}

static void mark_shown(struct body *body)
{
	for (size_t i = 0; i < body->code.len; i++) {
		size_t from = i > CONTEXT ? i - CONTEXT : 0;

		if (!has_samples(body, &body->code.items[i]))
			continue;
		for (size_t j = from; j <= i + CONTEXT && j < body->code.len; j++)
			body->code.items[j].shown = true;
	}
}

static void add_gap(const struct layout *layout, struct table *table)
{
	layout_cells(layout, table, NULL, NULL);
	strbuf_str(table_cell(table), "...");
	table_cell(table);
	table_cell(table);
}

static void add_instruction(struct body *body, const struct layout *layout, struct table *table,
			    const struct instruction *instruction)
{
	size_t events = body->annotate->functions->events;
	size_t i = first_row(body, instruction->addr);
	uint32_t frame = i < body->count ? body->rows[i].frame : 0;
	bool any = has_samples(body, instruction);

	memset(body->sum, 0, events * sizeof(*body->sum));
	for (; i < body->count && body->rows[i].addr - instruction->addr < instruction->size; i++)
		add_counts(body->sum, body->rows[i].counts, events);
	add_row(body, layout, table, instruction->addr, body->text.buf + instruction->text,
		any ? body->sum : NULL, frame);
}

/* Sampled addresses outside the code, or all of them where there is none. */
static void add_others(struct body *body, const struct layout *layout, struct table *table)
{
	const struct instruction *last = body->code.len ? &body->code.items[body->code.len - 1]
							: NULL;

	for (size_t i = 0; i < body->count; i++) {
		const struct view_address *row = &body->rows[i];

		if (last && row->addr >= body->code.items[0].addr &&
		    row->addr < last->addr + last->size)
			continue;
		add_row(body, layout, table, row->addr, "", row->counts, row->frame);
	}
}

static int put_table(FILE *out, struct body *body, struct err *err)
{
	static const struct table_column columns[] = {
		{.heading = "address", .gap = 3},
		{.heading = "instruction", .left = true, .gap = 2},
		{.heading = "source", .left = true, .cut = TABLE_CUT_FRONT, .gap = 2},
	};
	struct layout_choice choice = {.ranked = body->annotate->event, .samples = true};
	struct layout layout;
	struct table table;
	int rc = layout_init(&layout, body->annotate->profile, body->names, &choice, err);
	size_t after = 0;

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]) && !rc; i++)
		rc = layout_add(&layout, columns[i], err);
	table_init(&table, layout.columns.items, layout.columns.len);
	mark_shown(body);
	for (size_t i = 0; i < body->code.len && !rc; i++) {
		if (!body->code.items[i].shown)
			continue;
		if (i != after)
			add_gap(&layout, &table);
		add_instruction(body, &layout, &table, &body->code.items[i]);
		after = i + 1;
	}
	if (!rc && body->code.len && after != body->code.len)
		add_gap(&layout, &table);
	if (!rc) {
		add_others(body, &layout, &table);
		rc = table_print(out, &table, body->annotate->width, err);
	}
	table_fini(&table);
	layout_fini(&layout);
	return rc;
}

int output_annotate_native(FILE *out, const struct annotate *annotate, struct err *err)
{
	struct body body = {.annotate = annotate};
	struct err why = {0};
	int rc = names_new(&body.names, annotate->profile, err), code;

	body.sum = calloc(annotate->functions->events + 1, sizeof(*body.sum));
	if (!rc && !body.sum)
		rc = err_nomem(err);
	if (!rc)
		rc = view_addresses(&body.rows, &body.count, annotate->profile, annotate->filter,
				    annotate->function, err);
	if (!rc) {
		code = load_code(&body, &why);
		if (code == ERR_NOMEM)
			rc = err_nomem(err);
		else if (!annotate->quiet)
			annotate_head(out, annotate, body.names, 0);
		if (code && !rc && !annotate->quiet) {
			struct strbuf safe = {0};

			names_add_text(&safe, why.text);
			fprintf(out, "Its instructions cannot be shown: %s.\n", strbuf_text(&safe));
			strbuf_fini(&safe);
		}
	}
	if (!rc) {
		if (!annotate->quiet)
			fputc('\n', out);
		rc = put_table(out, &body, err);
	}
	if (!rc && !annotate->quiet) {
		fputc('\n', out);
		summary_losses(out, annotate->profile, true);
	}
	free(body.sum);
	vec_fini(&body.code);
	strbuf_fini(&body.text);
	view_addresses_free(body.rows, body.count);
	names_free(body.names);
	return rc;
}
