#include "profile/store.h"

#include "arch/arch.h"
#include "base/map.h"
#include "base/progress.h"
#include "perfmap/code.h"
#include "perfmap/frames.h"
#include "perfmap/source.h"
#include "process/process.h"
#include "profile/account.h"
#include "profile/chain.h"
#include "profile/hybrid.h"
#include "profile/objects.h"
#include "profile/pair.h"
#include "profile/phase.h"
#include "profile/shown.h"
#include "profile/spans.h"
#include "ring/order.h"
#include "ring/record.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/*
 * Reading a file into a profile.
 *
 * A record is handled twice. Intake sees it in the order of the file, which is the order of each
 * CPU's ring: there Python frames are paired with their sample, and losses are counted. What
 * changes or needs the process model is then queued and put in the order of time, and applied.
 *
 * A sample whose bytes (thread, event, maps, Python frames, call chain) hash to those of an earlier
 * one has the same cell: `repeats` remembers, and forgets when two fight for a place. The hash has
 * 64 bits and is trusted: among ten million different samples two would meet once in 400,000
 * recordings. Samples that carry a copy of their stack are never equal while they run, and to hash
 * 8 kB takes as long as half of the unwinding: they are not looked for.
 */
#define FINISHED_ROUND 68u /* PERF_RECORD_FINISHED_ROUND of linux tools/perf */
#define ID_INDEX 69u	   /* PERF_RECORD_ID_INDEX, likewise */
#define REPEATS (1u << 16)
#define DISCARD_BYTES (1u << 20)

struct repeat {
	uint64_t hash; /* 0: free */
	uint32_t cell;
	bool cut;
};

/* A record that waits for its turn; its number in the queue is its position for the order. */
struct queued {
	const void *frames; /* of a sample: its Python frames, or NULL */
	uint64_t position;  /* nothing before it is needed by this record */
	uint64_t hash;	    /* of a sample: hash_sample(); 0 where none can be equal */
	uint32_t event;
};

/* What is known of a thread until its process changes. */
struct task {
	uint64_t changes; /* of the loader, when this was found */
	uint64_t generation;
	uint32_t thread;
};

struct loader {
	struct profile *profile;
	struct data_file *file;
	const struct profile_options *options;
	struct order *order;
	struct chains *chains;
	struct pairing pairing;
	struct account account;

	struct queued *queue; /* ring of queue_cap, a power of two */
	uint64_t queue_start, queue_end, queue_cap;
	uint64_t discarded, delivered_time;

	struct map tasks; /* pid << 32 | tid -> index into task_list */
	struct {
		VEC_OF(struct task)
	} task_list;
	uint64_t changes; /* of anything that a task or a thread's name depends on */

	struct {
		VEC_OF(bool)
	} is_frames; /* by event: the walker's */
	struct {
		VEC_OF(uint32_t)
	} homes; /* by event: the one that it is shown as */
	struct repeat *repeats;
	uint64_t malformed;
	struct spans phase, time; /* of the samples that are wanted */
};

