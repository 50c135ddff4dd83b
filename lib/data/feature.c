#include "data/file.h"

#include <string.h>

/*
 * Feature sections: what the recording says of itself. A section that is shorter than its contents
 * gives what is there; the caller noted the loss if the file was cut.
 */

typedef int feature_reader(struct data_file *file, struct bytes *in, struct err *err);

/* A string of a feature: u32 length with padding, then the text. NULL at the end of the section. */
static int read_string(struct data_file *file, struct bytes *in, const char **text, struct err *err)
{
	uint32_t len = bytes_u32(in);
	const char *at;

	*text = NULL;
	if (len > bytes_left(in))
		len = (uint32_t)bytes_left(in);
	at = bytes_take(in, len);
	if (in->bad || !len)
		return 0;
	*text = arena_strndup(&file->arena, at, strnlen(at, len));
	return *text ? 0 : err_nomem(err);
}

static int read_nrcpus(struct data_file *file, struct bytes *in, struct err *err)
{
	(void)err;
	file->info.cpus_available = bytes_u32(in);
	file->info.cpus_online = bytes_u32(in);
	return 0;
}

static int read_total_mem(struct data_file *file, struct bytes *in, struct err *err)
{
	(void)err;
	file->info.total_memory_kb = bytes_u64(in);
	return 0;
}

static int read_cmdline(struct data_file *file, struct bytes *in, struct err *err)
{
	uint32_t count = bytes_u32(in);
	const char **words;

	/* Each word takes at least its length. */
	if (count > bytes_left(in) / sizeof(uint32_t))
		count = (uint32_t)(bytes_left(in) / sizeof(uint32_t));
	words = arena_alloc(&file->arena, count * sizeof(*words));
	if (!words)
		return err_nomem(err);
	file->info.cmdline = words;
	file->info.cmdline_len = 0;
	for (uint32_t i = 0; i < count && bytes_left(in); i++) {
		int rc = read_string(file, in, &words[i], err);

		if (rc < 0)
			return rc;
		if (!words[i])
			words[i] = "";
		file->info.cmdline_len = i + 1;
	}
	return 0;
}

static int read_event_desc(struct data_file *file, struct bytes *in, struct err *err)
{
	uint32_t count = bytes_u32(in), attr_size = bytes_u32(in);

	for (uint32_t i = 0; i < count && bytes_left(in); i++) {
		const char *name;
		uint32_t ids;
		uint64_t first;
		int rc, index = (int)i;

		bytes_take(in, attr_size);
		ids = bytes_u32(in);
		rc = read_string(file, in, &name, err);
		if (rc < 0)
			return rc;
		if (in->bad)
			break;
		if (ids) {
			const uint64_t *known;

			first = bytes_u64(in);
			bytes_take(in, (ids - 1) * sizeof(uint64_t));
			known = in->bad ? NULL : map_get(&file->by_id, first);
			if (known)
				index = (int)*known;
		}
		if (name && name[0] && (size_t)index < file->events.len)
			file->events.items[index]->name = name;
	}
	return 0;
}

static int read_group_desc(struct data_file *file, struct bytes *in, struct err *err)
{
	uint32_t count = bytes_u32(in);

	for (uint32_t i = 0; i < count && bytes_left(in); i++) {
		const char *name;
		uint32_t leader, members;
		int rc = read_string(file, in, &name, err);

		if (rc < 0)
			return rc;
		leader = bytes_u32(in);
		members = bytes_u32(in);
		for (uint64_t j = leader;
		     !in->bad && j < (uint64_t)leader + members && j < file->events.len; j++)
			file->events.items[j]->leader = (int)leader;
	}
	return 0;
}

static int read_sample_time(struct data_file *file, struct bytes *in, struct err *err)
{
	(void)err;
	file->info.first_sample_time = bytes_u64(in);
	file->info.last_sample_time = bytes_u64(in);
	return 0;
}

static int read_clockid(struct data_file *file, struct bytes *in, struct err *err)
{
	(void)err;
	file->info.clock_resolution_ns = bytes_u64(in);
	return 0;
}

static int read_clock_data(struct data_file *file, struct bytes *in, struct err *err)
{
	struct data_info *info = &file->info;
	uint32_t clockid;
	uint64_t wall, clock;

	(void)err;
	bytes_u32(in); /* version 1 */
	clockid = bytes_u32(in);
	wall = bytes_u64(in);
	clock = bytes_u64(in);
	if (in->bad)
		return 0;
	info->has_clockid = info->has_clock_data = true;
	info->clockid = clockid;
	info->clock_wall_ns = wall;
	info->clock_ns = clock;
	return 0;
}

