#include "profile/apply.h"

#include "base/map.h"
#include "perfmap/frames.h"
#include "process/process.h"
#include "profile/store.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Slots, each of which holds the last sample that fell into it; many of them once few are seen not
 * to do. */
#define REPEATS_FEW (1u << 16)
#define REPEATS_MANY (1u << 20)

struct applier_repeat {
	uint64_t hash; /* 0: free */
	uint32_t cell;
	enum chain_cut cut;
};

/* What is known of a thread until its process changes. */
struct applier_task {
	uint64_t changes; /* of the applier, when this was found */
	uint64_t generation;
	uint32_t thread;
};

int applier_init(struct applier *a, struct profile *profile, const struct applier_options *options)
{
	*a = (struct applier){
		.profile = profile,
		.chains = chains_new(profile, options->arch, options->expand, options->native),
		.on_sample = options->on_sample,
		.ctx = options->ctx,
		.repeats = calloc(REPEATS_FEW, sizeof(struct applier_repeat)),
		.repeats_mask = REPEATS_FEW - 1,
	};
	account_init(&a->account, profile, options->ids, options->os_release);
	profile->summary.folded = options->native == PROFILE_NATIVE_OFF;
	return a->chains && a->repeats ? 0 : ERR_NOMEM;
}

void applier_fini(struct applier *a)
{
	chains_free(a->chains);
	account_fini(&a->account);
	map_fini(&a->tasks);
	vec_fini(&a->task_list);
	free(a->repeats);
}

uint64_t applier_hash(const struct applier *a, const struct record_sample *sample, uint16_t misc,
		      const void *python)
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
	/* Not all of an entry: its flags differ from one time to the next. */
	for (uint64_t i = 0; i < sample->calls_len; i++)
		hash = map_mix(hash, sample->calls[i].from);
	if (python) {
		memcpy(&head, python, sizeof(head));
		hash = XXH3_64bits_withSeed(
			python, sizeof(head) + head.count * sizeof(head.frames[0]), hash);
	}
	hash = hash ? hash : 1;
	__builtin_prefetch(&a->repeats[hash & a->repeats_mask]);
	return hash;
}

