#include "output/export.h"
#include "output/fold.h"

#include <stdlib.h>

#ifndef HAVE_PROTOBUF

int export_otlp(FILE *out, const struct export_options *options, struct err *err)
{
	err_set(err, ERR_UNSUPPORTED, "this pyperf was built without OTLP's format");
	err_hint(err, "Build it with libprotobuf-c-dev and protobuf-c-compiler installed.");
	return ERR_UNSUPPORTED;
}

#else

#include "base/intern.h"
#include "base/map.h"
#include "base/text.h"
#include "profile/match.h"

#include <otlp/profiles.pb-c.h>
#include <string.h>

/*
 * OTLP's ProfilesData: a dictionary, and a profile for each event.
 *
 * Messages behind each other are one that has the parts of all, and so are the dictionaries in
 * them: each item of it is written as a message of its own, when it is first referred to. A
 * profile, though, is one item of a list, and has to say its length first: its samples are packed
 * twice, the first time for their size alone.
 *
 * A sample of OTLP is a thread in a stack, with the time and the value of each time it was seen
 * there; without a clock that is known to the world, and of what was counted along, it has the sum
 * alone.
 */
struct otlp_row {
	uint32_t thread, stack; /* of stack_table */
	uint32_t first, count;	/* of its points */
};

struct otlp_point {
	uint64_t time;
	int64_t value;
};

#define THREAD_ATTRIBUTES 3

struct otlp {
	FILE *out;
	const struct export_options *options;
	const struct profile *profile;
	struct folds folds;
	/* What the tables have, each once; an id is the index in the table. The items of all but
	 * the strings are here as the numbers that they consist of. */
	struct intern strings, mappings, functions, locations, attributes;
	uint32_t (*threads)[THREAD_ATTRIBUTES]; /* attributes, by thread; 0: not written yet */
	/* Stacks are a tree here; those alone that samples lie in are written. */
	struct map tree;  /* caller's node and location -> node */
	uint32_t *nodes;  /* by fold; 0: not known yet */
	uint32_t *stacks; /* index in the table, by node; 0: not written yet */
	uint32_t node_count, stack_count;
	struct fold_path path;

	struct map known; /* thread and stack -> row */
	struct {
		VEC_OF(struct otlp_row)
	} rows;
	struct otlp_point *points;
	struct {
		VEC_OF(int64_t)
	} values;
	struct {
		VEC_OF(uint64_t)
	} times;
	struct {
		VEC_OF(int32_t)
	} frames;
	struct strbuf packed, utf8;
	bool failed;
};

/* The dictionary */

/* Packed anew for each message; NULL when memory ran out. */
static void *room(struct otlp *o, size_t size)
{
	strbuf_reset(&o->packed);
	return strbuf_extend(&o->packed, size);
}

static void put_dictionary(struct otlp *o, Otlp__ProfilesDictionary *part)
{
	Otlp__ProfilesData data = OTLP__PROFILES_DATA__INIT;
	size_t size;
	void *bytes;

	data.dictionary = part;
	size = otlp__profiles_data__get_packed_size(&data);
	bytes = room(o, size);
	if (!bytes)
		return;
	otlp__profiles_data__pack(&data, bytes);
	fwrite(bytes, 1, size, o->out);
}

/* The id of what it holds; `*added` where it was not there. */
static uint32_t add_item(struct otlp *o, struct intern *table, const void *bytes, size_t len,
			 bool *added)
{
	uint32_t before = table->count, id = intern_add(table, bytes, len);

	o->failed |= id == INTERN_NONE;
	*added = !o->failed && id > before;
	return o->failed ? 0 : id;
}

static int32_t add_string(struct otlp *o, const char *text)
{
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	char *words;
	bool added;
	uint32_t id;

	strbuf_reset(&o->utf8);
	text_repair(&o->utf8, text, strlen(text));
	o->failed |= strbuf_failed(&o->utf8);
	id = add_item(o, &o->strings, strbuf_text(&o->utf8), o->utf8.len, &added);
	if (!added)
		return (int32_t)id;
	words = (char *)intern_text(&o->strings, id, NULL);
	part.n_string_table = 1;
	part.string_table = &words;
	put_dictionary(o, &part);
	return (int32_t)id;
}

