#include "output/annotate.h"

#include "output/summary.h"
#include "perfmap/source.h"
#include "profile/origin.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * The lines that matter, of all files: the user's own files first, then those of packages, then
 * those of Python's library; among these the file first in which most time was spent.
 */

struct file {
	uint32_t file;
	enum code_origin origin;
	uint64_t self;	   /* of the event that ranks */
	struct view lines; /* those that matter, by their number; rows are a part of `rows` */
};

struct overview {
	const struct annotate *annotate;
	struct names *names;
	const struct view *all;
	struct view_row *rows;
	struct {
		VEC_OF(struct file)
	} files;
};

static uint32_t file_of(const struct overview *overview, const struct view_row *row)
{
	return profile_function(overview->annotate->profile, row->function)->file;
}

static int by_place(const void *a, const void *b, void *ctx)
{
	const struct view_row *ra = a, *rb = b;
	uint32_t fa = file_of(ctx, ra), fb = file_of(ctx, rb);

	if (fa != fb)
		return fa < fb ? -1 : 1;
	if (ra->line != rb->line)
		return ra->line < rb->line ? -1 : 1;
	return (ra->function > rb->function) - (ra->function < rb->function);
}

static int by_importance(const void *a, const void *b)
{
	const struct file *fa = a, *fb = b;

	if (fa->origin != fb->origin)
		return fa->origin < fb->origin ? -1 : 1;
	if (fa->self != fb->self)
		return fa->self > fb->self ? -1 : 1;
	return (fa->file > fb->file) - (fa->file < fb->file);
}

static int add_row(struct overview *overview, size_t index, struct err *err)
{
	const struct annotate *annotate = overview->annotate;
	struct view_row *row = &overview->rows[index];
	uint32_t number = file_of(overview, row);
	struct file *file = overview->files.len ? &overview->files.items[overview->files.len - 1]
						: NULL;

	if (!file || file->file != number) {
		file = vec_push(&overview->files);
		if (!file)
			return err_nomem(err);
		*file = (struct file){
			.file = number,
			.origin = code_origin(annotate->profile, row->function),
			.lines = *overview->all,
		};
		file->lines.rows = row;
		file->lines.count = 0;
	}
	file->self += row->counts[annotate->event].self;
	/* What does not matter makes room within the file's own part of the rows. */
	if (annotate_is_hot(overview->all, row))
		file->lines.rows[file->lines.count++] = *row;
	return 0;
}

static int collect(struct overview *overview, struct err *err)
{
	size_t count = overview->all->count;
	int rc = 0;

	overview->rows = malloc((count + 1) * sizeof(*overview->rows));
	if (!overview->rows)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++)
		overview->rows[i] = overview->all->rows[i];
	qsort_r(overview->rows, count, sizeof(*overview->rows), by_place, overview);
	for (size_t i = 0; i < count && !rc; i++)
		rc = add_row(overview, i, err);
	if (overview->files.len)
		qsort(overview->files.items, overview->files.len, sizeof(struct file),
		      by_importance);
	return rc;
}

static void add_gap(const struct layout *layout, struct table *table)
{
	layout_row(layout, table, NULL, NULL);
	strbuf_str(table_cell(table), "...");
	table_cell(table);
}

static void add_lines(const struct overview *overview, const struct file *file,
		      const struct layout *layout, struct table *table)
{
	const struct source *source = profile_source(overview->annotate->profile, file->file);
	uint32_t before = 0;

	for (size_t i = 0; i < file->lines.count; i++) {
		const struct view_row *row = &file->lines.rows[i];
		struct strbuf *cell;
		const char *text;
		size_t len;

		if (row->line > before + 1)
			add_gap(layout, table);
		layout_row(layout, table, &file->lines, row);
		cell = table_cell(table);
		if (row->line)
			strbuf_printf(cell, "%" PRIu32, row->line);
		else
			strbuf_char(cell, '?');
		cell = table_cell(table);
		text = source && row->line ? source_line(source, row->line, &len) : NULL;
		if (text)
			names_add_source(cell, text, len);
		before = row->line;
	}
	if (!source || before < source_line_count(source))
		add_gap(layout, table);
}

static int put_file(FILE *out, const struct overview *overview, const struct file *file,
		    struct err *err)
{
	const struct annotate *annotate = overview->annotate;
	struct layout_choice choice = {
		.ranked = annotate->event,
		.totals = true,
		.samples = true,
		.split = !profile_summary(annotate->profile)->folded,
		.metrics = annotate->metrics,
	};
	struct layout layout;
	struct table table;
	struct strbuf head = {0};
	int rc = layout_init(&layout, annotate->profile, overview->names, &choice, err);

	if (rc)
		return rc;
	names_add_text(&head, profile_text(annotate->profile, file->file));
	strbuf_printf(&head, "   %.1f%%",
		      100 * figure_share(file->self, overview->all->period_total[annotate->event]));
	fprintf(out, "\n%s\n", strbuf_text(&head));
	strbuf_fini(&head);
	rc = layout_add_source(&layout, err);
	table_init(&table, layout.columns.items, layout.columns.len);
	if (!rc) {
		add_lines(overview, file, &layout, &table);
		rc = table_print(out, &table, annotate->width, err);
	}
	table_fini(&table);
	layout_fini(&layout);
	return rc;
}

static int put_files(FILE *out, const struct overview *overview, struct err *err)
{
	int origin = -1, rc = 0;
	size_t without = 0;

	for (size_t i = 0; i < overview->files.len && !rc; i++) {
		const struct file *file = &overview->files.items[i];

		if (!file->lines.count) {
			without++;
			continue;
		}
		if ((int)file->origin != origin) {
			fprintf(out, "%s%s\n", origin < 0 ? "" : "\n",
				code_origin_title(file->origin));
			origin = (int)file->origin;
		}
		rc = put_file(out, overview, file, err);
	}
	if (!rc && !overview->annotate->quiet) {
		fputc('\n', out);
		if (without)
			fprintf(out, "%zu more file%s without a line of %g%% or more.\n", without,
				without == 1 ? "" : "s", REDUCED_PERCENT);
		summary_metrics(out, overview->annotate->metrics);
		summary_losses(out, overview->annotate->profile, true);
	}
	return rc;
}

int output_annotate_overview(FILE *out, const struct annotate *annotate, const struct view *lines,
			     struct err *err)
{
	struct overview overview = {.annotate = annotate, .all = lines};
	int rc = names_new(&overview.names, annotate->profile, err);

	if (!rc)
		rc = collect(&overview, err);
	if (!rc && !annotate->quiet)
		summary_shown(out, annotate->profile);
	if (!rc)
		rc = put_files(out, &overview, err);
	vec_fini(&overview.files);
	free(overview.rows);
	names_free(overview.names);
	return rc;
}