/* Events may appear on the way in pipe mode. */
static int read_events(struct loader *l, struct err *err)
{
	size_t count = data_event_count(l->file);

	while (l->profile->events.len < count) {
		const struct data_event *in = data_event(l->file, l->profile->events.len);
		struct profile_event *event = vec_push(&l->profile->events);
		bool *is_frames = vec_push(&l->is_frames);
		uint32_t *home = vec_push(&l->homes), index = (uint32_t)l->profile->events.len - 1;
		bool software = in->attr.type == PERF_TYPE_SOFTWARE;

		if (!event || !is_frames || !home)
			return err_nomem(err);
		event->name = profile_keep(l->profile, in->name ? in->name : "unknown");
		if (!event->name)
			return err_nomem(err);
		*is_frames = software && in->attr.config == PERF_COUNT_SW_BPF_OUTPUT;
		event->sampled = !*is_frames &&
				 !(software && in->attr.config == PERF_COUNT_SW_DUMMY);
		event->attr = in->attr;
		l->profile->memuse.specific |= software &&
					       (in->attr.config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
						in->attr.config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
		if (in->attr.freq)
			event->frequency = (double)in->attr.sample_freq;
		else
			event->period = in->attr.sample_period;
		*home = l->options->by_pmu ? index : hybrid_home(l->profile, index);
	}
	return 0;
}

/* The event that a record belongs to, or -1. Where ids lie is the same in all events of a file. */
static int event_of(const struct loader *l, const struct perf_event_header *record)
{
	const struct perf_event_attr *attr;
	uint64_t id = 0;

	if (!l->profile->events.len)
		return -1;
	attr = &data_event(l->file, 0)->attr;
	if (l->profile->events.len == 1 ||
	    (record->type != PERF_RECORD_SAMPLE && !attr->sample_id_all) ||
	    !record_identifier(record, attr->sample_type, &id) || id == 0)
		return 0;
	return data_event_by_id(l->file, id);
}

/* When and where a record that is no sample came to be. */
static struct record_id origin_of(const struct loader *l, const struct perf_event_header *record)
{
	struct record_id id = {0};
	int event = event_of(l, record);

	if (event < 0 || !record_decode_id(record, &data_event(l->file, (size_t)event)->attr, &id))
		return (struct record_id){0};
	return id;
}

static bool queue_grow(struct loader *l)
{
	uint64_t cap = l->queue_cap ? l->queue_cap * 2 : 4096;
	struct queued *queue = malloc(cap * sizeof(*queue));

	if (!queue)
		return false;
	for (uint64_t i = l->queue_start; i < l->queue_end; i++)
		queue[i & (cap - 1)] = l->queue[i & (l->queue_cap - 1)];
	free(l->queue);
	l->queue = queue;
	l->queue_cap = cap;
	return true;
}

static int enqueue(struct loader *l, const struct perf_event_header *record, uint64_t time,
		   const struct queued *queued, struct err *err)
{
	if (l->queue_end - l->queue_start == l->queue_cap && !queue_grow(l))
		return err_nomem(err);
	l->queue[l->queue_end & (l->queue_cap - 1)] = *queued;
	return order_add(l->order, record, time, l->queue_end++, err);
}

/* A round ended: memory of the file that nobody will look at again is given back. */
static void discard(struct loader *l, uint64_t position)
{
	uint64_t low = order_low_water(l->order), least;

	l->queue_start = low < l->queue_end ? low : l->queue_end;
	if (position - l->discarded < DISCARD_BYTES)
		return;
	least = pairing_expire(&l->pairing, l->delivered_time);
	if (position < least)
		least = position;
	for (uint64_t i = l->queue_start; i < l->queue_end; i++)
		if (l->queue[i & (l->queue_cap - 1)].position < least)
			least = l->queue[i & (l->queue_cap - 1)].position;
	data_discard(l->file, least);
	l->discarded = position;
}

/* Intake: in the order of the file. */

static int take_frames(struct loader *l, const struct record_sample *sample, uint64_t position,
		       struct err *err)
{
	struct pair_frames frames = {
		.payload = sample->raw,
		.len = sample->raw_len,
		.tid = sample->id.tid,
		.cpu = sample->id.cpu,
		.time = sample->id.time,
		.position = position,
	};
	uint32_t magic = 0;
	int rc = 0;

	if (sample->raw && sample->raw_len >= sizeof(magic))
		memcpy(&magic, sample->raw, sizeof(magic));
	if (magic == PY_RAW_CODE)
		rc = py_codes_add_raw(l->profile->codes, bytes_of(sample->raw, sample->raw_len),
				      err);
	else if (!chain_frames_sound(sample->raw, sample->raw_len))
		rc = ERR_CORRUPT;
	else if (!pairing_frames(&l->pairing, &frames))
		return err_nomem(err);
	if (rc == ERR_CORRUPT)
		l->malformed++;
	return rc == ERR_NOMEM ? rc : 0;
}

static bool is_wanted(const struct loader *l, uint64_t time)
{
	return (!l->options->phase || spans_contain(&l->phase, time)) &&
	       (!l->options->time || spans_contain(&l->time, time));
}

/* Of what makes a sample's stack, but for the maps of its process. */
static uint64_t hash_sample(const struct record_sample *sample, uint16_t misc, const void *python)
{
	uint64_t words[] = {misc & PERF_RECORD_MISC_CPUMODE_MASK, sample->ip};
	uint64_t hash = words[0];
	struct py_raw_frames head;

	if (sample->regs_user && sample->stack_user_size)
		return 0;
	if (sample->callchain_len)
		hash = XXH3_64bits_withSeed(sample->callchain,
					    sample->callchain_len * sizeof(uint64_t), hash);
	else
		hash = XXH3_64bits(words, sizeof(words));
	if (python) {
		memcpy(&head, python, sizeof(head));
		hash = XXH3_64bits_withSeed(
			python, sizeof(head) + head.count * sizeof(head.frames[0]), hash);
	}
	return hash ? hash : 1;
}

static int take_sample(struct loader *l, const struct perf_event_header *record, uint64_t position,
		       struct err *err)
{
	int event = event_of(l, record);
	struct queued queued = {.position = position};
	struct record_sample sample;
	struct pair_frames frames;

	if (event < 0 ||
	    !record_decode_sample(record, &data_event(l->file, (size_t)event)->attr, &sample)) {
		l->malformed++;
		return 0;
	}
	if (l->is_frames.items[event])
		return take_frames(l, &sample, position, err);
	if (!l->profile->events.items[event].sampled)
		return 0;
	frames = pairing_sample(&l->pairing, sample.id.cpu, sample.id.tid, sample.id.time);
	if (!is_wanted(l, sample.id.time))
		return 0;
	if (frames.payload) {
		queued.frames = frames.payload;
		queued.position = frames.position;
	}
	queued.event = (uint32_t)event;
	queued.hash = hash_sample(&sample, record->misc, queued.frames);
	/* By the time of its turn it is there. */
	__builtin_prefetch(&l->repeats[queued.hash & (REPEATS - 1)]);
	return enqueue(l, record, sample.id.time, &queued, err);
}

static int take_sideband(struct loader *l, const struct perf_event_header *record,
			 uint64_t position, struct err *err)
{
	struct queued queued = {.position = position};

	return enqueue(l, record, origin_of(l, record).time, &queued, err);
}

static int take_lost(struct loader *l, const struct perf_event_header *record, uint64_t position,
		     struct err *err)
{
	struct record_id id = origin_of(l, record);

	pairing_lost(&l->pairing, id.has_cpu ? id.cpu : UINT32_MAX);
	l->profile->summary.lost += record_lost(record);
	return 0;
}

static int take_id_index(struct loader *l, const struct perf_event_header *record,
			 uint64_t position, struct err *err)
{
	account_id_index(&l->account, record);
	return 0;
}

static int take_round(struct loader *l, const struct perf_event_header *record, uint64_t position,
		      struct err *err)
{
	int rc = order_round(l->order, err);

	discard(l, position);
	return rc;
}

/* Apply: in the order of time. */

static int apply_mmap(struct loader *l, const struct perf_event_header *record, struct err *err)
{
	bool kernel = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	struct record_mmap mmap;
	struct process_map map;
	int rc;

	if (!record_decode_mmap(record, &mmap)) {
		l->malformed++;
		return 0;
	}
	map = (struct process_map){
		.pid = kernel ? UINT32_MAX : mmap.pid,
		.start = mmap.addr,
		.len = mmap.len,
		.pgoff = mmap.pgoff,
		.path = mmap.filename,
		.build_id = mmap.build_id,
		.build_id_len = mmap.build_id_len,
		.kernel = kernel,
	};
	/* The kernel's map says in pgoff where its symbol _text was (linux tools/perf,
	 * "ref_reloc").
	 */
	if (kernel && !strcmp(mmap.filename, "[kernel.kallsyms]_text"))
		l->profile->kernel_text = mmap.pgoff;
	rc = jit_mmap(&l->profile->jit, mmap.pid, mmap.filename, err);
	return rc < 0 ? rc : process_mmap(l->profile->processes, &map, err);
}

static int apply_comm(struct loader *l, const struct perf_event_header *record, struct err *err)
{
	struct record_comm comm;

	if (!record_decode_comm(record, &comm)) {
		l->malformed++;
		return 0;
	}
	if (comm.exec)
		jit_exec(&l->profile->jit, comm.pid);
	if (comm.exec && !memuse_exec(&l->profile->memuse, comm.pid))
		return err_nomem(err);
	return process_comm(l->profile->processes, comm.pid, comm.tid, comm.comm, comm.exec, err);
}

static int apply_fork(struct loader *l, const struct perf_event_header *record, struct err *err)
{
	struct record_task task;

	if (!record_decode_task(record, &task)) {
		l->malformed++;
		return 0;
	}
	if (task.pid != task.ppid &&
	    jit_fork(&l->profile->jit, task.pid, task.ppid, l->delivered_time, err) < 0)
		return err_nomem(err);
	return process_fork(l->profile->processes, task.pid, task.tid, task.ppid, task.ptid, err);
}

static int apply_exit(struct loader *l, const struct perf_event_header *record, struct err *err)
{
	struct record_task task;

	if (!record_decode_task(record, &task)) {
		l->malformed++;
		return 0;
	}
	process_exit(l->profile->processes, task.pid, task.tid);
	return account_exit(&l->account, task.tid, err);
}

static int apply_throttle(struct loader *l, const struct perf_event_header *record, struct err *err)
{
	struct record_id origin = origin_of(l, record);
	int rc = account_throttle(&l->account, record, &origin, err);

	if (rc == ERR_CORRUPT)
		l->malformed++;
	return rc == ERR_CORRUPT ? 0 : rc;
}

/* The thread of a sample, with its process's generation; NULL when memory ran out. */
static const struct task *find_task(struct loader *l, uint32_t pid, uint32_t tid)
{
	struct process_table *processes = l->profile->processes;
	bool added;
	uint64_t *index = map_put(&l->tasks, (uint64_t)pid << 32 | tid, &added);
	struct task *task;

	if (!index)
		return NULL;
	if (added) {
		*index = l->task_list.len;
		if (!vec_push(&l->task_list))
			return NULL;
	}
	task = &l->task_list.items[*index];
	if (!added && task->changes == l->changes)
		return task;
	task->changes = l->changes;
	task->generation = process_generation(processes, pid);
	task->thread = profile_add_thread(l->profile, pid, tid,
					  process_thread_name(processes, pid, tid));
	return task->thread == KEYED_NONE ? NULL : task;
}

static void count_frames(struct profile_summary *summary, const void *python)
{
	struct py_raw_frames head;

	if (!python)
		return;
	memcpy(&head, python, sizeof(head));
	summary->truncated += head.status == PY_WALK_TRUNCATED;
	summary->faulted += head.status == PY_WALK_FAULT || head.status == PY_WALK_BAD;
}

/* Finds or makes the cell that the sample counts in. */
static int find_cell(struct loader *l, const struct chain_sample *in, uint32_t thread,
		     const struct queued *queued, uint32_t *cell, struct err *err)
{
	struct repeat *repeat = &l->repeats[queued->hash & (REPEATS - 1)];
	uint64_t words[] = {queued->hash, in->generation, (uint64_t)thread << 32 | queued->event};
	uint64_t hash = XXH3_64bits(words, sizeof(words));

	if (!queued->hash || repeat->hash != hash) {
		uint32_t stack;
		bool cut;
		int rc = chains_stack(l->chains, in, &stack, &cut, err);

		if (rc < 0)
			return rc;
		*cell = profile_add_cell(l->profile, thread, stack, queued->event);
		if (*cell == KEYED_NONE)
			return err_nomem(err);
		*repeat = (struct repeat){hash, *cell, cut};
	}
	if (!in->regs_mask)
		l->profile->summary.dropped_native += repeat->cut;
	*cell = repeat->cell;
	return 0;
}

static int apply_sample(struct loader *l, const struct perf_event_header *record,
			const struct queued *queued, struct err *err)
{
	const struct perf_event_attr *attr = &data_event(l->file, queued->event)->attr;
	struct profile_summary *summary = &l->profile->summary;
	struct record_sample sample;
	struct chain_sample in = {
		.sample = &sample,
		.cpumode = record->misc,
		.regs_mask = attr->sample_regs_user,
	};
	const struct task *task;
	uint64_t epoch;
	uint32_t id;
	int rc;

	if (!record_decode_sample(record, attr, &sample)) {
		l->malformed++;
		return 0;
	}
	task = find_task(l, sample.id.pid, sample.id.tid);
	if (!task)
		return err_nomem(err);
	in.generation = task->generation;
	epoch = jit_epoch(&l->profile->jit, sample.id.pid, sample.id.time);
	if (epoch)
		in.generation = map_mix(in.generation, epoch);
	in.python = queued->frames;
	rc = find_cell(l, &in, task->thread, queued, &id, err);
	if (rc < 0)
		return rc;
	rc = account_sample(&l->account, id, queued->event, &sample, err);
	if (rc < 0)
		return rc;
	summary->samples++;
	count_frames(summary, queued->frames);
	if (sample.id.time && (!summary->first_time || sample.id.time < summary->first_time))
		summary->first_time = sample.id.time;
	if (sample.id.time > summary->last_time)
		summary->last_time = sample.id.time;
	if (l->options->on_sample) {
		const struct profile_cell *cell = keyed_at(&l->profile->cells, id);
		struct profile_sample out = {
			.thread = cell->thread,
			.event = l->homes.items[cell->event],
			.stack = cell->stack,
			.cpu = sample.id.cpu,
			.time = sample.id.time,
			.period = sample.period,
			.ip = sample.ip,
			.addr = sample.addr,
		};

		return l->options->on_sample(&out, l->options->ctx, err);
	}
	return 0;
}

static const struct handler {
	int (*take)(struct loader *l, const struct perf_event_header *record, uint64_t position,
		    struct err *err);
	int (*apply)(struct loader *l, const struct perf_event_header *record, struct err *err);
} handlers[] = {
	[PERF_RECORD_MMAP] = {take_sideband, apply_mmap},
	[PERF_RECORD_MMAP2] = {take_sideband, apply_mmap},
	[PERF_RECORD_COMM] = {take_sideband, apply_comm},
	[PERF_RECORD_FORK] = {take_sideband, apply_fork},
	[PERF_RECORD_EXIT] = {take_sideband, apply_exit},
	[PERF_RECORD_THROTTLE] = {take_sideband, apply_throttle},
	[PERF_RECORD_UNTHROTTLE] = {take_sideband, apply_throttle},
	[PERF_RECORD_LOST] = {take_lost, NULL},
	[PERF_RECORD_LOST_SAMPLES] = {take_lost, NULL},
	[PERF_RECORD_SAMPLE] = {take_sample, NULL},
	[FINISHED_ROUND] = {take_round, NULL},
	[ID_INDEX] = {take_id_index, NULL},
};

static int deliver(const struct perf_event_header *record, uint64_t time, uint64_t position,
		   void *ctx, struct err *err)
{
	struct loader *l = ctx;

	l->delivered_time = time;
	if (record->type == PERF_RECORD_SAMPLE)
		return apply_sample(l, record, &l->queue[position & (l->queue_cap - 1)], err);
	l->changes++;
	return handlers[record->type].apply(l, record, err);
}

static int read_build_ids(struct loader *l, struct err *err)
{
	const struct data_info *info = data_info(l->file);
	int rc = 0;

	for (size_t i = 0; i < info->build_id_count && rc >= 0; i++)
		rc = process_set_build_id(l->profile->processes, info->build_ids[i].path,
					  info->build_ids[i].id, info->build_ids[i].id_len, err);
	return rc;
}

static int decode_codes(struct loader *l, struct bytes section, struct err *err)
{
	return py_codes_decode(l->profile->codes, section, err);
}

static int decode_bytecode(struct loader *l, struct bytes section, struct err *err)
{
	return py_codes_decode_bytecode(l->profile->codes, section, err);
}

static int decode_sources(struct loader *l, struct bytes section, struct err *err)
{
	return sources_decode(l->profile->sources, section, err);
}

static int decode_maps(struct loader *l, struct bytes section, struct err *err)
{
	return jit_load_maps(&l->profile->jit, section, err);
}

static int decode_dumps(struct loader *l, struct bytes section, struct err *err)
{
	return jit_load_dumps(&l->profile->jit, section, err);
}

static int decode_symbols(struct loader *l, struct bytes section, struct err *err)
{
	return objects_load_saved(l->profile->objects, section, err);
}

/* A section that is broken is counted; what came before the break stays. */
static int decode_phases(struct loader *l, struct bytes section, struct err *err)
{
	return phases_read(l->profile, section, err);
}

static int read_section(struct loader *l, enum data_section id,
			int (*decode)(struct loader *l, struct bytes section, struct err *err),
			struct err *err)
{
	struct bytes section = data_section(l->file, id);
	int rc = bytes_left(&section) ? decode(l, section, err) : 0;

	if (rc == ERR_CORRUPT)
		l->malformed++;
	return rc == ERR_CORRUPT ? 0 : rc;
}

/* Sections and features; in pipe mode they are there only after the last record. */
static int read_side_data(struct loader *l, struct err *err)
{
	struct profile *profile = l->profile;
	int rc = read_build_ids(l, err);

	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_CODE, decode_codes, err);
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_SOURCE, decode_sources, err);
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_PERFMAP, decode_maps, err);
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_JITDUMP, decode_dumps, err);
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_SYMBOL, decode_symbols, err);
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_PHASE, decode_phases, err);
	return rc < 0 ? rc : profile_read_meta(profile, l->file, err);
}