/* The first items, which stand for none. */
static void put_zeros(struct otlp *o)
{
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__Mapping mapping = OTLP__MAPPING__INIT, *mappings = &mapping;
	Otlp__Location location = OTLP__LOCATION__INIT, *locations = &location;
	Otlp__Function function = OTLP__FUNCTION__INIT, *functions = &function;
	Otlp__Link link = OTLP__LINK__INIT, *links = &link;
	Otlp__KeyValueAndUnit attribute = OTLP__KEY_VALUE_AND_UNIT__INIT, *attributes = &attribute;
	Otlp__Stack stack = OTLP__STACK__INIT, *stacks = &stack;
	char *text = (char *)"";

	part.n_mapping_table = part.n_location_table = part.n_function_table = 1;
	part.n_link_table = part.n_attribute_table = part.n_stack_table = part.n_string_table = 1;
	part.mapping_table = &mappings;
	part.location_table = &locations;
	part.function_table = &functions;
	part.link_table = &links;
	part.attribute_table = &attributes;
	part.stack_table = &stacks;
	part.string_table = &text;
	put_dictionary(o, &part);
}

/* `text` NULL: the number. */
static uint32_t attribute_of(struct otlp *o, const char *key, const char *text, int64_t number)
{
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;
	Otlp__KeyValueAndUnit attribute = OTLP__KEY_VALUE_AND_UNIT__INIT, *list = &attribute;
	struct strbuf item = {0}, repaired = {0};
	bool added;
	uint32_t id;

	if (text)
		text_repair(&repaired, text, strlen(text));
	strbuf_printf(&item, "%s%c%s%lld", key, text ? '=' : '#', strbuf_text(&repaired),
		      (long long)number);
	o->failed |= strbuf_failed(&item) || strbuf_failed(&repaired);
	id = add_item(o, &o->attributes, strbuf_text(&item), item.len, &added);
	if (added) {
		attribute.key_strindex = add_string(o, key);
		attribute.value = &value;
		value.value_case = text ? OTLP__ANY_VALUE__VALUE_STRING_VALUE
					: OTLP__ANY_VALUE__VALUE_INT_VALUE;
		if (text)
			value.string_value = (char *)strbuf_text(&repaired);
		else
			value.int_value = number;
		part.n_attribute_table = 1;
		part.attribute_table = &list;
		put_dictionary(o, &part);
	}
	strbuf_fini(&item);
	strbuf_fini(&repaired);
	return id;
}

static int32_t mapping_of(struct otlp *o, uint32_t file)
{
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__Mapping mapping = OTLP__MAPPING__INIT, *list = &mapping;
	int32_t name = add_string(o, profile_text(o->profile, file));
	bool added;
	uint32_t id = name ? add_item(o, &o->mappings, &name, sizeof(name), &added) : 0;

	/* What has no name is the first item. */
	if (!id || !added)
		return (int32_t)id;
	mapping.filename_strindex = name;
	part.n_mapping_table = 1;
	part.mapping_table = &list;
	put_dictionary(o, &part);
	return (int32_t)id;
}

static int32_t function_of(struct otlp *o, uint32_t number)
{
	const struct profile_function *f = profile_function(o->profile, number);
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__Function function = OTLP__FUNCTION__INIT, *list = &function;
	const int32_t item[] = {
		add_string(o, export_function_name(o->profile, number)),
		add_string(o, profile_text(o->profile, f->name)),
		f->kind == FRAME_PYTHON ? add_string(o, profile_text(o->profile, f->file)) : 0,
		(int32_t)f->line,
	};
	bool added;
	uint32_t id = add_item(o, &o->functions, item, sizeof(item), &added);

	if (!added)
		return (int32_t)id;
	function.name_strindex = item[0];
	function.system_name_strindex = item[1];
	function.filename_strindex = item[2];
	function.start_line = f->line;
	part.n_function_table = 1;
	part.function_table = &list;
	put_dictionary(o, &part);
	return (int32_t)id;
}

