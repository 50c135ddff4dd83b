#include "data/writer.h"

#include "base/io.h"
#include "data/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/*
 * Records are gathered in a buffer and leave it as one frame: as many whole records as compress
 * into one type 81 record, whose size has 16 bits. How many that are follows the ratio of the last
 * frame; a frame that comes out too large is halved. Whole records per frame make every frame
 * readable on its own. FRAME_MIN is larger than any record, so that a full buffer holds a whole
 * one.
 *
 * When the disk is full, what was written stays, and close gives up as many of the last frames as
 * it takes to make room for the features: samples without names are worth less than fewer samples.
 */
#define FRAME_MIN (64u << 10)
#define OUT_MAX 65528u	  /* a record's size is a multiple of 8 where we can choose it */
#define OUT_TARGET 52000u /* leaves room for the next frame to compress worse */
#define FLUSH_NS 1000000000ull

static int fail(struct data_writer *writer, struct err *err)
{
	if (err && err != &writer->failure)
		*err = writer->failure;
	return writer->failure.code;
}

static int write_part(struct data_writer *writer, const void *bytes, size_t len, struct err *err)
{
	if (io_write_full(writer->fd, bytes, len) < 0) {
		int saved = errno;

		err_sys(&writer->failure, saved, "cannot write the recording");
		if (saved == ENOSPC || saved == EDQUOT || saved == EFBIG)
			err_hint(&writer->failure,
				 "free some space, or write elsewhere with -o; what was recorded "
				 "before is kept");
		return fail(writer, err);
	}
	writer->end += len;
	writer->total_out += len;
	return 0;
}

/* What belongs together ends here. */
static void may_cut(struct data_writer *writer)
{
	uint64_t *cut = vec_push(&writer->cuts);

	if (cut)
		*cut = writer->end;
}

static int write_out(struct data_writer *writer, const void *bytes, size_t len, struct err *err)
{
	int rc = write_part(writer, bytes, len, err);

	if (!rc)
		may_cut(writer);
	return rc;
}

/* The length of the whole records within the first `len` bytes of the buffer; of the first record
 * if that alone is longer. 0 where it is no record. */
static size_t whole_records(const struct data_writer *writer, size_t len)
{
	size_t at = 0;

	while (writer->in_len - at >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;

		memcpy(&header, writer->in + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > writer->in_len - at)
			break;
		if (at && at + header.size > len)
			break;
		at += header.size;
	}
	return at;
}

/* Writes whole records of up to `len` bytes as one frame; how many bytes of the buffer it took. */
static int write_frame(struct data_writer *writer, size_t len, size_t *taken, struct err *err)
{
	size_t take = whole_records(writer, len), size;
	struct perf_event_header *header = (struct perf_event_header *)writer->out;

	*taken = 0;
	if (!take) {
		err_set(&writer->failure, ERR_FAILED,
			"the kernel gave a record of impossible size");
		return fail(writer, err);
	}
	while (writer->options.zstd_level) {
		size = ZSTD_compress2(writer->zstd, header + 1, OUT_MAX - sizeof(*header),
				      writer->in, take);
		if (!ZSTD_isError(size)) {
			uint64_t frame = (uint64_t)take * OUT_TARGET / (size ? size : 1);

			*header = (struct perf_event_header){
				.type = RECORD_COMPRESSED,
				.size = (uint16_t)(sizeof(*header) + size)};
			*taken = take;
			frame = frame < FRAME_MIN ? FRAME_MIN : frame;
			writer->frame = frame > FRAME_MAX ? FRAME_MAX : (size_t)frame;
			return write_out(writer, header, header->size, err);
		}
		len = take / 2;
		size = whole_records(writer, len);
		if (size == take)
			break; /* one record that does not compress */
		take = size;
	}
	*taken = take;
	return write_out(writer, writer->in, take, err);
}

