#ifndef PYPERF_TEST_RECORDING_H
#define PYPERF_TEST_RECORDING_H

#include "base/strbuf.h"
#include "data/writer.h"
#include "perfmap/frames.h"

#include <stdio.h>
#include <string.h>

/*
 * Makes recordings record by record, as the kernel would write them: cycles, cache-misses and the
 * walker's event, one file. Each function appends one record; recording_close() ends the file.
 */
struct recording {
	struct data_writer *writer;
	struct strbuf record;
	uint32_t pid, tid, cpu;
	uint64_t time;
	const uint64_t (*ids)[1]; /* by event */
	int rc;
};

enum { EVENT_CYCLES, EVENT_MISSES, EVENT_FRAMES, EVENTS };

#define RECORDING_MAX 65528u
#define MISC_USER PERF_RECORD_MISC_USER
#define MISC_KERNEL PERF_RECORD_MISC_KERNEL

static const uint64_t recording_ids[EVENTS][1] = {{11}, {22}, {33}};

#define RECORDING_COMMON                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)

/* With events of the caller's; their ids are looked up in `ids`. The walker's is EVENT_FRAMES. */
static inline void recording_open_events(struct recording *r, const char *path, int zstd_level,
					 struct data_event *events, size_t count,
					 const uint64_t (*ids)[1])
{
	struct data_writer_options options = {.zstd_level = zstd_level, .mmap_len = 1 << 19};

	*r = (struct recording){.pid = 100, .tid = 100, .time = 1000000, .ids = ids};
	for (size_t i = 0; i < count; i++) {
		events[i].attr.size = sizeof(events[i].attr) < 128 ? sizeof(events[i].attr) : 128;
		events[i].attr.sample_id_all = 1;
		events[i].ids = ids[i];
		events[i].id_count = 1;
	}
	r->rc = data_writer_open(&r->writer, path, events, count, &options, NULL);
}

static inline struct data_event recording_frames_event(void)
{
	return (struct data_event){.name = "python-frames",
				   .attr = {.type = PERF_TYPE_SOFTWARE,
					    .config = PERF_COUNT_SW_BPF_OUTPUT,
					    .sample_type = RECORDING_COMMON | PERF_SAMPLE_RAW,
					    .sample_period = 1},
				   .leader = EVENT_FRAMES};
}

static inline void recording_open(struct recording *r, const char *path, int zstd_level)
{
	struct data_event events[EVENTS] = {
		[EVENT_CYCLES] = {.name = "cycles",
				  .attr = {.type = PERF_TYPE_HARDWARE,
					   .config = PERF_COUNT_HW_CPU_CYCLES,
					   .sample_type = RECORDING_COMMON | PERF_SAMPLE_CALLCHAIN,
					   .freq = 1,
					   .sample_freq = 999}},
		[EVENT_MISSES] = {.name = "cache-misses",
				  .attr = {.type = PERF_TYPE_HARDWARE,
					   .config = PERF_COUNT_HW_CACHE_MISSES,
					   .sample_type = RECORDING_COMMON | PERF_SAMPLE_CALLCHAIN,
					   .sample_period = 1000},
				  .leader = EVENT_MISSES},
		[EVENT_FRAMES] = recording_frames_event(),
	};

	recording_open_events(r, path, zstd_level, events, EVENTS, recording_ids);
}

static inline void recording_begin(struct recording *r, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = {.type = type, .misc = misc};

	strbuf_reset(&r->record);
	strbuf_add(&r->record, &header, sizeof(header));
}

static inline void recording_end(struct recording *r)
{
	struct perf_event_header *header = (void *)r->record.buf;

	header->size = (uint16_t)r->record.len;
	if (r->rc == 0 && !strbuf_failed(&r->record))
		r->rc = data_write(r->writer, r->record.buf, r->record.len, NULL);
}

/* sample_id behind a record that is no sample. */
static inline void recording_trailer(struct recording *r)
{
	strbuf_u32(&r->record, r->pid);
	strbuf_u32(&r->record, r->tid);
	strbuf_u64(&r->record, r->time);
	strbuf_u32(&r->record, r->cpu);
	strbuf_u32(&r->record, 0);
	strbuf_u64(&r->record, r->ids[EVENT_CYCLES][0]);
	recording_end(r);
}

