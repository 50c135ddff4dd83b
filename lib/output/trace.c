#include "output/trace.h"

#include "output/json_text.h"
#include "output/names.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * Samples of a thread become slices: a function is open from the first sample that has it at this
 * place of the stack to the first that has not, or until so much time without a sample has passed
 * that the thread was not running. The samples themselves follow, with their stacks, as the format
 * has them; viewers show one or the other. Rates of the events are counters of their process.
 */

/* A sample speaks for the time up to the next one, but for no more than so many intervals. */
#define INTERVALS_MAX 3

static void write_name(struct strbuf *out, uint32_t function, const void *ctx)
{
	const struct trace *trace = ((const struct trace *const *)ctx)[0];
	const struct names *names = ((const struct names *const *)ctx)[1];
	struct strbuf name = {0}, place = {0};

	strbuf_str(&name, export_function_name(trace->profile, function));
	names_add_place(names, function, &place);
	if (place.len)
		strbuf_printf(&name, " (%s)", place.buf);
	json_add_text(out, strbuf_text(&name));
	if (strbuf_failed(&name) || strbuf_failed(&place))
		out->failed = 1;
	strbuf_fini(&name);
	strbuf_fini(&place);
}

static void write_event(struct strbuf *out, uint32_t event, const void *ctx)
{
	json_add_text(out, profile_event(ctx, event)->name);
}

/* The event's interval where it is one of time, else the mean distance of a thread's samples. */
static uint64_t interval_of(const struct trace *trace)
{
	const struct profile_event *event = profile_event(trace->profile, trace->options->event);
	const struct profile_summary *summary = profile_summary(trace->profile);
	uint64_t span = summary->last_time - summary->first_time;
	uint32_t threads = summary->threads ? summary->threads : 1;

	if (event->frequency > 0)
		return (uint64_t)(1e9 / event->frequency);
	if (export_event_is_time(trace->profile, trace->options->event) && event->period)
		return event->period;
	return event->samples ? span / event->samples * threads : 0;
}

int trace_init(struct trace *trace, FILE *out, const struct export_options *options,
	       struct err *err)
{
	struct names *names = NULL;
	const void *ctx[2] = {trace, NULL};
	int rc;

	*trace = (struct trace){.out = out, .options = options, .profile = options->profile};
	rc = samples_walk_init(&trace->walk, options->samples, options->profile, options->filter,
			       export_events(options), err);
	if (!rc)
		rc = counters_init(&trace->counters, &trace->walk, err);
	if (!rc)
		rc = folds_init(&trace->folds, trace->profile, false, err);
	if (!rc)
		rc = names_new(&names, trace->profile, err);
	ctx[1] = names;
	if (!rc)
		rc = texts_init(&trace->names, profile_function_count(trace->profile), write_name,
				ctx, err);
	names_free(names);
	if (!rc)
		rc = texts_init(&trace->events, profile_event_count(trace->profile), write_event,
				trace->profile, err);
	trace->shift = -(int64_t)trace->counters.start;
	trace->interval = interval_of(trace);
	return rc;
}

void trace_fini(struct trace *trace)
{
	strbuf_fini(&trace->text);
	texts_fini(&trace->names);
	texts_fini(&trace->events);
	folds_fini(&trace->folds);
	counters_fini(&trace->counters);
	samples_walk_fini(&trace->walk);
}

static uint32_t tid_of(const struct trace *trace, uint32_t thread)
{
	return trace->tids ? trace->tids[thread] : profile_thread(trace->profile, thread)->tid;
}

/* "ts": microseconds with a fraction. */
static void add_time(struct trace *trace, uint64_t time)
{
	json_add_scaled(&trace->text, (int64_t)(time + (uint64_t)trace->shift), 3);
}

static const char *kind_of(const struct trace *trace, uint32_t fold)
{
	return frame_kind_name(
		profile_function(trace->profile, folds_function(&trace->folds, fold))->kind);
}

static void put_name(struct trace *trace, const char *what, uint32_t thread, const char *comm,
		     bool *comma)
{
	struct strbuf name = {0};

	strbuf_printf(&name, trace->tids ? "%s (sampled)" : "%s", comm);
	strbuf_printf(&trace->text,
		      "%s{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
		      ",\"args\":{\"name\":",
		      *comma ? ",\n" : "\n", what, profile_thread(trace->profile, thread)->pid,
		      tid_of(trace, thread));
	json_add_text(&trace->text, strbuf_text(&name));
	strbuf_str(&trace->text, "}}");
	*comma = true;
	if (strbuf_failed(&name))
		trace->text.failed = 1;
	strbuf_fini(&name);
}

