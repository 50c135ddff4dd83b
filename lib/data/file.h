#ifndef PYPERF_DATA_FILE_H
#define PYPERF_DATA_FILE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "data/data.h"
#include "data/format.h"
#include "data/source.h"

/*
 * The reader's parts around one struct data_file:
 *   source.c   bytes of a mapped file or a stream
 *   header.c   file header, attributes, ids
 *   feature.c  feature sections
 *   section.c  our private ones, packed
 *   pipe.c     the same facts as records (pipe mode)
 *   expand.c   compressed records
 *   swap.c     files of the other byte order
 *   name.c     names of events that have none
 *   reader.c   the stream of records
 * Each takes bytes of the file as hostile. What a file makes the reader allocate is bounded by the
 * file's own size.
 */

struct expander;

struct event_type {
	uint64_t config;
	const char *name;
};

struct data_file {
	struct source source;
	bool swap, pipe;
	bool ended;  /* nothing more is read from the source */
	bool broken; /* nothing more is read at all */
	uint64_t position;
	uint64_t disk_size;

	struct expander *expander;
	struct chain bounced; /* records that had to be aligned or swapped */

	struct arena arena; /* events, ids, strings of features */
	struct {
		VEC_OF(struct data_event *)
	} events;
	struct {
		VEC_OF(struct event_type)
	} event_types; /* event_types of 3.x files: names by config */
	struct map by_id;
	uint64_t id_budget; /* ids that the file can still hold */
	struct data_info info;
	struct {
		VEC_OF(struct data_build_id)
	} build_ids;
	struct bytes sections[FORMAT_FEATURES - FEATURE_PRIVATE];
	struct strbuf piped[FORMAT_FEATURES - FEATURE_PRIVATE];

	char *loss;
	uint32_t trace_kind;  /* enum auxtrace_type of linux tools/perf */
	uint64_t trace_bytes; /* that were skipped */
	uint64_t payload; /* bytes behind the last AUXTRACE that were neither taken nor skipped */
};

/* Notes what is lost; the first reason stays. Returns 0, or ERR_NOMEM. */
int file_lose(struct data_file *file, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* header.c */
int header_read(struct data_file *file, struct err *err);
/* Reads an attr of `len` bytes as the file has it. False where it is no attr. */
bool header_attr(struct data_file *file, struct bytes in, struct perf_event_attr *attr);
/* `ids` is a view of words. */
int header_add_event(struct data_file *file, const struct perf_event_attr *attr, struct bytes ids,
		     struct err *err);
/* perf 3.x: one entry of event_types, config and name. */
int header_add_event_type(struct data_file *file, struct bytes in, struct err *err);

/* feature.c; `in` starts behind the section's or the record's header. */
int feature_read(struct data_file *file, unsigned int feature, struct bytes in, struct err *err);
int feature_read_build_id(struct data_file *file, uint16_t misc, struct bytes in, struct err *err);

/* pipe.c: 1 when the record was one of facts and is used up, 0 when it is for the caller. */
int pipe_record(struct data_file *file, uint32_t type, uint16_t misc, struct bytes in,
		struct err *err);

/* expand.c */
struct expander *expander_new(void);
void expander_free(struct expander *expander);
/* `in` stays valid until it is used up: until expander_next() returned 0. */
void expander_feed(struct expander *expander, const void *in, size_t len);
/* Shows the bytes that are expanded but not taken: at least `want` of them if there are so many.
 * Negative: ERR_CORRUPT with the reason in err, ERR_NOMEM. */
int expander_peek(struct expander *expander, size_t want, uint64_t position,
		  const unsigned char **data, size_t *have, struct err *err);
void expander_take(struct expander *expander, size_t len);
void expander_release(struct expander *expander, uint64_t position);

/* swap.c: to host byte order, in place. */
void swap_attr(struct perf_event_attr *attr);
void swap_header(struct perf_event_header *header);
/* The body; the header is in host order already. */
void swap_record(const struct data_file *file, struct perf_event_header *header);

/* name.c */
/* Takes a private section from the file, expanding it where it was packed. */
int section_read(struct data_file *file, unsigned int feature, struct bytes in, struct err *err);

const char *name_event(struct arena *arena, const struct perf_event_attr *attr);

#endif
