#include "output/table.h"

#include "base/text.h"

#include <string.h>

/* Lines of a table that was fitted: to whoever takes their parts, or to a stream. */

#define CUT_MARK ".."

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

/* Appends text cut to at most `width` columns. */
static void add_cut(struct strbuf *out, const char *text, size_t len, enum table_cut cut,
		    size_t width)
{
	size_t mark = strlen(CUT_MARK), head = 0, tail;

	if (cut == TABLE_WHOLE || text_width(text, len) <= width || width <= mark) {
		strbuf_add(out, text, len);
		return;
	}
	if (cut == TABLE_CUT_MIDDLE)
		head = prefix_of_width(text, len, (width - mark) / 2);
	tail = suffix_of_width(text, len, width - mark - text_width(text, head));
	strbuf_add(out, text, head);
	strbuf_str(out, CUT_MARK);
	strbuf_add(out, text + tail, len - tail);
}

static void put(const struct table_writer *writer, size_t column, size_t blanks, const char *text,
		size_t len)
{
	writer->text(writer->ctx, column, blanks, text, len);
}

bool table_put_groups(const struct table_fit *fit, const struct table_writer *writer)
{
	size_t pending = 0;
	bool any = false;

	for (size_t c = 0, end; c < fit->count; c = end) {
		const char *group = fit->columns[c].as->group;
		size_t have, want;

		pending += fit->columns[c].as->gap;
		end = table_group_end(fit, c, &have);
		if (!group) {
			pending += have;
			continue;
		}
		want = text_width(group, strlen(group));
		put(writer, fit->columns[c].index, pending + (have - want + 1) / 2, group,
		    strlen(group));
		pending = (have - want) / 2;
		any = true;
	}
	return any;
}

void table_put_headings(const struct table_fit *fit, const struct table_writer *writer)
{
	size_t pending = 0;

	for (size_t c = 0; c < fit->count; c++) {
		const struct table_fit_column *column = &fit->columns[c];
		const char *heading = column->as->heading;
		size_t width = text_width(heading, strlen(heading)), pad = column->width - width;

		pending += column->as->gap;
		if (!width) {
			pending += column->width;
			continue;
		}
		put(writer, column->index, pending + (column->as->left ? 0 : pad), heading,
		    strlen(heading));
		pending = column->as->left ? pad : 0;
	}
}

void table_put_row(const struct table_fit *fit, const struct table *table, size_t row,
		   const struct table_writer *writer)
{
	struct strbuf cut = {0};
	size_t pending = 0;

	for (size_t c = 0; c < fit->count; c++) {
		const struct table_fit_column *column = &fit->columns[c];
		const struct table_cell *cell =
			&table->cells.items[row * table->column_count + column->index];
		size_t width, pad;

		pending += column->as->gap;
		if (!cell->len) {
			pending += column->width;
			continue;
		}
		strbuf_reset(&cut);
		add_cut(&cut, table->text.buf + cell->start, cell->len,
			fit->cut ? column->as->cut : TABLE_WHOLE, column->width);
		width = text_width(strbuf_text(&cut), cut.len);
		pad = width < column->width ? column->width - width : 0;
		put(writer, column->index, pending + (column->as->left ? 0 : pad), cut.buf,
		    cut.len);
		pending = column->as->left ? pad : 0;
	}
	strbuf_fini(&cut);
}

static void blanks(FILE *out, size_t count)
{
	fprintf(out, "%*s", (int)count, "");
}

static void write_text(void *out, size_t column, size_t before, const char *text, size_t len)
{
	blanks(out, before);
	fwrite(text, 1, len, out);
}

static size_t last_column_at(const struct table_fit *fit)
{
	size_t at = 0;

	for (size_t c = 0; c < fit->count; c++)
		at += fit->columns[c].as->gap + (c + 1 < fit->count ? fit->columns[c].width : 0);
	return at;
}

int table_print(FILE *out, struct table *table, int width, struct err *err)
{
	const struct table_writer writer = {write_text, out};
	struct table_fit fit = {0};
	int rc = table_fit(&fit, table, width, err);
	size_t rows = rc ? 0 : table->cells.len / table->column_count, note = 0;

	if (!rc && table_put_groups(&fit, &writer))
		fputc('\n', out);
	if (!rc) {
		table_put_headings(&fit, &writer);
		fputc('\n', out);
	}
	for (size_t row = 0; row < rows; row++) {
		table_put_row(&fit, table, row, &writer);
		fputc('\n', out);
		for (; note < table->notes.len && table->notes.items[note].row == row; note++) {
			const struct table_cell *text = &table->notes.items[note].text;

			write_text(out, 0, last_column_at(&fit), table->text.buf + text->start,
				   text->len);
			fputc('\n', out);
		}
	}
	table_fit_fini(&fit);
	return rc;
}