static inline void recording_sample_head(struct recording *r, int event, uint16_t misc, uint64_t ip,
					 uint64_t period)
{
	recording_begin(r, PERF_RECORD_SAMPLE, misc);
	strbuf_u64(&r->record, r->ids[event][0]);
	strbuf_u64(&r->record, ip);
	strbuf_u32(&r->record, r->pid);
	strbuf_u32(&r->record, r->tid);
	strbuf_u64(&r->record, r->time);
	strbuf_u32(&r->record, r->cpu);
	strbuf_u32(&r->record, 0);
	strbuf_u64(&r->record, period);
	data_writer_time(r->writer, r->time);
}

/* `chain` is leaf first, user addresses only. */
static inline void recording_sample(struct recording *r, int event, uint64_t period,
				    const uint64_t *chain, size_t count)
{
	recording_sample_head(r, event, MISC_USER, count ? chain[0] : 0, period);
	strbuf_u64(&r->record, count + 1);
	strbuf_u64(&r->record, (uint64_t)PERF_CONTEXT_USER);
	for (size_t i = 0; i < count; i++)
		strbuf_u64(&r->record, chain[i]);
	recording_end(r);
}

/* In the kernel, with a user chain below. */
static inline void recording_kernel_sample(struct recording *r, int event, uint64_t period,
					   uint64_t kernel_ip, const uint64_t *chain, size_t count)
{
	recording_sample_head(r, event, MISC_KERNEL, kernel_ip, period);
	strbuf_u64(&r->record, count + 3);
	strbuf_u64(&r->record, (uint64_t)PERF_CONTEXT_KERNEL);
	strbuf_u64(&r->record, kernel_ip);
	strbuf_u64(&r->record, (uint64_t)PERF_CONTEXT_USER);
	for (size_t i = 0; i < count; i++)
		strbuf_u64(&r->record, chain[i]);
	recording_end(r);
}

/* What a group has counted so far. */
struct recording_read {
	uint64_t enabled, running;
	size_t count;
	struct {
		uint64_t value, id;
	} values[8];
};

/* A sample of a leader, which reads its group. */
static inline void recording_read_sample(struct recording *r, int event, uint16_t misc, uint64_t ip,
					 uint64_t period, const struct recording_read *read)
{
	recording_sample_head(r, event, misc, ip, period);
	strbuf_u64(&r->record, read->count);
	strbuf_u64(&r->record, read->enabled);
	strbuf_u64(&r->record, read->running);
	for (size_t i = 0; i < read->count; i++) {
		strbuf_u64(&r->record, read->values[i].value);
		strbuf_u64(&r->record, read->values[i].id);
	}
	strbuf_u64(&r->record, 2);
	strbuf_u64(&r->record, misc == MISC_KERNEL ? (uint64_t)PERF_CONTEXT_KERNEL
						   : (uint64_t)PERF_CONTEXT_USER);
	strbuf_u64(&r->record, ip);
	recording_end(r);
}

static inline void recording_throttle(struct recording *r, int event, bool on)
{
	recording_begin(r, on ? PERF_RECORD_THROTTLE : PERF_RECORD_UNTHROTTLE, 0);
	strbuf_u64(&r->record, r->time);
	strbuf_u64(&r->record, r->ids[event][0]);
	strbuf_u64(&r->record, r->ids[event][0]);
	recording_trailer(r);
}

static inline void recording_raw(struct recording *r, const void *payload, size_t len)
{
	size_t padded = ((len + 4 + 7) & ~(size_t)7) - 4;

	recording_sample_head(r, EVENT_FRAMES, MISC_USER, 0, 1);
	strbuf_u32(&r->record, (uint32_t)padded);
	strbuf_add(&r->record, payload, len);
	strbuf_extend(&r->record, padded - len);
	recording_end(r);
}

/* Frames leaf first. */
static inline void recording_frames(struct recording *r, uint32_t lineage, uint16_t status,
				    const struct py_raw_frame *frames, size_t count)
{
	struct py_raw_frames head = {
		.magic = PY_RAW_FRAMES,
		.status = status,
		.count = (uint16_t)count,
		.lineage = lineage,
	};
	struct strbuf payload = {0};

	strbuf_add(&payload, &head, sizeof(head));
	strbuf_add(&payload, frames, count * sizeof(*frames));
	recording_raw(r, strbuf_text(&payload), payload.len);
	strbuf_fini(&payload);
}

static inline void recording_padded(struct strbuf *out, const void *bytes, size_t len)
{
	strbuf_add(out, bytes, len);
	strbuf_extend(out, -len & 7);
}

/* The payload of a code object of CPython 3.12 whose line table puts two code units (4 bytes) on
 * each of `lines` lines from firstlineno on. */
