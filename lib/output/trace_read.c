#include "output/trace_read.h"

#include "base/map.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "base/unpack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_gen.h>
#include <yajl/yajl_parse.h>

/*
 * The parser calls back for each token. Below the root, and within the three containers that we add
 * to, each value is rebuilt by a generator of its own into `text`, so that an event can be looked
 * at as a whole and left out; all other values are passed on as they come.
 */
#define CHUNK (256u << 10)
#define DEPTH_MAX 100	      /* of a value; the generator has 128 */
#define VALUE_MAX (64u << 20) /* bytes of an event */
#define TOKEN_MAX (8u << 20)  /* yajl reads one that has not ended again with each chunk */

static const struct {
	const char *key;
	bool is_map;
} containers[] = {
	[TRACE_EVENTS] = {"traceEvents", false},
	[TRACE_FRAMES] = {"stackFrames", true},
	[TRACE_SAMPLES] = {"samples", false},
};

/* Members of an event that matter here. */
enum field {
	FIELD_NONE,
	FIELD_PHASE,
	FIELD_TIME,
	FIELD_DURATION,
	FIELD_PID,
	FIELD_TID,
	FIELD_NAME
};
static const char *const fields[] = {
	[FIELD_NONE] = "",   [FIELD_PHASE] = "ph", [FIELD_TIME] = "ts",	  [FIELD_DURATION] = "dur",
	[FIELD_PID] = "pid", [FIELD_TID] = "tid",  [FIELD_NAME] = "name",
};

struct reader {
	const struct trace_visitor *visitor;
	struct err *err;
	int rc;
	yajl_gen gen;
	struct strbuf text; /* of the value at hand */
	struct strbuf key;  /* of the root's member at hand, as JSON */
	bool started, ended, root_is_array;
	int container;		    /* that is open; -1: none */
	int member;		    /* container that the next value of the root opens, or -1 */
	bool is_base, is_viztracer; /* what the next value of the root is */
	bool viztracer_base;	    /* and the next value within that */
	unsigned int depth;	    /* within the value at hand */
	bool root_comma, comma;	    /* something stands before, in the root and in the container */
	bool seen[TRACE_CONTAINERS];
	enum field field;
	struct trace_event event;
	uint64_t tokens, events;
};

static int fail(struct reader *r, const char *why)
{
	r->rc = err_set(r->err, ERR_CORRUPT, "the trace %s", why);
	return 0;
}

static void take_text(void *ctx, const char *bytes, size_t len)
{
	strbuf_add(&((struct reader *)ctx)->text, bytes, len);
}

static void put(struct reader *r, const char *bytes, size_t len)
{
	if (r->visitor->out && len)
		fwrite(bytes, 1, len, r->visitor->out);
}

static void put_str(struct reader *r, const char *text)
{
	put(r, text, strlen(text));
}

/* Microseconds with a fraction, exactly where they have no exponent; false for nonsense. */
static bool parse_time(const char *text, size_t len, int64_t *ns)
{
	char copy[64];
	const char *s = copy;
	int64_t value = 0;
	int decimals = -1;
	double inexact;

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	s += *s == '-';
	for (; *s && decimals < 3; s++) {
		if (*s == '.') {
			decimals = 0;
			continue;
		}
		if (*s < '0' || *s > '9' || value > INT64_MAX / 10000)
			break;
		value = value * 10 + (*s - '0');
		decimals += decimals >= 0;
	}
	if (!*s || (decimals == 3 && strspn(s, "0123456789") == strlen(s))) {
		for (int i = decimals < 0 ? 0 : decimals; i < 3; i++)
			value *= 10;
		*ns = copy[0] == '-' ? -value : value;
		return true;
	}
	inexact = strtod(copy, NULL) * 1000;
	if (!(fabs(inexact) < 9e18))
		return false;
	*ns = llrint(inexact);
	return true;
}

/* Whole numbers as they are, all else by a hash that is unlike them. */
static int64_t parse_id(const char *text, size_t len)
{
	uint64_t hash = len;
	char copy[24];
	char *end;
	long long value;

	if (len < sizeof(copy)) {
		memcpy(copy, text, len);
		copy[len] = '\0';
		value = strtoll(copy, &end, 10);
		if (len && !*end)
			return value;
	}
	for (size_t i = 0; i < len; i++)
		hash = map_mix(hash, (unsigned char)text[i]);
	return (int64_t)(hash | 1ull << 63);
}

