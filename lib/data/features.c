#include "data/output.h"

#include <string.h>

/* Feature sections as perf reads them (linux tools/perf/util/header.c, process_*). Words are in the
 * byte order of the machine. */

static void add_u32(struct strbuf *sb, uint32_t v)
{
	strbuf_add(sb, &v, sizeof(v));
}

static void add_u64(struct strbuf *sb, uint64_t v)
{
	strbuf_add(sb, &v, sizeof(v));
}

/* u32 length with the padding, the text, at least one NUL. */
static void add_string(struct strbuf *sb, const char *text)
{
	size_t len = strlen(text);
	size_t padded = (len + FORMAT_NAME_ALIGN) & ~(size_t)(FORMAT_NAME_ALIGN - 1);

	add_u32(sb, (uint32_t)padded);
	strbuf_add(sb, text, len);
	strbuf_extend(sb, padded - len);
}

static void add_nrcpus(struct strbuf *sb, const struct data_writer *writer,
		       const struct data_info *info)
{
	(void)writer;
	if (!info->cpus_available)
		return;
	add_u32(sb, info->cpus_available);
	add_u32(sb, info->cpus_online);
}

static void add_total_mem(struct strbuf *sb, const struct data_writer *writer,
			  const struct data_info *info)
{
	(void)writer;
	if (info->total_memory_kb)
		add_u64(sb, info->total_memory_kb);
}

static void add_cmdline(struct strbuf *sb, const struct data_writer *writer,
			const struct data_info *info)
{
	(void)writer;
	if (!info->cmdline_len)
		return;
	add_u32(sb, (uint32_t)info->cmdline_len);
	for (size_t i = 0; i < info->cmdline_len; i++)
		add_string(sb, info->cmdline[i]);
}

static void add_event_desc(struct strbuf *sb, const struct data_writer *writer,
			   const struct data_info *info)
{
	(void)info;
	add_u32(sb, (uint32_t)writer->event_count);
	add_u32(sb, writer->events[0].attr.size);
	for (size_t i = 0; i < writer->event_count; i++) {
		const struct data_event *event = &writer->events[i];

		strbuf_add(sb, &event->attr, event->attr.size);
		add_u32(sb, (uint32_t)event->id_count);
		add_string(sb, event->name);
		strbuf_add(sb, event->ids, event->id_count * sizeof(*event->ids));
	}
}

/* Members follow their leader directly: perf counts them off. */
static size_t group_size(const struct data_writer *writer, size_t leader)
{
	size_t end = leader + 1;

	if (writer->events[leader].leader != (int)leader)
		return 1;
	while (end < writer->event_count && writer->events[end].leader == (int)leader)
		end++;
	return end - leader;
}

static void add_group_desc(struct strbuf *sb, const struct data_writer *writer,
			   const struct data_info *info)
{
	uint32_t groups = 0;

	(void)info;
	for (size_t i = 0; i < writer->event_count; i++)
		groups += group_size(writer, i) > 1;
	if (!groups)
		return;
	add_u32(sb, groups);
	for (size_t i = 0; i < writer->event_count; i++) {
		size_t members = group_size(writer, i);

		if (members == 1)
			continue;
		add_string(sb, "{anon_group}");
		add_u32(sb, (uint32_t)i);
		add_u32(sb, (uint32_t)members);
	}
}

static void add_sample_time(struct strbuf *sb, const struct data_writer *writer,
			    const struct data_info *info)
{
	(void)info;
	if (!writer->last_time)
		return;
	add_u64(sb, writer->first_time);
	add_u64(sb, writer->last_time);
}

static void add_clockid(struct strbuf *sb, const struct data_writer *writer,
			const struct data_info *info)
{
	(void)writer;
	if (info->has_clockid)
		add_u64(sb, info->clock_resolution_ns);
}

