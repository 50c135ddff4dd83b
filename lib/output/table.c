#include "output/table.h"

#include "base/text.h"

#include <string.h>

#define ALIGN_MAX 64 /* a wider cell does not widen its whole column */
#define CUT_MIN 12   /* columns are not cut below this */

void table_init(struct table *table, const struct table_column *columns, size_t count)
{
	memset(table, 0, sizeof(*table));
	table->columns = columns;
	table->column_count = count;
}

void table_fini(struct table *table)
{
	strbuf_fini(&table->text);
	vec_fini(&table->cells);
	vec_fini(&table->notes);
}

/* Ends what was being appended: it reaches up to here. */
static void close_open(struct table *table)
{
	struct table_cell *cell = NULL;
	struct table_note *note = NULL;

	if (table->cells.len)
		cell = &table->cells.items[table->cells.len - 1];
	if (table->notes.len)
		note = &table->notes.items[table->notes.len - 1];
	if (note && note->text.len == SIZE_MAX)
		note->text.len = table->text.len - note->text.start;
	else if (cell && cell->len == SIZE_MAX)
		cell->len = table->text.len - cell->start;
}

struct strbuf *table_cell(struct table *table)
{
	struct table_cell *cell;

	close_open(table);
	cell = vec_push(&table->cells);
	if (cell)
		*cell = (struct table_cell){table->text.len, SIZE_MAX};
	else
		table->failed = true;
	return &table->text;
}

struct strbuf *table_note(struct table *table)
{
	struct table_note *note;

	close_open(table);
	note = vec_push(&table->notes);
	if (note)
		*note = (struct table_note){
			.row = (table->cells.len - 1) / table->column_count,
			.text = {table->text.len, SIZE_MAX},
		};
	else
		table->failed = true;
	return &table->text;
}

static void measure(struct table_fit *fit, const struct table *table, int limit)
{
	size_t n = table->column_count;

	for (size_t i = 0; i < table->cells.len; i++) {
		const struct table_cell *cell = &table->cells.items[i];
		size_t width = text_width(table->text.buf + cell->start, cell->len);

		if (i % n == n - 1 && !limit)
			width = width > 0; /* nothing is aligned behind the last column */
		if (width > ALIGN_MAX && !limit)
			width = ALIGN_MAX;
		if (width > fit->widest[i % n])
			fit->widest[i % n] = width;
	}
	for (size_t c = 0; c < n; c++) {
		const char *heading = table->columns[c].heading;
		size_t width = text_width(heading, strlen(heading));

		fit->columns[c] = (struct table_fit_column){
			.as = &table->columns[c],
			.index = c,
			.width = fit->widest[c] > width ? fit->widest[c] : width,
			.used = fit->widest[c] > 0,
		};
	}
	fit->count = n;
}

/* The least that the column is content with. */
static size_t wanted(const struct table_fit_column *column)
{
	const struct table_column *as = column->as;
	size_t want = as->want ? as->want : as->cut != TABLE_WHOLE ? CUT_MIN : column->width;

	return as->gap + (want < column->width ? want : column->width);
}

static void drop_unused(struct table_fit *fit)
{
	size_t kept = 0;

	for (size_t c = 0; c < fit->count; c++) {
		const struct table_column *as = fit->columns[c].as;

		if (fit->columns[c].used || !as->drop || as->keep)
			fit->columns[kept++] = fit->columns[c];
	}
	fit->count = kept;
}

/* Drops columns until the others have what they want. */
static void drop(struct table_fit *fit, int limit)
{
	for (;;) {
		unsigned int highest = 0;
		size_t sum = 0, kept = 0;

		for (size_t c = 0; c < fit->count; c++) {
			sum += wanted(&fit->columns[c]);
			if (fit->columns[c].as->drop > highest)
				highest = fit->columns[c].as->drop;
		}
		if (limit <= 0 || sum <= (size_t)limit || !highest)
			return;
		for (size_t c = 0; c < fit->count; c++)
			if (fit->columns[c].as->drop != highest)
				fit->columns[kept++] = fit->columns[c];
		fit->count = kept;
	}
}

size_t table_group_end(const struct table_fit *fit, size_t c, size_t *width)
{
	const char *group = fit->columns[c].as->group;
	size_t end = c + 1;

	*width = fit->columns[c].width;
	while (group && end < fit->count && fit->columns[end].as->group == group) {
		*width += fit->columns[end].as->gap + fit->columns[end].width;
		end++;
	}
	return end;
}

/* A group's name needs its room too. */
static void widen_groups(struct table_fit *fit)
{
	for (size_t c = 0, end; c < fit->count; c = end) {
		const char *group = fit->columns[c].as->group;
		size_t have, want = group ? text_width(group, strlen(group)) : 0;

		end = table_group_end(fit, c, &have);
		if (want > have)
			fit->columns[c].width += want - have;
	}
}

/* The widest of the columns that may be cut and have more than they want, or than the least. */
static struct table_fit_column *find_widest(struct table_fit *fit, bool wants)
{
	struct table_fit_column *widest = NULL;

	for (size_t c = 0; c < fit->count; c++) {
		struct table_fit_column *column = &fit->columns[c];
		const struct table_column *as = column->as;
		size_t least = wants && as->want > CUT_MIN ? as->want : CUT_MIN;

		if (as->cut != TABLE_WHOLE && column->width > least &&
		    (!widest || column->width > widest->width))
			widest = column;
	}
	return widest;
}

/* Narrows columns until the line fits: always the widest, which harms the fewest names. */
static void narrow(struct table_fit *fit, int limit)
{
	size_t sum = 0;

	for (size_t c = 0; c < fit->count; c++)
		sum += fit->columns[c].as->gap + fit->columns[c].width;
	while (limit > 0 && sum > (size_t)limit) {
		struct table_fit_column *widest = find_widest(fit, true);

		if (!widest)
			widest = find_widest(fit, false);
		if (!widest)
			return;
		widest->width--;
		sum--;
	}
}

int table_fit(struct table_fit *fit, struct table *table, int width, struct err *err)
{
	size_t n = table->column_count;

	close_open(table);
	if (!fit->columns) {
		fit->columns = calloc(n + 1, sizeof(*fit->columns));
		fit->widest = calloc(n + 1, sizeof(*fit->widest));
	}
	if (!fit->columns || !fit->widest || table->failed || strbuf_failed(&table->text))
		return err_nomem(err);
	fit->cut = width > 0;
	measure(fit, table, width);
	drop_unused(fit);
	drop(fit, width);
	widen_groups(fit);
	narrow(fit, width);
	return 0;
}

void table_fit_fini(struct table_fit *fit)
{
	free(fit->columns);
	free(fit->widest);
	*fit = (struct table_fit){0};
}