/* Which samples are wanted must be known before they come. */
static int choose_times(struct loader *l, struct err *err)
{
	const struct data_info *info = data_info(l->file);
	int rc = 0;

	if (l->options->phase && data_is_pipe(l->file))
		return err_set(err, ERR_UNSUPPORTED,
			       "a stream tells its phases at its end: write it to a file first");
	if (l->options->phase)
		rc = phases_select(l->profile, l->options->phase, &l->phase, err);
	if (rc >= 0 && l->options->time)
		rc = spans_parse(&l->time, l->options->time, info->first_sample_time,
				 info->last_sample_time, err);
	return rc;
}

static int read_records(struct loader *l, struct err *err)
{
	struct data_record record;
	uint64_t done, total;
	uint32_t work;
	int rc;

	data_progress(l->file, &done, &total);
	work = progress_start("reading records", PROGRESS_BYTES, total);
	while ((rc = data_next(l->file, &record, err)) > 0) {
		uint32_t type = record.header->type;

		data_progress(l->file, &done, &total);
		progress_at(work, done);
		if (type >= sizeof(handlers) / sizeof(handlers[0]) || !handlers[type].take)
			continue;
		rc = read_events(l, err);
		l->account.records += type < FINISHED_ROUND;
		if (rc >= 0)
			rc = handlers[type].take(l, record.header, record.position, err);
		if (rc < 0)
			break;
	}
	if (rc == 0)
		rc = order_flush(l->order, err);
	progress_end(work);
	return rc;
}

