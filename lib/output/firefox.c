#include "output/counters.h"
#include "output/export.h"
#include "output/fold.h"
#include "output/json_text.h"

#include "base/map.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * The processed profile format of the Firefox Profiler, version 61: tables of columns that index
 * each other. Stacks, frames (a function and a line), functions, sources and strings are shared by
 * all threads; each thread of a process has its samples, and so has each further event of it.
 * Newer profilers upgrade what they read.
 */
#define FORMAT_VERSION 61
#define GECKO_VERSION 31

static const struct {
	const char *name, *color;
} categories[] = {
	[FRAME_PYTHON] = {"Python", "yellow"},
	[FRAME_NATIVE] = {"Native", "blue"},
	[FRAME_KERNEL] = {"Kernel", "orange"},
	/* The profiler takes the first grey one for what has no category. */
	[FRAME_KERNEL + 1] = {"Other", "grey"},
};
#define CATEGORIES (sizeof(categories) / sizeof(categories[0]))

struct firefox {
	const struct export_options *options;
	const struct profile *profile;
	struct samples_by_thread by;
	struct counters counters;
	struct folds folds;
	struct strbuf text;
	FILE *out;
	uint64_t start;	  /* ns of the recording's clock that times count from */
	struct map files; /* string id -> index into file_list */
	struct {
		VEC_OF(uint32_t)
	} file_list; /* paths of sources and of objects alike */
	uint32_t threads;
	uint32_t *first_index; /* by thread of the profile: in the threads written */
};

/* A column of a table: each row is one JSON value. */
typedef void put_cell(struct firefox *f, uint32_t row);

static void put_column(struct firefox *f, const char *name, size_t rows, put_cell *put)
{
	strbuf_printf(&f->text, "\"%s\":[", name);
	for (uint32_t i = 0; i < rows; i++) {
		if (i)
			strbuf_char(&f->text, ',');
		put(f, i);
		json_flush_rows(f->out, &f->text);
	}
	strbuf_str(&f->text, "],\n");
}

static void put_length(struct firefox *f, size_t rows)
{
	strbuf_printf(&f->text, "\"length\":%zu}", rows);
}

static void put_null(struct firefox *f, uint32_t row)
{
	strbuf_str(&f->text, "null");
}

static void put_zero(struct firefox *f, uint32_t row)
{
	strbuf_char(&f->text, '0');
}

static void put_one(struct firefox *f, uint32_t row)
{
	strbuf_char(&f->text, '1');
}

static void put_false(struct firefox *f, uint32_t row)
{
	strbuf_str(&f->text, "false");
}

static void put_minus_one(struct firefox *f, uint32_t row)
{
	strbuf_str(&f->text, "-1");
}

static void put_row_number(struct firefox *f, uint32_t row)
{
	json_add_u64(&f->text, row);
}

/* Stacks: the folded tree without its empty stack. */

static void put_stack_frame(struct firefox *f, uint32_t row)
{
	json_add_u64(&f->text, f->folds.tree.items[row + 1].place);
}

static void put_stack_prefix(struct firefox *f, uint32_t row)
{
	uint32_t parent = f->folds.tree.items[row + 1].parent;

	if (parent)
		json_add_u64(&f->text, parent - 1);
	else
		put_null(f, row);
}

static void put_stacks(struct firefox *f)
{
	size_t rows = f->folds.tree.len - 1;

	strbuf_str(&f->text, "\"stackTable\":{");
	put_column(f, "frame", rows, put_stack_frame);
	put_column(f, "prefix", rows, put_stack_prefix);
	put_length(f, rows);
}

/* Frames: the places of the folded tree. */

static const struct profile_function *place_function(const struct firefox *f, uint32_t place)
{
	return profile_function(f->profile, f->folds.places.items[place].function);
}

static void put_frame_func(struct firefox *f, uint32_t row)
{
	json_add_u64(&f->text, f->folds.places.items[row].function);
}