static uint32_t location_of(struct otlp *o, uint32_t number)
{
	/* What the semantic conventions call a frame's kind. */
	static const char *const kinds[] = {
		[FRAME_PYTHON] = "cpython",
		[FRAME_NATIVE] = "native",
		[FRAME_KERNEL] = "kernel",
	};
	const struct fold_place *place = &o->folds.places.items[number];
	const struct profile_function *f = profile_function(o->profile, place->function);
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__Line line = OTLP__LINE__INIT, *lines = &line;
	Otlp__Location location = OTLP__LOCATION__INIT, *list = &location;
	int32_t item[] = {
		(int32_t)attribute_of(o, "profile.frame.type", kinds[f->kind], 0),
		f->kind != FRAME_PYTHON ? mapping_of(o, f->file) : 0,
		function_of(o, place->function),
		(int32_t)place->line,
	};
	bool added;
	uint32_t id = add_item(o, &o->locations, item, sizeof(item), &added);

	if (!added)
		return id;
	location.n_attribute_indices = 1;
	location.attribute_indices = &item[0];
	location.mapping_index = item[1];
	line.function_index = item[2];
	line.line = place->line;
	location.n_lines = 1;
	location.lines = &lines;
	part.n_location_table = 1;
	part.location_table = &list;
	put_dictionary(o, &part);
	return id;
}

/* The node of a stack that is path->items[0] up to path->items[last]. */
static uint32_t node_of(struct otlp *o, const struct fold_path *path, size_t last)
{
	uint32_t node = 0;

	for (size_t i = 0; i <= last && !o->failed; i++) {
		uint32_t fold = path->items[i], location;
		uint64_t *slot;
		bool added;

		if (!o->nodes[fold]) {
			location = location_of(o, o->folds.tree.items[fold].place);
			slot = map_put(&o->tree, (uint64_t)node << 32 | location, &added);
			if (!slot) {
				o->failed = true;
				break;
			}
			if (added)
				*slot = ++o->node_count;
			o->nodes[fold] = (uint32_t)*slot;
		}
		node = o->nodes[fold];
	}
	return node;
}

static uint32_t stack_of(struct otlp *o, uint32_t fold)
{
	Otlp__ProfilesDictionary part = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__Stack stack = OTLP__STACK__INIT, *list = &stack;
	uint32_t node;

	if (!fold)
		return 0;
	if (o->nodes[fold] && o->stacks[o->nodes[fold]])
		return o->stacks[o->nodes[fold]];
	if (!folds_path(&o->folds, fold, &o->path)) {
		o->failed = true;
		return 0;
	}
	node = node_of(o, &o->path, o->path.len - 1);
	if (o->failed || o->stacks[node])
		return o->stacks[node];
	o->frames.len = 0;
	for (size_t i = o->path.len; i-- > 0 && !o->failed;) {
		int32_t *frame = vec_push(&o->frames);

		o->failed |= !frame;
		if (frame)
			*frame = (int32_t)location_of(o,
						      o->folds.tree.items[o->path.items[i]].place);
	}
	stack.n_location_indices = o->frames.len;
	stack.location_indices = o->frames.items;
	part.n_stack_table = 1;
	part.stack_table = &list;
	put_dictionary(o, &part);
	return o->stacks[node] = ++o->stack_count;
}

static const uint32_t *thread_of(struct otlp *o, uint32_t id)
{
	const struct profile_thread *thread = profile_thread(o->profile, id);
	uint32_t *attributes = o->threads[id];

	if (!attributes[0]) {
		attributes[0] = attribute_of(o, "thread.name",
					     profile_text(o->profile, thread->comm), 0);
		attributes[1] = attribute_of(o, "thread.id", NULL, thread->tid);
		attributes[2] = attribute_of(o, "process.pid", NULL, thread->pid);
	}
	return attributes;
}