static bool is_word(const char *word, const unsigned char *text, size_t len)
{
	return strlen(word) == len && memcmp(word, text, len) == 0;
}

static void take_field(struct reader *r, const char *text, size_t len, bool number)
{
	struct trace_event *event = &r->event;

	switch (r->field) {
	case FIELD_PHASE:
		event->phase = len ? text[0] : 0;
		break;
	case FIELD_TIME:
		event->has_time = parse_time(text, len, &event->time);
		break;
	case FIELD_DURATION:
		event->has_duration = parse_time(text, len, &event->duration);
		break;
	case FIELD_PID:
		event->pid = parse_id(text, len);
		break;
	case FIELD_TID:
		event->tid = parse_id(text, len);
		break;
	case FIELD_NAME:
		event->names_process = is_word("process_name", (const void *)text, len);
		break;
	case FIELD_NONE:
		break;
	}
}

static void take_base(struct reader *r, const char *text, size_t len)
{
	char copy[32];
	char *end;
	long long base;

	if (!r->visitor->base || len >= sizeof(copy))
		return;
	memcpy(copy, text, len);
	copy[len] = '\0';
	base = strtoll(copy, &end, 10);
	r->visitor->base(len && !*end && base > 0, base, r->visitor->ctx);
}

/* A value of the root or of a container is complete. */
static int value_done(struct reader *r)
{
	int keep = 1;

	if (strbuf_failed(&r->text)) {
		r->rc = err_nomem(r->err);
		return 0;
	}
	if (r->container == TRACE_EVENTS) {
		r->event.number = r->events++;
		keep = r->visitor->event(&r->event, r->visitor->ctx, r->err);
		if (keep < 0) {
			r->rc = keep;
			return 0;
		}
		if (keep && r->comma)
			put_str(r, ",\n");
	}
	if (keep) {
		put(r, r->text.buf, r->text.len);
		r->comma = true;
	}
	strbuf_reset(&r->text);
	r->is_base = r->is_viztracer = r->viztracer_base = false;
	return 1;
}

/* Before a value's first token. An event's comma waits until it is known to be kept. */
static int value_begins(struct reader *r)
{
	if (!r->started || r->ended)
		return fail(r, "is no object and no array");
	if (r->container == TRACE_SAMPLES && r->comma)
		put_str(r, ",\n");
	if (r->container < 0) {
		put_str(r, r->root_comma ? ",\n" : "\n");
		put(r, r->key.buf, r->key.len);
		put_str(r, ":");
		r->root_comma = true;
	}
	r->event = (struct trace_event){0};
	r->field = FIELD_NONE;
	yajl_gen_reset(r->gen, NULL);
	return 1;
}

/* After each token of a value; `status` is the generator's. */
static int value_goes_on(struct reader *r, yajl_gen_status status)
{
	r->tokens++;
	if (status != yajl_gen_status_ok)
		return fail(r, "is nested too deeply");
	if (r->depth == 0)
		return value_done(r);
	if (r->text.len < VALUE_MAX / 1024)
		return 1;
	if (r->container == TRACE_EVENTS) {
		if (r->text.len > VALUE_MAX)
			return fail(r, "has an event of more than 64 MB");
		return 1;
	}
	if (strbuf_failed(&r->text))
		return 1;
	put(r, r->text.buf, r->text.len);
	strbuf_reset(&r->text);
	return 1;
}

static int scalar(struct reader *r, const char *text, size_t len, bool number,
		  yajl_gen_status (*generate)(yajl_gen gen, const char *text, size_t len))
{
	if (r->depth == 0 && !value_begins(r))
		return 0;
	if (r->container == TRACE_EVENTS && r->depth == 1)
		take_field(r, text, len, number);
	if ((r->is_base && r->depth == 0) || (r->viztracer_base && r->depth == 1))
		take_base(r, text, len);
	r->field = FIELD_NONE;
	return value_goes_on(r, generate(r->gen, text, len));
}

static yajl_gen_status generate_null(yajl_gen gen, const char *text, size_t len)
{
	return yajl_gen_null(gen);
}

static yajl_gen_status generate_bool(yajl_gen gen, const char *text, size_t len)
{
	return yajl_gen_bool(gen, text[0] == 't');
}

