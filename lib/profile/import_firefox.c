#include "profile/importer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * The processed profile of the Firefox Profiler: tables of columns that index each other. Up to
 * version 55 each thread has all of them, then the strings are shared, from 60 on all but the
 * samples.
 */
#define DEPTH_MAX 4096

/* Where a thread's tables are. */
struct tables {
	uint32_t strings, frames, functions, resources, sources;
	uint32_t stack_frame, stack_prefix, stack_offset; /* columns */
	size_t stacks;
};

struct firefox {
	struct importer *importer;
	const struct json_doc *doc;
	uint32_t root, shared;
	struct {
		VEC_OF(uint32_t)
	} frames;	    /* id + 1 in the profile, by number in the file; 0: not asked for yet */
	uint32_t frames_of; /* the table that they are of */
};

static uint32_t column(const struct firefox *f, uint32_t table, const char *name)
{
	return json_get(f->doc, table, name);
}

/* A cell that is an index; UINT32_MAX for null and nonsense. */
static uint32_t cell(const struct firefox *f, uint32_t table, const char *name, uint32_t row)
{
	return json_index(f->doc, json_at(f->doc, column(f, table, name), row), UINT32_MAX - 1);
}

/* A table of the thread, or the shared one. */
static uint32_t find_table(const struct firefox *f, uint32_t thread, const char *name)
{
	uint32_t own = json_get(f->doc, thread, name);

	return own != JSON_NONE ? own : json_get(f->doc, f->shared, name);
}

static void find_tables(const struct firefox *f, uint32_t thread, struct tables *t)
{
	uint32_t stacks = find_table(f, thread, "stackTable");

	t->strings = find_table(f, thread, "stringArray");
	if (t->strings == JSON_NONE)
		t->strings = find_table(f, thread, "stringTable");
	t->frames = find_table(f, thread, "frameTable");
	t->functions = find_table(f, thread, "funcTable");
	t->resources = find_table(f, thread, "resourceTable");
	t->sources = find_table(f, thread, "sources");
	t->stack_frame = column(f, stacks, "frame");
	t->stack_prefix = column(f, stacks, "prefix");
	t->stack_offset = column(f, stacks, "prefixOffset");
	t->stacks = json_count(f->doc, t->stack_frame);
}

static const char *string_at(const struct firefox *f, const struct tables *t, uint32_t index)
{
	return json_text(f->doc, json_at(f->doc, t->strings, index));
}

static const char *file_of(const struct firefox *f, const struct tables *t, uint32_t function)
{
	uint32_t source = cell(f, t->functions, "source", function);
	uint32_t resource = cell(f, t->functions, "resource", function);

	if (source != UINT32_MAX)
		return string_at(f, t, cell(f, t->sources, "filename", source));
	if (column(f, t->functions, "fileName") != JSON_NONE &&
	    cell(f, t->functions, "fileName", function) != UINT32_MAX)
		return string_at(f, t, cell(f, t->functions, "fileName", function));
	if (resource != UINT32_MAX)
		return string_at(f, t, cell(f, t->resources, "name", resource));
	return "";
}

/* By its category, where that tells, else by its file. */
static enum frame_kind kind_of(const struct firefox *f, const struct tables *t, uint32_t frame,
			       const char *file)
{
	uint32_t meta = json_get(f->doc, f->root, "meta");
	uint32_t wanted = cell(f, t->frames, "category", frame), number = 0;
	uint32_t list = json_get(f->doc, meta, "categories");

	for (uint32_t c = json_first(f->doc, list); c != JSON_NONE;
	     c = json_next(f->doc, list, c), number++) {
		const char *name = json_text(f->doc, json_get(f->doc, c, "name"));

		if (number != wanted)
			continue;
		for (int kind = FRAME_PYTHON; kind <= FRAME_KERNEL; kind++)
			if (strcasecmp(name, frame_kind_name((enum frame_kind)kind)) == 0)
				return (enum frame_kind)kind;
		break;
	}
	return import_kind(file);
}

/* The frame in the profile; KEYED_NONE with rc where the file is broken or memory ran out. */
static uint32_t take_frame(struct firefox *f, const struct tables *t, uint32_t frame, int *rc,
			   struct err *err)
{
	uint32_t function = cell(f, t->frames, "func", frame), line, first, id;
	const char *file;

	*rc = 0;
	if (frame < f->frames.len && f->frames.items[frame])
		return f->frames.items[frame] - 1;
	if (frame >= json_count(f->doc, column(f, t->frames, "func")) || function == UINT32_MAX) {
		*rc = err_set(err, ERR_CORRUPT, "%s names a frame that it does not have",
			      f->importer->path);
		return KEYED_NONE;
	}
	line = cell(f, t->frames, "line", frame);
	first = cell(f, t->functions, "lineNumber", function);
	file = file_of(f, t, function);
	id = import_function(f->importer, kind_of(f, t, frame, file),
			     string_at(f, t, cell(f, t->functions, "name", function)), file,
			     first == UINT32_MAX ? 0 : first);
	if (id != KEYED_NONE)
		id = import_frame(f->importer, id, line == UINT32_MAX ? 0 : line);
	while (id != KEYED_NONE && f->frames.len <= frame)
		if (!vec_push(&f->frames))
			id = KEYED_NONE;
	if (id == KEYED_NONE)
		*rc = err_nomem(err);
	else
		f->frames.items[frame] = id + 1;
	return id;
}