/* Dumps have the times of CLOCK_MONOTONIC. */
static bool has_dump_clock(const struct data_file *file)
{
	const struct perf_event_attr *attr = data_event_count(file) ? &data_event(file, 0)->attr
								    : NULL;

	return attr && attr->use_clockid && attr->clockid == CLOCK_MONOTONIC;
}

static bool is_ours(const struct data_file *file)
{
	struct bytes meta = data_section(file, DATA_SECTION_META);

	return bytes_left(&meta) > 0;
}

static int loader_init(struct loader *l, struct err *err)
{
	const char *machine = data_info(l->file)->arch;

	l->repeats = calloc(REPEATS, sizeof(*l->repeats));
	l->order = order_new(deliver, l);
	l->chains = chains_new(l->profile, machine ? arch_by_name(machine) : NULL,
			       !l->options->no_inline && !l->options->no_symbols,
			       l->options->native);
	l->profile->summary.folded = l->options->native == PROFILE_NATIVE_OFF;
	l->profile->objects = objects_new(l->profile->processes, data_info(l->file));
	if (!l->repeats || !l->order || !l->chains || !l->profile->objects)
		return err_nomem(err);
	l->profile->jit.live = objects_same_host(l->profile->objects);
	/* Our own recordings have all the maps that there were. */
	l->profile->jit.maps_live = l->profile->jit.live && !is_ours(l->file);
	l->account.reads.unscaled = is_ours(l->file);
	l->profile->jit.timed = has_dump_clock(l->file);
	return read_events(l, err);
}

