#include "output/top.h"

#include "base/json_value.h"
#include "output/columns.h"
#include "output/figure.h"
#include "output/names.h"

#include <jansson.h>
#include <string.h>

/* One refresh of `pyperf top --json`: one object on one line. A value that jansson refuses shows at
 * the end, for json_object_set_new() then fails. */

struct writing {
	const struct top *top;
	struct profile *profile;
	struct names *names;
	struct metric_columns metrics;
	size_t most;
	int failed;
};

static void set(struct writing *w, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value))
		w->failed = 1;
}

static void add(struct writing *w, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value))
		w->failed = 1;
}

static json_t *events_value(struct writing *w, const struct view *view, const struct view_row *row)
{
	json_t *events = json_object();

	for (uint32_t e = 0; e < view->events; e++) {
		const struct view_count *count = &row->counts[e];
		json_t *event;

		if (!count->total_samples && !count->total)
			continue;
		event = json_object();
		for (const struct figure *f = figures; f->key; f++) {
			double value = f->of(count, view->period_total[e]);

			if (!figure_absent(f, count) &&
			    !(f->when == FIGURE_SPLIT && profile_summary(w->profile)->folded))
				set(w, event, f->key,
				    f->unit == FIGURE_COUNT ? json_integer((json_int_t)value)
							    : json_real(value));
		}
		set(w, events, names_event(w->names, e), event);
	}
	return events;
}

static void set_metrics(struct writing *w, json_t *object, const struct view *view,
			const struct view_row *row)
{
	struct row_metrics found = {0};
	json_t *metrics;

	if (!w->metrics.count)
		return;
	metrics = json_object();
	metric_columns_row(&w->metrics, view, row, &found);
	for (size_t i = 0; i < w->metrics.count; i++) {
		size_t plan = w->metrics.chosen[i];
		const struct metric *metric = w->metrics.measures.plans[plan].metric;

		if (metric_is_sure(metric, &found.figures[plan]))
			set(w, metrics, metric->key, json_real(found.figures[plan].value));
	}
	set(w, object, "metrics", metrics);
}

static json_t *rows_value(struct writing *w, const struct view *view, bool lines)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < view->count && !(w->most && i >= w->most); i++) {
		const struct view_row *row = &view->rows[i];
		const struct profile_function *f = profile_function(w->profile, row->function);
		json_t *object = json_object();

		set(w, object, lines ? "function" : "name",
		    json_of_text(profile_text(w->profile, lines ? f->qualname : f->name)));
		if (!lines)
			set(w, object, "qualname",
			    json_of_text(profile_text(w->profile, f->qualname)));
		set(w, object, "file", json_of_text(profile_text(w->profile, f->file)));
		set(w, object, "line", json_integer(lines ? row->line : f->line));
		if (!lines)
			set(w, object, "kind", json_string(frame_kind_name(f->kind)));
		set(w, object, "events", events_value(w, view, row));
		set_metrics(w, object, view, row);
		add(w, rows, object);
	}
	return rows;
}

static json_t *share_value(const struct holder_share *share)
{
	return share->known ? json_real(share->recent) : json_null();
}

static json_t *threads_value(struct writing *w)
{
	const struct thread_table *threads = w->top->threads;
	json_t *rows = json_array();

	for (size_t i = 0; i < threads->rows.len && !(w->most && i >= w->most); i++) {
		const struct thread_row *row = &threads->rows.items[i];
		struct holder_share share = holders_thread(w->top->holders, row->pid, row->tid);
		json_t *object = json_object();
		char state[] = {row->state, '\0'};
		uint32_t line, function = live_function_of(w->top->live, (uint32_t)row->tid, &line);

		set(w, object, "pid", json_integer(row->pid));
		set(w, object, "tid", json_integer(row->tid));
		set(w, object, "name", json_of_text(row->comm));
		set(w, object, "state", json_string(state));
		set(w, object, "cpu", json_real(row->cpu));
		set(w, object, "gil", share_value(&share));
		if (function != UINT32_MAX) {
			const struct profile_function *f = profile_function(w->profile, function);

			set(w, object, "function",
			    json_of_text(profile_text(w->profile, f->qualname)));
			set(w, object, "file", json_of_text(profile_text(w->profile, f->file)));
			set(w, object, "line", json_integer(line));
		}
		add(w, rows, object);
	}
	return rows;
}

static void set_head(struct writing *w, json_t *object)
{
	const struct top *top = w->top;
	size_t many;
	pid_t pid = holders_busiest(top->holders, &many);
	struct holder_share share = holders_process(top->holders, pid);

	set(w, object, "target", json_of_text(top->title));
	set(w, object, "seconds", json_real((double)(top->now - top->began) / 1e9));
	set(w, object, "window",
	    json_real((double)(top->now - live_since(top->live, false)) / 1e9));
	set(w, object, "samples", json_integer((json_int_t)live_samples(top->live, false)));
	set(w, object, "samples_all", json_integer((json_int_t)live_samples(top->live, true)));
	set(w, object, "lost", json_integer((json_int_t)top->result->lost));
	set(w, object, "engine", json_string(top->engine));
	set(w, object, "cpu", json_real(top->threads->cpu));
	set(w, object, "gil", share_value(&share));
	set(w, object, "gil_pid", many ? json_integer(pid) : json_null());
	set(w, object, "active_threads", json_integer((json_int_t)top->threads->active));
	set(w, object, "ended", json_boolean(top->ended));
}

int output_top_json(FILE *out, const struct top *top, size_t most, struct err *err)
{
	struct writing w = {.top = top, .profile = live_profile(top->live, false), .most = most};
	struct view *functions = NULL, *lines = NULL;
	json_t *object = json_object();
	int ret = names_new(&w.names, w.profile, err);

	if (!ret)
		ret = metric_columns_init(&w.metrics, w.profile, 0, NULL, err);
	if (!ret)
		ret = view_functions(&functions, w.profile, NULL, VIEW_BY_SELF, 0, err);
	if (!ret)
		ret = view_lines(&lines, w.profile, NULL, UINT32_MAX, 0, err);
	if (!ret) {
		set_head(&w, object);
		set(&w, object, "functions", rows_value(&w, functions, false));
		set(&w, object, "lines", rows_value(&w, lines, true));
		set(&w, object, "threads", threads_value(&w));
		ret = w.failed ? err_nomem(err) : 0;
	}
	if (!ret) {
		json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(15));
		fputc('\n', out);
	}
	json_decref(object);
	view_free(functions);
	view_free(lines);
	names_free(w.names);
	return ret;
}