/* Samples */

static struct otlp_row *row_of(struct otlp *o, uint32_t thread, uint32_t fold)
{
	bool added;
	uint32_t stack = stack_of(o, fold);
	uint64_t *slot = map_put(&o->known, (uint64_t)thread << 32 | stack, &added);
	struct otlp_row *row;

	if (slot && added) {
		*slot = o->rows.len;
		row = vec_push(&o->rows);
		if (!row)
			return NULL;
		thread_of(o, thread);
		*row = (struct otlp_row){thread, stack, 0, 0};
	}
	return slot ? &o->rows.items[*slot] : NULL;
}

/* Gives each row its part of the points, which it has counted before. */
static int make_points(struct otlp *o, struct err *err)
{
	size_t sum = 0;

	for (size_t i = 0; i < o->rows.len; i++) {
		o->rows.items[i].first = (uint32_t)sum;
		sum += o->rows.items[i].count;
		o->rows.items[i].count = 0;
	}
	if (sum > UINT32_MAX)
		return err_set(err, ERR_UNSUPPORTED, "the recording has too many samples");
	o->points = calloc(sum + 1, sizeof(*o->points));
	return o->points ? 0 : err_nomem(err);
}

/* What one sample, or one cell, counts for. */
static int64_t value_of(const struct otlp *o, uint64_t samples, uint64_t period)
{
	return (int64_t)(o->options->by_period ? period : samples);
}

static int collect_samples(struct otlp *o, uint32_t event, struct err *err)
{
	struct samples_walk walk;
	const struct sample *sample;
	int rc = samples_walk_init(&walk, o->options->samples, o->profile, o->options->filter,
				   event, err);

	for (int pass = 0; pass < 2 && !rc; pass++) {
		samples_walk_rewind(&walk);
		while (!rc && (sample = samples_walk_next(&walk))) {
			struct otlp_row *row = row_of(o, sample->thread,
						      o->folds.of_stack[sample->stack]);
			int64_t wall = 0;

			if (!row) {
				rc = err_nomem(err);
			} else if (pass) {
				export_wall_time(o->options, sample->time, &wall);
				o->points[row->first + row->count] = (struct otlp_point){
					(uint64_t)wall, value_of(o, 1, sample->period)};
			}
			if (row)
				row->count++;
		}
		if (!rc && !pass)
			rc = make_points(o, err);
	}
	samples_walk_fini(&walk);
	return rc;
}

static int collect_cells(struct otlp *o, uint32_t event, struct err *err)
{
	struct view_matcher *matcher;
	int rc = view_matcher_new(&matcher, o->profile, o->options->filter, err);

	for (int pass = 0; pass < 2 && !rc; pass++) {
		for (size_t i = 0; i < profile_cell_count(o->profile) && !rc; i++) {
			const struct profile_cell *cell = profile_cell(o->profile, i);
			struct otlp_row *row;

			if (cell->event != event ||
			    !view_matches(matcher, cell->thread, cell->stack))
				continue;
			row = row_of(o, cell->thread, o->folds.of_stack[cell->stack]);
			if (!row)
				rc = err_nomem(err);
			else if (pass)
				o->points[row->first].value += value_of(o, cell->samples,
									cell->period);
			if (row)
				row->count = 1;
		}
		if (!rc && !pass)
			rc = make_points(o, err);
	}
	view_matcher_free(matcher);
	return rc;
}

