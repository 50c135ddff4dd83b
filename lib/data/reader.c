#include "data/file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The stream of records.
 *
 * Two layers deliver whole records: the source, and the expander where the source had compressed
 * ones. What is expanded comes first; when only the beginning of a record is left there, reading
 * goes on in the source, whose next compressed record brings the rest (plain ones may lie between).
 * Records are handed out where they lie, unless they have to be aligned or swapped.
 */

int file_lose(struct data_file *file, struct err *err, const char *fmt, ...)
{
	va_list ap;
	int len;

	if (file->loss)
		return 0;
	va_start(ap, fmt);
	len = vasprintf(&file->loss, fmt, ap);
	va_end(ap);
	if (len < 0) {
		file->loss = NULL;
		return err_nomem(err);
	}
	return 0;
}

static int stop(struct data_file *file)
{
	file->broken = file->ended = true;
	return 0;
}

static struct perf_event_header read_header(const struct data_file *file, const unsigned char *data)
{
	struct perf_event_header header;

	memcpy(&header, data, sizeof(header));
	if (file->swap)
		swap_header(&header);
	return header;
}

static int deliver(struct data_file *file, const unsigned char *data,
		   const struct perf_event_header *header, struct data_record *record,
		   struct err *err)
{
	if (file->swap || (uintptr_t)data % 8) {
		struct block *block = file->bounced.last;
		size_t room = (header->size + 7u) & ~7u;
		unsigned char *copy;

		if (!block || block->cap - block->fill < room) {
			block = chain_push(&file->bounced, room, file->position);
			if (!block)
				return err_nomem(err);
		}
		copy = block->data + block->fill;
		block->fill += room;
		memcpy(copy, data, header->size);
		memcpy(copy, header, sizeof(*header));
		if (file->swap)
			swap_record(file, (struct perf_event_header *)copy);
		data = copy;
	}
	record->header = (const struct perf_event_header *)data;
	record->position = file->position;
	file->position += header->size;
	return 1;
}

/* A record of facts is used up here (0), all others are delivered (1). */
static int accept(struct data_file *file, const unsigned char *data,
		  const struct perf_event_header *header, struct data_record *record,
		  struct err *err)
{
	if (header->type >= RECORD_USER) {
		struct bytes in = bytes_of(data + sizeof(*header), header->size - sizeof(*header));
		int rc;

		in.swap = file->swap;
		rc = pipe_record(file, header->type, header->misc, in, err);
		if (rc < 0)
			return rc;
		if (rc > 0) {
			file->position += header->size;
			return 0;
		}
	}
	return deliver(file, data, header, record, err);
}

static int bad_size(struct data_file *file, const struct perf_event_header *header, uint64_t at,
		    struct err *err)
{
	stop(file);
	return file_lose(file, err,
			 "a record of impossible size %u at byte %" PRIu64
			 ": everything from there on is lost",
			 header->size, at);
}

/* 1 and a record, 0 when the expander has no whole one. */
static int next_expanded(struct data_file *file, struct data_record *record, struct err *err)
{
	struct err why = {0};
	int rc;

	for (;;) {
		struct perf_event_header header;
		const unsigned char *data;
		size_t have;

		rc = expander_peek(file->expander, sizeof(header), file->position, &data, &have,
				   &why);
		if (rc < 0)
			break;
		if (have < sizeof(header))
			return 0;
		header = read_header(file, data);
		if (header.size < sizeof(header))
			return bad_size(file, &header, file->source.at, err);
		if (have < header.size) {
			rc = expander_peek(file->expander, header.size, file->position, &data,
					   &have, &why);
			if (rc < 0)
				break;
			if (have < header.size)
				return 0;
		}
		if (header.type == RECORD_COMPRESSED || header.type == RECORD_COMPRESSED2 ||
		    header.type == RECORD_AUXTRACE || header.type == RECORD_HEADER_TRACING_DATA) {
			stop(file);
			return file_lose(file, err,
					 "a record of type %u inside compressed records at byte "
					 "%" PRIu64 ": everything from there on is lost",
					 header.type, file->source.at);
		}
		expander_take(file->expander, header.size);
		rc = accept(file, data, &header, record, err);
		if (rc)
			return rc;
	}
	if (rc != ERR_CORRUPT)
		return err_set(err, rc, "%s", why.text);
	stop(file);
	return file_lose(file, err, "%s before byte %" PRIu64 ": everything from there on is lost",
			 why.text, file->source.at);
}

/* Hands the payload of a compressed record, or what there is of it, to the expander. */
static int feed(struct data_file *file, const unsigned char *data,
		const struct perf_event_header *header, size_t have, struct err *err)
{
	struct bytes in = bytes_of(data, have);
	uint64_t len;

	in.swap = file->swap;
	bytes_take(&in, sizeof(*header));
	len = header->size - sizeof(*header);
	if (header->type == RECORD_COMPRESSED2)
		len = bytes_u64(&in);
	if (in.bad || (header->type == RECORD_COMPRESSED2 &&
		       len > header->size - sizeof(*header) - sizeof(len))) {
		stop(file);
		return file_lose(file, err,
				 "a compressed record at byte %" PRIu64
				 " is broken: everything from there on is lost",
				 file->source.at);
	}
	if (!file->expander) {
		file->expander = expander_new();
		if (!file->expander)
			return err_nomem(err);
	}
	expander_feed(file->expander, in.at, len < bytes_left(&in) ? (size_t)len : bytes_left(&in));
	return 0;
}

