#include "base/json.h"

#include "base/progress.h"
#include "base/strbuf.h"
#include "base/unpack.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yajl/yajl_parse.h>

#define CHUNK (256u << 10)
#define DEPTH_MAX 64
#define SIZE_MAX_MB 512
#define VALUES_MAX (96u << 20)
#define TOKEN_MAX (8u << 20) /* yajl reads one that has not ended again with each chunk */

/*
 * A file of a megabyte can unpack to a gigabyte, of which each byte or two is a value. So a file
 * may have so much for nothing, and so much for each byte that it takes on the disk: several times
 * what profiles have, even those that are one stack again and again for a while.
 */
#define VALUES_FREE (4u << 20)
#define VALUES_A_BYTE 16
#define TEXT_FREE (32u << 20)
#define TEXT_A_BYTE 128
#define SWELLS "unpacks to so much more than its size that it seems made to fill memory"

/* Values stand in the order of the text: an object's members are each a string and a value. */
struct value {
	uint32_t kind;
	uint32_t count; /* of elements, or of members */
	union {
		double number;
		size_t text;  /* offset in doc->text */
		uint32_t end; /* the value behind all that is inside */
	};
};

struct json_doc {
	struct {
		VEC_OF(struct value)
	} values;
	struct strbuf text;
	uint32_t open[DEPTH_MAX];
	unsigned int depth;
	uint64_t values_max, text_max;
	const char *failure; /* why parsing was stopped; NULL with `nomem` */
	bool nomem;
};

static struct value *add(struct json_doc *doc, enum json_kind kind)
{
	struct value *value = doc->values.len < doc->values_max ? vec_push(&doc->values) : NULL;

	if (!value) {
		doc->nomem = doc->values.len < doc->values_max;
		doc->failure = doc->values_max < VALUES_MAX ? SWELLS : "has too many values";
		return NULL;
	}
	value->kind = kind;
	if (doc->depth)
		doc->values.items[doc->open[doc->depth - 1]].count++;
	return value;
}

static int on_null(void *ctx)
{
	return add(ctx, JSON_NULL) != NULL;
}

static int on_boolean(void *ctx, int on)
{
	struct value *value = add(ctx, JSON_BOOL);

	if (value)
		value->number = on;
	return value != NULL;
}

static int on_number(void *ctx, const char *text, size_t len)
{
	struct value *value = add(ctx, JSON_NUMBER);
	char copy[64];

	if (!value)
		return 0;
	if (len >= sizeof(copy))
		len = sizeof(copy) - 1;
	memcpy(copy, text, len);
	copy[len] = '\0';
	value->number = strtod(copy, NULL);
	return 1;
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
	struct json_doc *doc = ctx;
	struct value *value = add(doc, JSON_STRING);

	if (!value)
		return 0;
	value->text = doc->text.len;
	strbuf_add(&doc->text, text, len);
	strbuf_char(&doc->text, '\0');
	doc->nomem = strbuf_failed(&doc->text);
	return !doc->nomem;
}

static int open_value(struct json_doc *doc, enum json_kind kind)
{
	if (doc->depth == DEPTH_MAX) {
		doc->failure = "is nested too deeply";
		return 0;
	}
	if (!add(doc, kind))
		return 0;
	doc->open[doc->depth++] = (uint32_t)doc->values.len - 1;
	return 1;
}

static int on_start_map(void *ctx)
{
	return open_value(ctx, JSON_OBJECT);
}

static int on_start_array(void *ctx)
{
	return open_value(ctx, JSON_ARRAY);
}

static int on_end(void *ctx)
{
	struct json_doc *doc = ctx;

	doc->values.items[doc->open[--doc->depth]].end = (uint32_t)doc->values.len;
	return 1;
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_start_map,
	.yajl_map_key = on_string,
	.yajl_end_map = on_end,
	.yajl_start_array = on_start_array,
	.yajl_end_array = on_end,
};

static int broken(const struct json_doc *doc, const char *path, uint64_t near, struct err *err)
{
	if (doc->nomem)
		return err_nomem(err);
	if (doc->failure)
		err_set(err, ERR_CORRUPT, "%s %s", path, doc->failure);
	if (doc->failure && strcmp(doc->failure, SWELLS) == 0)
		err_hint(err, "Where you trust it, unpack it by gunzip or zstd -d first.");
	if (doc->failure)
		return ERR_CORRUPT;
	return err_set(err, ERR_CORRUPT, "%s is no JSON, or cut short, near byte %llu", path,
		       (unsigned long long)near);
}

static int parse(struct json_doc *doc, yajl_handle parser, FILE *file, const char *path,
		 struct err *err)
{
	unsigned char *chunk = malloc(CHUNK);
	uint32_t work = progress_start("reading JSON", PROGRESS_BYTES, 0);
	uint64_t size = 0, silent = 0;
	size_t len, values = 0;
	int rc = chunk ? 0 : err_nomem(err);