/* Writes what is gathered, all of it or (not `all`) until less than a frame is left. */
static int flush(struct data_writer *writer, bool all, struct err *err)
{
	while (writer->in_len && (all || writer->in_len >= writer->frame)) {
		size_t taken;
		int rc = write_frame(writer, writer->frame, &taken, err);

		if (rc < 0)
			return rc;
		writer->in_len -= taken;
		memmove(writer->in, writer->in + taken, writer->in_len);
	}
	writer->flushed_time = writer->last_time;
	return 0;
}

int data_write(struct data_writer *writer, const void *records, size_t len, struct err *err)
{
	const unsigned char *at = records;

	if (writer->failure.code)
		return fail(writer, err);
	writer->total_in += len;
	while (len) {
		/* A flush leaves less than a frame in the buffer. */
		size_t room = writer->frame - writer->in_len;
		size_t part = len < room ? len : room;

		memcpy(writer->in + writer->in_len, at, part);
		writer->in_len += part;
		at += part;
		len -= part;
		if (writer->in_len >= writer->frame) {
			int rc = flush(writer, false, err);

			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* It lies behind its record and cannot be compressed: perf takes it from the file as it is. */
int data_write_trace(struct data_writer *writer, const struct data_trace_piece *piece,
		     struct err *err)
{
	static const unsigned char padding[8];
	size_t len = bytes_left(&piece->parts[0]) + bytes_left(&piece->parts[1]);
	const struct {
		struct perf_event_header header;
		uint64_t size, offset, reference;
		uint32_t buffer, tid, cpu, reserved;
	} record = {
		.header = {.type = RECORD_AUXTRACE, .size = sizeof(record)},
		.size = (len + 7) & ~(size_t)7,
		.offset = piece->offset,
		.buffer = piece->buffer,
		.tid = piece->tid,
		.cpu = piece->cpu,
	};
	int rc = writer->failure.code ? fail(writer, err) : flush(writer, true, err);

	writer->total_in += sizeof(record) + record.size;
	if (!rc)
		rc = write_part(writer, &record, sizeof(record), err);
	for (int i = 0; !rc && i < 2; i++)
		rc = write_part(writer, piece->parts[i].at, bytes_left(&piece->parts[i]), err);
	if (!rc)
		rc = write_part(writer, padding, record.size - len, err);
	if (!rc)
		may_cut(writer);
	return rc;
}

int data_write_round(struct data_writer *writer, struct err *err)
{
	static const struct perf_event_header round = {
		.type = RECORD_FINISHED_ROUND,
		.size = sizeof(round),
	};
	int rc = data_write(writer, &round, sizeof(round), err);

	/* What lies in the buffer is lost if we are killed. */
	if (!rc && writer->last_time - writer->flushed_time > FLUSH_NS)
		rc = flush(writer, true, err);
	return rc;
}

void data_writer_time(struct data_writer *writer, uint64_t sample_time)
{
	if (!sample_time)
		return;
	if (!writer->first_time || sample_time < writer->first_time)
		writer->first_time = sample_time;
	if (!writer->flushed_time)
		writer->flushed_time = sample_time;
	if (sample_time > writer->last_time)
		writer->last_time = sample_time;
}

int data_writer_section(struct data_writer *writer, enum data_section section, const void *bytes,
			size_t len, struct err *err)
{
	unsigned int id = (unsigned int)section;
	struct strbuf *sb;

	if (id < FEATURE_PRIVATE || id >= FORMAT_FEATURES)
		return err_set(err, ERR_FAILED, "section %u is not one of ours", id);
	sb = &writer->sections[id - FEATURE_PRIVATE];
	section_pack(sb, bytes, len, writer->options.zstd_level);
	writer->has_section[id - FEATURE_PRIVATE] = !strbuf_failed(sb);
	return strbuf_failed(sb) ? err_nomem(err) : 0;
}

int data_writer_build_id(struct data_writer *writer, int32_t pid, uint16_t misc, const char *path,
			 const uint8_t *id, size_t id_len, struct err *err)
{
	struct strbuf *sb = &writer->build_ids;
	uint8_t padded[24] = {0};
	size_t len = strlen(path), size;
	struct perf_event_header header;

	if (len > FORMAT_RECORD_MAX - 256 || !id_len)
		return 0;
	if (intern_find(&writer->paths, path, len) != INTERN_NONE)
		return 0;
	if (intern_add(&writer->paths, path, len) == INTERN_NONE)
		return err_nomem(err);
	if (id_len > FORMAT_BUILD_ID_SIZE)
		id_len = FORMAT_BUILD_ID_SIZE;
	memcpy(padded, id, id_len);
	padded[FORMAT_BUILD_ID_SIZE] = (uint8_t)id_len;
	size = (len + FORMAT_NAME_ALIGN) & ~(size_t)(FORMAT_NAME_ALIGN - 1);
	header = (struct perf_event_header){
		.type = RECORD_HEADER_BUILD_ID,
		.misc = (uint16_t)(misc | FORMAT_MISC_BUILD_ID_SIZE),
		.size = (uint16_t)(sizeof(header) + sizeof(pid) + sizeof(padded) + size),
	};
	strbuf_add(sb, &header, sizeof(header));
	strbuf_add(sb, &pid, sizeof(pid));
	strbuf_add(sb, padded, sizeof(padded));
	strbuf_add(sb, path, len);
	strbuf_extend(sb, size - len);
	return strbuf_failed(sb) ? err_nomem(err) : 0;
}

uint64_t data_writer_bytes(const struct data_writer *writer)
{
	return writer->end;
}

static struct format_header make_header(const struct data_writer *writer)
{
	uint64_t ids = 0, attr_size = writer->events[0].attr.size + sizeof(struct format_section);
	struct format_header header = {
		.magic = FORMAT_MAGIC,
		.size = sizeof(header),
		.attr_size = attr_size,
	};

	for (size_t i = 0; i < writer->event_count; i++)
		ids += writer->events[i].id_count * sizeof(uint64_t);
	header.attrs.offset = sizeof(header) + ids;
	header.attrs.size = attr_size * writer->event_count;
	header.data.offset = header.attrs.offset + header.attrs.size;
	return header;
}

/* The header with an open end, the ids, the attributes. */
static int write_front(struct data_writer *writer, struct err *err)
{
	struct format_header header = make_header(writer);
	struct strbuf sb = {0};
	uint64_t at = sizeof(header);
	int rc = 0;

	strbuf_add(&sb, &header, sizeof(header));
	for (size_t i = 0; i < writer->event_count; i++)
		strbuf_add(&sb, writer->events[i].ids,
			   writer->events[i].id_count * sizeof(uint64_t));
	for (size_t i = 0; i < writer->event_count; i++) {
		const struct data_event *event = &writer->events[i];
		struct format_section ids = {.offset = at,
					     .size = event->id_count * sizeof(uint64_t)};

		strbuf_add(&sb, &event->attr, event->attr.size);
		strbuf_add(&sb, &ids, sizeof(ids));
		at += ids.size;
	}
	if (strbuf_failed(&sb))
		rc = err_nomem(err);
	else if (io_write_full(writer->fd, sb.buf, sb.len) < 0)
		rc = err_sys(err, errno, "cannot write the header of the recording");
	writer->data_offset = writer->end = sb.len;
	strbuf_fini(&sb);
	return rc;
}

static int copy_events(struct data_writer *writer, const struct data_event *events, size_t count,
		       struct err *err)
{
	uint32_t attr_size = sizeof(events->attr) < FORMAT_ATTR_MAX ? sizeof(events->attr)
								    : FORMAT_ATTR_MAX;

	writer->events = arena_alloc(&writer->arena, count * sizeof(*events));
	if (!writer->events)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		struct data_event *event = &writer->events[i];
		size_t size = events[i].id_count * sizeof(uint64_t);
		uint64_t *ids = arena_alloc(&writer->arena, size);

		*event = events[i];
		event->name = arena_strdup(&writer->arena, events[i].name ? events[i].name : "");
		if (!ids || !event->name)
			return err_nomem(err);
		if (size)
			memcpy(ids, events[i].ids, size);
		event->ids = ids;
		event->attr.size = attr_size;
	}
	writer->event_count = count;
	return 0;
}

static void writer_free(struct data_writer *writer)
{
	if (writer->fd >= 0)
		close(writer->fd);
	ZSTD_freeCCtx(writer->zstd);
	free(writer->in);
	free(writer->out);
	vec_fini(&writer->cuts);
	for (size_t i = 0; i < FORMAT_FEATURES - FEATURE_PRIVATE; i++)
		strbuf_fini(&writer->sections[i]);
	strbuf_fini(&writer->build_ids);
	intern_fini(&writer->paths);
	arena_fini(&writer->arena);
	free(writer);
}

static int open_file(struct data_writer *writer, const char *path, struct err *err)
{
	struct stat st;

	writer->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);
	if (writer->fd < 0 || fstat(writer->fd, &st) < 0)
		return err_sys(err, errno, "cannot write %s", path);
	writer->regular = S_ISREG(st.st_mode);
	if (lseek(writer->fd, 0, SEEK_SET) < 0) {
		err_set(err, ERR_UNSUPPORTED, "cannot write a recording into the pipe %s", path);
		err_hint(err, "write it into a file with -o FILE");
		return ERR_UNSUPPORTED;
	}
	return 0;
}

int data_writer_open(struct data_writer **result, const char *path, const struct data_event *events,
		     size_t count, const struct data_writer_options *options, struct err *err)
{
	struct data_writer *writer = calloc(1, sizeof(*writer));
	int rc;

	*result = NULL;
	if (!writer)
		return err_nomem(err);
	arena_init(&writer->arena);
	intern_init(&writer->paths);
	writer->fd = -1;
	writer->options = *options;
	writer->frame = options->zstd_level ? 4 * FRAME_MIN : FRAME_MIN;
	writer->in = malloc(FRAME_MAX);
	writer->out = malloc(OUT_MAX);
	writer->zstd = options->zstd_level ? ZSTD_createCCtx() : NULL;
	if (!writer->in || !writer->out || (options->zstd_level && !writer->zstd)) {
		rc = err_nomem(err);
		goto out;
	}
	if (options->zstd_level)
		ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, options->zstd_level);
	if (!count) {
		rc = err_set(err, ERR_FAILED, "a recording needs an event");
		goto out;
	}
	rc = copy_events(writer, events, count, err);
	if (!rc)
		rc = open_file(writer, path, err);
	if (!rc)
		rc = write_front(writer, err);
out:
	if (rc < 0)
		writer_free(writer);
	else
		*result = writer;
	return rc;
}

