#include "ring/record.h"

#include <string.h>

/*
 * One pass over a record in the order of the kernel's layout. struct bytes makes every read safe,
 * and whether the record was long enough is asked once at its end.
 */

#define USER_RECORDS 64 /* perf's own records: no sample_id behind them */

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1u << 4)
#endif
#define BRANCH_COUNTERS (1u << 19) /* PERF_SAMPLE_BRANCH_COUNTERS, since Linux 6.8 */
#define BRANCH_ENTRY_SIZE 24u

static struct bytes body(const struct perf_event_header *record)
{
	size_t size = record->size < sizeof(*record) ? 0 : record->size - sizeof(*record);

	return bytes_of(record + 1, size);
}

static unsigned int words(uint64_t sample_type)
{
	return (unsigned int)__builtin_popcountll(sample_type);
}

bool record_identifier(const struct perf_event_header *record, uint64_t sample_type, uint64_t *id)
{
	const uint64_t before = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				PERF_SAMPLE_ADDR;
	const uint64_t behind = PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU;
	struct bytes in = body(record);
	size_t left = bytes_left(&in) / 8, skip;

	if (record->type >= USER_RECORDS)
		return false;
	if (record->type == PERF_RECORD_SAMPLE) {
		if (sample_type & PERF_SAMPLE_IDENTIFIER)
			skip = 0;
		else if (sample_type & PERF_SAMPLE_ID)
			skip = words(sample_type & before);
		else
			return false;
	} else {
		if (sample_type & PERF_SAMPLE_IDENTIFIER)
			skip = 1;
		else if (sample_type & PERF_SAMPLE_ID)
			skip = words(sample_type & behind);
		else
			return false;
		skip = skip <= left ? left - skip : left;
	}
	bytes_take(&in, skip < left ? skip * 8 : bytes_left(&in));
	*id = bytes_u64(&in);
	return !in.bad;
}

static struct bytes take_read(struct bytes *in, uint64_t format)
{
	unsigned int times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			     !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	unsigned int each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
	struct bytes start = *in;
	uint64_t count = 1;

	if (format & PERF_FORMAT_GROUP) {
		count = bytes_u64(&start);
		times++;
		if (count > bytes_left(in) / 8)
			count = bytes_left(in); /* more than there is */
	}
	return bytes_sub(in, (times + count * each) * 8);
}

static const uint64_t *take_words(struct bytes *in, uint64_t count)
{
	if (count > bytes_left(in) / 8) {
		in->bad = true;
		return NULL;
	}
	return bytes_take(in, (size_t)count * 8);
}

static void take_branches(struct bytes *in, uint64_t branch_type, struct record_sample *sample)
{
	uint64_t count = bytes_u64(in);
	const void *branches;

	if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		bytes_u64(in);
	if (count > bytes_left(in) / BRANCH_ENTRY_SIZE) {
		in->bad = true;
		return;
	}
	branches = bytes_take(in, (size_t)count * BRANCH_ENTRY_SIZE);
	if (branch_type & PERF_SAMPLE_BRANCH_CALL_STACK) {
		sample->calls = branches;
		sample->calls_len = branches ? count : 0;
	}
	if (branch_type & BRANCH_COUNTERS)
		take_words(in, count);
}

static void take_stack(struct bytes *in, struct record_sample *sample)
{
	uint64_t size = bytes_u64(in);

	if (size > bytes_left(in)) {
		in->bad = true;
		return;
	}
	sample->stack_user = bytes_take(in, (size_t)size);
	if (!size)
		return;
	sample->stack_user_size = bytes_u64(in);
	if (sample->stack_user_size > size)
		sample->stack_user_size = size;
}

static void take_raw(struct bytes *in, struct record_sample *sample)
{
	/* The size is 4 modulo 8, so that what follows is aligned; some writers leave that out. */
	sample->raw_len = bytes_u32(in);
	sample->raw = bytes_take(in, sample->raw_len);
	bytes_take(in, bytes_left(in) & 7);
}