static void put_frame_category(struct firefox *f, uint32_t row)
{
	json_add_u64(&f->text, place_function(f, row)->kind);
}

static void put_frame_line(struct firefox *f, uint32_t row)
{
	uint32_t line = f->folds.places.items[row].line;

	if (line)
		json_add_u64(&f->text, line);
	else
		put_null(f, row);
}

static void put_frames(struct firefox *f)
{
	size_t rows = f->folds.places.len;

	strbuf_str(&f->text, ",\n\"frameTable\":{");
	put_column(f, "address", rows, put_minus_one);
	put_column(f, "inlineDepth", rows, put_zero);
	put_column(f, "category", rows, put_frame_category);
	put_column(f, "subcategory", rows, put_zero);
	put_column(f, "func", rows, put_frame_func);
	put_column(f, "nativeSymbol", rows, put_null);
	put_column(f, "innerWindowID", rows, put_null);
	put_column(f, "line", rows, put_frame_line);
	put_column(f, "column", rows, put_null);
	put_length(f, rows);
}

/* Functions: those of the profile. Their names are the first strings, then come the files. */

static bool is_python(const struct firefox *f, uint32_t function)
{
	return profile_function(f->profile, function)->kind == FRAME_PYTHON;
}

static void put_func_python(struct firefox *f, uint32_t row)
{
	strbuf_str(&f->text, is_python(f, row) ? "true" : "false");
}

static uint32_t file_of(const struct firefox *f, uint32_t function)
{
	return (uint32_t)*map_get(&f->files, profile_function(f->profile, function)->file);
}

static void put_func_resource(struct firefox *f, uint32_t row)
{
	if (is_python(f, row))
		put_minus_one(f, row);
	else
		json_add_u64(&f->text, file_of(f, row));
}

static void put_func_source(struct firefox *f, uint32_t row)
{
	if (is_python(f, row))
		json_add_u64(&f->text, file_of(f, row));
	else
		put_null(f, row);
}

static void put_func_line(struct firefox *f, uint32_t row)
{
	uint32_t line = profile_function(f->profile, row)->line;

	if (line)
		json_add_u64(&f->text, line);
	else
		put_null(f, row);
}

static void put_funcs(struct firefox *f)
{
	size_t rows = profile_function_count(f->profile);

	strbuf_str(&f->text, ",\n\"funcTable\":{");
	put_column(f, "name", rows, put_row_number);
	put_column(f, "isJS", rows, put_false);
	put_column(f, "relevantForJS", rows, put_func_python);
	put_column(f, "resource", rows, put_func_resource);
	put_column(f, "source", rows, put_func_source);
	put_column(f, "lineNumber", rows, put_func_line);
	put_column(f, "columnNumber", rows, put_null);
	put_length(f, rows);
}

static void put_file_string(struct firefox *f, uint32_t row)
{
	json_add_u64(&f->text, profile_function_count(f->profile) + row);
}

static void put_string(struct firefox *f, uint32_t row)
{
	size_t functions = profile_function_count(f->profile);

	json_add_text(&f->text,
		      row < functions
			      ? export_function_name(f->profile, row)
			      : profile_text(f->profile, f->file_list.items[row - functions]));
}

static void put_shared(struct firefox *f)
{
	size_t files = f->file_list.len;

	strbuf_str(&f->text, "\"shared\":{\n");
	put_stacks(f);
	put_frames(f);
	put_funcs(f);
	strbuf_str(&f->text, ",\n\"resourceTable\":{");
	put_column(f, "lib", files, put_null);
	put_column(f, "name", files, put_file_string);
	put_column(f, "host", files, put_null);
	put_column(f, "type", files, put_one);
	put_length(f, files);
	strbuf_str(&f->text, ",\n\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],"
			     "\"functionSize\":[],\"length\":0},\n\"sources\":{");
	put_column(f, "id", files, put_null);
	put_column(f, "filename", files, put_file_string);
	put_column(f, "startLine", files, put_one);
	put_column(f, "startColumn", files, put_one);
	put_column(f, "sourceMapURL", files, put_null);
	put_length(f, files);
	strbuf_str(&f->text, ",\n");
	put_column(f, "stringArray", profile_function_count(f->profile) + files, put_string);
	f->text.len -= 2; /* ",\n" */
	strbuf_str(&f->text, "},\n");
}