static int put(int fd, const void *bytes, size_t len, uint64_t *at)
{
	const char *from = bytes;

	while (len) {
		ssize_t n = pwrite(fd, from, len, (off_t)*at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		from += n;
		len -= (size_t)n;
		*at += (size_t)n;
	}
	return 0;
}

/* Everything behind the records, which end at writer->end: the table of sections, those of perf,
 * then ours, and last the header that says where they are. -1 with errno. */
static int write_back(struct data_writer *writer, const struct features *features,
		      bool private_sections)
{
	struct format_header header = make_header(writer);
	struct format_section table[FORMAT_FEATURES];
	unsigned int count = features->count, n = 0;
	uint64_t at, table_at = writer->end, zero = 0;

	memcpy(header.features, features->bits, sizeof(header.features));
	for (unsigned int i = 0; private_sections && i < FORMAT_FEATURES - FEATURE_PRIVATE; i++)
		count += writer->has_section[i];
	at = table_at + count * sizeof(table[0]);
	for (unsigned int i = 0; i < FEATURE_PRIVATE; i++)
		if (features->bits[i / 64] >> i % 64 & 1)
			table[n++] = (struct format_section){.offset = at +
								       features->sections[i].offset,
							     .size = features->sections[i].size};
	if (put(writer->fd, features->body.buf, features->body.len, &at) < 0)
		return -1;
	for (unsigned int i = 0; private_sections && i < FORMAT_FEATURES - FEATURE_PRIVATE; i++) {
		const struct strbuf *section = &writer->sections[i];
		unsigned int id = i + FEATURE_PRIVATE;

		if (!writer->has_section[i])
			continue;
		if (put(writer->fd, &zero, -at & 7, &at) < 0)
			return -1;
		table[n++] = (struct format_section){.offset = at, .size = section->len};
		header.features[id / 64] |= 1ull << id % 64;
		if (put(writer->fd, section->buf, section->len, &at) < 0)
			return -1;
	}
	if (put(writer->fd, table, n * sizeof(table[0]), &table_at) < 0)
		return -1;
	header.data.size = writer->end - writer->data_offset;
	at = 0;
	return put(writer->fd, &header, sizeof(header), &at);
}

/* Gives up records at the end so that `need` bytes become free, but not more than half. */
static bool cut_records(struct data_writer *writer, uint64_t need)
{
	uint64_t half = writer->data_offset + (writer->end - writer->data_offset) / 2;
	uint64_t limit = writer->end > need ? writer->end - need : 0;

	for (size_t i = writer->cuts.len; i-- > 0 && writer->cuts.items[i] >= half;) {
		if (writer->cuts.items[i] > limit)
			continue;
		writer->end = writer->cuts.items[i];
		writer->cuts.len = i + 1;
		return true;
	}
	return false;
}

static void truncate_to_records(const struct data_writer *writer)
{
	/* Of a file that cannot be shortened the header says where the records end. */
	if (writer->regular && ftruncate(writer->fd, (off_t)writer->end) < 0)
		return;
}

static int finish(struct data_writer *writer, const struct features *features)
{
	static const struct features none;
	uint64_t need, private_len = 0;
	int saved;

	truncate_to_records(writer);
	if (write_back(writer, features, true) == 0)
		return 0;
	saved = errno;
	err_sys(&writer->failure, saved, "cannot complete the recording");
	for (unsigned int i = 0; i < FORMAT_FEATURES - FEATURE_PRIVATE; i++)
		private_len += writer->sections[i].len + 8;
	/* Room for everything, else for what perf needs to open the file, else for nothing. */
	need = features->body.len + sizeof(struct format_section) * FORMAT_FEATURES + 4096;
	if (cut_records(writer, need + private_len)) {
		truncate_to_records(writer);
		if (write_back(writer, features, true) == 0)
			return writer->failure.code;
	}
	cut_records(writer, need);
	truncate_to_records(writer);
	if (write_back(writer, features, false) == 0)
		return writer->failure.code;
	truncate_to_records(writer);
	write_back(writer, &none, false);
	return writer->failure.code;
}

int data_writer_close(struct data_writer *writer, const struct data_info *info, struct err *err)
{
	static const struct data_info nothing;
	struct features features = {0};
	struct err first;
	int rc;

	if (!writer)
		return 0;
	if (!writer->failure.code)
		flush(writer, true, &writer->failure);
	first = writer->failure;
	if (features_make(&features, writer, info ? info : &nothing, &writer->failure) < 0)
		features_fini(&features);
	finish(writer, &features);
	if (close(writer->fd) < 0 && !writer->failure.code)
		err_sys(&writer->failure, errno, "cannot close the recording");
	writer->fd = -1;
	if (first.code)
		writer->failure = first;
	rc = fail(writer, err);
	features_fini(&features);
	writer_free(writer);
	return rc;
}