static yajl_gen_status generate_string(yajl_gen gen, const char *text, size_t len)
{
	return yajl_gen_string(gen, (const unsigned char *)text, len);
}

static int on_null(void *ctx)
{
	return scalar(ctx, "null", 4, false, generate_null);
}

static int on_boolean(void *ctx, int value)
{
	return value ? scalar(ctx, "true", 4, false, generate_bool)
		     : scalar(ctx, "false", 5, false, generate_bool);
}

/* The text as it stands, so that no digit is lost. */
static int on_number(void *ctx, const char *text, size_t len)
{
	return scalar(ctx, text, len, true, yajl_gen_number);
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
	return scalar(ctx, (const char *)text, len, false, generate_string);
}

static int open_container(struct reader *r, int container)
{
	if (r->seen[container])
		return fail(r, "has the same container twice");
	r->seen[container] = true;
	r->container = container;
	r->comma = false;
	put_str(r, r->root_comma ? ",\n\"" : "\n\"");
	r->root_comma = true;
	put_str(r, containers[container].key);
	put_str(r, containers[container].is_map ? "\":{\n" : "\":[\n");
	return 1;
}

static int close_container(struct reader *r)
{
	int container = r->container;

	if (r->visitor->end) {
		r->rc = r->visitor->end((enum trace_container)container, r->comma, r->visitor->ctx,
					r->err);
		if (r->rc)
			return 0;
	}
	put_str(r, containers[container].is_map ? "}" : "]");
	r->container = -1;
	return 1;
}

static int on_start(struct reader *r, bool map)
{
	if (!r->started) {
		r->started = true;
		r->root_is_array = !map;
		put_str(r, "{");
		return map ? 1 : open_container(r, TRACE_EVENTS);
	}
	if (r->depth == 0 && r->container < 0 && r->member >= 0 &&
	    map == containers[r->member].is_map)
		return open_container(r, r->member);
	if (r->depth == 0 && !value_begins(r))
		return 0;
	if (++r->depth > DEPTH_MAX)
		return fail(r, "is nested too deeply");
	r->field = FIELD_NONE;
	return value_goes_on(r, map ? yajl_gen_map_open(r->gen) : yajl_gen_array_open(r->gen));
}

static int on_end(struct reader *r, bool map)
{
	if (r->depth) {
		r->depth--;
		return value_goes_on(r, map ? yajl_gen_map_close(r->gen)
					    : yajl_gen_array_close(r->gen));
	}
	if (r->container >= 0) {
		if (!close_container(r))
			return 0;
		r->ended = r->root_is_array;
		return 1;
	}
	r->ended = true;
	return 1;
}

static int on_start_map(void *ctx)
{
	return on_start(ctx, true);
}

static int on_end_map(void *ctx)
{
	return on_end(ctx, true);
}

static int on_start_array(void *ctx)
{
	return on_start(ctx, false);
}

static int on_end_array(void *ctx)
{
	return on_end(ctx, false);
}

static int root_key(struct reader *r, const unsigned char *text, size_t len)
{
	r->member = -1;
	for (int i = 0; i < TRACE_CONTAINERS; i++)
		if (is_word(containers[i].key, text, len))
			r->member = i;
	r->is_base = is_word("baseTimeNanoseconds", text, len);
	r->is_viztracer = is_word("viztracer_metadata", text, len);
	if (r->is_viztracer && r->visitor->viztracer)
		r->visitor->viztracer(r->visitor->ctx);
	yajl_gen_reset(r->gen, NULL);
	yajl_gen_string(r->gen, text, len);
	strbuf_reset(&r->key);
	strbuf_add(&r->key, r->text.buf, r->text.len);
	strbuf_reset(&r->text);
	return 1;
}

static int on_map_key(void *ctx, const unsigned char *text, size_t len)
{
	struct reader *r = ctx;

	r->tokens++;
	if (r->depth == 0 && r->container < 0)
		return root_key(r, text, len);
	if (r->depth == 0) { /* of "stackFrames" */
		put_str(r, r->comma ? ",\n" : "");
		yajl_gen_reset(r->gen, NULL);
		yajl_gen_string(r->gen, text, len);
		put(r, r->text.buf, r->text.len);
		put_str(r, ":");
		strbuf_reset(&r->text);
		return 1;
	}
	r->viztracer_base = r->is_viztracer && r->depth == 1 &&
			    is_word("baseTimeNanoseconds", text, len);
	r->field = FIELD_NONE;
	for (int i = FIELD_PHASE; r->depth == 1 && i <= FIELD_NAME; i++)
		if (is_word(fields[i], text, len))
			r->field = (enum field)i;
	return value_goes_on(r, yajl_gen_string(r->gen, text, len));
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_start_map,
	.yajl_map_key = on_map_key,
	.yajl_end_map = on_end_map,
	.yajl_start_array = on_start_array,
	.yajl_end_array = on_end_array,
};