static int add_files(struct firefox *f, struct err *err)
{
	for (uint32_t i = 0; i < profile_function_count(f->profile); i++) {
		uint32_t file = profile_function(f->profile, i)->file, *item;
		bool added;
		uint64_t *slot = map_put(&f->files, file, &added);

		if (!slot)
			return err_nomem(err);
		if (!added)
			continue;
		*slot = f->file_list.len;
		item = vec_push(&f->file_list);
		if (!item)
			return err_nomem(err);
		*item = file;
	}
	return 0;
}

static void add_time(struct firefox *f, uint64_t time)
{
	json_add_scaled(&f->text, (int64_t)(time - f->start), 6);
}

/* The next sample of the thread that is of the event; NULL at the end. */
static const struct sample *next_sample(const struct firefox *f, uint32_t thread, uint32_t event,
					uint32_t *at)
{
	while (*at < f->by.starts[thread + 1]) {
		const struct sample *sample = &f->by.all[f->by.order[(*at)++]];

		if (sample->event == event)
			return sample;
	}
	return NULL;
}

enum column { COLUMN_STACK, COLUMN_TIME, COLUMN_WEIGHT };

static size_t put_sample_column(struct firefox *f, uint32_t thread, uint32_t event,
				enum column column)
{
	bool time = export_event_is_time(f->profile, event);
	uint32_t at = f->by.starts[thread], stack;
	const struct sample *sample;
	size_t count = 0;

	for (; (sample = next_sample(f, thread, event, &at)); count++) {
		if (count)
			strbuf_char(&f->text, ',');
		stack = f->folds.of_stack[sample->stack];
		if (column == COLUMN_TIME)
			add_time(f, sample->time);
		else if (column == COLUMN_WEIGHT && time)
			json_add_scaled(&f->text, (int64_t)sample->period, 6);
		else if (column == COLUMN_WEIGHT)
			json_add_u64(&f->text, sample->period);
		else if (stack)
			json_add_u64(&f->text, stack - 1);
		else
			strbuf_str(&f->text, "null");
		json_flush_rows(f->out, &f->text);
	}
	return count;
}

static void put_samples(struct firefox *f, uint32_t thread, uint32_t event)
{
	bool time = f->options->by_period && export_event_is_time(f->profile, event);
	size_t count;

	strbuf_str(&f->text, "\"samples\":{\"stack\":[");
	put_sample_column(f, thread, event, COLUMN_STACK);
	strbuf_str(&f->text, "],\n\"time\":[");
	count = put_sample_column(f, thread, event, COLUMN_TIME);
	strbuf_str(&f->text, "],\n\"weight\":");
	if (f->options->by_period) {
		strbuf_char(&f->text, '[');
		put_sample_column(f, thread, event, COLUMN_WEIGHT);
		strbuf_char(&f->text, ']');
	} else {
		strbuf_str(&f->text, "null");
	}
	strbuf_printf(&f->text, ",\"weightType\":\"%s\",", time ? "tracing-ms" : "samples");
	put_length(f, count);
}