static void loader_fini(struct loader *l)
{
	order_free(l->order);
	chains_free(l->chains);
	pairing_fini(&l->pairing);
	account_fini(&l->account);
	free(l->queue);
	map_fini(&l->tasks);
	vec_fini(&l->task_list);
	vec_fini(&l->is_frames);
	vec_fini(&l->homes);
	free(l->repeats);
	spans_fini(&l->phase);
	spans_fini(&l->time);
}

static int load(struct loader *l, struct err *err)
{
	struct profile_summary *summary = &l->profile->summary;
	int rc = loader_init(l, err);

	if (rc >= 0 && !data_is_pipe(l->file))
		rc = read_side_data(l, err);
	if (rc >= 0)
		rc = choose_times(l, err);
	if (rc >= 0)
		rc = read_records(l, err);
	if (rc >= 0 && data_is_pipe(l->file))
		rc = read_side_data(l, err);
	/* Of code objects that the records told. */
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_BYTECODE, decode_bytecode, err);
	if (rc < 0)
		return rc;
	pairing_lost(&l->pairing, UINT32_MAX);
	summary->unpaired = l->pairing.unpaired;
	summary->malformed += l->malformed;
	summary->jit_skipped = l->profile->jit.skipped;
	summary->late = order_late(l->order);
	if (data_loss(l->file)) {
		summary->loss = profile_keep(l->profile, data_loss(l->file));
		if (!summary->loss)
			return err_nomem(err);
	}
	rc = profile_resolve(l->profile, data_info(l->file), l->options->no_symbols, err);
	if (rc >= 0)
		rc = profile_summarise(l->profile, err);
	if (rc >= 0)
		rc = profile_show(l->profile, &l->options->shown, err);
	if (rc >= 0)
		rc = account_finish(&l->account, err);
	return rc < 0 ? rc : hybrid_join(l->profile, l->homes.items, err);
}

int profile_load(struct profile **profile, struct data_file *file,
		 const struct profile_options *options, struct err *err)
{
	static const struct profile_options defaults = {0};
	struct loader l = {.file = file, .options = options ? options : &defaults};
	int rc;

	*profile = NULL;
	l.profile = profile_new();
	if (!l.profile)
		return err_nomem(err);
	account_init(&l.account, l.profile, file);
	rc = load(&l, err);
	loader_fini(&l);
	if (rc < 0) {
		profile_free(l.profile);
		return rc;
	}
	*profile = l.profile;
	return 0;
}