/* Shows the next record of the source: 1 when it is whole, 0 at the end. A compressed record that
 * is cut is fed as far as it goes. */
static int peek_record(struct data_file *file, const unsigned char **data,
		       struct perf_event_header *header, struct err *err)
{
	struct source *source = &file->source;
	size_t have;
	int rc;

	rc = source_peek(source, sizeof(*header), file->position, data, &have, err);
	if (rc < 0)
		return rc;
	if (have == sizeof(*header)) {
		*header = read_header(file, *data);
		if (header->size < sizeof(*header))
			return bad_size(file, header, source->at, err);
		rc = source_peek(source, header->size, file->position, data, &have, err);
		if (rc < 0)
			return rc;
		if (have == header->size)
			return 1;
		if (header->type == RECORD_COMPRESSED || header->type == RECORD_COMPRESSED2) {
			rc = feed(file, *data, header, have, err);
			if (rc < 0)
				return rc;
		}
	}
	file->ended = true;
	if (have)
		return file_lose(
			file, err,
			"the recording ends within a record: its last %zu bytes, from byte "
			"%" PRIu64 " on, are cut",
			have, source->at);
	return 0;
}

static void note_trace(struct data_file *file, const unsigned char *data,
		       const struct perf_event_header *header)
{
	struct bytes in = bytes_of(data + sizeof(*header), header->size - sizeof(*header));

	in.swap = file->swap;
	file->trace_kind = bytes_u32(&in);
}

const char *data_trace(const struct data_file *file, uint64_t *bytes)
{
	static const char *const names[] = {
		[DATA_TRACE_INTEL_PT] = "Intel PT",	  [DATA_TRACE_INTEL_BTS] = "Intel BTS",
		[DATA_TRACE_CORESIGHT] = "CoreSight ETM", [DATA_TRACE_ARM_SPE] = "Arm SPE",
		[DATA_TRACE_S390] = "s390 CPUMSF",	  [DATA_TRACE_HISI_PTT] = "HiSilicon PTT",
	};
	size_t known = sizeof(names) / sizeof(names[0]);

	*bytes = file->trace_bytes;
	if (!file->trace_bytes)
		return NULL;
	return file->trace_kind && file->trace_kind < known ? names[file->trace_kind] : "hardware";
}

/* Payloads lie behind their record and are not counted in its size. */
static uint64_t payload_of(const struct data_file *file, const unsigned char *data,
			   const struct perf_event_header *header)
{
	struct bytes in = bytes_of(data + sizeof(*header), header->size - sizeof(*header));

	in.swap = file->swap;
	return header->type == RECORD_AUXTRACE ? bytes_u64(&in)
					       : ((uint64_t)bytes_u32(&in) + 7) & ~7ull;
}

static int skip_payload(struct data_file *file, uint32_t type, uint64_t len, struct err *err)
{
	uint64_t skipped = 0;
	int rc = source_skip(&file->source, len, &skipped, err);

	if (type == RECORD_AUXTRACE)
		file->trace_bytes += skipped;
	if (rc < 0 || skipped == len)
		return rc;
	file->ended = true;
	return file_lose(file, err,
			 "the recording ends within the payload of a record of type %u at "
			 "byte %" PRIu64,
			 type, file->source.at);
}

/* What nobody took of the last AUXTRACE. */
static int skip_trace(struct data_file *file, struct err *err)
{
	uint64_t len = file->payload;

	file->payload = 0;
	return len ? skip_payload(file, RECORD_AUXTRACE, len, err) : 0;
}

int data_payload(struct data_file *file, size_t want, struct bytes *shown, struct err *err)
{
	const unsigned char *data;
	size_t have;
	int rc;

	want = want < DATA_PAYLOAD_MAX ? want : DATA_PAYLOAD_MAX;
	want = want < file->payload ? want : (size_t)file->payload;
	*shown = bytes_of(NULL, 0);
	if (!want)
		return 0;
	rc = source_peek(&file->source, want, file->position, &data, &have, err);
	if (rc >= 0)
		*shown = bytes_of(data, have);
	return rc;
}

void data_payload_take(struct data_file *file, size_t len)
{
	source_take(&file->source, len);
	file->payload -= len;
	file->position += len;
	source_mark(&file->source, file->position);
}

