#include "output/counts.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

#define VALUE_WIDTH 18
#define NAME_WIDTH 24
#define ROW_WIDTH 14 /* or that of the event's name */

/* "1,234,567", or "1,234.56" ms of a clock. */
static void value_text(const struct event_spec *spec, double value, char *buf, size_t size)
{
	char whole[32];

	if (!event_is_clock(&spec->attr)) {
		text_count(buf, size, (uint64_t)(value + 0.5));
		return;
	}
	text_count(whole, sizeof(whole), (uint64_t)(value / 1e6));
	snprintf(buf, size, "%s.%02d", whole, (int)(fmod(value / 1e6, 1) * 100));
}

/* Names are the user's and sysfs's. */
static void put_safe(FILE *out, const char *text, int width)
{
	struct strbuf safe = {0};

	text_escape(&safe, text, strlen(text));
	fprintf(out, "%-*s", width, strbuf_text(&safe));
	strbuf_fini(&safe);
}

/* What a second of CPU time had of it: "12.3 M/s". */
static void rate_text(double rate, char *buf, size_t size)
{
	static const char units[] = " kMG";
	int unit = 0;

	while (rate >= 1000 && unit < 3) {
		rate /= 1000;
		unit++;
	}
	if (unit)
		snprintf(buf, size, "%.3g %c/s", rate, units[unit]);
	else
		snprintf(buf, size, "%.3g /s", rate);
}

/* ns of CPU time, where it was counted; 0 */
static double time_of(const struct counts *counts)
{
	for (size_t i = 0; i < counts->events->len; i++)
		if (event_is_clock(&counts->events->items[i].attr))
			return counts_mean(counts, i).value;
	return 0;
}

/* The part of the time in which it was counted, of all runs: 1 where the counter was not shared. */
static double running(const struct counts *counts, size_t event)
{
	double sum = 0, scaled = 0;

	for (size_t i = 0; i < counts->runs.len; i++) {
		const struct recorder_count *count = &counts->runs.items[i].counts[event];

		sum += (double)count->running_ns;
		scaled += (double)count->running_ns * counts_scale(count);
	}
	return scaled > 0 ? sum / scaled : 0;
}

static void put_error(FILE *out, const struct estimate *estimate)
{
	if (estimate->known && estimate->value > 0)
		fprintf(out, "  ±%.1f%%", 50 * (estimate->high - estimate->low) / estimate->value);
}

static void put_event(FILE *out, const struct counts *counts, size_t event, double time)
{
	const struct event_spec *spec = &counts->events->items[event];
	struct estimate estimate = counts_mean(counts, event);
	double part = running(counts, event);
	char value[48], rate[32] = "";

	if (part <= 0) {
		fprintf(out, "%*s  ", VALUE_WIDTH, "not counted");
		put_safe(out, spec->name, 0);
		fprintf(out, "  (it never got a counter)\n");
		return;
	}
	value_text(spec, estimate.value, value, sizeof(value));
	if (event_is_clock(&spec->attr))
		snprintf(rate, sizeof(rate), "ms");
	else if (time > 0)
		rate_text(estimate.value / time * 1e9, rate, sizeof(rate));
	fprintf(out, "%*s  ", VALUE_WIDTH, value);
	put_safe(out, spec->name, NAME_WIDTH);
	fprintf(out, "  %10s", rate);
	put_error(out, &estimate);
	if (part < 1)
		fprintf(out, "  (counted %.0f%% of the time, scaled)", 100 * part);
	putc('\n', out);
}

static void put_metrics(FILE *out, const struct counts *counts)
{
	struct strbuf line = {0};

	for (size_t i = 0; i < counts->plan_count; i++) {
		const struct metric *metric = counts->plans[i].metric;
		struct estimate estimate = counts_mean_metric(counts, i);

		if (isnan(estimate.value))
			continue;
		strbuf_printf(&line, "%s%s ", line.len ? "   " : "  ", metric->heading);
		metric_text(metric, estimate.value, &line);
		if (estimate.known) {
			strbuf_str(&line, " ±");
			metric_error_text(metric, &estimate, &line);
		}
	}
	if (line.len)
		fprintf(out, "\n%s\n", strbuf_text(&line));
	strbuf_fini(&line);
}

