#include "output/rows.h"

#include "base/json_value.h"
#include "base/text.h"
#include "output/details.h"
#include "output/memory.h"
#include "profile/origin.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/*
 * The JSON of report and annotate, as its man pages document it. Each row is built as one object
 * and written on a line of its own, so that memory does not grow with the report and two reports
 * can be compared by lines.
 */

static json_t *count_value(uint64_t count)
{
	return json_integer((json_int_t)(count > INT64_MAX ? INT64_MAX : count));
}

static json_t *total_value(double total)
{
	return count_value(total < 0x1p63 ? (uint64_t)(total + 0.5) : INT64_MAX);
}

/* json_object_set_new() takes a NULL value for a failure, so one check at the end is enough. */
static void set(json_t *object, int *rc, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value))
		*rc = -1;
}

/* As set(), with a key that may be any bytes. */
static void set_named(json_t *object, int *rc, const char *key, json_t *value)
{
	struct strbuf utf8 = {0};

	text_repair(&utf8, key, strlen(key));
	set(object, rc, strbuf_text(&utf8), value);
	if (strbuf_failed(&utf8))
		*rc = -1;
	strbuf_fini(&utf8);
}

static json_t *figures_value(const struct report *report, const struct names *names,
			     const struct view_count *counts)
{
	json_t *events = json_object();
	int rc = 0;

	for (uint32_t e = 0; e < report->view->events; e++) {
		const struct view_count *count = &counts[e];
		json_t *event;

		if (!rows_event_shown(report, e) || (!count->total_samples && !count->total))
			continue;
		event = json_object();
		for (const struct figure *f = figures; f->key; f++) {
			double value = f->of(count, report->view->period_total[e]);

			if (figure_absent(f, count))
				continue;
			set(event, &rc, f->key,
			    f->unit == FIGURE_COUNT ? count_value((uint64_t)value)
						    : json_real(value));
		}
		set_named(events, &rc, names_event(names, e), event);
	}
	if (rc) {
		json_decref(events);
		return NULL;
	}
	return events;
}

/* {"ipc": {"value": 0.41, "low": 0.39, "high": 0.43, "sure": true}}; an end that is not known is
 * absent. */
static json_t *metrics_value(const struct metric_columns *columns, const struct row_metrics *row,
			     const struct view_row *of)
{
	json_t *metrics = json_object();
	int rc = 0;

	for (size_t i = 0; i < columns->count; i++) {
		const struct metric *metric = columns->measures.plans[columns->chosen[i]].metric;
		const struct estimate *figure = &row->figures[columns->chosen[i]];
		json_t *value;

		if (!figure->known || !metric_columns_due(columns, of, columns->chosen[i]))
			continue;
		value = json_object();
		set(value, &rc, "value", json_real(figure->value));
		set(value, &rc, "low", json_real(figure->low));
		if (isfinite(figure->high))
			set(value, &rc, "high", json_real(figure->high));
		set(value, &rc, "sure", json_boolean(metric_is_sure(metric, figure)));
		set(metrics, &rc, metric->key, value);
	}
	if (rc) {
		json_decref(metrics);
		return NULL;
	}
	return metrics;
}

static void set_metrics(json_t *object, int *rc, const struct report *report,
			const struct view *view, const struct view_row *row)
{
	struct row_metrics metrics = {0};

	if (!report->metrics || !report->metrics->count)
		return;
	metric_columns_row(report->metrics, view, row, &metrics);
	set(object, rc, "metrics", metrics_value(report->metrics, &metrics, row));
	if (metrics.reading)
		set(object, rc, "reading", json_string(metrics.reading->name));
}

/* Takes the object; `*first` puts the comma. */
static int put_object(FILE *out, json_t *object, int failed, bool *first, struct err *err)
{
	if (!object || failed) {
		json_decref(object);
		return err_nomem(err);
	}
	fputs(*first ? "\n  " : ",\n  ", out);
	*first = false;
	/* A failed write shows in ferror(). */
	json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(15));
	json_decref(object);
	return 0;
}

/* What is out of the ordinary. */
static void set_gaps(json_t *object, int *rc, const struct report *report, uint32_t index)
{
	const struct profile_event *event = profile_event(report->profile, index);

	if (profile_event_counted(event, index))
		set(object, rc, "counted_with",
		    json_of_text(profile_event(report->profile, event->group - 1)->name));
	if (event->throttled) {
		set(object, rc, "throttled", count_value(event->throttled));
		set(object, rc, "throttled_ns", count_value(event->throttled_ns));
	}
	if (event->enabled_ns) {
		set(object, rc, "enabled_ns", count_value(event->enabled_ns));
		set(object, rc, "running_ns", count_value(event->running_ns));
	}
}

static int put_events(FILE *out, const struct report *report, const struct names *names,
		      struct err *err)
{
	bool first = true;
	int rc = 0;

