#include "output/memory.h"

#include "base/text.h"
#include "output/extent.h"
#include "output/names.h"
#include "output/summary.h"
#include "output/table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/*
 * annotate --memory and report --memory: what grew and which accesses took long. The columns of
 * page faults are those of memory_profiler, whose Occurrences are how often a line ran; here they
 * are its page faults.
 */
#define MIB 1048576.0
#define SOURCE_WANTED 32

static double usage(const struct memory_figure *f, const struct memuse_row *row)
{
	return (double)row->total.usage;
}

static double increment(const struct memory_figure *f, const struct memuse_row *row)
{
	return (double)row->total.grown;
}

static double self_increment(const struct memory_figure *f, const struct memuse_row *row)
{
	return (double)row->self.grown;
}

static double again(const struct memory_figure *f, const struct memuse_row *row)
{
	return (double)row->total.again;
}

static double occurrences(const struct memory_figure *f, const struct memuse_row *row)
{
	return (double)row->total.faults;
}

static double accesses(const struct memory_figure *f, const struct memuse_row *row)
{
	return (double)row->self.accesses;
}

static struct estimate latency_of(const struct memuse_row *row)
{
	return estimate_mean(row->self.weight, row->self.weight_square, row->self.weighed);
}

static double latency(const struct memory_figure *f, const struct memuse_row *row)
{
	return row->self.weighed ? row->self.weight / (double)row->self.weighed : NAN;
}

static double latency_error(const struct memory_figure *f, const struct memuse_row *row)
{
	struct estimate e = latency_of(row);

	return e.known ? (e.high - e.low) / 2 : NAN;
}

static double level(const struct memory_figure *f, const struct memuse_row *row)
{
	return row->self.accesses ? (double)row->self.levels[f->level] / (double)row->self.accesses
				  : NAN;
}

static double tlb(const struct memory_figure *f, const struct memuse_row *row)
{
	return row->self.accesses ? (double)row->self.tlb_misses / (double)row->self.accesses : NAN;
}

#define LEVEL(key, heading, level_)                                           \
	{                                                                     \
		key, heading, MEMORY_PART, false, false, false, level_, level \
	}

const struct memory_figure memory_figures[] = {
	{"usage", "Mem usage", MEMORY_BYTES, true, true, false, 0, usage},
	{"increment", "Increment", MEMORY_BYTES, true, false, false, 0, increment},
	{"self_increment", "Self", MEMORY_BYTES, true, false, true, 0, self_increment},
	{"again", "Again", MEMORY_BYTES, true, false, false, 0, again},
	{"occurrences", "Occurrences", MEMORY_COUNT, true, false, false, 0, occurrences},
	{"accesses", "accesses", MEMORY_COUNT, false, false, false, 0, accesses},
	{"latency", "latency", MEMORY_MEAN, false, false, false, 0, latency},
	{"latency_error", "", MEMORY_ERROR, false, false, false, 0, latency_error},
	LEVEL("l1", "L1", MEMUSE_L1),
	LEVEL("lfb", "LFB", MEMUSE_LFB),
	LEVEL("l2", "L2", MEMUSE_L2),
	LEVEL("l3", "L3", MEMUSE_L3),
	LEVEL("ram", "RAM", MEMUSE_RAM),
	LEVEL("remote", "remote", MEMUSE_REMOTE),
	LEVEL("other", "other", MEMUSE_OTHER),
	LEVEL("unknown", "unknown", MEMUSE_UNKNOWN),
	{"tlb", "TLBmiss", MEMORY_PART, false, false, false, 0, tlb},
	{0},
};

bool memory_figure_shown(const struct memory_figure *figure, const struct memory_report *report,
			 const struct memuse_view *view)
{
	bool lines = report->function != UINT32_MAX;

	if (lines ? figure->functions : figure->lines)
		return false;
	return figure->faults ? view->whole.faults > 0 : view->whole.accesses > 0;
}