static int apply_mmap(struct applier *a, const struct perf_event_header *record,
		      const struct record_id *origin, struct err *err)
{
	bool kernel = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	struct record_mmap mmap;
	struct process_map map;
	int rc;

	if (!record_decode_mmap(record, &mmap)) {
		a->malformed++;
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
		a->profile->kernel_text = mmap.pgoff;
	rc = jit_mmap(&a->profile->jit, mmap.pid, mmap.filename, err);
	return rc < 0 ? rc : process_mmap(a->profile->processes, &map, err);
}

static int apply_comm(struct applier *a, const struct perf_event_header *record,
		      const struct record_id *origin, struct err *err)
{
	struct record_comm comm;

	if (!record_decode_comm(record, &comm)) {
		a->malformed++;
		return 0;
	}
	if (comm.exec)
		jit_exec(&a->profile->jit, comm.pid);
	if (comm.exec && !memuse_exec(&a->profile->memuse, comm.pid))
		return err_nomem(err);
	return process_comm(a->profile->processes, comm.pid, comm.tid, comm.comm, comm.exec, err);
}

static int apply_fork(struct applier *a, const struct perf_event_header *record,
		      const struct record_id *origin, struct err *err)
{
	struct record_task task;

	if (!record_decode_task(record, &task)) {
		a->malformed++;
		return 0;
	}
	if (task.pid != task.ppid &&
	    jit_fork(&a->profile->jit, task.pid, task.ppid, a->time, err) < 0)
		return err_nomem(err);
	return process_fork(a->profile->processes, task.pid, task.tid, task.ppid, task.ptid, err);
}

static int apply_exit(struct applier *a, const struct perf_event_header *record,
		      const struct record_id *origin, struct err *err)
{
	struct record_task task;

	if (!record_decode_task(record, &task)) {
		a->malformed++;
		return 0;
	}
	process_exit(a->profile->processes, task.pid, task.tid);
	return account_exit(&a->account, task.tid, err);
}

static int apply_throttle(struct applier *a, const struct perf_event_header *record,
			  const struct record_id *origin, struct err *err)
{
	int rc = account_throttle(&a->account, record, origin, err);

	if (rc == ERR_CORRUPT)
		a->malformed++;
	return rc == ERR_CORRUPT ? 0 : rc;
}

static int (*const appliers[])(struct applier *a, const struct perf_event_header *record,
			       const struct record_id *origin, struct err *err) = {
	[PERF_RECORD_MMAP] = apply_mmap,	   [PERF_RECORD_MMAP2] = apply_mmap,
	[PERF_RECORD_COMM] = apply_comm,	   [PERF_RECORD_FORK] = apply_fork,
	[PERF_RECORD_EXIT] = apply_exit,	   [PERF_RECORD_THROTTLE] = apply_throttle,
	[PERF_RECORD_UNTHROTTLE] = apply_throttle,
};

int applier_record(struct applier *a, const struct perf_event_header *record,
		   const struct record_id *origin, struct err *err)
{
	uint32_t type = record->type;

	if (type >= sizeof(appliers) / sizeof(appliers[0]) || !appliers[type])
		return 0;
	a->changes++;
	return appliers[type](a, record, origin, err);
}

/* The thread of a sample, with its process's generation; NULL when memory ran out. */
static const struct applier_task *find_task(struct applier *a, uint32_t pid, uint32_t tid)
{
	struct process_table *processes = a->profile->processes;
	bool added;
	uint64_t *index = map_put(&a->tasks, (uint64_t)pid << 32 | tid, &added);
	struct applier_task *task;

	if (!index)
		return NULL;
	if (added) {
		*index = a->task_list.len;
		if (!vec_push(&a->task_list))
			return NULL;
	}
	task = &a->task_list.items[*index];
	if (!added && task->changes == a->changes)
		return task;
	task->changes = a->changes;
	task->generation = process_generation(processes, pid);
	task->thread = profile_add_thread(a->profile, pid, tid,
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
	summary->faulted += head.status == PY_WALK_FAULT;
	summary->torn += head.status == PY_WALK_BAD;
}

/* A sample that was seen before was not remembered. What is remembered now is not taken along: it
 * is found by its stack once more. */
static void count_forgotten(struct applier *a)
{
	struct applier_repeat *many;

	if (++a->forgotten != REPEATS_FEW / 4)
		return;
	many = calloc(REPEATS_MANY, sizeof(*many));
	if (!many)
		return;
	free(a->repeats);
	a->repeats = many;
	a->repeats_mask = REPEATS_MANY - 1;
}

/* Finds or makes the cell that the sample counts in, by its stack. */
static int find_by_stack(struct applier *a, const struct chain_sample *in, uint32_t thread,
			 const struct applier_sample *from, struct applier_repeat *found,
			 struct err *err)
{
	uint32_t stack, before = a->profile->cells.count;
	int rc = chains_stack(a->chains, in, &stack, &found->cut, err);

	if (rc < 0)
		return rc;
	found->cell = profile_add_cell(a->profile, thread, stack, from->event);
	if (found->cell == KEYED_NONE)
		return err_nomem(err);
	a->repeats[from->hash & a->repeats_mask] = *found;
	if (from->hash && before == a->profile->cells.count)
		count_forgotten(a);
	return 0;
}

static int find_cell(struct applier *a, const struct chain_sample *in, uint32_t thread,
		     const struct applier_sample *from, uint32_t *cell, struct err *err)
{
	struct applier_repeat found = a->repeats[from->hash & a->repeats_mask];
	struct profile_summary *summary = &a->profile->summary;
	uint64_t words[] = {from->hash, in->generation, (uint64_t)thread << 32 | from->event};
	uint64_t hash = XXH3_64bits(words, sizeof(words));
	int rc = 0;

	if (!from->hash || found.hash != hash) {
		found.hash = hash;
		rc = find_by_stack(a, in, thread, from, &found, err);
	}
	if (rc < 0)
		return rc;
	if (!in->regs_mask) {
		summary->dropped_native += found.cut == CHAIN_CUT_POINTERS;
		summary->dropped_calls += found.cut == CHAIN_CUT_CALLS;
	}
	*cell = found.cell;
	return 0;
}

static int tell_sample(struct applier *a, uint32_t id, const struct record_sample *sample,
		       struct err *err)
{
	const struct profile_cell *cell = keyed_at(&a->profile->cells, id);
	const struct profile_sample out = {
		.thread = cell->thread,
		.event = cell->event,
		.stack = cell->stack,
		.cpu = sample->id.cpu,
		.time = sample->id.time,
		.period = sample->period,
		.ip = sample->ip,
		.addr = sample->addr,
	};

	return a->on_sample(&out, a->ctx, err);
}

int applier_sample(struct applier *a, const struct applier_sample *from, struct err *err)
{
	const struct perf_event_attr *attr = &a->profile->events.items[from->event].attr;
	struct profile_summary *summary = &a->profile->summary;
	struct record_sample sample;
	struct chain_sample in = {
		.sample = &sample,
		.cpumode = from->record->misc,
		.regs_mask = attr->sample_regs_user,
	};
	const struct applier_task *task;
	uint64_t epoch;
	uint32_t id;
	int rc;

	if (!record_decode_sample(from->record, attr, &sample)) {
		a->malformed++;
		return 0;
	}
	task = find_task(a, sample.id.pid, sample.id.tid);
	if (!task)
		return err_nomem(err);
	in.generation = task->generation;
	epoch = jit_epoch(&a->profile->jit, sample.id.pid, sample.id.time);
	if (epoch)
		in.generation = map_mix(in.generation, epoch);
	in.python = from->frames;
	rc = find_cell(a, &in, task->thread, from, &id, err);
	if (rc < 0)
		return rc;
	rc = account_sample(&a->account, id, from->event, &sample, err);
	if (rc < 0)
		return rc;
	summary->samples++;
	count_frames(summary, from->frames);
	if (sample.id.time && (!summary->first_time || sample.id.time < summary->first_time))
		summary->first_time = sample.id.time;
	if (sample.id.time > summary->last_time)
		summary->last_time = sample.id.time;
	return a->on_sample ? tell_sample(a, id, &sample, err) : 0;
}