static int parse_error(yajl_handle parser, const unsigned char *bytes, size_t len, uint64_t before,
		       struct reader *r)
{
	unsigned char *text;
	char line[128] = "";

	if (r->rc)
		return r->rc;
	text = yajl_get_error(parser, 0, bytes, len);
	if (text)
		snprintf(line, sizeof(line), "%.*s", (int)strcspn((char *)text, "\n"),
			 (char *)text);
	yajl_free_error(parser, text);
	return err_set(r->err, ERR_CORRUPT, "the trace is no JSON near byte %llu: %s",
		       (unsigned long long)(before + yajl_get_bytes_consumed(parser)), line);
}

static int parse(struct reader *r, yajl_handle parser, FILE *file, const char *path)
{
	unsigned char *chunk = malloc(CHUNK);
	uint32_t work = progress_start("reading the other trace", PROGRESS_BYTES, 0);
	uint64_t before = 0, tokens = 0, silent = 0;
	size_t len = 0;
	int rc = chunk ? 0 : err_nomem(r->err);

	while (!rc && (len = fread(chunk, 1, CHUNK, file))) {
		if (yajl_parse(parser, chunk, len) != yajl_status_ok)
			rc = parse_error(parser, chunk, len, before, r);
		before += len;
		progress_at(work, before);
		silent = r->tokens == tokens ? silent + len : 0;
		tokens = r->tokens;
		if (!rc && silent > TOKEN_MAX)
			rc = err_set(r->err, ERR_CORRUPT,
				     "the trace has a string of more than 8 MB");
	}
	progress_end(work);
	if (!rc)
		rc = unpack_failed(file, path, r->err);
	if (!rc && yajl_complete_parse(parser) != yajl_status_ok)
		rc = parse_error(parser, chunk, 0, before, r);
	free(chunk);
	return rc;
}

/* The array of events may lack its end, says the format: what wrote it may have crashed. */
static int finish(struct reader *r)
{
	if (!r->started)
		return err_set(r->err, ERR_CORRUPT, "the trace is empty");
	if (!r->ended && !(r->root_is_array && r->depth == 0))
		return err_set(r->err, ERR_CORRUPT, "the trace is cut short");
	if (r->container >= 0 && !close_container(r))
		return r->rc;
	if (!r->seen[TRACE_EVENTS])
		return err_set(r->err, ERR_CORRUPT,
			       "the file has no traceEvents, so it is no trace");
	for (int i = 0; r->visitor->out && i < TRACE_CONTAINERS; i++)
		if (!r->seen[i] && (!open_container(r, i) || !close_container(r)))
			return r->rc;
	put_str(r, "}\n");
	return 0;
}

int trace_read(const char *path, const struct trace_visitor *visitor, struct err *err)
{
	struct reader r = {.visitor = visitor, .err = err, .container = -1, .member = -1};
	yajl_handle parser = yajl_alloc(&callbacks, NULL, &r);
	FILE *file = NULL;
	int rc;

	r.gen = yajl_gen_alloc(NULL);
	if (!parser || !r.gen) {
		rc = err_nomem(err);
	} else {
		/* Text goes through as it is; viewers say what they think of it. */
		yajl_config(parser, yajl_dont_validate_strings, 1);
		/* The end of a bare array may be missing. */
		yajl_config(parser, yajl_allow_partial_values, 1);
		yajl_gen_config(r.gen, yajl_gen_print_callback, take_text, &r);
		rc = unpack_open(&file, path, err);
	}
	if (!rc)
		rc = parse(&r, parser, file, path);
	if (!rc)
		rc = finish(&r);
	if (file)
		fclose(file);
	if (parser)
		yajl_free(parser);
	if (r.gen)
		yajl_gen_free(r.gen);
	strbuf_fini(&r.text);
	strbuf_fini(&r.key);
	return rc;
}
