#ifndef PYPERF_DATA_H
#define PYPERF_DATA_H

#include "base/bytes.h"
#include "base/err.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reading perf.data: perf's files of any version and byte order, in file and in pipe mode, from a
 * mapped file or a stream, and our own (FORMAT.md).
 *
 * What is sound is delivered, in the order of the file; where a file is broken reading stops there
 * with `truncated` set and the reason in `loss`. Compressed records (types 81 and 83) are expanded
 * here: callers see only what was inside.
 */
struct data_file;

struct data_event {
	const char *name; /* as recorded, else made from the attr ("cycles", "raw 0x1a8") */
	struct perf_event_attr attr; /* host byte order; fields that the file lacks are zero */
	const uint64_t *ids;
	size_t id_count;
	int leader; /* index of the group's leader; its own index where it leads or is alone */
};

struct data_build_id {
	int32_t pid;   /* -1 for the host */
	uint16_t misc; /* cpumode of the record */
	const uint8_t *id;
	uint32_t id_len;
	const char *path;
};

/* Facts of the recording. Strings are NULL and numbers 0 where the file does not say. */
struct data_info {
	const char *hostname, *os_release, *perf_version, *arch, *cpu_desc, *cpuid;
	uint32_t cpus_available, cpus_online;
	uint64_t total_memory_kb;
	const char *const *cmdline; /* argv of the profiler */
	size_t cmdline_len;
	uint64_t first_sample_time, last_sample_time; /* SAMPLE_TIME */
	bool has_clockid;
	uint32_t clockid;
	uint64_t clock_resolution_ns;
	bool has_clock_data;
	uint64_t clock_wall_ns, clock_ns; /* CLOCK_DATA: the same moment on both clocks */
	const struct data_build_id *build_ids;
	size_t build_id_count;
	const void *tracing_data; /* TRACING_DATA, when writing: formats of tracepoints */
	size_t tracing_data_len;
	bool compressed;
	uint64_t comp_ratio; /* percent / 100, as HEADER_COMPRESSED has it */
};

/* Our private feature sections; perf skips them. Their insides: FORMAT.md. */
enum data_section {
	DATA_SECTION_META = 200,    /* what was recorded: versions, engine, counts */
	DATA_SECTION_CODE = 201,    /* Python code objects */
	DATA_SECTION_PERFMAP = 202, /* perf-PID.map files */
	DATA_SECTION_SOURCE = 203,  /* text of the Python sources that were hit */
	DATA_SECTION_SYMBOL = 204,  /* symbols of addresses that only the recording machine knows */
	DATA_SECTION_JITDUMP = 205, /* jit-PID.dump files */
	DATA_SECTION_PHASE = 206,   /* spans of time that the program named */
	DATA_SECTION_BYTECODE = 207, /* bytecode of Python code objects */
};

/* Records that perf makes itself (linux tools/lib/perf/include/perf/event.h); the kernel's end
 * below 64. */
enum data_record_type {
	RECORD_USER = 64,
	RECORD_HEADER_ATTR = 64,
	RECORD_HEADER_EVENT_TYPE = 65,
	RECORD_HEADER_TRACING_DATA = 66,
	RECORD_HEADER_BUILD_ID = 67,
	RECORD_FINISHED_ROUND = 68,
	RECORD_ID_INDEX = 69,
	RECORD_AUXTRACE_INFO = 70,
	RECORD_AUXTRACE = 71,
	RECORD_STAT_ROUND = 77,
	RECORD_EVENT_UPDATE = 78,
	RECORD_TIME_CONV = 79,
	RECORD_HEADER_FEATURE = 80,
	RECORD_COMPRESSED = 81,
	RECORD_COMPRESSED2 = 83,
};

/* What AUXTRACE_INFO says that the trace is (linux tools/perf/util/auxtrace.h). */
enum data_trace_kind {
	DATA_TRACE_INTEL_PT = 1,
	DATA_TRACE_INTEL_BTS,
	DATA_TRACE_CORESIGHT,
	DATA_TRACE_ARM_SPE,
	DATA_TRACE_S390,
	DATA_TRACE_HISI_PTT,
};

struct data_record {
	const struct perf_event_header *header; /* host byte order, 8-aligned, whole */
	uint64_t position; /* in the expanded stream; increases with every record */
};

/* "-" reads standard input. Attrs and, in file mode, features are read before this returns. */
int data_open(struct data_file **file, const char *path, struct err *err);
void data_close(struct data_file *file);

/* 1 and a record, 0 at the end, negative on failure (memory, read error). A broken file is no
 * failure: it ends, see data_loss(). In pipe mode events and features may appear on the way. */
int data_next(struct data_file *file, struct data_record *record, struct err *err);

/* How many bytes of the file have been read, and how many it has; 0 of a stream. */
void data_progress(const struct data_file *file, uint64_t *done, uint64_t *total);

/* Records below `position` will not be touched any more; their memory may be given back. Until
 * then every record stays where it is. */
void data_discard(struct data_file *file, uint64_t position);

size_t data_event_count(const struct data_file *file);
const struct data_event *data_event(const struct data_file *file, size_t index);
/* Index of the event that an id belongs to, or -1. With one event every id is its own. */
int data_event_by_id(const struct data_file *file, uint64_t id);
const struct data_info *data_info(const struct data_file *file);
/* A private section; empty where the file has none. Valid until data_close(). In pipe mode only
 * after data_next() returned 0. */
struct bytes data_section(const struct data_file *file, enum data_section section);
bool data_is_pipe(const struct data_file *file);

/*
 * A hardware trace (Intel PT, Arm SPE): AUXTRACE_INFO says which one, and behind each AUXTRACE
 * record lie bytes of it, which its header does not count. Until the next data_next() they can be
 * had: data_payload() shows what comes next, at most `want` of them and less only where the payload
 * ends; data_payload_take() goes on behind what was used. They are valid as records are. What is
 * not taken is skipped.
 */
#define DATA_PAYLOAD_MAX (64u << 10) /* of `want` */
int data_payload(struct data_file *file, size_t want, struct bytes *shown, struct err *err);
void data_payload_take(struct data_file *file, size_t len);
/* The trace of which bytes were skipped, and how many so far; NULL, 0 where none were. */
const char *data_trace(const struct data_file *file, uint64_t *bytes);
uint64_t data_size(const struct data_file *file); /* bytes on disk; 0 for a stream */
/* NULL for a sound file, else one sentence: what is lost and from where on. */
const char *data_loss(const struct data_file *file);

#endif