	fputs("\"events\": [", out);
	for (uint32_t e = 0; e < report->view->events && !rc; e++) {
		const struct profile_event *event = profile_event(report->profile, e);
		json_t *object;
		int failed = 0;

		if (!rows_event_shown(report, e))
			continue;
		object = json_object();
		set(object, &failed, "name", json_of_text(names_event(names, e)));
		set(object, &failed, "samples", count_value(report->view->samples[e]));
		set(object, &failed, "period_total", count_value(report->view->period_total[e]));
		set(object, &failed, "lost", count_value(event->lost));
		set(object, &failed, "estimated_total", total_value(event->estimated_total));
		set_gaps(object, &failed, report, e);
		rc = put_object(out, object, failed, &first, err);
	}
	fputs("],\n", out);
	return rc;
}

static void put_samples(FILE *out, const struct report *report)
{
	const struct profile_summary *s = profile_summary(report->profile);

	fprintf(out,
		"\"samples\": {\"total\": %llu, \"python\": %llu, \"python_lines\": %llu, "
		"\"lost\": %llu},\n",
		(unsigned long long)s->samples, (unsigned long long)s->python,
		(unsigned long long)s->python_lines, (unsigned long long)s->lost);
}

static int put_function(FILE *out, const struct report *report, const struct names *names,
			const struct view_row *row, bool *first, struct err *err)
{
	const struct profile *profile = report->profile;
	const struct profile_function *f = profile_function(profile, row->function);
	json_t *object = json_object();
	int failed = 0;

	set(object, &failed, "name", json_of_text(profile_text(profile, f->name)));
	set(object, &failed, "qualname",
	    json_of_text(profile_text(profile, f->qualname ? f->qualname : f->name)));
	set(object, &failed, "file", json_of_text(profile_text(profile, f->file)));
	set(object, &failed, "line", json_integer(f->line));
	set(object, &failed, "kind", json_string(frame_kind_name(f->kind)));
	set(object, &failed, "origin",
	    json_string(code_origin_name(code_origin(profile, row->function))));
	set(object, &failed, "events", figures_value(report, names, row->counts));
	set_metrics(object, &failed, report, report->view, row);
	return put_object(out, object, failed, first, err);
}

