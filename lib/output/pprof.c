#include "output/export.h"
#include "output/fold.h"

#include <stdlib.h>

#ifndef HAVE_PROTOBUF

int export_pprof(FILE *out, const struct export_options *options, struct err *err)
{
	err_set(err, ERR_UNSUPPORTED, "this pyperf was built without pprof's format");
	err_hint(err, "Build it with libprotobuf-c-dev and protobuf-c-compiler installed.");
	return ERR_UNSUPPORTED;
}

#else

#include "base/intern.h"
#include "base/map.h"
#include "base/text.h"
#include "profile/match.h"

#include <pprof/profile.pb-c.h>
#include <string.h>

/*
 * pprof's profile.proto. Two such messages behind each other are one that has the parts of both,
 * so each sample, location and function is written as a message of its own, and memory does not
 * grow with the profile.
 *
 * A sample is a thread in a stack; it has two values for each event: samples, and their periods.
 */
typedef Perftools__Profiles__Profile pprof_profile; /* the generated name is a typedef */

struct pprof_sample {
	uint32_t thread, fold;
};

struct pprof {
	FILE *out;
	const struct export_options *options;
	const struct profile *profile;
	struct folds folds;
	struct intern strings;
	struct map known;
	struct {
		VEC_OF(struct pprof_sample)
	} samples;
	struct {
		VEC_OF(int64_t)
	} values;	  /* `columns` for each sample */
	struct map files; /* string of the profile -> id of a mapping */
	uint32_t *column_of, columns;
	struct strbuf packed, utf8;
	bool failed;
};

static int64_t add_string(struct pprof *p, const char *text)
{
	uint32_t id;

	strbuf_reset(&p->utf8);
	text_repair(&p->utf8, text, strlen(text));
	id = intern_add(&p->strings, strbuf_text(&p->utf8), p->utf8.len);
	p->failed |= id == INTERN_NONE || strbuf_failed(&p->utf8);
	return id;
}

static void put(struct pprof *p, const pprof_profile *part)
{
	size_t size = perftools__profiles__profile__get_packed_size(part);
	void *bytes;

	strbuf_reset(&p->packed);
	bytes = strbuf_extend(&p->packed, size);
	if (!bytes)
		return;
	perftools__profiles__profile__pack(part, bytes);
	fwrite(bytes, 1, size, p->out);
}

/* The two columns of an event follow each other; UINT32_MAX: it is left out. */
static int choose_columns(struct pprof *p, struct err *err)
{
	size_t events = profile_event_count(p->profile);

	p->column_of = calloc(events + 1, sizeof(*p->column_of));
	if (!p->column_of)
		return err_nomem(err);
	for (uint32_t e = 0; e < events; e++) {
		p->column_of[e] = UINT32_MAX;
		if (export_has_event(p->options, e)) {
			p->column_of[e] = p->columns;
			p->columns += 2;
		}
	}
	return 0;
}

static int64_t *values_of(struct pprof *p, uint32_t thread, uint32_t fold)
{
	bool added;
	uint64_t *slot = map_put(&p->known, (uint64_t)thread << 32 | fold, &added);
	struct pprof_sample *sample;

	if (!slot)
		return NULL;
	if (added) {
		*slot = p->samples.len;
		sample = vec_push(&p->samples);
		if (!sample)
			return NULL;
		*sample = (struct pprof_sample){thread, fold};
		for (uint32_t i = 0; i < p->columns; i++)
			if (!vec_push(&p->values))
				return NULL;
	}
	return &p->values.items[*slot * p->columns];
}

static int sum_cells(struct pprof *p, struct err *err)
{
	struct view_matcher *matcher;
	int rc = view_matcher_new(&matcher, p->profile, p->options->filter, err);

	for (size_t i = 0; !rc && i < profile_cell_count(p->profile); i++) {
		const struct profile_cell *cell = profile_cell(p->profile, i);
		uint32_t column = p->column_of[cell->event];
		int64_t *values;

		if (column == UINT32_MAX || !view_matches(matcher, cell->thread, cell->stack))
			continue;
		values = values_of(p, cell->thread, p->folds.of_stack[cell->stack]);
		if (!values) {
			rc = err_nomem(err);
			break;
		}
		values[column] += (int64_t)cell->samples;
		values[column + 1] += (int64_t)cell->period;
	}
	view_matcher_free(matcher);
	return rc;
}

