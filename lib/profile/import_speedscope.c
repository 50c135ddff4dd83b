#include "profile/importer.h"

#include <stdlib.h>
#include <string.h>

/*
 * speedscope's file format: frames (functions, that is) once, then profiles that are lists of
 * stacks with weights ("sampled") or of openings and closings of frames ("evented").
 */
#define DEPTH_MAX 4096

struct speedscope {
	struct importer *importer;
	const struct json_doc *doc;
	struct {
		VEC_OF(uint32_t)
	} frames; /* of the profile, by number in the file */
	uint32_t thread, event;
	double scale; /* of values, to periods; 0: they count samples */
};

static const struct {
	const char *unit, *event;
	double scale;
} units[] = {
	{"none", "samples", 0},	       {"nanoseconds", "time", 1}, {"microseconds", "time", 1e3},
	{"milliseconds", "time", 1e6}, {"seconds", "time", 1e9},   {"bytes", "bytes", 1},
};

static int take_frames(struct speedscope *s, struct err *err)
{
	const struct json_doc *doc = s->doc;
	uint32_t frames = json_get(doc, json_get(doc, json_root(doc), "shared"), "frames");

	for (uint32_t f = json_first(doc, frames); f != JSON_NONE; f = json_next(doc, frames, f)) {
		const char *file = json_text(doc, json_get(doc, f, "file"));
		uint32_t line = json_index(doc, json_get(doc, f, "line"), INT32_MAX), function;
		uint32_t *slot = vec_push(&s->frames);

		function = import_function(s->importer, import_kind(file),
					   json_text(doc, json_get(doc, f, "name")), file,
					   line == UINT32_MAX ? 0 : line);
		if (!slot || function == KEYED_NONE)
			return err_nomem(err);
		*slot = import_frame(s->importer, function, 0);
		if (*slot == KEYED_NONE)
			return err_nomem(err);
	}
	return 0;
}

static int bad_frame(const struct speedscope *s, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "%s names a frame that it does not have",
		       s->importer->path);
}

static int add_sample(struct speedscope *s, double at, double weight, struct err *err)
{
	double period = weight * s->scale;
	uint64_t time = at > 0 && at < 1e15 ? (uint64_t)(at * (s->scale ? s->scale : 1)) + 1 : 0;

	if (!(weight > 0) || weight > 1e15 || period > 1e18)
		return 0;
	if (s->scale == 0)
		return import_sample(s->importer, s->thread, s->event, time,
				     (uint64_t)(weight + 0.5), 1, err);
	return import_sample(s->importer, s->thread, s->event, time, 1, (uint64_t)(period + 0.5),
			     err);
}

static int take_sampled(struct speedscope *s, uint32_t profile, struct err *err)
{
	const struct json_doc *doc = s->doc;
	uint32_t samples = json_get(doc, profile, "samples");
	uint32_t weights = json_get(doc, profile, "weights"), number = 0;
	double at = json_number(doc, json_get(doc, profile, "startValue"), 0);
	int rc = 0;

	if (json_count(doc, samples) != json_count(doc, weights))
		return err_set(err, ERR_CORRUPT, "%s has %zu samples with %zu weights",
			       s->importer->path, json_count(doc, samples),
			       json_count(doc, weights));
	for (uint32_t i = json_first(doc, samples); i != JSON_NONE && !rc;
	     i = json_next(doc, samples, i)) {
		double weight = json_number(doc, json_at(doc, weights, number++), 0);
		size_t depth = json_count(doc, i);

		s->importer->stack.len = 0;
		for (size_t f = depth; f-- && depth - f <= DEPTH_MAX;) {
			uint32_t frame = json_index(doc, json_at(doc, i, f), UINT32_MAX - 1);
			uint32_t *slot;

			if (frame >= s->frames.len)
				return bad_frame(s, err);
			slot = vec_push(&s->importer->stack);
			if (!slot)
				return err_nomem(err);
			*slot = s->frames.items[frame];
		}
		rc = add_sample(s, at, weight, err);
		at += weight;
	}
	return rc;
}