static int next_raw(struct data_file *file, struct data_record *record, struct err *err)
{
	struct perf_event_header header;
	const unsigned char *data;
	int rc;

	rc = skip_trace(file, err);
	if (rc < 0 || file->ended)
		return rc;
	source_mark(&file->source, file->position);
	rc = peek_record(file, &data, &header, err);
	if (rc <= 0)
		return rc;
	if (header.type == RECORD_COMPRESSED || header.type == RECORD_COMPRESSED2) {
		rc = feed(file, data, &header, header.size, err);
		source_take(&file->source, header.size);
		return rc;
	}
	source_take(&file->source, header.size);
	if (header.type == RECORD_AUXTRACE_INFO)
		note_trace(file, data, &header);
	if (header.type == RECORD_AUXTRACE)
		file->payload = payload_of(file, data, &header);
	if (header.type == RECORD_HEADER_TRACING_DATA) {
		rc = skip_payload(file, header.type, payload_of(file, data, &header), err);
		if (rc < 0)
			return rc;
	}
	return accept(file, data, &header, record, err);
}

/* Pipe mode: the facts that come before everything else. */
static int read_leading_facts(struct data_file *file, struct err *err)
{
	for (;;) {
		struct perf_event_header header;
		struct data_record record;
		const unsigned char *data;
		int rc = peek_record(file, &data, &header, err);

		if (rc <= 0)
			return rc;
		switch (header.type) {
		case RECORD_HEADER_ATTR:
		case RECORD_HEADER_EVENT_TYPE:
		case RECORD_EVENT_UPDATE:
		case RECORD_HEADER_FEATURE:
		case RECORD_HEADER_BUILD_ID:
			break;
		default:
			return 0;
		}
		source_take(&file->source, header.size);
		rc = accept(file, data, &header, &record, err);
		if (rc < 0)
			return rc;
	}
}

int data_open(struct data_file **result, const char *path, struct err *err)
{
	struct data_file *file = calloc(1, sizeof(*file));
	int rc;

	*result = NULL;
	if (!file)
		return err_nomem(err);
	arena_init(&file->arena);
	rc = source_open(&file->source, path, err);
	if (!rc) {
		rc = header_read(file, err);
		if (!rc && file->pipe)
			rc = read_leading_facts(file, err);
		if (rc < 0)
			err_wrap(err, "%s", strcmp(path, "-") ? path : "standard input");
	}
	if (rc < 0) {
		data_close(file);
		return rc;
	}
	*result = file;
	return 0;
}

void data_close(struct data_file *file)
{
	if (!file)
		return;
	source_close(&file->source);
	expander_free(file->expander);
	chain_fini(&file->bounced);
	vec_fini(&file->events);
	vec_fini(&file->event_types);
	vec_fini(&file->build_ids);
	map_fini(&file->by_id);
	for (size_t i = 0; i < FORMAT_FEATURES - FEATURE_PRIVATE; i++)
		strbuf_fini(&file->piped[i]);
	arena_fini(&file->arena);
	free(file->loss);
	free(file);
}

/* What is left in the expander when everything was read is the beginning of a record. */
static int finish(struct data_file *file, struct err *err)
{
	const unsigned char *data;
	size_t have = 0;
	int rc = 0;

	if (file->expander && !file->broken)
		rc = expander_peek(file->expander, 1, file->position, &data, &have, err);
	file->broken = true;
	if (have)
		rc = file_lose(file, err,
			       "the compressed records end within a record: its %zu bytes are cut",
			       have);
	return rc;
}

int data_next(struct data_file *file, struct data_record *record, struct err *err)
{
	while (!file->broken) {
		int rc = file->expander ? next_expanded(file, record, err) : 0;

		if (!rc && !file->broken)
			rc = file->ended ? finish(file, err) : next_raw(file, record, err);
		if (rc)
			return rc;
	}
	return 0;
}

void data_progress(const struct data_file *file, uint64_t *done, uint64_t *total)
{
	*done = file->source.at;
	*total = file->source.mapped ? file->source.map_size : 0;
}

void data_discard(struct data_file *file, uint64_t position)
{
	source_release(&file->source, position);
	chain_release(&file->bounced, position);
	if (file->expander)
		expander_release(file->expander, position);
}

size_t data_event_count(const struct data_file *file)
{
	return file->events.len;
}

const struct data_event *data_event(const struct data_file *file, size_t index)
{
	return index < file->events.len ? file->events.items[index] : NULL;
}

int data_event_by_id(const struct data_file *file, uint64_t id)
{
	const uint64_t *index;

	if (file->events.len == 1)
		return 0;
	index = map_get(&file->by_id, id);
	return index ? (int)*index : -1;
}

const struct data_info *data_info(const struct data_file *file)
{
	return &file->info;
}

struct bytes data_section(const struct data_file *file, enum data_section section)
{
	unsigned int id = (unsigned int)section;

	if (id < FEATURE_PRIVATE || id >= FORMAT_FEATURES)
		return bytes_of(NULL, 0);
	return file->sections[id - FEATURE_PRIVATE];
}

bool data_is_pipe(const struct data_file *file)
{
	return file->pipe;
}

uint64_t data_size(const struct data_file *file)
{
	return file->disk_size;
}

const char *data_loss(const struct data_file *file)
{
	return file->loss;
}
