#ifndef PYPERF_JSON_H
#define PYPERF_JSON_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A JSON document in little memory, 16 bytes a value: for files of other tools, which are large and
 * may be hostile. Depth and size are bounded. Values are known by their index; every question may
 * be asked of any of them, also of JSON_NONE: what has no answer answers nothing.
 */
struct json_doc;

#define JSON_NONE UINT32_MAX
enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* `path` is for messages. */
int json_read(struct json_doc **doc, FILE *file, const char *path, struct err *err);
void json_free(struct json_doc *doc);

uint32_t json_root(const struct json_doc *doc);
enum json_kind json_kind(const struct json_doc *doc, uint32_t value);
/* The member's value; JSON_NONE where there is none. */
uint32_t json_get(const struct json_doc *doc, uint32_t object, const char *key);
/* Elements of an array; 0 of anything else. */
size_t json_count(const struct json_doc *doc, uint32_t array);
/* An element of an array in which no element has elements itself. */
uint32_t json_at(const struct json_doc *doc, uint32_t array, size_t index);
/* The elements of an array one after another; JSON_NONE behind the last. */
uint32_t json_first(const struct json_doc *doc, uint32_t array);
uint32_t json_next(const struct json_doc *doc, uint32_t array, uint32_t element);

double json_number(const struct json_doc *doc, uint32_t value, double otherwise);
/* A whole number from 0 to `most`; UINT32_MAX for anything else. */
uint32_t json_index(const struct json_doc *doc, uint32_t value, size_t most);
const char *json_text(const struct json_doc *doc, uint32_t value); /* "" where it is none */

#endif