/* A process is called as the first of its threads that is its main one, or the first at all. */
static int put_names(struct trace *trace, const struct samples_by_thread *by, bool *comma,
		     struct err *err)
{
	struct map named = {0};
	int rc = 0;

	for (int main_only = 1; main_only >= 0 && !rc; main_only--) {
		for (uint32_t t = 0; t < profile_thread_count(trace->profile) && !rc; t++) {
			const struct profile_thread *thread = profile_thread(trace->profile, t);
			bool added;

			if (by->starts[t] == by->starts[t + 1] ||
			    (main_only && thread->pid != thread->tid) ||
			    (trace->is_named && trace->is_named(thread->pid, trace->ctx)))
				continue;
			if (!map_put(&named, thread->pid, &added))
				rc = err_nomem(err);
			else if (added)
				put_name(trace, "process_name", t,
					 profile_text(trace->profile, thread->comm), comma);
		}
	}
	map_fini(&named);
	for (uint32_t t = 0; t < profile_thread_count(trace->profile) && !rc; t++)
		if (by->starts[t] < by->starts[t + 1])
			put_name(trace, "thread_name", t,
				 profile_text(trace->profile,
					      profile_thread(trace->profile, t)->comm),
				 comma);
	return rc;
}

/* The open slices of a thread, root first. */
struct open_slice {
	uint32_t fold;
	uint64_t since;
};

struct slices {
	VEC_OF(struct open_slice)
};

static void put_slice(struct trace *trace, uint32_t thread, const struct open_slice *slice,
		      uint64_t until, bool *comma)
{
	struct strbuf *text = &trace->text;

	if (until - slice->since < trace->options->min_duration)
		return;
	strbuf_str(text, *comma ? ",\n{\"ph\":\"X\",\"name\":" : "\n{\"ph\":\"X\",\"name\":");
	*comma = true;
	texts_add(text, &trace->names, folds_function(&trace->folds, slice->fold));
	strbuf_str(text, ",\"cat\":\"");
	strbuf_str(text, kind_of(trace, slice->fold));
	strbuf_str(text, "\",\"pid\":");
	json_add_u64(text, profile_thread(trace->profile, thread)->pid);
	strbuf_str(text, ",\"tid\":");
	json_add_u64(text, tid_of(trace, thread));
	strbuf_str(text, ",\"ts\":");
	add_time(trace, slice->since);
	strbuf_str(text, ",\"dur\":");
	json_add_scaled(text, (int64_t)(until - slice->since), 3);
	strbuf_char(text, '}');
	json_flush_rows(trace->out, text);
}

/* Closes all from `depth` on, innermost first. */
static void close_slices(struct trace *trace, uint32_t thread, struct slices *open, size_t depth,
			 uint64_t until, bool *comma)
{
	while (open->len > depth)
		put_slice(trace, thread, &open->items[--open->len], until, comma);
}

static int put_slices(struct trace *trace, const struct samples_by_thread *by, uint32_t thread,
		      struct slices *open, struct fold_path *path, bool *comma, struct err *err)
{
	uint64_t last = 0, most = trace->interval * INTERVALS_MAX;

	open->len = 0;
	for (uint32_t at = by->starts[thread]; at < by->starts[thread + 1]; at++) {
		const struct sample *sample = &by->all[by->order[at]];
		size_t same = 0;

		if (sample->event != trace->options->event)
			continue;
		if (!folds_path(&trace->folds, trace->folds.of_stack[sample->stack], path))
			return err_nomem(err);
		if (open->len && sample->time - last > most)
			close_slices(trace, thread, open, 0, last + trace->interval, comma);
		while (same < open->len && same < path->len &&
		       open->items[same].fold == path->items[same])
			same++;
		close_slices(trace, thread, open, same, sample->time, comma);
		for (; same < path->len; same++) {
			struct open_slice *slice = vec_push(open);

			if (!slice)
				return err_nomem(err);
			*slice = (struct open_slice){path->items[same], sample->time};
		}
		last = sample->time;
	}
	close_slices(trace, thread, open, 0, last + trace->interval, comma);
	return 0;
}

/* Events a second, by process. */
static void put_counters(struct trace *trace, bool *comma)
{
	const struct counters *c = &trace->counters;
	struct strbuf *text = &trace->text;

	for (size_t i = 0; i < c->rows.len; i++) {
		const struct counter *row = &c->rows.items[i];
		struct strbuf name = {0}, label = {0};

		strbuf_printf(&name, "%s per second",
			      profile_event(trace->profile, row->event)->name);
		json_add_text(&label, strbuf_text(&name));
		for (size_t s = 0; s <= c->slices; s++) {
			double rate = s < c->slices ? (double)row->sums[s] * 1e9 / (double)c->slice
						    : 0;

			strbuf_str(text, *comma ? ",\n{\"ph\":\"C\",\"name\":"
						: "\n{\"ph\":\"C\",\"name\":");
			*comma = true;
			strbuf_str(text, strbuf_text(&label));
			strbuf_printf(text, ",\"pid\":%" PRIu32 ",\"ts\":", row->pid);
			add_time(trace, c->start + s * c->slice);
			strbuf_printf(text, ",\"args\":{\"value\":%.0f}}", rate);
			json_flush_rows(trace->out, text);
		}
		if (strbuf_failed(&name) || strbuf_failed(&label))
			text->failed = 1;
		strbuf_fini(&name);
		strbuf_fini(&label);
	}
}

