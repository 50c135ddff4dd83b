#include "data/file.h"

#include <string.h>

/*
 * Files of the other byte order, turned around in place, one record at a time.
 *
 * A layout is a string of field sizes: 2, 4 and 8 are words of so many bytes, x is eight bytes that
 * stay, q is words of eight up to the end, and s (text) or the string's end stops. A record that is
 * shorter than its layout is turned as far as it goes.
 */
static unsigned char *swap_layout(unsigned char *at, const unsigned char *end, const char *layout)
{
	for (; *layout; layout++) {
		size_t size = *layout == '2' ? 2 : *layout == '4' ? 4 : 8;

		if (*layout == 's' || (size_t)(end - at) < size)
			break;
		for (size_t i = 0; *layout != 'x' && i < size / 2; i++) {
			unsigned char low = at[i];

			at[i] = at[size - 1 - i];
			at[size - 1 - i] = low;
		}
		at += size;
		if (*layout == 'q')
			layout--;
	}
	return at;
}

/* Compilers allot bit fields from the low end on little-endian machines, from the high end on
 * others. `v` is a word of fields, turned already; fields behind the named widths have one bit. */
static uint64_t swap_fields(uint64_t v, const unsigned char *widths)
{
	uint64_t turned = 0;
	unsigned int at = 0;

	while (at < 64) {
		unsigned int width = *widths ? *widths++ : 1;

		turned |= (v >> (64 - at - width) & ((1ull << width) - 1)) << at;
		at += width;
	}
	return turned;
}

void swap_header(struct perf_event_header *header)
{
	swap_layout((unsigned char *)header, (unsigned char *)(header + 1), "422");
}

void swap_attr(struct perf_event_attr *attr)
{
	/* precise_ip has two bits. */
	static const unsigned char widths[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0};
	unsigned char *flags = (unsigned char *)&attr->read_format + sizeof(attr->read_format);
	uint64_t v;

	swap_layout((unsigned char *)attr, (unsigned char *)(attr + 1),
		    "448888844888844842244"
		    "88");
	memcpy(&v, flags, sizeof(v));
	v = swap_fields(v, widths);
	memcpy(flags, &v, sizeof(v));
}

static uint64_t swapped(uint64_t v, bool swap)
{
	return swap ? __builtin_bswap64(v) : v;
}

static uint64_t word(const unsigned char *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* Bytes behind a record that sample_id_all adds. */
static size_t trailer_size(uint64_t sample_type)
{
	return 8u * (unsigned int)__builtin_popcountll(sample_type &
						       (PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
							PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
							PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER));
}

/* The event that a record (body not yet turned) belongs to: all events of a file agree on where the
 * id lies, or there is but one. */
static const struct data_event *find_event(const struct data_file *file,
					   const struct perf_event_header *header)
{
	const struct data_event *first;
	const unsigned char *at = (const unsigned char *)(header + 1);
	size_t size = header->size - sizeof(*header), offset;
	uint64_t type;
	int index;

	if (!file->events.len)
		return NULL;
	first = file->events.items[0];
	type = first->attr.sample_type;
	if (file->events.len == 1)
		return first;
	if (header->type == PERF_RECORD_SAMPLE) {
		offset = 0;
		if (!(type & PERF_SAMPLE_IDENTIFIER))
			offset = 8u * (unsigned int)__builtin_popcountll(
					      type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID |
						      PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
	} else {
		offset = 8;
		if (!(type & PERF_SAMPLE_IDENTIFIER))
			offset = 8u * (unsigned int)__builtin_popcountll(
					      type & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
						      PERF_SAMPLE_CPU));
		offset = offset <= size ? size - offset : size;
	}
	if (!(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)) || size < 8 || offset > size - 8)
		return first;
	index = data_event_by_id(file, __builtin_bswap64(word(at + offset)));
	return index < 0 ? first : file->events.items[index];
}

/* `count` words of eight, as far as there are so many. */
static unsigned char *swap_words(unsigned char *at, const unsigned char *end, uint64_t count)
{
	for (; count && end - at >= 8; count--)
		at = swap_layout(at, end, "8");
	return at;
}

static unsigned char *swap_read_format(unsigned char *at, const unsigned char *end, uint64_t format)
{
	unsigned int per_event = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
	unsigned int times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			     !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t count;

	if (!(format & PERF_FORMAT_GROUP))
		return swap_words(at, end, per_event + times);
	if (end - at < 8)
		return at;
	count = swapped(word(at), true);
	if (count > (uint64_t)(end - at) / 8)
		count = (uint64_t)(end - at) / 8;
	return swap_words(at, end, 1 + times + count * per_event);
}

static unsigned char *swap_regs(unsigned char *at, const unsigned char *end, uint64_t mask)
{
	bool any = end - at >= 8 && word(at);

	return swap_words(at, end, 1 + (any ? (unsigned int)__builtin_popcountll(mask) : 0));
}

/* A word that counts the bytes behind it. */
static unsigned char *swap_sized(unsigned char *at, const unsigned char *end, bool dynamic)
{
	uint64_t size;

	if (end - at < 8)
		return at;
	at = swap_layout(at, end, "8");
	size = word(at - 8);
	if (size > (uint64_t)(end - at))
		size = (uint64_t)(end - at);
	at += size;
	return dynamic && size ? swap_words(at, end, 1) : at;
}