static void add_compressed(struct strbuf *sb, const struct data_writer *writer,
			   const struct data_info *info)
{
	size_t mmap_len = writer->options.mmap_len;
	uint64_t in = writer->total_in, out = writer->total_out;

	(void)info;
	if (!writer->options.zstd_level)
		return;
	if (mmap_len < FRAME_MAX)
		mmap_len = FRAME_MAX;
	if (mmap_len > 1u << 30)
		mmap_len = 1u << 30;
	/* Room for the beginning of a record that another frame completes. */
	mmap_len = (mmap_len + FORMAT_RECORD_MAX + 4095) & ~(size_t)4095;
	add_u32(sb, 1); /* version */
	add_u32(sb, FORMAT_COMPRESSION_ZSTD);
	add_u32(sb, (uint32_t)writer->options.zstd_level);
	add_u32(sb, out ? (uint32_t)((in + out / 2) / out) : 0);
	add_u32(sb, (uint32_t)mmap_len);
}

static void add_clock_data(struct strbuf *sb, const struct data_writer *writer,
			   const struct data_info *info)
{
	(void)writer;
	if (!info->has_clock_data)
		return;
	add_u32(sb, 1); /* version */
	add_u32(sb, info->clockid);
	add_u64(sb, info->clock_wall_ns);
	add_u64(sb, info->clock_ns);
}

static void add_tracing_data(struct strbuf *sb, const struct data_writer *writer,
			     const struct data_info *info)
{
	(void)writer;
	strbuf_add(sb, info->tracing_data, info->tracing_data_len);
}

static void add_build_ids(struct strbuf *sb, const struct data_writer *writer,
			  const struct data_info *info)
{
	(void)info;
	strbuf_add(sb, writer->build_ids.buf, writer->build_ids.len);
}

static const char *string_of(const struct data_info *info, unsigned int feature)
{
	switch (feature) {
	case FEATURE_HOSTNAME:
		return info->hostname;
	case FEATURE_OSRELEASE:
		return info->os_release;
	case FEATURE_VERSION:
		return info->perf_version;
	case FEATURE_ARCH:
		return info->arch;
	case FEATURE_CPUDESC:
		return info->cpu_desc;
	case FEATURE_CPUID:
		return info->cpuid;
	default:
		return NULL;
	}
}

typedef void section_writer(struct strbuf *sb, const struct data_writer *writer,
			    const struct data_info *info);

/* One that adds nothing leaves its section out. */
static section_writer *const writers[] = {
	[FEATURE_TRACING_DATA] = add_tracing_data,
	[FEATURE_BUILD_ID] = add_build_ids,
	[FEATURE_NRCPUS] = add_nrcpus,
	[FEATURE_TOTAL_MEM] = add_total_mem,
	[FEATURE_CMDLINE] = add_cmdline,
	[FEATURE_EVENT_DESC] = add_event_desc,
	[FEATURE_GROUP_DESC] = add_group_desc,
	[FEATURE_SAMPLE_TIME] = add_sample_time,
	[FEATURE_CLOCKID] = add_clockid,
	[FEATURE_COMPRESSED] = add_compressed,
	[FEATURE_CLOCK_DATA] = add_clock_data,
};

int features_make(struct features *features, const struct data_writer *writer,
		  const struct data_info *info, struct err *err)
{
	struct strbuf *body = &features->body;

	*features = (struct features){0};
	for (unsigned int i = 0; i < FEATURE_PRIVATE; i++) {
		const char *text = string_of(info, i);
		size_t start = body->len;

		if (text)
			add_string(body, text);
		else if (i < sizeof(writers) / sizeof(writers[0]) && writers[i])
			writers[i](body, writer, info);
		if (body->len == start)
			continue;
		features->sections[i] = (struct format_section){.offset = start,
								.size = body->len - start};
		features->bits[i / 64] |= 1ull << i % 64;
		features->count++;
		strbuf_pad(body, 8);
	}
	return strbuf_failed(body) ? err_nomem(err) : 0;
}

void features_fini(struct features *features)
{
	strbuf_fini(&features->body);
}