/* The stack's frames, leaf first. */
static int take_stack(struct firefox *f, const struct tables *t, uint32_t stack, struct err *err)
{
	int rc = 0;

	f->importer->stack.len = 0;
	while (stack != UINT32_MAX && f->importer->stack.len < DEPTH_MAX) {
		uint32_t frame = json_index(f->doc, json_at(f->doc, t->stack_frame, stack),
					    UINT32_MAX - 1);
		uint32_t id = take_frame(f, t, frame, &rc, err), parent, *slot;

		if (rc)
			return rc;
		slot = vec_push(&f->importer->stack);
		if (!slot)
			return err_nomem(err);
		*slot = id;
		parent = json_index(f->doc, json_at(f->doc, t->stack_prefix, stack),
				    UINT32_MAX - 1);
		if (t->stack_offset != JSON_NONE) {
			parent = json_index(f->doc, json_at(f->doc, t->stack_offset, stack), stack);
			parent = parent && parent != UINT32_MAX ? stack - parent : UINT32_MAX;
		}
		/* Parents stand before their children, so this ends. */
		if (parent != UINT32_MAX && parent >= stack)
			return err_set(err, ERR_CORRUPT, "%s has a stack that is its own caller",
				       f->importer->path);
		stack = parent;
	}
	return 0;
}

/* Names of events that we write are those of counters; a further one is named in the thread. */
static uint32_t event_of(struct firefox *f, const char *weight_type, const char *thread,
			 size_t *name_len)
{
	uint32_t counters = json_get(f->doc, f->root, "counters");
	const char *first = NULL;

	*name_len = strlen(thread);
	for (uint32_t c = json_first(f->doc, counters); c != JSON_NONE;
	     c = json_next(f->doc, counters, c)) {
		const char *name = json_text(f->doc, json_get(f->doc, c, "name"));
		size_t len = strlen(name);

		if (strcmp(json_text(f->doc, json_get(f->doc, c, "category")), "Events") != 0)
			continue;
		first = first ? first : name;
		if (*name_len > len + 3 && thread[*name_len - 1] == ')' &&
		    strncmp(thread + *name_len - len - 3, " (", 2) == 0 &&
		    strncmp(thread + *name_len - len - 1, name, len) == 0) {
			*name_len -= len + 3;
			return import_event(f->importer, name);
		}
	}
	if (first)
		return import_event(f->importer, first);
	return import_event(f->importer, strcmp(weight_type, "tracing-ms") == 0 ? "time"
					 : strcmp(weight_type, "bytes") == 0	? "bytes"
										: "samples");
}

static uint32_t number_of(const struct firefox *f, uint32_t value)
{
	uint32_t number = json_index(f->doc, value, INT32_MAX);

	return number != UINT32_MAX ? number
				    : (uint32_t)strtoul(json_text(f->doc, value), NULL, 10);
}

static int take_samples(struct firefox *f, uint32_t in, const struct tables *t, uint32_t thread,
			uint32_t event, bool time, struct err *err)
{
	const struct json_doc *doc = f->doc;
	uint32_t stacks = json_get(doc, in, "stack"), weights = json_get(doc, in, "weight");
	uint32_t times = json_get(doc, in, "time"), deltas = json_get(doc, in, "timeDeltas");
	double at = 0;
	int rc = 0;

	for (uint32_t i = 0; i < json_count(doc, stacks) && !rc; i++) {
		uint32_t cell = json_at(doc, stacks, i);
		uint32_t stack = json_index(doc, cell, UINT32_MAX - 1);
		double weight = json_number(doc, json_at(doc, weights, i), 1);

		at = times != JSON_NONE ? json_number(doc, json_at(doc, times, i), at)
					: at + json_number(doc, json_at(doc, deltas, i), 0);
		if (!(weight > 0) || weight > 1e12)
			continue;
		/* null is a sample without a stack. */
		if (stack == UINT32_MAX ? json_kind(doc, cell) != JSON_NULL : stack >= t->stacks)
			return err_set(err, ERR_CORRUPT, "%s names a stack that it does not have",
				       f->importer->path);
		rc = take_stack(f, t, stack, err);
		if (!rc)
			rc = import_sample(f->importer, thread, event,
					   at >= 0 && at < 1e12 ? (uint64_t)(at * 1e6) + 1 : 0, 1,
					   (uint64_t)(time ? weight * 1e6 : weight), err);
	}
	return rc;
}

static int take_thread(struct firefox *f, uint32_t in, struct err *err)
{
	const struct json_doc *doc = f->doc;
	uint32_t samples = json_get(doc, in, "samples"), event, thread;
	const char *type = json_text(doc, json_get(doc, samples, "weightType"));
	const char *name = json_text(doc, json_get(doc, in, "name"));
	struct strbuf comm = {0};
	struct tables tables;
	size_t len;

	find_tables(f, in, &tables);
	if (tables.frames != f->frames_of)
		f->frames.len = 0;
	f->frames_of = tables.frames;
	event = event_of(f, type, name, &len);
	strbuf_add(&comm, name, len);
	thread = profile_add_thread(f->importer->profile, number_of(f, json_get(doc, in, "pid")),
				    number_of(f, json_get(doc, in, "tid")), strbuf_text(&comm));
	strbuf_fini(&comm);
	if (event == KEYED_NONE || thread == KEYED_NONE)
		return err_nomem(err);
	return take_samples(f, samples, &tables, thread, event, strcmp(type, "tracing-ms") == 0,
			    err);
}

int import_firefox(struct importer *importer, const struct json_doc *doc, struct err *err)
{
	struct firefox f = {
		.importer = importer, .doc = doc, .root = json_root(doc), .frames_of = JSON_NONE};
	uint32_t threads = json_get(doc, f.root, "threads");
	int rc = 0;

	f.shared = json_get(doc, f.root, "shared");
	for (uint32_t t = json_first(doc, threads); t != JSON_NONE && !rc;
	     t = json_next(doc, threads, t))
		rc = take_thread(&f, t, err);
	vec_fini(&f.frames);
	return rc;
}
