#ifndef PYPERF_DATA_OUTPUT_H
#define PYPERF_DATA_OUTPUT_H

#include "base/arena.h"
#include "base/intern.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "data/format.h"
#include "data/writer.h"

/*
 * The writer's parts around one struct data_writer:
 *   writer.c    the stream of records: buffer, frames, full disks
 *   features.c  what is written behind them
 */

/* One frame holds at most so much, expanded. It also fits one block of our reader. */
#define FRAME_MAX (512u << 10)

struct data_writer {
	int fd;
	bool regular;
	struct err failure; /* the first one; code ERR_OK while there is none */
	struct data_writer_options options;
	struct arena arena;
	struct data_event *events;
	size_t event_count;

	unsigned char *in; /* FRAME_MAX bytes of records */
	size_t in_len;
	size_t frame; /* input that is compressed at once; follows the ratio */
	unsigned char *out;
	void *zstd;

	uint64_t data_offset, end; /* of the records; `end` is where the last whole write ended */
	uint64_t total_in, total_out;
	struct {
		VEC_OF(uint64_t)
	} cuts; /* offsets at which the records may be cut */
	uint64_t first_time, last_time, flushed_time;

	struct strbuf sections[FORMAT_FEATURES - FEATURE_PRIVATE];
	bool has_section[FORMAT_FEATURES - FEATURE_PRIVATE];
	struct strbuf build_ids;
	struct intern paths;
};

/* All sections of info and of what the writer knows, in the order of their ids. */
struct features {
	struct strbuf body; /* sections up to 199, behind each other, 8-aligned */
	struct format_section sections[FORMAT_FEATURES]; /* offsets within body */
	uint64_t bits[FORMAT_FEATURES / 64];
	unsigned int count;
};

int features_make(struct features *features, const struct data_writer *writer,
		  const struct data_info *info, struct err *err);
void features_fini(struct features *features);

/* Packs a private section for the file (level 0: as it is); strbuf_failed() where memory ran out.
 */
void section_pack(struct strbuf *out, const void *bytes, size_t len, int level);

#endif
