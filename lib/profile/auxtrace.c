#include "profile/auxtrace.h"

#include "ring/spe.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLE_TYPE                                                               \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC)
_Static_assert(sizeof(struct auxtrace_sample) == 72, "words of SAMPLE_TYPE behind a header");

#define NONE UINT32_MAX /* no thread, no CPU */

/* How a sample's thread is known, in the place of its pid until that is looked up. */
enum { THREAD_IS_TOLD, THREAD_IS_GUESSED };

struct auxtrace_cpu {
	uint64_t cpu, midr;
};

/* One for each ring: of a CPU or of a thread. */
struct auxtrace_buffer {
	struct spe_decoder decoder;
	uint32_t cpu, tid; /* as its last AUXTRACE says */
	uint32_t context;
	bool has_context;
	uint64_t midr;
};

void auxtrace_init(struct auxtrace *trace, const struct data_file *file)
{
	*trace = (struct auxtrace){.file = file};
	arena_init(&trace->arena);
}

void auxtrace_fini(struct auxtrace *trace)
{
	vec_fini(&trace->cpus);
	map_fini(&trace->buffers);
	map_fini(&trace->pids);
	map_fini(&trace->running);
	arena_fini(&trace->arena);
}

void auxtrace_attr(struct perf_event_attr *attr)
{
	attr->sample_type = SAMPLE_TYPE;
	attr->read_format = 0;
}

static struct bytes body_of(const struct perf_event_header *record)
{
	return bytes_of(record + 1, record->size - sizeof(*record));
}

static bool find_event(struct auxtrace *trace, uint64_t pmu)
{
	for (size_t i = 0; i < data_event_count(trace->file); i++) {
		const struct perf_event_attr *attr = &data_event(trace->file, i)->attr;

		trace->timed |= (attr->sample_type & PERF_SAMPLE_TIME) != 0;
		if (attr->type != pmu || trace->decodes)
			continue;
		trace->event = (uint32_t)i;
		trace->decodes = true;
	}
	return trace->decodes;
}

/*
 * linux tools/perf, arm-spe.h. First there were two words: type of the PMU, whether rings are of
 * CPUs. Since 6.14: version, words of this head, type, number of CPUs, then for each CPU: magic,
 * its number, how many words follow, the first of which is its MIDR.
 */
static int note_info(struct auxtrace *trace, struct bytes in, struct err *err)
{
	uint32_t kind = bytes_u32(&in);
	uint64_t pmu, head, cpus = 0;

	bytes_u32(&in);
	if (kind != DATA_TRACE_ARM_SPE)
		return 0;
	pmu = bytes_u64(&in);
	head = bytes_u64(&in);
	if (bytes_left(&in)) {
		pmu = bytes_u64(&in);
		cpus = bytes_u64(&in);
		for (uint64_t i = 4; i < head && !in.bad; i++)
			bytes_u64(&in);
	}
	if (!find_event(trace, pmu))
		return 0;
	for (uint64_t i = 0; i < cpus; i++) {
		uint64_t cpu, more, midr;
		struct auxtrace_cpu *row;

		bytes_u64(&in);
		cpu = bytes_u64(&in);
		more = bytes_u64(&in);
		midr = bytes_u64(&in);
		for (uint64_t k = 1; k < more && !in.bad; k++)
			bytes_u64(&in);
		if (in.bad)
			return 0;
		row = vec_push(&trace->cpus);
		if (!row)
			return err_nomem(err);
		*row = (struct auxtrace_cpu){cpu, midr};
	}
	return 0;
}

static void note_clock(struct auxtrace *trace, struct bytes in)
{
	trace->clock.shift = bytes_u64(&in) & 63;
	trace->clock.mult = bytes_u64(&in);
	trace->clock.zero = bytes_u64(&in);
	trace->clock.cycles = bytes_u64(&in);
	trace->clock.mask = bytes_u64(&in);
	bytes_u8(&in); /* cap_user_time_zero */
	trace->clock.wraps = bytes_u8(&in);
}