static void put_types(struct pprof *p)
{
	for (uint32_t e = 0; e < profile_event_count(p->profile); e++) {
		const char *event = profile_event(p->profile, e)->name;
		bool time = export_event_is_time(p->profile, e);
		Perftools__Profiles__ValueType types[2], *list[2] = {&types[0], &types[1]};
		pprof_profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
		struct strbuf name = {0};

		if (p->column_of[e] == UINT32_MAX)
			continue;
		strbuf_printf(&name, p->columns == 2 ? "samples" : "%s_samples", event);
		for (int i = 0; i < 2; i++)
			perftools__profiles__value_type__init(&types[i]);
		types[0].type = add_string(p, strbuf_text(&name));
		types[0].unit = add_string(p, "count");
		types[1].type = add_string(p, event);
		types[1].unit = add_string(p, time ? "nanoseconds" : "count");
		part.n_sample_type = 2;
		part.sample_type = list;
		/* What a reader shows unless told otherwise. */
		if (e == p->options->event) {
			part.default_sample_type = types[p->options->by_period].type;
			part.period_type = &types[1];
			part.period = (int64_t)profile_event(p->profile, e)->period;
		}
		put(p, &part);
		strbuf_fini(&name);
	}
}

static void put_head(struct pprof *p)
{
	const struct profile_summary *summary = profile_summary(p->profile);
	pprof_profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	int64_t comment = add_string(p, summary->command ? summary->command : "");

	part.duration_nanos = (int64_t)(summary->last_time - summary->first_time);
	export_wall_time(p->options, summary->first_time, &part.time_nanos);
	part.n_comment = comment != 0;
	part.comment = &comment;
	put(p, &part);
}

/* Objects of native code and the kernel; a reader takes what has names as it is. */
static uint64_t put_mapping(struct pprof *p, uint32_t file)
{
	bool added;
	uint64_t *slot = map_put(&p->files, file, &added);
	Perftools__Profiles__Mapping mapping = PERFTOOLS__PROFILES__MAPPING__INIT, *list = &mapping;
	pprof_profile part = PERFTOOLS__PROFILES__PROFILE__INIT;

	p->failed |= !slot;
	if (!slot || !added)
		return slot ? *slot : 0;
	*slot = mapping.id = p->files.count;
	mapping.filename = add_string(p, profile_text(p->profile, file));
	mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers =
		mapping.has_inline_frames = 1;
	part.n_mapping = 1;
	part.mapping = &list;
	put(p, &part);
	return mapping.id;
}

/* The first mapping gives the profile its name: an object of user space where there is one. */
static void put_mappings(struct pprof *p)
{
	for (int kind = FRAME_NATIVE; kind <= FRAME_KERNEL; kind++) {
		for (uint32_t i = 0; i < profile_function_count(p->profile); i++) {
			const struct profile_function *f = profile_function(p->profile, i);

			if ((int)f->kind == kind)
				put_mapping(p, f->file);
		}
	}
}

static void put_function(struct pprof *p, uint32_t id)
{
	const struct profile_function *f = profile_function(p->profile, id);
	Perftools__Profiles__Function function = PERFTOOLS__PROFILES__FUNCTION__INIT,
				      *list = &function;
	pprof_profile part = PERFTOOLS__PROFILES__PROFILE__INIT;

	function.id = id + 1;
	function.name = add_string(p, export_function_name(p->profile, id));
	function.system_name = add_string(p, profile_text(p->profile, f->name));
	if (f->kind == FRAME_PYTHON)
		function.filename = add_string(p, profile_text(p->profile, f->file));
	function.start_line = f->line;
	part.n_function = 1;
	part.function = &list;
	put(p, &part);
}