/* The open frames stand root first in the importer's stack, and are turned around for a sample. */
static int add_open(struct speedscope *s, double from, double to, struct err *err)
{
	uint32_t *items = s->importer->stack.items;
	size_t len = s->importer->stack.len;
	int rc;

	if (!(to > from) || !len)
		return 0;
	for (int turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < len / 2; i++) {
			uint32_t other = items[len - 1 - i];

			items[len - 1 - i] = items[i];
			items[i] = other;
		}
		if (turn == 0)
			rc = add_sample(s, from, to - from, err);
	}
	return rc;
}

static int take_evented(struct speedscope *s, uint32_t profile, struct err *err)
{
	const struct json_doc *doc = s->doc;
	uint32_t events = json_get(doc, profile, "events");
	double last = json_number(doc, json_get(doc, profile, "startValue"), 0);
	int rc = 0;

	s->importer->stack.len = 0;
	for (uint32_t e = json_first(doc, events); e != JSON_NONE && !rc;
	     e = json_next(doc, events, e)) {
		bool opens = strcmp(json_text(doc, json_get(doc, e, "type")), "O") == 0;
		double at = json_number(doc, json_get(doc, e, "at"), last);
		uint32_t frame = json_index(doc, json_get(doc, e, "frame"), UINT32_MAX - 1), *slot;

		if (frame >= s->frames.len)
			return bad_frame(s, err);
		rc = add_open(s, last, at, err);
		last = at > last ? at : last;
		if (!opens) {
			s->importer->stack.len -= s->importer->stack.len != 0;
			continue;
		}
		if (s->importer->stack.len == DEPTH_MAX)
			return err_set(err, ERR_CORRUPT, "%s has stacks of more than %d frames",
				       s->importer->path, DEPTH_MAX);
		slot = vec_push(&s->importer->stack);
		if (!slot)
			return err_nomem(err);
		*slot = s->frames.items[frame];
	}
	return rc;
}

/* Ours are called "python3 100/101: cycles"; of others all is the thread's name. */
static int name_profile(struct speedscope *s, uint32_t profile, struct err *err)
{
	struct strbuf name = {0};
	const char *event = NULL;
	unsigned int pid = 0, tid = 0;
	char *colon, *blank;
	int end = -1;

	s->scale = 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(json_text(s->doc, json_get(s->doc, profile, "unit")), units[i].unit))
			continue;
		event = units[i].event;
		s->scale = units[i].scale;
	}
	strbuf_str(&name, json_text(s->doc, json_get(s->doc, profile, "name")));
	strbuf_str(&name, "");
	colon = name.buf ? strrchr(name.buf, ':') : NULL;
	if (colon && colon[1] == ' ') {
		*colon = '\0';
		blank = strrchr(name.buf, ' ');
		if (blank && sscanf(blank, " %9u/%9u%n", &pid, &tid, &end) == 2 && end > 0 &&
		    !blank[end]) {
			*blank = '\0';
			event = colon + 2;
		} else {
			*colon = ':';
			pid = tid = 0;
		}
	}
	s->event = import_event(s->importer, event ? event : "samples");
	s->thread = profile_add_thread(s->importer->profile, pid, tid, strbuf_text(&name));
	strbuf_fini(&name);
	return s->event == KEYED_NONE || s->thread == KEYED_NONE ? err_nomem(err) : 0;
}

int import_speedscope(struct importer *importer, const struct json_doc *doc, struct err *err)
{
	struct speedscope s = {.importer = importer, .doc = doc};
	uint32_t profiles = json_get(doc, json_root(doc), "profiles");
	int rc = take_frames(&s, err);

	for (uint32_t p = json_first(doc, profiles); p != JSON_NONE && !rc;
	     p = json_next(doc, profiles, p)) {
		const char *type = json_text(doc, json_get(doc, p, "type"));

		rc = name_profile(&s, p, err);
		if (!rc && strcmp(type, "sampled") == 0)
			rc = take_sampled(&s, p, err);
		else if (!rc && strcmp(type, "evented") == 0)
			rc = take_evented(&s, p, err);
		else if (!rc)
			rc = err_set(err, ERR_UNSUPPORTED,
				     "%s has a profile of type '%s', which speedscope has not",
				     importer->path, type);
	}
	vec_fini(&s.frames);
	return rc;
}
