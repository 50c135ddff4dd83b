#ifndef PYPERF_OUTPUT_TABLE_H
#define PYPERF_OUTPUT_TABLE_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Aligned columns of text.
 *
 * Cells are appended row by row; each is as wide as its text is on a terminal (wide and combining
 * characters count as such). With a width to fit, the columns that may be cut share what the others
 * leave, and columns may be dropped for others' sake. Without one nothing is cut; a cell far wider
 * than its column pushes the rest of its line aside. Text given to a table is escaped already.
 */
enum table_cut {
	TABLE_WHOLE,	  /* never cut */
	TABLE_CUT_MIDDLE, /* names: "collections.Ord..__missing__" */
	TABLE_CUT_FRONT,  /* paths: "..python3.12/json/decoder.py:343" */
};

struct table_column {
	const char *heading;
	const char *group; /* over this and its neighbours of the same group; NULL: none */
	bool left;	   /* left-aligned; figures are not */
	enum table_cut cut;
	unsigned int gap; /* blanks before the column */
	/* Where the width does not do, the columns of the highest number go first; 0: never. Those
	 * without anything go in any case, unless they `keep` their place. */
	unsigned int drop;
	bool keep;
	unsigned int want; /* columns are dropped until this one has so much, if it can use it */
};

struct table_cell {
	size_t start, len;
};

struct table_note {
	size_t row;
	struct table_cell text;
};

struct table {
	const struct table_column *columns;
	size_t column_count;
	struct strbuf text;
	struct {
		VEC_OF(struct table_cell)
	} cells;
	struct {
		VEC_OF(struct table_note)
	} notes;
	bool failed; /* memory ran out; table_print() says so */
};

void table_init(struct table *table, const struct table_column *columns, size_t count);
void table_fini(struct table *table);
/* Starts the next cell, which is what is appended to the buffer until the next call. */
struct strbuf *table_cell(struct table *table);
/* Likewise a line below the row at hand, indented to the last column. */
struct strbuf *table_note(struct table *table);
/* `width` 0: no limit. */
int table_print(FILE *out, struct table *table, int width, struct err *err);

/*
 * The same in steps, for who draws lines one by one: which columns there is room for, then lines.
 * A table that is fitted again, with other rows, keeps the widths that it had, so that columns stay
 * where they are; all zero is one that was never fitted.
 */
struct table_fit {
	struct table_fit_column {
		const struct table_column *as;
		size_t index, width;
		bool used;
	} * columns;
	size_t count;
	size_t *widest; /* by column of the table: what its cells took so far; 0: nothing */
	bool cut;	/* text that is too wide for its column is cut */
};
int table_fit(struct table_fit *fit, struct table *table, int width, struct err *err);
void table_fit_fini(struct table_fit *fit);
/* Where the columns of one group end that start at `c`, and how wide they are together. */
size_t table_group_end(const struct table_fit *fit, size_t c, size_t *width);

/* Takes the parts of a line: text of a column, `blanks` behind the part before. */
struct table_writer {
	void (*text)(void *ctx, size_t column, size_t blanks, const char *text, size_t len);
	void *ctx;
};
/* False, and nothing written, where no column has a group. */
bool table_put_groups(const struct table_fit *fit, const struct table_writer *writer);
void table_put_headings(const struct table_fit *fit, const struct table_writer *writer);
void table_put_row(const struct table_fit *fit, const struct table *table, size_t row,
		   const struct table_writer *writer);

#endif
