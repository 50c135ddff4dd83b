#ifndef PYPERF_OUTPUT_NAMES_H
#define PYPERF_OUTPUT_NAMES_H

#include "base/strbuf.h"
#include "profile/profile.h"

#include <stdbool.h>

/*
 * What events, files and functions are called in a table.
 *
 * Two events of one name become "cycles" and "cycles#2". A file is called by the shortest tail of
 * its path that no other file of the recording shares: "train.py", but "a/util.py" beside
 * "b/util.py". What the functions append is escaped and safe on a terminal.
 */
struct names;

int names_new(struct names **names, const struct profile *profile, struct err *err);
void names_free(struct names *names);

const char *names_event(const struct names *names, uint32_t event); /* raw: escape it */
bool names_event_has_samples(const struct names *names, uint32_t event);
/* Events without samples of their own get no columns in text, but for the one that ranks. */
bool names_event_has_columns(const struct names *names, uint32_t event, uint32_t ranked);
void names_add_event(const struct names *names, uint32_t event, struct strbuf *out);
/* Is the function code without a symbol ("[libfoo.so]", "0x12af [libfoo.so]")? */
bool names_is_unnamed(const struct names *names, uint32_t function);
void names_add_function(const struct names *names, uint32_t function, struct strbuf *out);
/* "train.py:9", "libfoo.so", "[kernel]"; nothing where the name tells the object. */
void names_add_place(const struct names *names, uint32_t function, struct strbuf *out);
/* The short name of a file, by its string id. */
void names_add_file(const struct names *names, uint32_t file, struct strbuf *out);
/* Any text, escaped. */
void names_add_text(struct strbuf *out, const char *text);
/* A line of source, escaped, with blanks for its tabs. */
void names_add_source(struct strbuf *out, const char *text, size_t len);

#endif