/* `first`: the thread's own entry. Another event than that which is looked at names itself. */
static void put_thread(struct firefox *f, uint32_t thread, uint32_t event, bool first,
		       uint64_t since)
{
	const struct profile_thread *t = profile_thread(f->profile, thread);
	const char *comm = profile_text(f->profile, t->comm);
	struct strbuf name = {0};

	strbuf_str(&name, comm);
	if (event != f->options->event)
		strbuf_printf(&name, " (%s)", profile_event(f->profile, event)->name);
	strbuf_str(&f->text, f->threads++ ? ",\n{\"name\":" : "\n{\"name\":");
	json_add_text(&f->text, strbuf_text(&name));
	strbuf_str(&f->text, ",\"processName\":");
	json_add_text(&f->text, comm);
	strbuf_printf(&f->text,
		      ",\"isMainThread\":%s,\"processType\":\"default\",\"pid\":\"%" PRIu32
		      "\",\"tid\":%s%" PRIu32,
		      first && t->pid == t->tid ? "true" : "false", t->pid, first ? "" : "\"",
		      t->tid);
	if (!first)
		strbuf_printf(&f->text, "/%" PRIu32 "\"", event);
	strbuf_str(&f->text, ",\n\"processStartupTime\":0,\"processShutdownTime\":null,"
			     "\"registerTime\":");
	add_time(f, since);
	strbuf_str(&f->text, ",\"unregisterTime\":null,\"pausedRanges\":[],\n\"markers\":{"
			     "\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],"
			     "\"category\":[],\"length\":0},\n");
	put_samples(f, thread, event);
	strbuf_char(&f->text, '}');
	if (strbuf_failed(&name))
		f->text.failed = 1;
	strbuf_fini(&name);
}

static void put_threads(struct firefox *f)
{
	strbuf_str(&f->text, "\"threads\":[");
	for (uint32_t t = 0; t < profile_thread_count(f->profile); t++) {
		bool first = true;

		for (uint32_t e = 0; e < profile_event_count(f->profile); e++) {
			uint32_t at = f->by.starts[t];
			const struct sample *sample = export_has_event(f->options, e)
							      ? next_sample(f, t, e, &at)
							      : NULL;

			if (!sample)
				continue;
			if (first)
				f->first_index[t] = f->threads;
			put_thread(f, t, e, first, sample->time);
			first = false;
		}
	}
	strbuf_str(&f->text, "],\n");
}

static void put_counter(struct firefox *f, const struct counter *row)
{
	const struct counters *c = &f->counters;

	strbuf_str(&f->text, "{\"name\":");
	json_add_text(&f->text, profile_event(f->profile, row->event)->name);
	strbuf_str(&f->text, ",\"category\":\"Events\",\"description\":\"Sum of the sampled "
			     "periods\",\"color\":\"grey\",");
	strbuf_printf(&f->text, "\"pid\":\"%" PRIu32 "\",\"mainThreadIndex\":%" PRIu32, row->pid,
		      f->first_index[row->thread]);
	strbuf_str(&f->text, ",\"samples\":{\"time\":[");
	for (size_t i = 0; i < c->slices; i++) {
		if (i)
			strbuf_char(&f->text, ',');
		add_time(f, c->start + (i + 1) * c->slice);
	}
	strbuf_str(&f->text, "],\"count\":[");
	for (size_t i = 0; i < c->slices; i++) {
		if (i)
			strbuf_char(&f->text, ',');
		json_add_u64(&f->text, row->sums[i]);
	}
	strbuf_str(&f->text, "],");
	put_length(f, c->slices);
	strbuf_char(&f->text, '}');
	json_flush_rows(f->out, &f->text);
}

/* Those of the event that threads are shown by come first. */
static void put_counters(struct firefox *f)
{
	bool comma = false;

	strbuf_str(&f->text, "\"counters\":[");
	for (int others = 0; others < 2; others++) {
		for (size_t i = 0; i < f->counters.rows.len; i++) {
			const struct counter *row = &f->counters.rows.items[i];

			if ((row->event != f->options->event) != others)
				continue;
			if (comma)
				strbuf_str(&f->text, ",\n");
			put_counter(f, row);
			comma = true;
		}
	}
}

