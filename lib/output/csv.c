#include "output/rows.h"

#include <math.h>
#include <string.h>

/* RFC 4180 with bare newlines between the records. Text is escaped, so it has none of its own. */

static void put_field(FILE *out, const struct strbuf *text, bool first)
{
	const char *s = strbuf_text(text);

	if (!first)
		fputc(',', out);
	if (!strpbrk(s, ",\"\r\n") && s[0] != ' ') {
		fputs(s, out);
		return;
	}
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"')
			fputc('"', out);
		fputc(*s, out);
	}
	fputc('"', out);
}

static void put_head(FILE *out, const struct report *report, const struct names *names,
		     const struct label *labels)
{
	struct strbuf field = {0};
	bool first = true;

	for (size_t i = 0; report->groups && i < report->groups->key_count; i++) {
		strbuf_reset(&field);
		strbuf_str(&field, view_key_name(report->groups->keys[i]));
		put_field(out, &field, first);
		first = false;
	}
	for (const struct label *l = labels; !report->groups && l->key; l++) {
		if (!l->in_csv)
			continue;
		strbuf_reset(&field);
		strbuf_str(&field, l->key);
		put_field(out, &field, first);
		first = false;
	}
	for (uint32_t e = 0; e < report->view->events; e++) {
		if (!rows_event_shown(report, e))
			continue;
		for (const struct figure *f = figures; f->key; f++) {
			strbuf_reset(&field);
			names_add_event(names, e, &field);
			strbuf_printf(&field, " %s", f->key);
			put_field(out, &field, false);
		}
	}
	for (size_t i = 0; report->metrics && i < report->metrics->count; i++) {
		size_t plan = report->metrics->chosen[i];
		const char *key = report->metrics->measures.plans[plan].metric->key;

		fprintf(out, ",%s,%s low,%s high", key, key, key);
	}
	if (report->metrics && report->metrics->count)
		fputs(",reading", out);
	fputc('\n', out);
	strbuf_fini(&field);
}

static void put_number(FILE *out, double value)
{
	if (isfinite(value))
		fprintf(out, ",%.6g", value);
	else
		fputc(',', out);
}

/* Each with both ends of its interval; nothing where it is not known. */
static void put_metrics(FILE *out, const struct report *report, const struct view *view,
			const struct view_row *row)
{
	const struct metric_columns *columns = report->metrics;
	struct row_metrics metrics = {0};

	if (!columns || !columns->count)
		return;
	metric_columns_row(columns, view, row, &metrics);
	for (size_t i = 0; i < columns->count; i++) {
		const struct estimate *figure = &metrics.figures[columns->chosen[i]];
		bool due = figure->known && metric_columns_due(columns, row, columns->chosen[i]);

		put_number(out, due ? figure->value : NAN);
		put_number(out, due ? figure->low : NAN);
		put_number(out, due ? figure->high : NAN);
	}
	fprintf(out, ",%s", metrics.reading ? metrics.reading->name : "");
}

static void put_row(FILE *out, const struct report *report, const struct names *names,
		    const struct view *view, const struct view_row *row, const struct label *labels,
		    struct strbuf *field)
{
	bool first = true;

	for (size_t i = 0; report->groups && i < report->groups->key_count; i++) {
		strbuf_reset(field);
		rows_add_group(report, names, row, i, field);
		put_field(out, field, first);
		first = false;
	}
	for (const struct label *l = labels; !report->groups && l->key; l++) {
		if (!l->in_csv)
			continue;
		strbuf_reset(field);
		l->add(report, names, row, field);
		put_field(out, field, first);
		first = false;
	}
	for (uint32_t e = 0; e < report->view->events; e++) {
		const struct view_count *count = &row->counts[e];

		if (!rows_event_shown(report, e))
			continue;
		for (const struct figure *f = figures; f->key; f++) {
			fputc(',', out);
			if (figure_absent(f, count))
				continue;
			fprintf(out, f->unit == FIGURE_COUNT ? "%.0f" : "%.6g",
				f->of(count, view->period_total[e]));
		}
	}
	put_metrics(out, report, view, row);
	fputc('\n', out);
}

static int put_rows(FILE *out, const struct report *report, const struct view *view,
		    const struct label *labels, struct err *err)
{
	struct strbuf field = {0};
	struct names *names;
	int rc = names_new(&names, report->profile, err);

	if (rc)
		return rc;
	put_head(out, report, names, labels);
	for (size_t i = 0; i < view->count; i++) {
		bool below;

		if (rows_pass(report, &view->rows[i], &below))
			put_row(out, report, names, view, &view->rows[i], labels, &field);
	}
	if (strbuf_failed(&field))
		rc = err_nomem(err);
	strbuf_fini(&field);
	names_free(names);
	return rc;
}

int output_report_csv(FILE *out, const struct report *report, struct err *err)
{
	return put_rows(out, report, report->view, row_labels, err);
}

int output_lines_csv(FILE *out, const struct report *report, struct err *err)
{
	return put_rows(out, report, report->lines, line_labels, err);
}