/* A call is in no line of its own: it has no self time. */
static json_t *call_value(const struct report *report, const struct names *names,
			  const struct view_call *call, uint32_t line)
{
	json_t *object = json_object(), *events = json_object();
	const struct profile *profile = report->profile;
	const struct profile_function *f;
	int failed = 0;

	if (call->function != UINT32_MAX) {
		f = profile_function(profile, call->function);
		set(object, &failed, "function",
		    json_of_text(profile_text(profile, f->qualname ? f->qualname : f->name)));
		set(object, &failed, "file", json_of_text(profile_text(profile, f->file)));
		set(object, &failed, "line", json_integer(line ? line : f->line));
		set(object, &failed, "kind", json_string(frame_kind_name(f->kind)));
	}
	for (uint32_t e = 0; e < report->view->events; e++) {
		const struct view_count *count = &call->counts[e];
		json_t *event;

		if (!rows_event_shown(report, e) || (!count->total_samples && !count->total))
			continue;
		event = json_object();
		set(event, &failed, "total",
		    json_real(figure_share(count->total, report->view->period_total[e])));
		set(event, &failed, "total_samples", count_value(count->total_samples));
		set_named(events, &failed, names_event(names, e), event);
	}
	set(object, &failed, "events", events);
	if (failed) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *calls_value(const struct report *report, const struct names *names,
			   const struct view_call *calls, size_t count, uint32_t line)
{
	json_t *array = json_array();

	for (calls = details_line(calls, count, line, &count); count--; calls++)
		if (json_array_append_new(array,
					  call_value(report, names, calls, calls->other_line))) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *instruction_value(const struct report *report, const struct names *names,
				 const struct view_bytecode *bytecode,
				 const struct view_instruction *row)
{
	json_t *object = json_object();
	struct strbuf argument = {0};
	int failed = 0;

	view_instruction_argument(report->profile, bytecode, row, &argument);
	set(object, &failed, "offset", json_integer(row->as.offset));
	set(object, &failed, "opcode",
	    row->as.name ? json_string(row->as.name) : json_integer(row->as.opcode));
	if (row->as.arg_kind != PY_ARG_NONE) {
		set(object, &failed, "arg", json_integer(row->as.arg));
		set(object, &failed, "argument", json_of_text(strbuf_text(&argument)));
	}
	if (bytecode->variant_count > 1)
		set(object, &failed, "variant", json_integer(row->variant));
	if (row->counts)
		set(object, &failed, "events", figures_value(report, names, row->counts));
	strbuf_fini(&argument);
	if (failed) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *bytecode_value(const struct report *report, const struct names *names,
			      const struct view_bytecode *bytecode, uint32_t line)
{
	json_t *array = json_array();
	size_t count;
	const struct view_instruction *row = view_bytecode_line(bytecode, line, &count);

	for (; count--; row++)
		if (json_array_append_new(array, instruction_value(report, names, bytecode, row))) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static void set_details(json_t *object, int *rc, const struct report *report,
			const struct names *names, const struct details *details, uint32_t line)
{
	if (details->callers)
		set(object, rc, "callers",
		    calls_value(report, names, details->callers, details->caller_count, line));
	if (details->callees)
		set(object, rc, "callees",
		    calls_value(report, names, details->callees, details->callee_count, line));
	if (details->bytecode)
		set(object, rc, "bytecode", bytecode_value(report, names, details->bytecode, line));
}

static int put_line(FILE *out, const struct report *report, const struct names *names,
		    const struct view_row *row, bool *first, struct err *err)
{
	const struct profile *profile = report->profile;
	const struct profile_function *f = profile_function(profile, row->function);
	json_t *object = json_object();
	int failed = 0;

	set(object, &failed, "file", json_of_text(profile_text(profile, f->file)));
	set(object, &failed, "line", json_integer(row->line));
	set(object, &failed, "function",
	    json_of_text(profile_text(profile, f->qualname ? f->qualname : f->name)));
	set(object, &failed, "events", figures_value(report, names, row->counts));
	set_metrics(object, &failed, report, report->lines, row);
	for (size_t i = 0; i < report->detail_count; i++)
		if (report->details[i].function == row->function)
			set_details(object, &failed, report, names, &report->details[i], row->line);
	return put_object(out, object, failed, first, err);
}

static int put_group(FILE *out, const struct report *report, const struct names *names,
		     const struct view_row *row, bool *first, struct err *err)
{
	json_t *object = json_object();
	int failed = 0;

	for (size_t i = 0; i < report->groups->key_count; i++) {
		struct strbuf text = {0};

		rows_add_group(report, names, row, i, &text);
		set(object, &failed, view_key_name(report->groups->keys[i]),
		    json_of_text(strbuf_text(&text)));
		strbuf_fini(&text);
	}
	set(object, &failed, "events", figures_value(report, names, row->counts));
	set_metrics(object, &failed, report, report->view, row);
	return put_object(out, object, failed, first, err);
}

typedef int put_row(FILE *out, const struct report *report, const struct names *names,
		    const struct view_row *row, bool *first, struct err *err);

/* `view` NULL: an empty array. */
static int put_array(FILE *out, const char *key, const struct report *report,
		     const struct view *view, const struct names *names, put_row *put,
		     struct err *err)
{
	bool first = true;
	int rc = 0;

	fprintf(out, "\"%s\": [", key);
	for (size_t i = 0; view && i < view->count && !rc; i++) {
		const struct view_row *row = &view->rows[i];
		bool below;

		if (rows_pass(report, row, &below))
			rc = put(out, report, names, row, &first, err);
	}
	fputs("]", out);
	return rc;
}

int output_json(FILE *out, const struct report *report, struct err *err)
{
	const struct view *functions = report->groups ? NULL : report->view;
	struct names *names;
	int rc = names_new(&names, report->profile, err);

	if (rc)
		return rc;
	fputs("{", out);
	rc = put_events(out, report, names, err);
	put_samples(out, report);
	if (report->groups && !rc) {
		rc = put_array(out, "groups", report, report->view, names, put_group, err);
		fputs(",\n", out);
	}
	if (!rc)
		rc = put_array(out, "functions", report, functions, names, put_function, err);
	fputs(",\n", out);
	if (!rc)
		rc = put_array(out, "lines", report, report->lines, names, put_line, err);
	fputs("}\n", out);
	names_free(names);
	return rc;
}

/* The figures of page faults or of accesses; what is not known is absent. */
static json_t *memory_value(const struct memory_report *report, const struct memuse_view *view,
			    const struct memuse_row *row)
{
	json_t *object = json_object();
	int rc = 0;

	for (const struct memory_figure *f = memory_figures; f->key; f++) {
		double value;

		if (!memory_figure_shown(f, report, view))
			continue;
		value = f->of(f, row);
		if (!isfinite(value))
			continue;
		set(object, &rc, f->key,
		    f->unit == MEMORY_BYTES || f->unit == MEMORY_COUNT ? total_value(value)
								       : json_real(value));
	}
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

int output_memory_json(FILE *out, const struct memory_report *report, struct err *err)
{
	struct memuse_view *view;
	bool first = true;
	int rc = memory_open(&view, report, err);

	if (rc)
		return rc;
	fprintf(out, "{\"faults\": %llu, \"grown\": %llu, \"accesses\": %llu,\n\"rows\": [",
		(unsigned long long)view->whole.faults, (unsigned long long)view->whole.grown,
		(unsigned long long)view->whole.accesses);
	for (size_t i = 0; i < view->count && !rc; i++) {
		const struct memuse_row *row = &view->rows[i];
		const struct profile_function *f = profile_function(report->profile, row->function);
		bool lines = report->function != UINT32_MAX;
		json_t *object = json_object();
		int failed = 0;

		set(object, &failed, "file", json_of_text(profile_text(report->profile, f->file)));
		set(object, &failed, "line", json_integer(lines ? row->line : f->line));
		set(object, &failed, "function",
		    json_of_text(
			    profile_text(report->profile, f->qualname ? f->qualname : f->name)));
		set(object, &failed, "kind", json_string(frame_kind_name(f->kind)));
		set(object, &failed, "memory", memory_value(report, view, row));
		rc = put_object(out, object, failed, &first, err);
	}
	fputs("]}\n", out);
	memuse_view_free(view);
	return rc;
}
