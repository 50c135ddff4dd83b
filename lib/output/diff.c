#include "output/names.h"
#include "output/output.h"
#include "output/table.h"

#include "base/text.h"
#include "profile/compare.h"

#include <math.h>
#include <string.h>

/* Two recordings as two tables, of functions and of lines, the largest difference first. */

enum { A, B };

static void put_side(FILE *out, const struct diff *diff, const struct names *const names[2],
		     int which)
{
	const struct compare_side *side = &diff->sides[which];
	const struct profile_summary *summary = profile_summary(side->profile);
	struct strbuf text = {0};
	char samples[32];

	text_count(samples, sizeof(samples), diff->functions->samples[which]);
	names_add_text(&text, diff->paths[which]);
	strbuf_str(&text, "   ");
	if (summary->command)
		names_add_text(&text, summary->command);
	strbuf_printf(&text, "%s%.1f s   ", summary->command ? "   " : "",
		      (double)(summary->last_time - summary->first_time) / 1e9);
	names_add_event(names[which], side->event, &text);
	fprintf(out, "%c  %s: %s samples\n", 'A' + which, strbuf_text(&text), samples);
	strbuf_fini(&text);
}

/* "A has ..., B has ...": what the shares are shares of. */
static void put_totals(FILE *out, const struct diff *diff)
{
	double a = diff->functions->total[A], b = diff->functions->total[B];

	char before[32], after[32];

	text_count(before, sizeof(before), (uint64_t)a);
	text_count(after, sizeof(after), (uint64_t)b);
	if (a > 0)
		fprintf(out, "B counted %s where A counted %s: %+.1f%%\n", after, before,
			(b - a) / a * 100);
}

static void add_share(struct table *table, const struct compare_row *row, int which)
{
	struct strbuf *cell = table_cell(table);

	if (row->samples[which])
		strbuf_printf(cell, "%.1f%%", row->share[which] * 100);
}

static void add_row(struct table *table, const struct diff *diff,
		    const struct names *const names[2], const struct compare_row *row)
{
	/* As it is called now, or as it was where it is gone. */
	int which = row->function[B] == UINT32_MAX ? A : B;
	const struct profile *profile = diff->sides[which].profile;
	uint32_t function = row->function[which], line = row->line[which];
	struct strbuf *cell;

	add_share(table, row, A);
	add_share(table, row, B);
	strbuf_printf(table_cell(table), "%+.1f%%", (row->share[B] - row->share[A]) * 100);
	strbuf_str(table_cell(table), row->sure ? "" : "~");
	names_add_function(names[which], function, table_cell(table));
	cell = table_cell(table);
	if (line) {
		names_add_file(names[which], profile_function(profile, function)->file, cell);
		strbuf_printf(cell, ":%u", line);
	} else {
		names_add_place(names[which], function, cell);
	}
}

static int put_table(FILE *out, const struct diff *diff, const struct names *const names[2],
		     const struct compare *compare, const char *what, struct err *err)
{
	const struct table_column columns[] = {
		{.heading = "A", .gap = 1},
		{.heading = "B", .gap = 2},
		{.heading = "change", .gap = 2},
		{.heading = "", .left = true, .gap = 1},
		{.heading = what, .left = true, .cut = TABLE_CUT_MIDDLE, .gap = 1},
		{.heading = "", .left = true, .cut = TABLE_CUT_FRONT, .gap = 2},
	};
	size_t shown = 0, unsure = 0;
	struct table table;
	int rc;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < compare->rows.len; i++) {
		const struct compare_row *row = &compare->rows.items[i];

		if (fabs(row->share[B] - row->share[A]) * 100 < diff->percent_limit)
			break;
		add_row(&table, diff, names, row);
		unsure += !row->sure;
		shown++;
	}
	rc = shown ? table_print(out, &table, diff->width, err) : 0;
	table_fini(&table);
	if (!shown)
		fprintf(out, "No %s differs by %g%% or more.\n",
			compare == diff->lines ? "line" : what, diff->percent_limit);
	if (diff->quiet)
		return rc;
	if (unsure)
		fprintf(out, "~ %zu of these %zu could be chance.\n", unsure, shown);
	if (shown && shown < compare->rows.len)
		fprintf(out, "%zu more differ by less than %g%%.\n", compare->rows.len - shown,
			diff->percent_limit);
	return rc;
}

int output_diff(FILE *out, const struct diff *diff, struct err *err)
{
	struct names *made[2] = {0};
	int rc = names_new(&made[A], diff->sides[A].profile, err);

	if (!rc)
		rc = names_new(&made[B], diff->sides[B].profile, err);
	if (!rc) {
		const struct names *const names[2] = {made[A], made[B]};

		if (!diff->quiet) {
			put_side(out, diff, names, A);
			put_side(out, diff, names, B);
			put_totals(out, diff);
			fputc('\n', out);
		}
		rc = put_table(out, diff, names, diff->functions, "function", err);
		if (!rc && diff->lines->rows.len) {
			fputc('\n', out);
			rc = put_table(out, diff, names, diff->lines, "line in", err);
		}
	}
	names_free(made[A]);
	names_free(made[B]);
	return rc;
}

size_t diff_regressions(const struct compare *compare, double percent)
{
	size_t count = 0;

	for (size_t i = 0; i < compare->rows.len; i++) {
		const struct compare_row *row = &compare->rows.items[i];

		count += row->sure && (row->share[B] - row->share[A]) * 100 > percent;
	}
	return count;
}
