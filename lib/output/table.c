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

/* The columns that are printed, with their widths. */
struct drawn {
	const struct table *table;
	struct drawn_column {
		const struct table_column *as;
		size_t index, width;
		bool used;
	} * columns;
	size_t count;
};

static void measure(struct drawn *drawn, int limit)
{
	const struct table *table = drawn->table;
	size_t n = table->column_count;

	drawn->count = n;
	for (size_t c = 0; c < n; c++) {
		const char *heading = table->columns[c].heading;

		drawn->columns[c] = (struct drawn_column){
			.as = &table->columns[c],
			.index = c,
			.width = text_width(heading, strlen(heading)),
		};
	}
	for (size_t i = 0; i < table->cells.len; i++) {
		const struct table_cell *cell = &table->cells.items[i];
		size_t width = text_width(table->text.buf + cell->start, cell->len);

		drawn->columns[i % n].used |= cell->len > 0;
		if (i % n == n - 1 && !limit)
			continue; /* nothing is aligned behind the last column */
		if (width > ALIGN_MAX && !limit)
			width = ALIGN_MAX;
		if (width > drawn->columns[i % n].width)
			drawn->columns[i % n].width = width;
	}
}

/* The least that the column is content with. */
static size_t wanted(const struct drawn_column *column)
{
	const struct table_column *as = column->as;
	size_t want = as->want ? as->want : as->cut != TABLE_WHOLE ? CUT_MIN : column->width;

	return as->gap + (want < column->width ? want : column->width);
}

static void drop_unused(struct drawn *drawn)
{
	size_t kept = 0;

	for (size_t c = 0; c < drawn->count; c++)
		if (drawn->columns[c].used || !drawn->columns[c].as->drop)
			drawn->columns[kept++] = drawn->columns[c];
	drawn->count = kept;
}

/* Drops columns until the others have what they want. */
static void drop(struct drawn *drawn, int limit)
{
	for (;;) {
		unsigned int highest = 0;
		size_t sum = 0, kept = 0;

		for (size_t c = 0; c < drawn->count; c++) {
			sum += wanted(&drawn->columns[c]);
			if (drawn->columns[c].as->drop > highest)
				highest = drawn->columns[c].as->drop;
		}
		if (limit <= 0 || sum <= (size_t)limit || !highest)
			return;
		for (size_t c = 0; c < drawn->count; c++)
			if (drawn->columns[c].as->drop != highest)
				drawn->columns[kept++] = drawn->columns[c];
		drawn->count = kept;
	}
}

/* Where the columns of one group end that start at `c`, and how wide they are together. */
static size_t group_end(const struct drawn *drawn, size_t c, size_t *width)
{
	const char *group = drawn->columns[c].as->group;
	size_t end = c + 1;

	*width = drawn->columns[c].width;
	while (group && end < drawn->count && drawn->columns[end].as->group == group) {
		*width += drawn->columns[end].as->gap + drawn->columns[end].width;
		end++;
	}
	return end;
}

/* A group's name needs its room too. */
static void widen_groups(struct drawn *drawn)
{
	for (size_t c = 0, end; c < drawn->count; c = end) {
		const char *group = drawn->columns[c].as->group;
		size_t have, want = group ? text_width(group, strlen(group)) : 0;

		end = group_end(drawn, c, &have);
		if (want > have)
			drawn->columns[c].width += want - have;
	}
}

/* Narrows columns until the line fits: always the widest, which harms the fewest names. */
static void fit(struct drawn *drawn, int limit)
{
	size_t sum = 0;

	for (size_t c = 0; c < drawn->count; c++)
		sum += drawn->columns[c].as->gap + drawn->columns[c].width;
	while (limit > 0 && sum > (size_t)limit) {
		struct drawn_column *widest = NULL;

		for (size_t c = 0; c < drawn->count; c++) {
			struct drawn_column *column = &drawn->columns[c];

			if (column->as->cut != TABLE_WHOLE && column->width > CUT_MIN &&
			    (!widest || column->width > widest->width))
				widest = column;
		}
		if (!widest)
			return;
		widest->width--;
		sum--;
	}
}

static void print_groups(FILE *out, const struct drawn *drawn)
{
	size_t pending = 0;
	bool any = false;

	for (size_t c = 0, end; c < drawn->count; c = end) {
		const char *group = drawn->columns[c].as->group;
		size_t have, want;

		pending += drawn->columns[c].as->gap;
		end = group_end(drawn, c, &have);
		if (!group) {
			pending += have;
			continue;
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

static void print_headings(FILE *out, const struct drawn *drawn)
{
	size_t pending = 0;

	for (size_t c = 0; c < drawn->count; c++) {
		const struct drawn_column *column = &drawn->columns[c];
		const char *heading = column->as->heading;
		size_t width = text_width(heading, strlen(heading)), pad = column->width - width;

		pending += column->as->gap;
		if (!width) {
			pending += column->width;
			continue;
		}
		blanks(out, pending + (column->as->left ? 0 : pad));
		fputs(heading, out);
		pending = column->as->left ? pad : 0;
	}
	fputc('\n', out);
}

static void print_row(FILE *out, const struct drawn *drawn, size_t row, bool cut)
{
	const struct table *table = drawn->table;
	size_t pending = 0;

	for (size_t c = 0; c < drawn->count; c++) {
		const struct drawn_column *column = &drawn->columns[c];
		const struct table_cell *cell =
			&table->cells.items[row * table->column_count + column->index];
		const char *text = table->text.buf + cell->start;
		size_t width = text_width(text, cell->len);
		size_t pad = width < column->width ? column->width - width : 0;

		pending += column->as->gap;
		if (!cell->len) {
			pending += column->width;
			continue;
		}
		blanks(out, pending + (column->as->left ? 0 : pad));
		width = write_cut(out, text, cell->len, cut ? column->as->cut : TABLE_WHOLE,
				  column->width);
		pending = column->as->left && width < column->width ? column->width - width : 0;
	}
	fputc('\n', out);
}

int table_print(FILE *out, struct table *table, int width, struct err *err)
{
	size_t n = table->column_count, rows = table->cells.len / n, indent = 0, note = 0;
	struct drawn drawn = {.table = table};

	close_open(table);
	drawn.columns = calloc(n, sizeof(*drawn.columns));
	if (!drawn.columns || table->failed || strbuf_failed(&table->text)) {
		free(drawn.columns);
		return err_nomem(err);
	}
	measure(&drawn, width);
	drop_unused(&drawn);
	drop(&drawn, width);
	widen_groups(&drawn);
	fit(&drawn, width);
	for (size_t c = 0; c < drawn.count; c++)
		indent += drawn.columns[c].as->gap +
			  (c + 1 < drawn.count ? drawn.columns[c].width : 0);
	print_groups(out, &drawn);
	print_headings(out, &drawn);
	for (size_t row = 0; row < rows; row++) {
		print_row(out, &drawn, row, width > 0);
		for (; note < table->notes.len && table->notes.items[note].row == row; note++) {
			const struct table_cell *text = &table->notes.items[note].text;

			blanks(out, indent);
			fwrite(table->text.buf + text->start, 1, text->len, out);
			fputc('\n', out);
		}
	}
	free(drawn.columns);
	return 0;
}
