#include "output/table.h"

#include "base/text.h"

#include <string.h>

#define ALIGN_MAX 64 /* a wider cell does not widen its whole column */
#define CUT_MIN 12   /* columns are not cut below this */
#define CUT_MARK ".."

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

/* Bytes of the longest prefix that is at most `width` columns wide. */
static size_t prefix_of_width(const char *text, size_t len, size_t width)
{
	size_t at = 0;

	while (at < len) {
		size_t next = at + 1, columns;

		while (next < len && ((unsigned char)text[next] & 0xc0) == 0x80)
			next++;
		columns = text_width(text + at, next - at);
		if (columns > width)
			break;
		width -= columns;
		at = next;
	}
	return at;
}

/* Where the longest suffix starts that is at most `width` columns wide. */
static size_t suffix_of_width(const char *text, size_t len, size_t width)
{
	size_t at = len;

	while (at) {
		size_t before = at - 1, columns;

		while (before && ((unsigned char)text[before] & 0xc0) == 0x80)
			before--;
		columns = text_width(text + before, at - before);
		if (columns > width)
			break;
		width -= columns;
		at = before;
	}
	return at;
}

static void blanks(FILE *out, size_t count)
{
	fprintf(out, "%*s", (int)count, "");
}

/* Writes text cut to at most `width` columns and returns the columns it took. */
static size_t write_cut(FILE *out, const char *text, size_t len, enum table_cut cut, size_t width)
{
	size_t natural = text_width(text, len), mark = strlen(CUT_MARK), head = 0, tail;

	if (cut == TABLE_WHOLE || natural <= width || width <= mark) {
		fwrite(text, 1, len, out);
		return natural;
	}
	if (cut == TABLE_CUT_MIDDLE)
		head = prefix_of_width(text, len, (width - mark) / 2);
	tail = suffix_of_width(text, len, width - mark - text_width(text, head));
	fwrite(text, 1, head, out);
	fputs(CUT_MARK, out);
	fwrite(text + tail, 1, len - tail, out);
	return text_width(text, head) + mark + text_width(text + tail, len - tail);
}

/* Narrows columns until the line fits: always the widest, which harms the fewest names. */
static void fit(const struct table *table, size_t *widths, int limit)
{
	size_t sum = 0;

	for (size_t c = 0; c < table->column_count; c++)
		sum += table->columns[c].gap + widths[c];
	while (limit > 0 && sum > (size_t)limit) {
		size_t *widest = NULL;

		for (size_t c = 0; c < table->column_count; c++)
			if (table->columns[c].cut != TABLE_WHOLE && widths[c] > CUT_MIN &&
			    (!widest || widths[c] > *widest))
				widest = &widths[c];
		if (!widest)
			return;
		--*widest;
		sum--;
	}
}

static void measure(const struct table *table, size_t *widths, int limit)
{
	size_t n = table->column_count;

	for (size_t c = 0; c < n; c++)
		widths[c] = strlen(table->columns[c].heading);
	for (size_t i = 0; i < table->cells.len; i++) {
		const struct table_cell *cell = &table->cells.items[i];
		size_t width = text_width(table->text.buf + cell->start, cell->len);

		if (i % n == n - 1 && !limit)
			continue; /* nothing is aligned behind the last column */
		if (width > ALIGN_MAX && !limit)
			width = ALIGN_MAX;
		if (width > widths[i % n])
			widths[i % n] = width;
	}
	/* A group's name needs its room too. */
	for (size_t c = 0, end; c < n; c = end) {
		const char *group = table->columns[c].group;
		size_t have = 0, want;

		end = c + 1;
		if (!group)
			continue;
		have = widths[c];
		while (end < n && table->columns[end].group == group) {
			have += table->columns[end].gap + widths[end];
			end++;
		}
		want = text_width(group, strlen(group));
		if (want > have)
			widths[c] += want - have;
	}
	fit(table, widths, limit);
}

static void print_groups(FILE *out, const struct table *table, const size_t *widths)
{
	size_t n = table->column_count, pending = 0;
	bool any = false;

	for (size_t c = 0, end; c < n; c = end) {
		const char *group = table->columns[c].group;
		size_t have = widths[c], want;

		pending += table->columns[c].gap;
		end = c + 1;
		if (!group) {
			pending += have;
			continue;
		}
		while (end < n && table->columns[end].group == group) {
			have += table->columns[end].gap + widths[end];
			end++;
		}
		want = text_width(group, strlen(group));
		blanks(out, pending + (have - want + 1) / 2);
		fputs(group, out);
		pending = (have - want) / 2;
		any = true;
	}
	if (any)
		fputc('\n', out);
}

static void print_headings(FILE *out, const struct table *table, const size_t *widths)
{
	size_t pending = 0;

	for (size_t c = 0; c < table->column_count; c++) {
		const struct table_column *column = &table->columns[c];
		size_t len = strlen(column->heading), pad = widths[c] - len;

		pending += column->gap;
		if (!len) {
			pending += widths[c];
			continue;
		}
		blanks(out, pending + (column->left ? 0 : pad));
		fputs(column->heading, out);
		pending = column->left ? pad : 0;
	}
	fputc('\n', out);
}

static void print_row(FILE *out, const struct table *table, const size_t *widths, size_t row,
		      bool cut)
{
	size_t pending = 0;

	for (size_t c = 0; c < table->column_count; c++) {
		const struct table_column *column = &table->columns[c];
		const struct table_cell *cell = &table->cells.items[row * table->column_count + c];
		const char *text = table->text.buf + cell->start;
		size_t width = text_width(text, cell->len);
		size_t pad = width < widths[c] ? widths[c] - width : 0;

		pending += column->gap;
		if (!cell->len) {
			pending += widths[c];
			continue;
		}
		blanks(out, pending + (column->left ? 0 : pad));
		width = write_cut(out, text, cell->len, cut ? column->cut : TABLE_WHOLE, widths[c]);
		pending = column->left && width < widths[c] ? widths[c] - width : 0;
	}
	fputc('\n', out);
}

int table_print(FILE *out, struct table *table, int width, struct err *err)
{
	size_t n = table->column_count, rows = table->cells.len / n, indent = 0, note = 0;
	size_t *widths;

	close_open(table);
	widths = calloc(n, sizeof(*widths));
	if (!widths || table->failed || strbuf_failed(&table->text)) {
		free(widths);
		return err_nomem(err);
	}
	measure(table, widths, width);
	for (size_t c = 0; c < n; c++)
		indent += table->columns[c].gap + (c + 1 < n ? widths[c] : 0);
	print_groups(out, table, widths);
	print_headings(out, table, widths);
	for (size_t row = 0; row < rows; row++) {
		print_row(out, table, widths, row, width > 0);
		for (; note < table->notes.len && table->notes.items[note].row == row; note++) {
			const struct table_cell *text = &table->notes.items[note].text;

			blanks(out, indent);
			fwrite(table->text.buf + text->start, 1, text->len, out);
			fputc('\n', out);
		}
	}
	free(widths);
	return 0;
}