static void note_flags(struct auxtrace *trace, struct bytes in)
{
	uint64_t flags;

	bytes_take(&in, 2 * sizeof(uint64_t));
	flags = bytes_u64(&in);
	trace->truncated += (flags & PERF_AUX_FLAG_TRUNCATED) != 0;
	trace->gaps += (flags & PERF_AUX_FLAG_PARTIAL) != 0;
	trace->collisions += (flags & PERF_AUX_FLAG_COLLISION) != 0;
}

int auxtrace_note(struct auxtrace *trace, const struct perf_event_header *record, struct err *err)
{
	if (record->type == RECORD_AUXTRACE_INFO)
		return note_info(trace, body_of(record), err);
	if (record->type == RECORD_TIME_CONV)
		note_clock(trace, body_of(record));
	else
		note_flags(trace, body_of(record));
	return 0;
}

/* perf_event_mmap_page in linux/perf_event.h, "cap_usr_time_zero". 0 where the file does not say
 * how the counter and the times of the recording go together. */
static uint64_t time_of(const struct auxtrace *trace, uint64_t cycles)
{
	uint64_t quotient, rest;

	if (!trace->timed || !cycles || !trace->clock.mult)
		return 0;
	if (trace->clock.wraps)
		cycles = trace->clock.cycles + ((cycles - trace->clock.cycles) & trace->clock.mask);
	quotient = cycles >> trace->clock.shift;
	rest = cycles & ((1ull << trace->clock.shift) - 1);
	return trace->clock.zero + quotient * trace->clock.mult +
	       (rest * trace->clock.mult >> trace->clock.shift);
}

/* A thread's buffer has what all CPUs wrote: only where they are all of one model it is known. */
static uint64_t midr_of(const struct auxtrace *trace, uint32_t cpu)
{
	const char *cpuid = data_info(trace->file)->cpuid;
	uint64_t midr = trace->cpus.len ? trace->cpus.items[0].midr : 0;

	if (!trace->cpus.len)
		return cpuid ? strtoull(cpuid, NULL, 16) : 0;
	for (size_t i = 0; i < trace->cpus.len; i++) {
		if (cpu == NONE && trace->cpus.items[i].midr != midr)
			return 0;
		if (cpu != NONE && trace->cpus.items[i].cpu == cpu)
			return trace->cpus.items[i].midr;
	}
	return cpu == NONE ? midr : 0;
}

static struct auxtrace_buffer *find_buffer(struct auxtrace *trace, uint32_t number)
{
	uint64_t *place = map_put(&trace->buffers, number, NULL);

	if (place && !*place)
		*place = (uintptr_t)arena_alloc(&trace->arena, sizeof(struct auxtrace_buffer));
	return place ? (struct auxtrace_buffer *)(uintptr_t)*place : NULL;
}

static int emit_sample(struct auxtrace *trace, struct auxtrace_buffer *buffer,
		       const struct spe_record *record, auxtrace_emit *emit, void *ctx,
		       struct err *err)
{
	struct auxtrace_sample *sample = arena_alloc(&trace->arena, sizeof(*sample));
	bool told = buffer->cpu == NONE;

	if (!sample)
		return err_nomem(err);
	if (record->has_context) {
		buffer->context = record->context;
		buffer->has_context = true;
	}
	*sample = (struct auxtrace_sample){
		.header = {.type = PERF_RECORD_SAMPLE,
			   .misc = record->pc >> 63 ? PERF_RECORD_MISC_KERNEL
						    : PERF_RECORD_MISC_USER,
			   .size = sizeof(*sample)},
		.ip = record->pc,
		.pid = told || buffer->has_context ? THREAD_IS_TOLD : THREAD_IS_GUESSED,
		.tid = !told && buffer->has_context ? buffer->context : buffer->tid,
		.time = time_of(trace, record->time),
		.addr = record->addr,
		.cpu = buffer->cpu,
		.period = 1,
		.weight = record->latency,
		.data_src = spe_data_source(record, buffer->midr),
	};
	return emit(&sample->header, sample->time, ctx, err);
}

