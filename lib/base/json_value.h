#ifndef PYPERF_JSON_VALUE_H
#define PYPERF_JSON_VALUE_H

/* Text as a JSON string for jansson, repaired where it is no UTF-8 (text.h); NULL becomes null.
 * NULL when memory runs out. */
struct json_t;
struct json_t *json_of_text(const char *text);

#endif