int trace_put_events(struct trace *trace, bool comma, struct err *err)
{
	struct samples_by_thread by;
	struct fold_path path = {0};
	struct slices open = {0};
	int rc = samples_by_thread(&by, &trace->walk, err);

	if (!rc)
		rc = put_names(trace, &by, &comma, err);
	for (uint32_t t = 0; t < profile_thread_count(trace->profile) && !rc; t++)
		rc = put_slices(trace, &by, t, &open, &path, &comma, err);
	if (!rc)
		put_counters(trace, &comma);
	json_flush(trace->out, &trace->text);
	if (!rc && strbuf_failed(&trace->text))
		rc = err_nomem(err);
	vec_fini(&open);
	vec_fini(&path);
	samples_by_thread_fini(&by);
	return rc;
}

/* Names of our stack frames are unlike the numbers that other tools use. */
void trace_put_frames(struct trace *trace, bool comma)
{
	struct strbuf *text = &trace->text;

	for (uint32_t i = 1; i < trace->folds.tree.len; i++) {
		const struct fold *fold = &trace->folds.tree.items[i];

		strbuf_str(text, comma ? ",\n\"s" : "\n\"s");
		comma = true;
		json_add_u64(text, i);
		strbuf_str(text, "\":{\"name\":");
		texts_add(text, &trace->names, folds_function(&trace->folds, i));
		strbuf_printf(text, ",\"category\":\"%s\"", kind_of(trace, i));
		if (fold->parent) {
			strbuf_str(text, ",\"parent\":\"s");
			json_add_u64(text, fold->parent);
			strbuf_char(text, '"');
		}
		strbuf_char(text, '}');
		json_flush_rows(trace->out, text);
	}
	json_flush(trace->out, text);
}

void trace_put_samples(struct trace *trace, bool comma)
{
	struct strbuf *text = &trace->text;
	const struct sample *sample;

	samples_walk_rewind(&trace->walk);
	while ((sample = samples_walk_next(&trace->walk))) {
		uint32_t fold = trace->folds.of_stack[sample->stack];

		strbuf_str(text, comma ? ",\n{\"tid\":" : "\n{\"tid\":");
		comma = true;
		json_add_u64(text, tid_of(trace, sample->thread));
		strbuf_str(text, ",\"ts\":");
		add_time(trace, sample->time);
		if (sample->cpu != UINT32_MAX) {
			strbuf_str(text, ",\"cpu\":");
			json_add_u64(text, sample->cpu);
		}
		strbuf_str(text, ",\"name\":");
		texts_add(text, &trace->events, sample->event);
		if (fold) {
			strbuf_str(text, ",\"sf\":\"s");
			json_add_u64(text, fold);
			strbuf_char(text, '"');
		}
		strbuf_str(text, ",\"weight\":");
		json_add_u64(text, trace->options->by_period ? sample->period : 1);
		strbuf_char(text, '}');
		json_flush_rows(trace->out, text);
	}
	json_flush(trace->out, text);
}

static int put_alone(struct trace *trace, struct err *err)
{
	int64_t base;
	int rc;

	fputs("{\"displayTimeUnit\":\"ms\",\n", trace->out);
	if (export_wall_time(trace->options, trace->counters.start, &base))
		fprintf(trace->out, "\"baseTimeNanoseconds\":%" PRId64 ",\n", base);
	fputs("\"traceEvents\":[", trace->out);
	rc = trace_put_events(trace, false, err);
	fputs("],\n\"stackFrames\":{", trace->out);
	trace_put_frames(trace, false);
	fputs("},\n\"samples\":[", trace->out);
	trace_put_samples(trace, false);
	fputs("]}\n", trace->out);
	return !rc && strbuf_failed(&trace->text) ? err_nomem(err) : rc;
}

int export_trace(FILE *out, const struct export_options *options, struct err *err)
{
	struct trace trace;
	int rc = trace_init(&trace, out, options, err);

	if (!rc)
		rc = options->merge ? trace_merge(&trace, err) : put_alone(&trace, err);
	trace_fini(&trace);
	return rc;
}