static inline void recording_code_payload(struct strbuf *out, uint32_t lineage, uint64_t code,
					  uint32_t fingerprint, const char *name,
					  const char *qualname, const char *file,
					  uint32_t firstlineno, uint32_t lines)
{
	struct py_raw_code head = {
		.magic = PY_RAW_CODE,
		.lineage = lineage,
		.code = code,
		.fingerprint = fingerprint,
		.firstlineno = firstlineno,
		.minor = 12,
		.name = {.kind = 1, .len = (uint32_t)strlen(name)},
		.qualname = {.kind = 1, .len = (uint32_t)strlen(qualname)},
		.filename = {.kind = 1, .len = (uint32_t)strlen(file)},
		.table_len = 2 * lines,
	};
	struct strbuf table = {0};

	/* Code 13, "no column info": a signed varint of the line's change follows. */
	for (uint32_t i = 0; i < lines; i++) {
		strbuf_u8(&table, 0x80 | 13 << 3 | (2 - 1));
		strbuf_u8(&table, i ? 1 << 1 : 0);
	}
	strbuf_add(out, &head, sizeof(head));
	recording_padded(out, name, strlen(name));
	recording_padded(out, qualname, strlen(qualname));
	recording_padded(out, file, strlen(file));
	recording_padded(out, table.buf, table.len);
	strbuf_fini(&table);
}

static inline void recording_code(struct recording *r, uint32_t lineage, uint64_t code,
				  uint32_t fingerprint, const char *name, const char *file,
				  uint32_t firstlineno, uint32_t lines)
{
	struct strbuf payload = {0};

	recording_code_payload(&payload, lineage, code, fingerprint, name, name, file, firstlineno,
			       lines);
	recording_raw(r, strbuf_text(&payload), payload.len);
	strbuf_fini(&payload);
}

static inline void recording_mmap(struct recording *r, uint64_t addr, uint64_t len, uint64_t pgoff,
				  const char *path)
{
	recording_begin(r, PERF_RECORD_MMAP2, MISC_USER);
	strbuf_u32(&r->record, r->pid);
	strbuf_u32(&r->record, r->tid);
	strbuf_u64(&r->record, addr);
	strbuf_u64(&r->record, len);
	strbuf_u64(&r->record, pgoff);
	strbuf_u64(&r->record, 0);
	strbuf_u64(&r->record, 0);
	strbuf_u64(&r->record, 0);
	strbuf_u32(&r->record, 1 | 4); /* PROT_READ | PROT_EXEC */
	strbuf_u32(&r->record, 2);
	recording_padded(&r->record, path, strlen(path) + 1);
	recording_trailer(r);
}

static inline void recording_comm(struct recording *r, const char *comm, bool exec)
{
	recording_begin(r, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
	strbuf_u32(&r->record, r->pid);
	strbuf_u32(&r->record, r->tid);
	recording_padded(&r->record, comm, strlen(comm) + 1);
	recording_trailer(r);
}

static inline void recording_fork(struct recording *r, uint32_t pid, uint32_t tid)
{
	recording_begin(r, PERF_RECORD_FORK, 0);
	strbuf_u32(&r->record, pid);
	strbuf_u32(&r->record, r->pid);
	strbuf_u32(&r->record, tid);
	strbuf_u32(&r->record, r->tid);
	strbuf_u64(&r->record, r->time);
	recording_trailer(r);
}

static inline void recording_exit(struct recording *r)
{
	recording_begin(r, PERF_RECORD_EXIT, 0);
	strbuf_u32(&r->record, r->pid);
	strbuf_u32(&r->record, r->pid);
	strbuf_u32(&r->record, r->tid);
	strbuf_u32(&r->record, r->tid);
	strbuf_u64(&r->record, r->time);
	recording_trailer(r);
}

static inline void recording_lost(struct recording *r, uint64_t count)
{
	recording_begin(r, PERF_RECORD_LOST, 0);
	strbuf_u64(&r->record, r->ids[EVENT_CYCLES][0]);
	strbuf_u64(&r->record, count);
	recording_trailer(r);
}

static inline void recording_round(struct recording *r)
{
	if (r->rc == 0)
		r->rc = data_write_round(r->writer, NULL);
}

static inline int recording_close(struct recording *r, const struct data_info *info)
{
	struct data_info none = {0};
	int rc = data_writer_close(r->writer, info ? info : &none, NULL);

	strbuf_fini(&r->record);
	return r->rc < 0 ? r->rc : rc;
}

#endif
