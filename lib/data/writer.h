#ifndef PYPERF_WRITER_H
#define PYPERF_WRITER_H

#include "data/data.h"

/*
 * Writing perf.data in file mode, zstd-compressed where a level is given (type 81 records, one
 * frame each). The header is written first with an open data size, so that a file whose writer was
 * killed can still be read as far as it got; close completes it.
 *
 * A failed write (full disk) is remembered: later writes do nothing and return it again; close
 * then still writes as much of the header as makes the file readable, and returns it too.
 */
struct data_writer;

struct data_writer_options {
	int zstd_level;	 /* 0 writes plain records */
	size_t mmap_len; /* bytes of the largest ring: perf sizes its decompression buffer by it.
			    0: as much as our frames need */
};

/* Events are copied. `path` is created or truncated with mode 0600; keeping an older file is the
 * caller's. */
int data_writer_open(struct data_writer **writer, const char *path, const struct data_event *events,
		     size_t count, const struct data_writer_options *options, struct err *err);

/* Whole records, host byte order. SAMPLE_TIME is kept from what data_writer_time() is told. */
int data_write(struct data_writer *writer, const void *records, size_t len, struct err *err);
/* A piece of a hardware trace, as AUXTRACE: `offset` is where it begins in its buffer, of which
 * each has a number; a CPU's, or (cpu -1) a thread's. */
struct data_trace_piece {
	uint64_t offset;
	uint32_t buffer, tid, cpu;
	struct bytes parts[2]; /* of it, one behind the other */
};
int data_write_trace(struct data_writer *writer, const struct data_trace_piece *piece,
		     struct err *err);
int data_write_round(struct data_writer *writer, struct err *err); /* FINISHED_ROUND */
void data_writer_time(struct data_writer *writer, uint64_t sample_time);

/* To be written at close, in the order of their ids. Bytes are copied; a second call for the same
 * section replaces the first. */
int data_writer_section(struct data_writer *writer, enum data_section section, const void *bytes,
			size_t len, struct err *err);
/* Kept until close; the same path is written once. */
int data_writer_build_id(struct data_writer *writer, int32_t pid, uint16_t misc, const char *path,
			 const uint8_t *id, size_t id_len, struct err *err);

/* Bytes of the file so far; what is still gathered for the next frame is not counted. */
uint64_t data_writer_bytes(const struct data_writer *writer);

/* Writes features (EVENT_DESC, GROUP_DESC, COMPRESSED and SAMPLE_TIME are made from what is known;
 * the rest comes from `info`; NULL fields are left out) and completes the header. The writer is
 * freed whatever happens. */
int data_writer_close(struct data_writer *writer, const struct data_info *info, struct err *err);

#endif