int auxtrace_read(struct auxtrace *trace, struct data_file *file,
		  const struct perf_event_header *record, auxtrace_emit *emit, void *ctx,
		  struct err *err)
{
	struct bytes in = body_of(record);
	struct auxtrace_buffer *buffer;
	struct spe_record operation;
	uint64_t offset;
	size_t taken;
	int rc;

	if (!trace->decodes)
		return 0;
	bytes_u64(&in); /* size */
	offset = bytes_u64(&in);
	bytes_u64(&in); /* reference */
	buffer = find_buffer(trace, bytes_u32(&in));
	if (!buffer)
		return err_nomem(err);
	buffer->tid = bytes_u32(&in);
	buffer->cpu = bytes_u32(&in);
	buffer->midr = midr_of(trace, buffer->cpu);
	spe_begin(&buffer->decoder, offset);
	do {
		rc = data_payload(file, DATA_PAYLOAD_MAX, &in, err);
		taken = bytes_left(&in);
		while (rc >= 0 && spe_next(&buffer->decoder, &in, &operation))
			rc = emit_sample(trace, buffer, &operation, emit, ctx, err);
		taken -= bytes_left(&in);
		data_payload_take(file, taken);
	} while (rc >= 0 && taken);
	spe_end(&buffer->decoder, bytes_left(&in));
	data_payload_take(file, bytes_left(&in));
	return rc < 0 ? rc : 0;
}

void auxtrace_finish(struct auxtrace *trace)
{
	size_t at = 0;
	uint64_t number, *place;

	while (map_next(&trace->buffers, &at, &number, &place)) {
		struct auxtrace_buffer *buffer = (struct auxtrace_buffer *)(uintptr_t)*place;

		if (!buffer)
			continue;
		spe_finish(&buffer->decoder);
		trace->broken += buffer->decoder.broken;
	}
}

bool auxtrace_unordered(const struct auxtrace *trace)
{
	return trace->decodes && trace->timed;
}

static int learn(struct map *map, uint32_t key, uint32_t value, struct err *err)
{
	uint64_t *place = map_put(map, key, NULL);

	if (!place)
		return err_nomem(err);
	*place = value;
	return 0;
}

int auxtrace_follow(struct auxtrace *trace, const struct perf_event_header *record,
		    const struct record_id *origin, struct err *err)
{
	bool out = record->misc & PERF_RECORD_MISC_SWITCH_OUT;
	struct bytes in = body_of(record);
	struct record_task task;
	uint32_t pid, tid;

	if (!trace->decodes)
		return 0;
	switch (record->type) {
	case PERF_RECORD_FORK:
		return record_decode_task(record, &task)
			       ? learn(&trace->pids, task.tid, task.pid, err)
			       : 0;
	case PERF_RECORD_COMM:
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		pid = bytes_u32(&in);
		tid = bytes_u32(&in);
		return in.bad ? 0 : learn(&trace->pids, tid, pid, err);
	case PERF_RECORD_SWITCH:
		return out || !origin->has_cpu || !origin->has_tid
			       ? 0
			       : learn(&trace->running, origin->cpu, origin->tid, err);
	case PERF_RECORD_SWITCH_CPU_WIDE:
		bytes_u32(&in);
		tid = out ? bytes_u32(&in) : origin->tid; /* the one that comes, the one it is */
		return in.bad || !origin->has_cpu ? 0
						  : learn(&trace->running, origin->cpu, tid, err);
	default:
		return 0;
	}
}

void auxtrace_attribute(const struct auxtrace *trace, const struct perf_event_header *record,
			struct auxtrace_sample *sample)
{
	const uint64_t *known;

	memcpy(sample, record, sizeof(*sample));
	known = sample->pid == THREAD_IS_GUESSED ? map_get(&trace->running, sample->cpu) : NULL;
	if (known)
		sample->tid = (uint32_t)*known;
	/* Of a thread that no record tells it is as good a guess as any that it is the first. */
	known = map_get(&trace->pids, sample->tid);
	sample->pid = known ? (uint32_t)*known : sample->tid;
}
