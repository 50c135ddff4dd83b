#include "data/file.h"

#include <inttypes.h>
#include <string.h>

/* The header of a file, its attributes with their ids, and where the rest lies. */

static int no_recording(struct err *err, const char *why)
{
	err_set(err, ERR_CORRUPT, "this is no perf.data file: %s", why);
	err_hint(err, "record one with: pyperf record -- COMMAND");
	return ERR_CORRUPT;
}

static struct bytes view(const struct data_file *file, uint64_t offset, uint64_t size)
{
	const struct source *source = &file->source;
	struct bytes b;

	if (offset > source->map_size)
		offset = source->map_size;
	if (size > source->map_size - offset)
		size = source->map_size - offset;
	b = bytes_of(source->map + offset, (size_t)size);
	b.swap = file->swap;
	return b;
}

static struct format_section read_section(struct bytes *in)
{
	struct format_section section;

	section.offset = bytes_u64(in);
	section.size = bytes_u64(in);
	return section;
}

bool header_attr(struct data_file *file, struct bytes in, struct perf_event_attr *attr)
{
	size_t len = bytes_left(&in) < sizeof(*attr) ? bytes_left(&in) : sizeof(*attr);

	if (len < FORMAT_ATTR_MIN)
		return false;
	*attr = (struct perf_event_attr){0};
	memcpy(attr, in.at, len);
	if (file->swap)
		swap_attr(attr);
	if (!attr->size)
		attr->size = FORMAT_ATTR_MIN;
	if (attr->size < FORMAT_ATTR_MIN)
		return false;
	/* The entry may be longer than the attr is. */
	if (attr->size < len)
		memset((char *)attr + attr->size, 0, sizeof(*attr) - attr->size);
	return true;
}

int header_add_event(struct data_file *file, const struct perf_event_attr *attr, struct bytes ids,
		     struct err *err)
{
	struct data_event *event = arena_alloc(&file->arena, sizeof(*event));
	size_t count = bytes_left(&ids) / sizeof(uint64_t);
	struct data_event **slot;
	uint64_t *words;

	/* Id sections may overlap; together they are no larger than the file. */
	if (count > file->id_budget)
		return err_set(err, ERR_CORRUPT, "more event ids than the file can hold");
	file->id_budget -= count;
	words = arena_alloc(&file->arena, count * sizeof(*words));
	slot = event && words ? vec_push(&file->events) : NULL;
	if (!slot)
		return err_nomem(err);
	*slot = event;
	event->attr = *attr;
	event->ids = words;
	event->id_count = count;
	event->leader = (int)file->events.len - 1;
	for (size_t i = 0; i < count; i++) {
		uint64_t *index;

		words[i] = bytes_u64(&ids);
		index = map_put(&file->by_id, words[i], NULL);
		if (!index)
			return err_nomem(err);
		*index = file->events.len - 1;
	}
	for (size_t i = 0; i < file->event_types.len && !event->name; i++)
		if (attr->type == PERF_TYPE_TRACEPOINT &&
		    attr->config == file->event_types.items[i].config)
			event->name = file->event_types.items[i].name;
	if (!event->name)
		event->name = name_event(&file->arena, attr);
	if (attr->use_clockid) {
		file->info.has_clockid = true;
		file->info.clockid = (uint32_t)attr->clockid;
	}
	return event->name ? 0 : err_nomem(err);
}

int header_add_event_type(struct data_file *file, struct bytes in, struct err *err)
{
	uint64_t config = bytes_u64(&in);
	const char *name = (const char *)in.at;
	struct event_type *type;

	if (in.bad || !bytes_left(&in))
		return 0;
	name = arena_strndup(&file->arena, name, strnlen(name, bytes_left(&in)));
	type = name ? vec_push(&file->event_types) : NULL;
	if (!type)
		return err_nomem(err);
	*type = (struct event_type){.config = config, .name = name};
	return 0;
}

