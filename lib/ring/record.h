#ifndef PYPERF_RECORD_H
#define PYPERF_RECORD_H

#include "base/bytes.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Bounds-checked decoding of perf_event records, with the layout that perf_event_attr gives
 * (linux/perf_event.h, "struct { struct perf_event_header header; ... }").
 *
 * Records are in host byte order and at least 8-aligned (what lib/data and lib/ring deliver).
 * Pointers in the results point into the record and live as long as it does.
 */

/* What every record says of its origin: in samples, and behind other records with sample_id_all. */
struct record_id {
	uint64_t id;   /* PERF_SAMPLE_IDENTIFIER or _ID; 0 where there is none */
	uint64_t time; /* ns on the recording's clock; 0 where there is none */
	uint32_t pid, tid;
	uint32_t cpu;
	bool has_id, has_time, has_tid, has_cpu;
};

struct record_sample {
	struct record_id id;
	uint64_t ip, addr, period, stream_id, weight, data_src, phys_addr, data_page_size;
	/* Context markers (PERF_CONTEXT_*) included, leaf first. */
	const uint64_t *callchain;
	uint64_t callchain_len;
	/* PERF_SAMPLE_BRANCH_CALL_STACK: the calls that have not returned, by the CPU, innermost
	 * first. Other branches are left out. */
	const struct perf_branch_entry *calls;
	uint64_t calls_len;
	const void *raw;
	uint32_t raw_len;
	/* PERF_SAMPLE_READ: for record_decode_read(). */
	struct bytes read;
	uint64_t regs_user_abi;
	const uint64_t *regs_user; /* one per bit of attr.sample_regs_user */
	const void *stack_user;
	uint64_t stack_user_size; /* the dynamic size: bytes that are real */
};

/*
 * Where an id lies differs by sample_type, so a reader of several events first finds the id and
 * then the attr. With PERF_SAMPLE_IDENTIFIER it is the first word of a sample and the last of any
 * other record. False where the record has none or is too short.
 */
bool record_identifier(const struct perf_event_header *record, uint64_t sample_type, uint64_t *id);

/* False when the record is shorter than its layout: then it is to be counted and left out. */
bool record_decode_sample(const struct perf_event_header *record,
			  const struct perf_event_attr *attr, struct record_sample *sample);

/*
 * What PERF_SAMPLE_READ says: counts since the event was enabled, of one event or, with
 * PERF_FORMAT_GROUP, of all events of the leader's group, the leader first. Running totals of a
 * stream (lib/data/FORMAT.md): only their differences belong to a sample.
 */
struct record_read {
	uint64_t time_enabled, time_running; /* ns; 0 where read_format has them not */
	uint64_t count;			     /* values that are still to be taken */
	uint64_t first;			     /* the value that precedes the times: of no group */
	struct bytes rest;
	uint64_t format;
};
/* False where the sample has no such part. */
bool record_decode_read(const struct record_sample *sample, const struct perf_event_attr *attr,
			struct record_read *read);
/* The next event's value, and its id (0 without PERF_FORMAT_ID). False at the end. */
bool record_next_value(struct record_read *read, uint64_t *value, uint64_t *id);

/* The trailing sample_id of a record that is no sample. All zero where there is none. */
bool record_decode_id(const struct perf_event_header *record, const struct perf_event_attr *attr,
		      struct record_id *id);

/* PERF_RECORD_LOST: lost records; PERF_RECORD_LOST_SAMPLES: lost samples. 0 for other records. */
uint64_t record_lost(const struct perf_event_header *record);

/* MMAP and MMAP2 as one. The filename ends within the record. */
struct record_mmap {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino;
	uint32_t prot;		 /* PROT_EXEC assumed where an MMAP record does not say */
	const uint8_t *build_id; /* NULL where the record has none */
	uint32_t build_id_len;
	const char *filename;
};
bool record_decode_mmap(const struct perf_event_header *record, struct record_mmap *mmap);

struct record_comm {
	uint32_t pid, tid;
	const char *comm;
	bool exec; /* PERF_RECORD_MISC_COMM_EXEC */
};
bool record_decode_comm(const struct perf_event_header *record, struct record_comm *comm);

/* FORK and EXIT. */
struct record_task {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};
bool record_decode_task(const struct perf_event_header *record, struct record_task *task);

/* "SAMPLE", "MMAP2", ... for messages; "UNKNOWN" for the rest. */
const char *record_type_name(uint32_t type);

#endif
