#include "output/export.h"
#include "output/fold.h"
#include "output/json_text.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * The file format of speedscope: functions once, then a "sampled" profile for each thread and
 * event, whose samples are lists of functions, root first, in order of time. Samples that follow
 * each other in one stack are one, with the sum of their weights.
 */
struct speedscope {
	const struct export_options *options;
	struct samples_by_thread by;
	struct folds folds;
	struct strbuf text;
	struct fold_path path;
	bool first; /* profile */
};

/* A run of samples in one stack; goes on from *at. False at the end. */
static bool next_run(const struct speedscope *s, uint32_t thread, uint32_t event, uint32_t *at,
		     uint32_t *fold, uint64_t *weight)
{
	bool any = false;

	for (; *at < s->by.starts[thread + 1]; ++*at) {
		const struct sample *sample = &s->by.all[s->by.order[*at]];
		uint32_t of = s->folds.of_stack[sample->stack];

		if (sample->event != event)
			continue;
		if (any && of != *fold)
			break;
		*weight = (any ? *weight : 0) + (s->options->by_period ? sample->period : 1);
		*fold = of;
		any = true;
	}
	return any;
}

static void put_frames(FILE *out, struct speedscope *s)
{
	const struct profile *profile = s->options->profile;
	size_t count = profile_function_count(profile);

	for (uint32_t i = 0; i < count; i++) {
		const struct profile_function *f = profile_function(profile, i);

		strbuf_str(&s->text, i ? ",\n{\"name\":" : "\n{\"name\":");
		json_add_text(&s->text, export_function_name(profile, i));
		strbuf_str(&s->text, ",\"file\":");
		json_add_text(&s->text, profile_text(profile, f->file));
		if (f->line)
			strbuf_printf(&s->text, ",\"line\":%" PRIu32, f->line);
		strbuf_char(&s->text, '}');
		json_flush_rows(out, &s->text);
	}
}

static int put_samples(FILE *out, struct speedscope *s, uint32_t thread, uint32_t event,
		       struct err *err)
{
	uint32_t at = s->by.starts[thread], fold;
	uint64_t weight;

	for (bool first = true; next_run(s, thread, event, &at, &fold, &weight); first = false) {
		if (!folds_path(&s->folds, fold, &s->path))
			return err_nomem(err);
		strbuf_str(&s->text, first ? "\n[" : ",\n[");
		for (size_t i = 0; i < s->path.len; i++) {
			if (i)
				strbuf_char(&s->text, ',');
			json_add_u64(&s->text, folds_function(&s->folds, s->path.items[i]));
		}
		strbuf_char(&s->text, ']');
		json_flush_rows(out, &s->text);
	}
	return 0;
}

static int put_profile(FILE *out, struct speedscope *s, uint32_t thread, uint32_t event,
		       struct err *err)
{
	const struct profile *profile = s->options->profile;
	bool time = s->options->by_period && export_event_is_time(profile, event);
	struct strbuf name = {0};
	uint32_t at = s->by.starts[thread], fold;
	uint64_t weight, total = 0;
	int rc;

	while (next_run(s, thread, event, &at, &fold, &weight))
		total += weight;
	if (at == s->by.starts[thread] || !total)
		return 0;
	export_add_thread(&name, profile, thread);
	strbuf_printf(&name, ": %s", profile_event(profile, event)->name);
	strbuf_str(&s->text, s->first ? "\n{\"type\":\"sampled\",\"name\":"
				      : ",\n{\"type\":\"sampled\",\"name\":");
	s->first = false;
	json_add_text(&s->text, strbuf_text(&name));
	strbuf_printf(&s->text,
		      ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\"samples\":[",
		      time ? "nanoseconds" : "none", total);
	strbuf_fini(&name);
	rc = put_samples(out, s, thread, event, err);
	strbuf_str(&s->text, "],\n\"weights\":[");
	at = s->by.starts[thread];
	for (bool first = true; next_run(s, thread, event, &at, &fold, &weight); first = false) {
		if (!first)
			strbuf_char(&s->text, ',');
		json_add_u64(&s->text, weight);
		json_flush_rows(out, &s->text);
	}
	strbuf_str(&s->text, "]}");
	return rc;
}

int export_speedscope(FILE *out, const struct export_options *options, struct err *err)
{
	const struct profile *profile = options->profile;
	const char *command = profile_summary(profile)->command;
	struct speedscope s = {.options = options, .first = true};
	struct samples_walk walk;
	int rc = samples_walk_init(&walk, options->samples, profile, options->filter,
				   export_events(options), err);

	if (!rc)
		rc = samples_by_thread(&s.by, &walk, err);
	if (!rc)
		rc = folds_init(&s.folds, profile, false, err);
	strbuf_str(&s.text, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
			    "\"exporter\":\"pyperf@" PYPERF_VERSION "\",\n\"name\":");
	json_add_text(&s.text, command ? command : "pyperf");
	strbuf_str(&s.text, ",\n\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
	if (!rc)
		put_frames(out, &s);
	strbuf_str(&s.text, "]},\n\"profiles\":[");
	for (uint32_t t = 0; t < profile_thread_count(profile); t++)
		for (uint32_t e = 0; e < profile_event_count(profile) && !rc; e++)
			if (export_has_event(options, e))
				rc = put_profile(out, &s, t, e, err);
	strbuf_str(&s.text, "]}\n");
	json_flush(out, &s.text);
	if (!rc && strbuf_failed(&s.text))
		rc = err_nomem(err);
	strbuf_fini(&s.text);
	vec_fini(&s.path);
	folds_fini(&s.folds);
	samples_by_thread_fini(&s.by);
	samples_walk_fini(&walk);
	return rc;
}