static unsigned char *swap_branches(unsigned char *at, const unsigned char *end, uint64_t count)
{
	/* mispred, predicted, in_tx, abort, cycles, type, spec, new_type, priv */
	static const unsigned char widths[] = {1, 1, 1, 1, 16, 4, 2, 4, 3, 0};

	for (; count && end - at >= 24; count--) {
		uint64_t flags;

		at = swap_layout(at, end, "888");
		flags = swap_fields(word(at - 8), widths);
		memcpy(at - 8, &flags, sizeof(flags));
	}
	return at;
}

static void swap_sample(const struct perf_event_attr *attr, unsigned char *at,
			const unsigned char *end)
{
	uint64_t type = attr->sample_type, count;

	if (type & PERF_SAMPLE_IDENTIFIER)
		at = swap_words(at, end, 1);
	if (type & PERF_SAMPLE_IP)
		at = swap_words(at, end, 1);
	if (type & PERF_SAMPLE_TID)
		at = swap_layout(at, end, "44");
	at = swap_words(at, end,
			(unsigned int)__builtin_popcountll(
				type & (PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
					PERF_SAMPLE_STREAM_ID)));
	if (type & PERF_SAMPLE_CPU)
		at = swap_layout(at, end, "44");
	if (type & PERF_SAMPLE_PERIOD)
		at = swap_words(at, end, 1);
	if (type & PERF_SAMPLE_READ)
		at = swap_read_format(at, end, attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN && end - at >= 8) {
		at = swap_words(at, end, 1);
		at = swap_words(at, end, word(at - 8));
	}
	if (type & PERF_SAMPLE_RAW && end - at >= 4) {
		uint32_t size;

		at = swap_layout(at, end, "4");
		memcpy(&size, at - 4, sizeof(size));
		at += size < (size_t)(end - at) ? size : (size_t)(end - at);
	}
	if (type & PERF_SAMPLE_BRANCH_STACK && end - at >= 8) {
		at = swap_words(at, end, 1);
		count = word(at - 8);
		if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
			at = swap_words(at, end, 1);
		at = swap_branches(at, end, count);
	}
	if (type & PERF_SAMPLE_REGS_USER)
		at = swap_regs(at, end, attr->sample_regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		at = swap_sized(at, end, true);
	at = swap_words(at, end,
			(unsigned int)__builtin_popcountll(
				type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT |
					PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION)));
	if (type & PERF_SAMPLE_REGS_INTR)
		at = swap_regs(at, end, attr->sample_regs_intr);
	at = swap_words(at, end,
			(unsigned int)__builtin_popcountll(
				type & (PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |
					PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE)));
	if (type & PERF_SAMPLE_AUX)
		swap_sized(at, end, false);
}

static void swap_trailer(uint64_t type, unsigned char *at, const unsigned char *end)
{
	if (type & PERF_SAMPLE_TID)
		at = swap_layout(at, end, "44");
	at = swap_words(
		at, end,
		(unsigned int)__builtin_popcountll(
			type & (PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID)));
	if (type & PERF_SAMPLE_CPU)
		at = swap_layout(at, end, "44");
	if (type & PERF_SAMPLE_IDENTIFIER)
		swap_words(at, end, 1);
}

static const char *const layouts[] = {
	[PERF_RECORD_MMAP] = "44888s",
	[PERF_RECORD_LOST] = "88",
	[PERF_RECORD_COMM] = "44s",
	[PERF_RECORD_EXIT] = "44448",
	[PERF_RECORD_THROTTLE] = "888",
	[PERF_RECORD_UNTHROTTLE] = "888",
	[PERF_RECORD_FORK] = "44448",
	[PERF_RECORD_READ] = "44q",
	[PERF_RECORD_MMAP2] = "44888448844s",
	[PERF_RECORD_AUX] = "888",
	[PERF_RECORD_ITRACE_START] = "44",
	[PERF_RECORD_LOST_SAMPLES] = "8",
	[PERF_RECORD_SWITCH_CPU_WIDE] = "44",
	[PERF_RECORD_NAMESPACES] = "44q",
	[PERF_RECORD_KSYMBOL] = "8422s",
	[PERF_RECORD_BPF_EVENT] = "224x",
	[PERF_RECORD_CGROUP] = "8s",
	[PERF_RECORD_TEXT_POKE] = "822s",
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = "8",
	[RECORD_HEADER_TRACING_DATA] = "4",
	[RECORD_ID_INDEX] = "q",
	[RECORD_AUXTRACE_INFO] = "44q",
	[RECORD_AUXTRACE] = "8884444",
	[RECORD_STAT_ROUND] = "q",
	[RECORD_TIME_CONV] = "88888x", /* two bytes, and nothing */
};

void swap_record(const struct data_file *file, struct perf_event_header *header)
{
	unsigned char *at = (unsigned char *)(header + 1);
	unsigned char *end = (unsigned char *)header + header->size;
	const struct data_event *event = NULL;
	const char *layout = NULL;

	if (header->type < sizeof(layouts) / sizeof(layouts[0]))
		layout = layouts[header->type];
	if (header->type == PERF_RECORD_MMAP2 && header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		layout = "44888xxx44s";
	if (header->type < RECORD_USER)
		event = find_event(file, header);
	if (header->type == PERF_RECORD_SAMPLE && event) {
		swap_sample(&event->attr, at, end);
		return;
	}
	if (event && event->attr.sample_id_all) {
		size_t trailer = trailer_size(event->attr.sample_type);

		if (trailer <= (size_t)(end - at)) {
			swap_trailer(event->attr.sample_type, end - trailer, end);
			end -= trailer;
		}
	}
	if (layout)
		swap_layout(at, end, layout);
}