static int read_event_types(struct data_file *file, struct format_section section, struct err *err)
{
	struct bytes in = view(file, section.offset, section.size);

	while (bytes_left(&in) >= 72) {
		int rc = header_add_event_type(file, bytes_sub(&in, 72), err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_attrs(struct data_file *file, const struct format_header *header, struct err *err)
{
	struct bytes in = view(file, header->attrs.offset, header->attrs.size);

	if (header->attr_size < FORMAT_ATTR_MIN + sizeof(struct format_section))
		return no_recording(err, "its attributes are too small");
	if (bytes_left(&in) < header->attrs.size)
		return no_recording(err, "it ends within its attributes");
	while (bytes_left(&in) >= header->attr_size) {
		struct bytes entry = bytes_sub(&in, header->attr_size);
		struct bytes body = bytes_sub(&entry,
					      bytes_left(&entry) - sizeof(struct format_section));
		struct format_section section = read_section(&entry);
		struct perf_event_attr attr;
		struct bytes ids = view(file, section.offset, section.size);
		int rc;

		if (!header_attr(file, body, &attr))
			return no_recording(err, "one of its attributes is broken");
		rc = header_add_event(file, &attr, ids, err);
		if (rc == ERR_CORRUPT)
			return no_recording(err, "its event ids are broken");
		if (rc < 0)
			return rc;
		if (bytes_left(&ids) < section.size) {
			rc = file_lose(file, err, "the file ends within the event ids");
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

static bool has_feature(const uint64_t *features, unsigned int feature)
{
	return features[feature / 64] >> feature % 64 & 1;
}

static void read_feature_bits(struct data_file *file, struct bytes *in, uint64_t *features)
{
	for (unsigned int i = 0; i < FORMAT_FEATURES / 64; i++)
		features[i] = bytes_u64(in);
	if (!file->swap || has_feature(features, FEATURE_HOSTNAME))
		return;
	/* The bits are an array of long: of 32-bit machines the halves are the other way round.
	 * Every perf sets HOSTNAME (linux tools/perf/util/header.c, perf_file_header__read). */
	for (unsigned int i = 0; i < FORMAT_FEATURES / 64; i++)
		features[i] = features[i] >> 32 | features[i] << 32;
	if (has_feature(features, FEATURE_HOSTNAME))
		return;
	memset(features, 0, FORMAT_FEATURES / 8);
	features[0] = 1u << FEATURE_BUILD_ID;
}

static int read_features(struct data_file *file, const struct format_header *header,
			 struct err *err)
{
	uint64_t at = header->data.offset + header->data.size;
	struct bytes table = view(file, at, sizeof(struct format_section) * FORMAT_FEATURES);

	for (unsigned int i = 0; i < FORMAT_FEATURES; i++) {
		struct format_section section;
		struct bytes in;
		int rc;

		if (!has_feature(header->features, i))
			continue;
		section = read_section(&table);
		if (table.bad)
			return file_lose(file, err,
					 "the file ends before its feature sections (%" PRIu64
					 " bytes)",
					 file->source.map_size);
		in = view(file, section.offset, section.size);
		if (bytes_left(&in) < section.size) {
			rc = file_lose(file, err, "the file ends within feature section %u", i);
			if (rc < 0)
				return rc;
		}
		rc = feature_read(file, i, in, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* perf writes size 0 and all feature bits first and completes them at its end. Only where the
 * first section lies directly behind the table is there really no data. */
static bool is_open(struct data_file *file, const struct format_header *header)
{
	struct bytes table = view(file, header->data.offset, sizeof(struct format_section));
	uint64_t count = 0;

	if (header->data.size)
		return false;
	for (unsigned int i = 0; i < FORMAT_FEATURES; i++)
		count += has_feature(header->features, i);
	return !count || read_section(&table).offset !=
				 header->data.offset + count * sizeof(struct format_section);
}

static int read_file_header(struct data_file *file, struct err *err)
{
	struct source *source = &file->source;
	struct format_header header = {0};
	struct bytes in = view(file, 0, sizeof(header));
	int rc;

	header.magic = bytes_u64(&in);
	header.size = bytes_u64(&in);
	header.attr_size = bytes_u64(&in);
	header.attrs = read_section(&in);
	header.data = read_section(&in);
	header.event_types = read_section(&in);
	if (in.bad)
		return no_recording(err, "it ends within its header");
	if (header.size >= sizeof(header))
		read_feature_bits(file, &in, header.features);
	if (header.size < FORMAT_HEADER_SIZE_MIN || in.bad)
		return no_recording(err, "its header is broken");
	rc = read_event_types(file, header.event_types, err);
	if (rc < 0)
		return rc;
	rc = read_attrs(file, &header, err);
	if (rc < 0)
		return rc;
	if (!file->events.len)
		return no_recording(err, "it names no events");
	source->at = header.data.offset < source->map_size ? header.data.offset : source->map_size;
	source->marked = source->dropped = source->at & ~(uint64_t)0xffff;
	source->end = source->map_size;
	if (is_open(file, &header))
		return file_lose(file, err,
				 "the recording was cut off: its header was never completed, so "
				 "what it says of the machine is missing");
	if (header.data.offset > source->map_size ||
	    header.data.size > source->map_size - header.data.offset)
		return file_lose(file, err,
				 "the file was cut off: it has %" PRIu64
				 " bytes, its records alone should end at %" PRIu64,
				 source->map_size, header.data.offset + header.data.size);
	source->end = header.data.offset + header.data.size;
	return read_features(file, &header, err);
}

int header_read(struct data_file *file, struct err *err)
{
	struct source *source = &file->source;
	const unsigned char *data;
	uint64_t words[2], magic, size;
	size_t have;
	int rc = source_peek(source, FORMAT_PIPE_HEADER_SIZE, 0, &data, &have, err);

	if (rc < 0)
		return rc;
	if (!have)
		return no_recording(err, "it is empty");
	if (have < FORMAT_PIPE_HEADER_SIZE)
		return no_recording(err, "it is too short");
	memcpy(words, data, sizeof(words));
	magic = words[0];
	size = words[1];
	if (magic == __builtin_bswap64(FORMAT_MAGIC) ||
	    (magic == FORMAT_MAGIC_OLD && size >> 32 && !(size & 0xffffffff))) {
		file->swap = true;
		size = __builtin_bswap64(size);
	} else if (magic != FORMAT_MAGIC && magic != FORMAT_MAGIC_OLD) {
		return no_recording(err, "it does not begin with PERFILE2");
	}
	file->pipe = size == FORMAT_PIPE_HEADER_SIZE;
	if (file->pipe) {
		source_take(source, FORMAT_PIPE_HEADER_SIZE);
		file->id_budget = UINT64_MAX;
		file->disk_size = source->map_size;
		return 0;
	}
	if (!source->mapped) {
		rc = source_spool(source, err);
		if (rc < 0)
			return rc;
	}
	file->disk_size = source->map_size;
	file->id_budget = source->map_size / sizeof(uint64_t);
	return read_file_header(file, err);
}