int memory_open(struct memuse_view **view, const struct memory_report *report, struct err *err)
{
	int rc = memuse_view(view, report->profile, report->filter, report->function, err);

	if (rc || (*view)->whole.faults || (*view)->whole.accesses)
		return rc;
	memuse_view_free(*view);
	*view = NULL;
	err_set(err, ERR_NOT_FOUND,
		"the recording has neither page faults with addresses nor memory accesses");
	err_hint(err, "Record one of these: -e page-faults, -e cpu/mem-loads,ldlat=30/P.");
	return ERR_NOT_FOUND;
}

/* What would only be blanks is left out of text. */
static bool has_column(const struct memory_figure *figure, const struct memory_report *report,
		       const struct memuse_view *view)
{
	if (!memory_figure_shown(figure, report, view))
		return false;
	for (size_t i = 0; i < view->count; i++)
		if (figure->of(figure, &view->rows[i]) > 0)
			return true;
	return false;
}

static void put_figure(const struct memory_figure *figure, const struct memuse_row *row,
		       struct strbuf *cell)
{
	double value = figure->of(figure, row);
	struct estimate e = latency_of(row);
	char text[32];

	if (!(value > 0))
		return;
	switch (figure->unit) {
	case MEMORY_BYTES:
		strbuf_printf(cell, "%.3f MiB", value / MIB);
		break;
	case MEMORY_COUNT:
		text_count(text, sizeof(text), value < 0x1p64 ? (uint64_t)value : UINT64_MAX);
		strbuf_str(cell, text);
		break;
	case MEMORY_PART:
		strbuf_printf(cell, "%.0f%%", 100 * value);
		break;
	case MEMORY_MEAN:
	case MEMORY_ERROR:
		if (e.known && e.high <= 2 * e.low)
			strbuf_printf(cell, "%s%.0f", figure->unit == MEMORY_ERROR ? "±" : "",
				      value);
		break;
	}
}

static void put_figures(const struct memory_report *report, const struct memuse_view *view,
			const struct memuse_row *row, struct table *table)
{
	for (const struct memory_figure *f = memory_figures; f->key; f++) {
		struct strbuf *cell;

		if (!has_column(f, report, view))
			continue;
		cell = table_cell(table);
		if (row)
			put_figure(f, row, cell);
	}
}

struct columns {
	VEC_OF(struct table_column)
};

static int add_column(struct columns *columns, struct table_column column, struct err *err)
{
	struct table_column *c = vec_push(columns);

	if (!c)
		return err_nomem(err);
	*c = column;
	return 0;
}

static int add_figures(struct columns *columns, const struct memory_report *report,
		       const struct memuse_view *view, struct err *err)
{
	int rc = 0;

	for (const struct memory_figure *f = memory_figures; f->key && !rc; f++) {
		bool error = f->unit == MEMORY_ERROR;

		if (has_column(f, report, view))
			rc = add_column(columns,
					(struct table_column){.heading = f->heading,
							      .left = error,
							      .gap = error ? 1 : 3},
					err);
	}
	return rc;
}

/* The lines of the function, and others of its code that have figures. */
static void add_lines(struct table *table, const struct memory_report *report,
		      const struct memuse_view *view)
{
	const struct profile_function *function = profile_function(report->profile,
								   report->function);
	const struct source *source = profile_source(report->profile, function->file);
	bool whole = source && function->line &&
		     strcmp(profile_text(report->profile, function->name), "<module>") != 0;
	uint32_t line = whole ? function->line : 1;
	uint32_t last = whole ? extent_end(source, function->line) : 0;
	size_t at = 0;

	while (at < view->count || (whole && line <= last)) {
		const struct memuse_row *row = at < view->count ? &view->rows[at] : NULL;
		struct strbuf *cell;
		const char *text;
		size_t len;

		if (row && (!whole || line > last || row->line <= line)) {
			if (row->line != line || !whole)
				line = row->line;
			at++;
		} else {
			row = NULL;
		}
		cell = table_cell(table);
		if (line)
			strbuf_printf(cell, "%" PRIu32, line);
		else
			strbuf_char(cell, '?');
		put_figures(report, view, row, table);
		cell = table_cell(table);
		text = source && line ? source_line(source, line, &len) : NULL;
		if (text)
			names_add_source(cell, text, len);
		line++;
	}
}