	while (!rc && (len = fread(chunk, 1, CHUNK, file))) {
		if (yajl_parse(parser, chunk, len) != yajl_status_ok)
			rc = broken(doc, path, size + yajl_get_bytes_consumed(parser), err);
		size += len;
		progress_at(work, size);
		silent = doc->values.len == values ? silent + len : 0;
		values = doc->values.len;
		if (!rc && (size > doc->text_max || silent > TOKEN_MAX)) {
			doc->failure = size > doc->text_max ? SWELLS
							    : "has a string of more than 8 MB";
			rc = broken(doc, path, size, err);
		}
		if (!rc && size > (uint64_t)SIZE_MAX_MB << 20)
			rc = err_set(err, ERR_UNSUPPORTED, "%s is larger than %d MB", path,
				     SIZE_MAX_MB);
	}
	progress_end(work);
	if (!rc)
		rc = unpack_failed(file, path, err);
	if (!rc && (yajl_complete_parse(parser) != yajl_status_ok || !doc->values.len))
		rc = broken(doc, path, size, err);
	free(chunk);
	return rc;
}

/* What is no plain file has no size, and what lies in it is not known to be packed. */
static void set_limits(struct json_doc *doc, const char *path)
{
	struct stat st;
	uint64_t size = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	uint64_t values = VALUES_FREE + VALUES_A_BYTE * size;

	doc->values_max = values < VALUES_MAX ? values : VALUES_MAX;
	doc->text_max = TEXT_FREE + TEXT_A_BYTE * size;
}

int json_read(struct json_doc **out, FILE *file, const char *path, struct err *err)
{
	struct json_doc *doc = calloc(1, sizeof(*doc));
	yajl_handle parser = doc ? yajl_alloc(&callbacks, NULL, doc) : NULL;
	int rc;

	*out = NULL;
	if (parser) {
		yajl_config(parser, yajl_dont_validate_strings, 1);
		set_limits(doc, path);
		rc = parse(doc, parser, file, path, err);
		yajl_free(parser);
	} else {
		rc = err_nomem(err);
	}
	if (rc)
		json_free(doc);
	else
		*out = doc;
	return rc;
}

void json_free(struct json_doc *doc)
{
	if (!doc)
		return;
	vec_fini(&doc->values);
	strbuf_fini(&doc->text);
	free(doc);
}

uint32_t json_root(const struct json_doc *doc)
{
	return 0;
}

static const struct value *at(const struct json_doc *doc, uint32_t value)
{
	static const struct value none = {.kind = JSON_NULL};

	return value < doc->values.len ? &doc->values.items[value] : &none;
}

enum json_kind json_kind(const struct json_doc *doc, uint32_t value)
{
	return (enum json_kind)at(doc, value)->kind;
}

static bool has_parts(const struct value *value)
{
	return value->kind == JSON_ARRAY || value->kind == JSON_OBJECT;
}

static uint32_t behind(const struct json_doc *doc, uint32_t value)
{
	return has_parts(at(doc, value)) ? at(doc, value)->end : value + 1;
}

uint32_t json_get(const struct json_doc *doc, uint32_t object, const char *key)
{
	const struct value *o = at(doc, object);

	if (o->kind != JSON_OBJECT)
		return JSON_NONE;
	for (uint32_t name = object + 1; name < o->end; name = behind(doc, name + 1))
		if (strcmp(json_text(doc, name), key) == 0)
			return name + 1;
	return JSON_NONE;
}

size_t json_count(const struct json_doc *doc, uint32_t array)
{
	return json_kind(doc, array) == JSON_ARRAY ? at(doc, array)->count : 0;
}

uint32_t json_first(const struct json_doc *doc, uint32_t array)
{
	return json_count(doc, array) ? array + 1 : JSON_NONE;
}

uint32_t json_next(const struct json_doc *doc, uint32_t array, uint32_t element)
{
	uint32_t next = behind(doc, element);

	return next < at(doc, array)->end ? next : JSON_NONE;
}

uint32_t json_at(const struct json_doc *doc, uint32_t array, size_t index)
{
	if (index >= json_count(doc, array) ||
	    at(doc, array)->end - array - 1 != at(doc, array)->count)
		return JSON_NONE;
	return array + 1 + (uint32_t)index;
}

double json_number(const struct json_doc *doc, uint32_t value, double otherwise)
{
	return json_kind(doc, value) == JSON_NUMBER ? at(doc, value)->number : otherwise;
}

uint32_t json_index(const struct json_doc *doc, uint32_t value, size_t most)
{
	double number = json_number(doc, value, -1);

	if (!(number >= 0) || number > (double)most || number >= (double)UINT32_MAX ||
	    number != (double)(uint32_t)number)
		return UINT32_MAX;
	return (uint32_t)number;
}

const char *json_text(const struct json_doc *doc, uint32_t value)
{
	const struct value *v = at(doc, value);

	return v->kind == JSON_STRING ? doc->text.buf + v->text : "";
}