static void put_times(FILE *out, const struct counts *counts)
{
	double elapsed = 0, square = 0, user = 0, sys = 0, n = (double)counts->runs.len;
	struct estimate estimate;

	for (size_t i = 0; i < counts->runs.len; i++) {
		const struct counts_run *run = &counts->runs.items[i];

		elapsed += run->elapsed;
		square += run->elapsed * run->elapsed;
		user += run->user;
		sys += run->system;
	}
	estimate = estimate_mean(elapsed, square, counts->runs.len);
	fprintf(out, "\n  %.3f s elapsed", elapsed / n);
	put_error(out, &estimate);
	if (user >= 0)
		fprintf(out, "   %.3f s user   %.3f s system", user / n, sys / n);
	putc('\n', out);
}

static int row_width(const struct event_spec *spec)
{
	struct strbuf safe = {0};
	int width;

	text_escape(&safe, spec->name, strlen(spec->name));
	width = safe.len > ROW_WIDTH ? (int)safe.len : ROW_WIDTH;
	strbuf_fini(&safe);
	return width;
}

static void put_headings(FILE *out, const struct counts *counts, const char *first, int width)
{
	fprintf(out, "%*s", width, first);
	for (size_t i = 0; i < counts->events->len; i++) {
		const struct event_spec *spec = &counts->events->items[i];
		struct strbuf safe = {0};

		text_escape(&safe, spec->name, strlen(spec->name));
		fprintf(out, "  %*s", row_width(spec), strbuf_text(&safe));
		strbuf_fini(&safe);
	}
	for (size_t i = 0; i < counts->plan_count; i++)
		fprintf(out, "  %7s", counts->plans[i].metric->heading);
}

static void put_values(FILE *out, const struct counts *counts, const struct counts_row *row)
{
	for (size_t i = 0; i < counts->events->len; i++) {
		const struct event_spec *spec = &counts->events->items[i];
		char value[48];

		value_text(spec, row->values[i], value, sizeof(value));
		fprintf(out, "  %*s", row_width(spec), row->values[i] > 0 ? value : "");
	}
	for (size_t i = 0; i < counts->plan_count; i++) {
		struct strbuf text = {0};

		if (!isnan(row->metrics[i]))
			metric_text(counts->plans[i].metric, row->metrics[i], &text);
		fprintf(out, "  %7s", strbuf_text(&text));
		strbuf_fini(&text);
	}
}

static void put_rows(FILE *out, const struct counts *counts, const struct counts_row *rows,
		     size_t len, const char *heading)
{
	if (!len)
		return;
	putc('\n', out);
	put_headings(out, counts, "", 0);
	fprintf(out, "  %s\n", heading);
	for (size_t i = 0; i < len; i++) {
		put_values(out, counts, &rows[i]);
		fprintf(out, "  ");
		put_safe(out, rows[i].label, 0);
		putc('\n', out);
	}
}

void output_counts_interval(FILE *out, const struct counts *counts, const struct counts_row *row,
			    bool first)
{
	if (first) {
		put_headings(out, counts, "s", 9);
		putc('\n', out);
	}
	fprintf(out, "%9.3f", row->end);
	put_values(out, counts, row);
	putc('\n', out);
	fflush(out);
}

void output_counts_text(FILE *out, const struct counts *counts)
{
	double time = time_of(counts);

	putc('\n', out);
	put_safe(out, counts->title, 0);
	if (counts->runs.len > 1)
		fprintf(out, "   %zu runs", counts->runs.len);
	fprintf(out, "\n\n");
	for (size_t i = 0; i < counts->events->len; i++)
		put_event(out, counts, i, time);
	put_metrics(out, counts);
	put_rows(out, counts, counts->threads.items, counts->threads.len, "thread");
	put_rows(out, counts, counts->functions.items, counts->functions.len,
		 "innermost Python function");
	put_times(out, counts);
}