/* The message of a row, which lives until the next one; its size. */
static size_t make_sample(struct otlp *o, const struct otlp_row *row, Otlp__Sample *sample,
			  int32_t attributes[THREAD_ATTRIBUTES])
{
	otlp__sample__init(sample);
	sample->stack_index = (int32_t)row->stack;
	for (int i = 0; i < THREAD_ATTRIBUTES; i++)
		attributes[i] = (int32_t)o->threads[row->thread][i];
	sample->n_attribute_indices = THREAD_ATTRIBUTES;
	sample->attribute_indices = attributes;
	if (!vec_reserve(&o->values, row->count) || !vec_reserve(&o->times, row->count)) {
		o->failed = true;
		return 0;
	}
	for (uint32_t i = 0; i < row->count; i++) {
		o->values.items[i] = o->points[row->first + i].value;
		o->times.items[i] = o->points[row->first + i].time;
	}
	sample->n_values = row->count;
	sample->values = o->values.items;
	/* Sums have no time, and no time is 0. */
	sample->n_timestamps_unix_nano = row->count && o->times.items[0] ? row->count : 0;
	sample->timestamps_unix_nano = o->times.items;
	return otlp__sample__get_packed_size(sample);
}

/* Messages in messages */

static size_t varint_size(uint64_t value)
{
	size_t size = 1;

	while (value >>= 7)
		size++;
	return size;
}

/* The size with its field's number, below 16, and its length before it. */
static size_t framed(size_t size)
{
	return 1 + varint_size(size) + size;
}

static void put_frame(struct otlp *o, unsigned int field, size_t size)
{
	putc((int)(field << 3 | 2), o->out);
	for (; size >= 0x80; size >>= 7)
		putc((int)(size & 0x7f) | 0x80, o->out);
	putc((int)size, o->out);
}

static void put_message(struct otlp *o, unsigned int field, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	void *bytes = room(o, size + 1);

	if (!bytes)
		return;
	protobuf_c_message_pack(message, bytes);
	put_frame(o, field, size);
	fwrite(bytes, 1, size, o->out);
}

enum {
	DATA_RESOURCE_PROFILES = 1,
	RESOURCE_RESOURCE = 1,
	RESOURCE_SCOPE_PROFILES = 2,
	SCOPE_SCOPE = 1,
	SCOPE_PROFILES = 2,
	PROFILE_SAMPLES = 2,
};

/* What stands around an event's samples. */
static void put_profile(struct otlp *o, Otlp__Resource *resource, Otlp__Profile *head)
{
	Otlp__InstrumentationScope scope = OTLP__INSTRUMENTATION_SCOPE__INIT;
	size_t scope_size, head_size = otlp__profile__get_packed_size(head), profile_size, inner;
	int32_t attributes[THREAD_ATTRIBUTES];
	Otlp__Sample sample;

	scope.name = (char *)"pyperf";
	scope.version = (char *)PYPERF_VERSION;
	scope_size = framed(otlp__instrumentation_scope__get_packed_size(&scope));
	profile_size = head_size;
	for (size_t i = 0; i < o->rows.len; i++)
		profile_size += framed(make_sample(o, &o->rows.items[i], &sample, attributes));
	inner = scope_size + framed(profile_size);
	put_frame(o, DATA_RESOURCE_PROFILES,
		  framed(otlp__resource__get_packed_size(resource)) + framed(inner));
	put_message(o, RESOURCE_RESOURCE, &resource->base);
	put_frame(o, RESOURCE_SCOPE_PROFILES, inner);
	put_message(o, SCOPE_SCOPE, &scope.base);
	put_frame(o, SCOPE_PROFILES, profile_size);
	if (!room(o, head_size + 1)) {
		o->failed = true;
		return;
	}
	otlp__profile__pack(head, (uint8_t *)o->packed.buf);
	fwrite(o->packed.buf, 1, head_size, o->out);
	for (size_t i = 0; i < o->rows.len && !o->failed; i++) {
		make_sample(o, &o->rows.items[i], &sample, attributes);
		put_message(o, PROFILE_SAMPLES, &sample.base);
	}
}