static void put_location(struct pprof *p, uint32_t id)
{
	const struct fold_place *place = &p->folds.places.items[id];
	const struct profile_function *f = profile_function(p->profile, place->function);
	Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT, *lines = &line;
	Perftools__Profiles__Location location = PERFTOOLS__PROFILES__LOCATION__INIT,
				      *list = &location;
	pprof_profile part = PERFTOOLS__PROFILES__PROFILE__INIT;

	line.function_id = place->function + 1;
	line.line = place->line;
	location.id = id + 1;
	if (f->kind != FRAME_PYTHON)
		location.mapping_id = put_mapping(p, f->file);
	location.n_line = 1;
	location.line = &lines;
	part.n_location = 1;
	part.location = &list;
	put(p, &part);
}

static void put_sample(struct pprof *p, size_t row, struct fold_path *path, uint64_t *locations)
{
	static const char *const keys[] = {"thread", "pid", "tid"};
	const struct pprof_sample *in = &p->samples.items[row];
	const struct profile_thread *thread = profile_thread(p->profile, in->thread);
	Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT, *list = &sample;
	Perftools__Profiles__Label labels[3], *label_list[] = {&labels[0], &labels[1], &labels[2]};
	pprof_profile part = PERFTOOLS__PROFILES__PROFILE__INIT;

	for (size_t i = 0; i < path->len; i++)
		locations[i] = p->folds.tree.items[path->items[path->len - 1 - i]].place + 1;
	for (int i = 0; i < 3; i++) {
		perftools__profiles__label__init(&labels[i]);
		labels[i].key = add_string(p, keys[i]);
	}
	labels[0].str = add_string(p, profile_text(p->profile, thread->comm));
	labels[1].num = thread->pid;
	labels[2].num = thread->tid;
	sample.n_location_id = path->len;
	sample.location_id = locations;
	sample.n_value = p->columns;
	sample.value = &p->values.items[row * p->columns];
	sample.n_label = 3;
	sample.label = label_list;
	part.n_sample = 1;
	part.sample = &list;
	put(p, &part);
}

static void put_samples(struct pprof *p)
{
	struct {
		VEC_OF(uint64_t)
	} locations = {0};
	struct fold_path path = {0};

	for (size_t i = 0; i < p->samples.len && !p->failed; i++) {
		if (folds_path(&p->folds, p->samples.items[i].fold, &path) &&
		    vec_reserve(&locations, path.len + 1))
			put_sample(p, i, &path, locations.items);
		else
			p->failed = true;
	}
	vec_fini(&locations);
	vec_fini(&path);
}

static void put_strings(struct pprof *p)
{
	for (uint32_t i = 0; i <= p->strings.count && !p->failed; i++) {
		char *text = (char *)intern_text(&p->strings, i, NULL);
		pprof_profile part = PERFTOOLS__PROFILES__PROFILE__INIT;

		part.n_string_table = 1;
		part.string_table = &text;
		put(p, &part);
	}
}

int export_pprof(FILE *out, const struct export_options *options, struct err *err)
{
	struct pprof p = {.out = out, .options = options, .profile = options->profile};
	int rc;

	intern_init(&p.strings);
	rc = folds_init(&p.folds, options->profile, true, err);
	if (!rc)
		rc = choose_columns(&p, err);
	if (!rc)
		rc = sum_cells(&p, err);
	if (!rc) {
		put_types(&p);
		put_head(&p);
		put_mappings(&p);
		for (uint32_t i = 0; i < profile_function_count(p.profile); i++)
			put_function(&p, i);
		for (uint32_t i = 0; i < p.folds.places.len; i++)
			put_location(&p, i);
		put_samples(&p);
		put_strings(&p);
	}
	if (!rc && (p.failed || strbuf_failed(&p.packed)))
		rc = err_nomem(err);
	free(p.column_of);
	vec_fini(&p.samples);
	vec_fini(&p.values);
	map_fini(&p.known);
	map_fini(&p.files);
	strbuf_fini(&p.packed);
	strbuf_fini(&p.utf8);
	intern_fini(&p.strings);
	folds_fini(&p.folds);
	return rc;
}

#endif