bool record_decode_sample(const struct perf_event_header *record,
			  const struct perf_event_attr *attr, struct record_sample *sample)
{
	uint64_t type = attr->sample_type;
	struct record_id *id = &sample->id;
	struct bytes in = body(record);
	uint64_t abi;

	*sample = (struct record_sample){0};
	if (type & PERF_SAMPLE_IDENTIFIER) {
		id->id = bytes_u64(&in);
		id->has_id = true;
	}
	if (type & PERF_SAMPLE_IP)
		sample->ip = bytes_u64(&in);
	if (type & PERF_SAMPLE_TID) {
		id->pid = bytes_u32(&in);
		id->tid = bytes_u32(&in);
		id->has_tid = true;
	}
	if (type & PERF_SAMPLE_TIME) {
		id->time = bytes_u64(&in);
		id->has_time = true;
	}
	if (type & PERF_SAMPLE_ADDR)
		sample->addr = bytes_u64(&in);
	if (type & PERF_SAMPLE_ID) {
		id->id = bytes_u64(&in);
		id->has_id = true;
	}
	if (type & PERF_SAMPLE_STREAM_ID)
		sample->stream_id = bytes_u64(&in);
	if (type & PERF_SAMPLE_CPU) {
		id->cpu = bytes_u32(&in);
		bytes_u32(&in);
		id->has_cpu = true;
	}
	if (type & PERF_SAMPLE_PERIOD)
		sample->period = bytes_u64(&in);
	if (type & PERF_SAMPLE_READ)
		sample->read = take_read(&in, attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		sample->callchain_len = bytes_u64(&in);
		sample->callchain = take_words(&in, sample->callchain_len);
	}
	if (type & PERF_SAMPLE_RAW)
		take_raw(&in, sample);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		take_branches(&in, attr->branch_sample_type, sample);
	if (type & PERF_SAMPLE_REGS_USER) {
		sample->regs_user_abi = bytes_u64(&in);
		if (sample->regs_user_abi)
			sample->regs_user = take_words(&in, words(attr->sample_regs_user));
	}
	if (type & PERF_SAMPLE_STACK_USER)
		take_stack(&in, sample);
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)) {
		sample->weight = bytes_u64(&in);
		/* Of the struct this is the latency (var1_dw). */
		if (type & PERF_SAMPLE_WEIGHT_STRUCT)
			sample->weight &= 0xffffffff;
	}
	if (type & PERF_SAMPLE_DATA_SRC)
		sample->data_src = bytes_u64(&in);
	if (type & PERF_SAMPLE_TRANSACTION)
		bytes_u64(&in);
	if (type & PERF_SAMPLE_REGS_INTR) {
		abi = bytes_u64(&in);
		if (abi)
			take_words(&in, words(attr->sample_regs_intr));
	}
	if (type & PERF_SAMPLE_PHYS_ADDR)
		sample->phys_addr = bytes_u64(&in);
	if (type & PERF_SAMPLE_CGROUP)
		bytes_u64(&in);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		sample->data_page_size = bytes_u64(&in);
	return !in.bad;
}

bool record_decode_read(const struct record_sample *sample, const struct perf_event_attr *attr,
			struct record_read *read)
{
	struct bytes in = sample->read;