static int read_compressed(struct data_file *file, struct bytes *in, struct err *err)
{
	(void)err;
	bytes_take(in, 12); /* version, type, level */
	file->info.comp_ratio = bytes_u32(in);
	file->info.compressed = true;
	return 0;
}

int feature_read_build_id(struct data_file *file, uint16_t misc, struct bytes in, struct err *err)
{
	struct data_build_id *build_id;
	int32_t pid = (int32_t)bytes_u32(&in);
	const uint8_t *id = bytes_take(&in, 24); /* 20, a length, padding */
	const char *path = (const char *)in.at;
	uint32_t len = FORMAT_BUILD_ID_SIZE;
	uint8_t *copy;
	char *name;

	if (in.bad)
		return 0;
	if (misc & FORMAT_MISC_BUILD_ID_SIZE && id[FORMAT_BUILD_ID_SIZE] < len)
		len = id[FORMAT_BUILD_ID_SIZE];
	copy = arena_alloc(&file->arena, FORMAT_BUILD_ID_SIZE);
	name = arena_strndup(&file->arena, path,
			     bytes_left(&in) ? strnlen(path, bytes_left(&in)) : 0);
	build_id = copy && name ? vec_push(&file->build_ids) : NULL;
	if (!build_id)
		return err_nomem(err);
	memcpy(copy, id, len);
	*build_id = (struct data_build_id){
		.pid = pid, .misc = misc, .id = copy, .id_len = len, .path = name};
	file->info.build_ids = file->build_ids.items;
	file->info.build_id_count = file->build_ids.len;
	return 0;
}

static int read_build_ids(struct data_file *file, struct bytes *in, struct err *err)
{
	while (bytes_left(in)) {
		uint16_t misc, size;
		struct bytes body;
		int rc;

		bytes_u32(in); /* type */
		misc = bytes_u16(in);
		size = bytes_u16(in);
		if (in->bad || size < sizeof(struct perf_event_header))
			break;
		body = bytes_sub(in, size - sizeof(struct perf_event_header));
		if (in->bad)
			break;
		rc = feature_read_build_id(file, misc, body, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static feature_reader *const readers[] = {
	[FEATURE_BUILD_ID] = read_build_ids,	  [FEATURE_NRCPUS] = read_nrcpus,
	[FEATURE_TOTAL_MEM] = read_total_mem,	  [FEATURE_CMDLINE] = read_cmdline,
	[FEATURE_EVENT_DESC] = read_event_desc,	  [FEATURE_GROUP_DESC] = read_group_desc,
	[FEATURE_SAMPLE_TIME] = read_sample_time, [FEATURE_CLOCKID] = read_clockid,
	[FEATURE_COMPRESSED] = read_compressed,	  [FEATURE_CLOCK_DATA] = read_clock_data,
};

static const char **string_of(struct data_info *info, unsigned int feature)
{
	switch (feature) {
	case FEATURE_HOSTNAME:
		return &info->hostname;
	case FEATURE_OSRELEASE:
		return &info->os_release;
	case FEATURE_VERSION:
		return &info->perf_version;
	case FEATURE_ARCH:
		return &info->arch;
	case FEATURE_CPUDESC:
		return &info->cpu_desc;
	case FEATURE_CPUID:
		return &info->cpuid;
	default:
		return NULL;
	}
}

int feature_read(struct data_file *file, unsigned int feature, struct bytes in, struct err *err)
{
	const char **string = string_of(&file->info, feature);

	if (string)
		return read_string(file, &in, string, err);
	if (feature < sizeof(readers) / sizeof(readers[0]) && readers[feature])
		return readers[feature](file, &in, err);
	if (feature >= FEATURE_PRIVATE && feature < FORMAT_FEATURES) {
		/* A stream brings a section in pieces. */
		struct strbuf *piped = &file->piped[feature - FEATURE_PRIVATE];

		in.swap = false;
		if (file->pipe) {
			strbuf_add(piped, in.at, bytes_left(&in));
			if (strbuf_failed(piped))
				return err_nomem(err);
			in = bytes_of(piped->buf, piped->len);
		}
		return section_read(file, feature, in, err);
	}
	return 0;
}