static int put_lines(FILE *out, const struct memory_report *report, const struct memuse_view *view,
		     struct err *err)
{
	struct columns columns = {0};
	struct table table;
	int rc = add_column(&columns, (struct table_column){.heading = "Line #"}, err);

	if (!rc)
		rc = add_figures(&columns, report, view, err);
	if (!rc)
		rc = add_column(&columns,
				(struct table_column){.heading = "Line Contents",
						      .left = true,
						      .gap = 3,
						      .want = SOURCE_WANTED},
				err);
	table_init(&table, columns.items, columns.len);
	if (!rc) {
		add_lines(&table, report, view);
		rc = table_print(out, &table, report->width, err);
	}
	table_fini(&table);
	vec_fini(&columns);
	return rc;
}

static int put_functions(FILE *out, const struct memory_report *report,
			 const struct memuse_view *view, const struct names *names, struct err *err)
{
	struct columns columns = {0};
	struct table table;
	int rc = add_figures(&columns, report, view, err);

	if (!rc)
		rc = add_column(&columns,
				(struct table_column){.heading = "function",
						      .left = true,
						      .cut = TABLE_CUT_MIDDLE,
						      .gap = 3},
				err);
	if (!rc)
		rc = add_column(
			&columns,
			(struct table_column){
				.heading = "", .left = true, .cut = TABLE_CUT_FRONT, .gap = 2},
			err);
	table_init(&table, columns.items, columns.len);
	for (size_t i = 0; i < view->count && !rc; i++) {
		put_figures(report, view, &view->rows[i], &table);
		names_add_function(names, view->rows[i].function, table_cell(&table));
		names_add_place(names, view->rows[i].function, table_cell(&table));
	}
	if (!rc)
		rc = table_print(out, &table, report->width, err);
	table_fini(&table);
	vec_fini(&columns);
	return rc;
}

/* "grow   /src/x.py:3", as memory_profiler has it, and how much of the whole that is. */
static void put_head(FILE *out, const struct memory_report *report, const struct memuse_view *view,
		     const struct names *names)
{
	struct strbuf text = {0};
	char count[32];

	if (report->function != UINT32_MAX) {
		const struct profile_function *f = profile_function(report->profile,
								    report->function);

		names_add_function(names, report->function, &text);
		strbuf_str(&text, "   ");
		names_add_text(&text, profile_text(report->profile, f->file));
		strbuf_printf(&text, ":%" PRIu32 "\n", f->line);
	}
	if (view->whole.faults) {
		text_count(count, sizeof(count), view->whole.faults);
		strbuf_printf(&text,
			      "The program grew by %.3f MiB in all, with %s page faults. Memory "
			      "that is given back does not show.\n",
			      (double)view->whole.grown / MIB, count);
	}
	if (view->whole.accesses) {
		text_count(count, sizeof(count), view->whole.accesses);
		strbuf_printf(&text,
			      "%s accesses were sampled; latency is in the hardware's "
			      "unit, mostly cycles.\n",
			      count);
	}
	fprintf(out, "%s\n", strbuf_text(&text));
	strbuf_fini(&text);
}

int output_memory_text(FILE *out, const struct memory_report *report, struct err *err)
{
	struct memuse_view *view;
	struct names *names;
	int rc = memory_open(&view, report, err);

	if (rc)
		return rc;
	rc = names_new(&names, report->profile, err);
	if (!rc && !report->quiet)
		put_head(out, report, view, names);
	if (!rc)
		rc = report->function == UINT32_MAX ? put_functions(out, report, view, names, err)
						    : put_lines(out, report, view, err);
	if (!rc && !report->quiet) {
		fputc('\n', out);
		if (view->whole.faults && !view->sizes_known)
			fputs("Pages count as 4 KiB each. Where huge pages are in use record "
			      "-e minor-faults,major-faults, which know their size.\n",
			      out);
		summary_losses(out, report->profile, true);
	}
	names_free(names);
	memuse_view_free(view);
	return rc;
}
