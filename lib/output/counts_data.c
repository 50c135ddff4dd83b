#include "output/counts.h"

#include "base/json_value.h"
#include "base/text.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* What `pyperf stat` tells other programs. */

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static void put_estimate(json_t *object, const struct estimate *estimate)
{
	json_object_set_new(object, "value", number(estimate->value));
	if (!estimate->known)
		return;
	json_object_set_new(object, "low", number(estimate->low));
	json_object_set_new(object, "high", number(estimate->high));
}

static json_t *event_value(const struct counts *counts, size_t event)
{
	json_t *object = json_object(), *runs = json_array();
	struct estimate estimate = counts_mean(counts, event);
	bool scaled = false, counted = false;

	for (size_t i = 0; i < counts->runs.len; i++) {
		const struct recorder_count *count = &counts->runs.items[i].counts[event];
		double scale = counts_scale(count);

		scaled |= scale > 1;
		counted |= scale > 0;
		json_array_append_new(runs, json_pack("{s:I, s:I, s:I}", "count",
						      (json_int_t)count->value, "enabled_ns",
						      (json_int_t)count->enabled_ns, "running_ns",
						      (json_int_t)count->running_ns));
	}
	json_object_set_new(object, "name", json_of_text(counts->events->items[event].name));
	put_estimate(object, &estimate);
	json_object_set_new(object, "counted", json_boolean(counted));
	json_object_set_new(object, "scaled", json_boolean(scaled));
	json_object_set_new(object, "runs", runs);
	return object;
}

static json_t *metric_value(const struct counts *counts, size_t plan)
{
	const struct metric *metric = counts->plans[plan].metric;
	struct estimate estimate = counts_mean_metric(counts, plan);
	json_t *object = json_object();

	json_object_set_new(object, "key", json_string(metric->key));
	json_object_set_new(object, "summary", json_string(metric->summary));
	json_object_set_new(object, "unit", json_string(metric->unit));
	put_estimate(object, &estimate);
	return object;
}

static json_t *row_value(const struct counts *counts, const struct counts_row *row)
{
	json_t *object = json_object(), *events = json_object(), *measured = json_object();

	if (row->label)
		json_object_set_new(object, "name", json_of_text(row->label));
	else
		json_object_set_new(object, "end_s", number(row->end));
	for (size_t i = 0; i < counts->events->len; i++)
		json_object_set_new(events, counts->events->items[i].name, number(row->values[i]));
	for (size_t i = 0; i < counts->plan_count; i++)
		json_object_set_new(measured, counts->plans[i].metric->key,
				    number(row->metrics[i]));
	json_object_set_new(object, "events", events);
	json_object_set_new(object, "metrics", measured);
	return object;
}

static json_t *rows_value(const struct counts *counts, const struct counts_row *rows, size_t len)
{
	json_t *array = json_array();

	for (size_t i = 0; i < len; i++)
		json_array_append_new(array, row_value(counts, &rows[i]));
	return array;
}

int output_counts_json(FILE *out, const struct counts *counts, struct err *err)
{
	json_t *root = json_object(), *events = json_array(), *measured = json_array(),
	       *times = json_array();
	int ret;

	for (size_t i = 0; i < counts->events->len; i++)
		json_array_append_new(events, event_value(counts, i));
	for (size_t i = 0; i < counts->plan_count; i++)
		json_array_append_new(measured, metric_value(counts, i));
	for (size_t i = 0; i < counts->runs.len; i++) {
		const struct counts_run *run = &counts->runs.items[i];
		json_t *time = json_pack("{s:f}", "elapsed_s", run->elapsed);

		if (run->user >= 0) {
			json_object_set_new(time, "user_s", json_real(run->user));
			json_object_set_new(time, "system_s", json_real(run->system));
		}
		json_array_append_new(times, time);
	}
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "target", json_of_text(counts->title));
	json_object_set_new(root, "events", events);
	json_object_set_new(root, "metrics", measured);
	json_object_set_new(root, "runs", times);
	json_object_set_new(root, "intervals",
			    rows_value(counts, counts->intervals.items, counts->intervals.len));
	json_object_set_new(root, "threads",
			    rows_value(counts, counts->threads.items, counts->threads.len));
	json_object_set_new(root, "functions",
			    rows_value(counts, counts->functions.items, counts->functions.len));
	ret = json_dumpf(root, out, JSON_INDENT(1));
	json_decref(root);
	fputc('\n', out);
	return ret < 0 && !ferror(out) ? err_nomem(err) : 0;
}

/* RFC 4180: quotes are doubled. */
static void put_field(FILE *out, const char *text)
{
	struct strbuf utf8 = {0};

	text_repair(&utf8, text, strlen(text));
	putc('"', out);
	for (const char *at = strbuf_text(&utf8); *at; at++) {
		if (*at == '"')
			putc('"', out);
		putc(*at, out);
	}
	putc('"', out);
	strbuf_fini(&utf8);
}

static void put_number(FILE *out, double value)
{
	if (isfinite(value))
		fprintf(out, "%.10g", value);
}

static void put_row(FILE *out, const char *scope, const char *label, const char *name,
		    const struct estimate *estimate)
{
	fprintf(out, "%s,", scope);
	put_field(out, label);
	putc(',', out);
	put_field(out, name);
	putc(',', out);
	put_number(out, estimate->value);
	putc(',', out);
	put_number(out, estimate->known ? estimate->low : NAN);
	putc(',', out);
	put_number(out, estimate->known ? estimate->high : NAN);
	putc('\n', out);
}

static void put_rows(FILE *out, const struct counts *counts, const struct counts_row *rows,
		     size_t len, const char *scope)
{
	for (size_t r = 0; r < len; r++) {
		char end[32];
		const char *label = rows[r].label ? rows[r].label : end;

		snprintf(end, sizeof(end), "%.3f", rows[r].end);
		for (size_t i = 0; i < counts->events->len; i++) {
			struct estimate value = {.value = rows[r].values[i]};

			put_row(out, scope, label, counts->events->items[i].name, &value);
		}
		for (size_t i = 0; i < counts->plan_count; i++) {
			struct estimate value = {.value = rows[r].metrics[i]};

			put_row(out, scope, label, counts->plans[i].metric->key, &value);
		}
	}
}

void output_counts_csv(FILE *out, const struct counts *counts)
{
	fprintf(out, "scope,label,name,value,low,high\n");
	for (size_t i = 0; i < counts->events->len; i++) {
		struct estimate value = counts_mean(counts, i);

		put_row(out, "total", counts->title, counts->events->items[i].name, &value);
	}
	for (size_t i = 0; i < counts->plan_count; i++) {
		struct estimate value = counts_mean_metric(counts, i);

		put_row(out, "total", counts->title, counts->plans[i].metric->key, &value);
	}
	put_rows(out, counts, counts->intervals.items, counts->intervals.len, "interval");
	put_rows(out, counts, counts->threads.items, counts->threads.len, "thread");
	put_rows(out, counts, counts->functions.items, counts->functions.len, "function");
}