static void put_event(struct otlp *o, uint32_t event)
{
	const struct profile_summary *summary = profile_summary(o->profile);
	const struct profile_event *e = profile_event(o->profile, event);
	Otlp__ValueType sampled = OTLP__VALUE_TYPE__INIT, period = OTLP__VALUE_TYPE__INIT;
	Otlp__Profile head = OTLP__PROFILE__INIT;
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	Otlp__KeyValue attribute = OTLP__KEY_VALUE__INIT, *attributes = &attribute;
	Otlp__AnyValue command = OTLP__ANY_VALUE__INIT;
	struct strbuf text = {0};
	int64_t wall = 0;

	period.type_strindex = add_string(o, e->name);
	period.unit_strindex = add_string(o, export_event_is_time(o->profile, event) ? "nanoseconds"
										     : "count");
	if (!o->options->by_period) {
		sampled.type_strindex = add_string(o, "samples");
		sampled.unit_strindex = add_string(o, "count");
	}
	head.sample_type = o->options->by_period ? &period : &sampled;
	head.period_type = &period;
	head.period = (int64_t)e->period;
	if (export_wall_time(o->options, summary->first_time, &wall))
		head.time_unix_nano = (uint64_t)wall;
	/* The last sample, too, is within. */
	head.duration_nano = summary->last_time - summary->first_time + 1;
	if (summary->command) {
		text_repair(&text, summary->command, strlen(summary->command));
		command.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		command.string_value = (char *)strbuf_text(&text);
		attribute.key = (char *)"process.command_line";
		attribute.value = &command;
		resource.n_attributes = 1;
		resource.attributes = &attributes;
	}
	put_profile(o, &resource, &head);
	o->failed |= strbuf_failed(&text);
	strbuf_fini(&text);
}

static int export_event(struct otlp *o, uint32_t event, struct err *err)
{
	bool counted = profile_event_counted(profile_event(o->profile, event), event);
	int64_t wall;
	int rc;

	if (counted || !export_wall_time(o->options, 0, &wall))
		rc = collect_cells(o, event, err);
	else
		rc = collect_samples(o, event, err);
	if (!rc)
		put_event(o, event);
	free(o->points);
	o->points = NULL;
	o->rows.len = 0;
	map_fini(&o->known);
	o->known = (struct map){0};
	return rc;
}

static int otlp_init(struct otlp *o, struct err *err)
{
	struct intern *tables[] = {&o->strings, &o->mappings, &o->functions, &o->locations,
				   &o->attributes};
	int rc = folds_init(&o->folds, o->profile, true, err);

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		intern_init(tables[i]);
	if (rc)
		return rc;
	o->nodes = calloc(o->folds.tree.len + 1, sizeof(*o->nodes));
	o->stacks = calloc(o->folds.tree.len + 1, sizeof(*o->stacks));
	o->threads = calloc(profile_thread_count(o->profile) + 1, sizeof(*o->threads));
	return o->nodes && o->stacks && o->threads ? 0 : err_nomem(err);
}

static void otlp_fini(struct otlp *o)
{
	struct intern *tables[] = {&o->strings, &o->mappings, &o->functions, &o->locations,
				   &o->attributes};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		intern_fini(tables[i]);
	free(o->nodes);
	free(o->stacks);
	free(o->threads);
	vec_fini(&o->rows);
	vec_fini(&o->values);
	vec_fini(&o->times);
	vec_fini(&o->frames);
	vec_fini(&o->path);
	map_fini(&o->tree);
	map_fini(&o->known);
	strbuf_fini(&o->packed);
	strbuf_fini(&o->utf8);
	folds_fini(&o->folds);
}

int export_otlp(FILE *out, const struct export_options *options, struct err *err)
{
	struct otlp o = {.out = out, .options = options, .profile = options->profile};
	int rc = otlp_init(&o, err);

	if (!rc)
		put_zeros(&o);
	for (uint32_t e = 0; !rc && e < profile_event_count(o.profile); e++)
		if (export_has_event(options, e))
			rc = export_event(&o, e, err);
	if (!rc && (o.failed || strbuf_failed(&o.packed)))
		rc = err_nomem(err);
	otlp_fini(&o);
	return rc;
}

#endif