	*read = (struct record_read){.count = 1, .format = attr->read_format};
	if (!(attr->sample_type & PERF_SAMPLE_READ))
		return false;
	if (read->format & PERF_FORMAT_GROUP)
		read->count = bytes_u64(&in);
	else
		read->first = bytes_u64(&in);
	if (read->format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		read->time_enabled = bytes_u64(&in);
	if (read->format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		read->time_running = bytes_u64(&in);
	read->rest = in;
	return !in.bad;
}

bool record_next_value(struct record_read *read, uint64_t *value, uint64_t *id)
{
	struct bytes *in = &read->rest;

	if (!read->count)
		return false;
	read->count--;
	*value = read->format & PERF_FORMAT_GROUP ? bytes_u64(in) : read->first;
	*id = read->format & PERF_FORMAT_ID ? bytes_u64(in) : 0;
	if (read->format & PERF_FORMAT_LOST)
		bytes_u64(in);
	return !in->bad;
}

bool record_decode_id(const struct perf_event_header *record, const struct perf_event_attr *attr,
		      struct record_id *id)
{
	const uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	uint64_t type = attr->sample_type & fields;
	struct bytes in = body(record);
	size_t size = words(type) * 8;

	*id = (struct record_id){0};
	if (!attr->sample_id_all || record->type >= USER_RECORDS)
		return true;
	if (size > bytes_left(&in))
		return false;
	bytes_take(&in, bytes_left(&in) - size);
	if (type & PERF_SAMPLE_TID) {
		id->pid = bytes_u32(&in);
		id->tid = bytes_u32(&in);
		id->has_tid = true;
	}
	if (type & PERF_SAMPLE_TIME) {
		id->time = bytes_u64(&in);
		id->has_time = true;
	}
	if (type & PERF_SAMPLE_ID) {
		id->id = bytes_u64(&in);
		id->has_id = true;
	}
	if (type & PERF_SAMPLE_STREAM_ID)
		bytes_u64(&in);
	if (type & PERF_SAMPLE_CPU) {
		id->cpu = bytes_u32(&in);
		bytes_u32(&in);
		id->has_cpu = true;
	}
	if (type & PERF_SAMPLE_IDENTIFIER) {
		id->id = bytes_u64(&in);
		id->has_id = true;
	}
	return true;
}

uint64_t record_lost(const struct perf_event_header *record)
{
	struct bytes in = body(record);

	switch (record->type) {
	case PERF_RECORD_LOST:
		bytes_u64(&in); /* id */
		return bytes_u64(&in);
	case PERF_RECORD_LOST_SAMPLES:
		return bytes_u64(&in);
	default:
		return 0;
	}
}

#define BUILD_ID_MAX 20

/*
 * Whether what follows is an id: its length, and behind it zeros. While one event asks for ids,
 * kernels flag the records of others, too, that did not and that have device and inode there
 * (perf_event_mmap_output(), kernel/events/core.c, does not take `misc` back).
 */
static bool is_build_id(struct bytes in)
{
	uint8_t len = bytes_u8(&in);
	const uint8_t *rest = bytes_take(&in, 3 + BUILD_ID_MAX);

	if (!rest || !len || len > BUILD_ID_MAX || rest[0] || rest[1] || rest[2])
		return false;
	for (size_t i = len; i < BUILD_ID_MAX; i++)
		if (rest[3 + i])
			return false;
	return true;
}

bool record_decode_mmap(const struct perf_event_header *record, struct record_mmap *mmap)
{
	struct bytes in = body(record);

	*mmap = (struct record_mmap){0};
	if (record->type != PERF_RECORD_MMAP && record->type != PERF_RECORD_MMAP2)
		return false;
	mmap->pid = bytes_u32(&in);
	mmap->tid = bytes_u32(&in);
	mmap->addr = bytes_u64(&in);
	mmap->len = bytes_u64(&in);
	mmap->pgoff = bytes_u64(&in);
	if (record->type == PERF_RECORD_MMAP) {
		mmap->prot = record->misc & PERF_RECORD_MISC_MMAP_DATA ? 1 : 1 | 4;
	} else {
		if (record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID && is_build_id(in)) {
			mmap->build_id_len = bytes_u8(&in);
			bytes_take(&in, 3);
			mmap->build_id = bytes_take(&in, BUILD_ID_MAX);
		} else {
			mmap->maj = bytes_u32(&in);
			mmap->min = bytes_u32(&in);
			mmap->ino = bytes_u64(&in);
			bytes_u64(&in); /* ino_generation */
		}
		mmap->prot = bytes_u32(&in);
		bytes_u32(&in); /* flags */
	}
	mmap->filename = bytes_cstr(&in);
	return !in.bad;
}

bool record_decode_comm(const struct perf_event_header *record, struct record_comm *comm)
{
	struct bytes in = body(record);

	*comm = (struct record_comm){0};
	if (record->type != PERF_RECORD_COMM)
		return false;
	comm->pid = bytes_u32(&in);
	comm->tid = bytes_u32(&in);
	comm->comm = bytes_cstr(&in);
	comm->exec = record->misc & PERF_RECORD_MISC_COMM_EXEC;
	return !in.bad;
}

bool record_decode_task(const struct perf_event_header *record, struct record_task *task)
{
	struct bytes in = body(record);

	*task = (struct record_task){0};
	if (record->type != PERF_RECORD_FORK && record->type != PERF_RECORD_EXIT)
		return false;
	task->pid = bytes_u32(&in);
	task->ppid = bytes_u32(&in);
	task->tid = bytes_u32(&in);
	task->ptid = bytes_u32(&in);
	task->time = bytes_u64(&in);
	return !in.bad;
}

static const char *const names[] = {
	[PERF_RECORD_MMAP] = "MMAP",
	[PERF_RECORD_LOST] = "LOST",
	[PERF_RECORD_COMM] = "COMM",
	[PERF_RECORD_EXIT] = "EXIT",
	[PERF_RECORD_THROTTLE] = "THROTTLE",
	[PERF_RECORD_UNTHROTTLE] = "UNTHROTTLE",
	[PERF_RECORD_FORK] = "FORK",
	[PERF_RECORD_READ] = "READ",
	[PERF_RECORD_SAMPLE] = "SAMPLE",
	[PERF_RECORD_MMAP2] = "MMAP2",
	[PERF_RECORD_AUX] = "AUX",
	[PERF_RECORD_ITRACE_START] = "ITRACE_START",
	[PERF_RECORD_LOST_SAMPLES] = "LOST_SAMPLES",
	[PERF_RECORD_SWITCH] = "SWITCH",
	[PERF_RECORD_SWITCH_CPU_WIDE] = "SWITCH_CPU_WIDE",
	[PERF_RECORD_NAMESPACES] = "NAMESPACES",
	[PERF_RECORD_KSYMBOL] = "KSYMBOL",
	[PERF_RECORD_BPF_EVENT] = "BPF_EVENT",
	[PERF_RECORD_CGROUP] = "CGROUP",
	[PERF_RECORD_TEXT_POKE] = "TEXT_POKE",
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = "AUX_OUTPUT_HW_ID",
	[64] = "HEADER_ATTR",
	[65] = "HEADER_EVENT_TYPE",
	[66] = "HEADER_TRACING_DATA",
	[67] = "HEADER_BUILD_ID",
	[68] = "FINISHED_ROUND",
	[69] = "ID_INDEX",
	[70] = "AUXTRACE_INFO",
	[71] = "AUXTRACE",
	[72] = "AUXTRACE_ERROR",
	[73] = "THREAD_MAP",
	[74] = "CPU_MAP",
	[75] = "STAT_CONFIG",
	[76] = "STAT",
	[77] = "STAT_ROUND",
	[78] = "EVENT_UPDATE",
	[79] = "TIME_CONV",
	[80] = "HEADER_FEATURE",
	[81] = "COMPRESSED",
	[82] = "FINISHED_INIT",
	[83] = "COMPRESSED2",
};

const char *record_type_name(uint32_t type)
{
	const char *name = type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;

	return name ? name : "UNKNOWN";
}
