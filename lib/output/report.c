#include "output/layout.h"
#include "output/names.h"
#include "output/rows.h"
#include "output/summary.h"

#include "base/map.h"
#include "base/text.h"

/* Objects without symbols are named below the table from this share on. */
#define UNNAMED_SHOWN 0.02

static void add_row(struct table *table, const struct layout *layout, const struct report *report,
		    const struct names *names, const struct view_row *row)
{
	layout_row(layout, table, report->view, row);
	for (size_t i = 0; report->groups && i < report->groups->key_count; i++)
		rows_add_group(report, names, row, i, table_cell(table));
	for (const struct label *l = row_labels; !report->groups && l->key; l++)
		if (l->in_text)
			l->add(report, names, row, table_cell(table));
}

static int put_table(FILE *out, const struct report *report, const struct names *names,
		     size_t *hidden, struct err *err)
{
	struct layout layout;
	struct table table;
	int rc = rows_layout(&layout, report, names, err);

	table_init(&table, layout.columns.items, layout.columns.len);
	for (size_t i = 0; i < report->view->count && !rc; i++) {
		const struct view_row *row = &report->view->rows[i];
		bool below;

		if (rows_pass(report, row, &below))
			add_row(&table, &layout, report, names, row);
		else
			*hidden += below;
	}
	if (!rc)
		rc = table_print(out, &table, report->width, err);
	if (!rc && report->reduced && *hidden)
		fputs("   ...\n", out);
	table_fini(&table);
	layout_fini(&layout);
	return rc;
}

static void put_hidden(FILE *out, const struct report *report, size_t hidden)
{
	char count[32];

	if (!hidden)
		return;
	text_count(count, sizeof(count), hidden);
	fprintf(out, "%s more below %g%% (--percent-limit 0 shows all).\n", count,
		report->percent_limit);
}

/* The time in code without symbols, by file. */
static int sum_unnamed(struct map *times, const struct report *report, const struct names *names,
		       struct err *err)
{
	for (size_t i = 0; i < report->view->count; i++) {
		const struct view_row *row = &report->view->rows[i];
		uint64_t *time;

		if (!names_is_unnamed(names, row->function))
			continue;
		time = map_put(times, profile_function(report->profile, row->function)->file, NULL);
		if (!time)
			return err_nomem(err);
		*time += row->counts[report->event].self;
	}
	return 0;
}

/* Which objects without symbols took how much, where it is worth finding their symbols. */
static int put_unnamed(FILE *out, const struct report *report, const struct names *names,
		       struct err *err)
{
	uint64_t whole = report->view->period_total[report->event], sum = 0, kernel = 0;
	struct strbuf objects = {0};
	struct map times = {0};
	int rc = report->groups ? 0 : sum_unnamed(&times, report, names, err);

	for (size_t i = 0; !rc && times.count && i < report->view->count; i++) {
		uint32_t file =
			profile_function(report->profile, report->view->rows[i].function)->file;
		const char *path = profile_text(report->profile, file);
		uint64_t *time = map_get(&times, file);

		if (!time || !*time || figure_share(*time, whole) < UNNAMED_SHOWN)
			continue;
		if (strcmp(path, "[kernel]") == 0) {
			kernel = *time;
			*time = 0;
			continue;
		}
		sum += *time;
		*time = 0; /* each file once */
		strbuf_str(&objects, objects.len ? ", " : "");
		strbuf_str(&objects, path[0] == '[' ? "" : "[");
		names_add_file(names, file, &objects);
		strbuf_str(&objects, path[0] == '[' ? "" : "]");
	}
	if (kernel)
		fprintf(out,
			"%.1f%% in the kernel without names: its addresses were hidden "
			"(kernel.kptr_restrict), or it is another kernel's recording.\n",
			100 * figure_share(kernel, whole));
	if (sum)
		fprintf(out, "%.1f%% in code without symbols (%s): install their debug symbols.\n",
			100 * figure_share(sum, whole), strbuf_text(&objects));
	strbuf_fini(&objects);
	map_fini(&times);
	return rc;
}

int output_report_text(FILE *out, const struct report *report, struct err *err)
{
	struct names *names;
	size_t hidden = 0;
	uint64_t samples = 0;
	int rc = names_new(&names, report->profile, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < report->view->events; i++)
		samples += report->view->samples[i];
	if (!report->quiet) {
		summary_head(out, report, names);
		if (samples && !report->groups)
			summary_origins(out, report->profile, report->view, report->event);
		fputc('\n', out);
	}
	if (samples) {
		rc = put_table(out, report, names, &hidden, err);
		if (!rc && !report->quiet)
			fputc('\n', out);
	} else {
		summary_empty(out, report->profile, report->filter);
	}
	if (!rc && !report->quiet) {
		put_hidden(out, report, hidden);
		rc = put_unnamed(out, report, names, err);
		summary_metrics(out, report->metrics);
		summary_losses(out, report->profile, false);
	}
	names_free(names);
	return rc;
}