/* The mean time between samples, in nanoseconds. */
static uint64_t interval_of(const struct firefox *f)
{
	const struct profile_event *event = profile_event(f->profile, f->options->event);
	const struct profile_summary *summary = profile_summary(f->profile);

	if (event->frequency > 0)
		return (uint64_t)(1e9 / event->frequency);
	if (export_event_is_time(f->profile, f->options->event) && event->period)
		return event->period;
	return (summary->last_time - summary->first_time) / (event->samples ? event->samples : 1);
}

static void put_meta(struct firefox *f)
{
	const char *command = profile_summary(f->profile)->command;
	const struct data_info *info = f->options->info;
	struct strbuf *text = &f->text;
	int64_t wall = 0;
	bool known = export_wall_time(f->options, f->start, &wall);

	strbuf_str(text, "{\"meta\":{\"interval\":");
	json_add_scaled(text, (int64_t)interval_of(f), 6);
	strbuf_str(text, ",\"startTime\":");
	json_add_scaled(text, known ? wall : 0, 6);
	if (known)
		strbuf_printf(text, ",\"startTimeAsClockMonotonicNanosecondsSinceBoot\":%" PRIu64,
			      f->start);
	strbuf_printf(text,
		      ",\n\"preprocessedProfileVersion\":%d,\"version\":%d,\"processType\":0,"
		      "\"stackwalk\":1,\"symbolicated\":true,\"usesOnlyOneStackType\":false,"
		      "\"sourceCodeIsNotOnSearchfox\":true,\"markerSchema\":[],"
		      "\"importedFrom\":\"pyperf\",\n\"product\":",
		      FORMAT_VERSION, GECKO_VERSION);
	json_add_text(text, command ? command : "pyperf");
	if (info && info->cpu_desc) {
		strbuf_str(text, ",\"CPUName\":");
		json_add_text(text, info->cpu_desc);
	}
	if (info && info->cpus_online)
		strbuf_printf(text, ",\"logicalCPUs\":%" PRIu32, info->cpus_online);
	if (info && info->os_release) {
		strbuf_str(text, ",\"oscpu\":");
		json_add_text(text, info->os_release);
	}
	strbuf_str(text, ",\n\"categories\":[");
	for (size_t i = 0; i < CATEGORIES; i++)
		strbuf_printf(text,
			      "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
			      i ? "," : "", categories[i].name, categories[i].color);
	strbuf_str(text, "]},\n\"libs\":[],\n");
}

static int prepare(struct firefox *f, struct samples_walk *walk, struct err *err)
{
	int rc = samples_by_thread(&f->by, walk, err);

	f->first_index = calloc(profile_thread_count(f->profile) + 1, sizeof(*f->first_index));
	if (!rc && !f->first_index)
		rc = err_nomem(err);
	if (!rc)
		rc = counters_init(&f->counters, walk, err);
	if (!rc)
		rc = folds_init(&f->folds, f->profile, true, err);
	if (!rc)
		rc = add_files(f, err);
	f->start = f->counters.start;
	return rc;
}

int export_firefox(FILE *out, const struct export_options *options, struct err *err)
{
	struct firefox f = {.options = options, .profile = options->profile, .out = out};
	struct samples_walk walk;
	int rc = samples_walk_init(&walk, options->samples, options->profile, options->filter,
				   export_events(options), err);

	if (!rc)
		rc = prepare(&f, &walk, err);
	if (!rc) {
		put_meta(&f);
		put_shared(&f);
		put_threads(&f);
		put_counters(&f);
		strbuf_str(&f.text, "]}\n");
		json_flush(out, &f.text);
	}
	if (!rc && strbuf_failed(&f.text))
		rc = err_nomem(err);
	strbuf_fini(&f.text);
	free(f.first_index);
	vec_fini(&f.file_list);
	map_fini(&f.files);
	counters_fini(&f.counters);
	folds_fini(&f.folds);
	samples_by_thread_fini(&f.by);
	samples_walk_fini(&walk);
	return rc;
}
