#include "record/snapshot.h"

#include "arch/arch.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "data/writer.h"
#include "perfmap/code.h"
#include "perfmap/frames.h"
#include "perfmap/gil.h"
#include "perfmap/runtime.h"
#include "perfmap/source.h"
#include "perfmap/thread_names.h"
#include "perfmap/walk.h"
#include "process/proc.h"
#include "process/roots.h"
#include "process/stopped.h"
#include "record/attrs.h"
#include "record/existing.h"
#include "record/frame_record.h"
#include "record/hits.h"
#include "record/meta.h"
#include "record/native.h"
#include "record/outlet.h"
#include "record/pythons.h"
#include "record/synth.h"
#include "record/target.h"
#include "ring/record.h"
#include "unwind/unwind.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES_MAX (8u << 20)
/* How far up a handler's own stack it is looked for where the kernel saved the registers. */
#define HANDLER_BYTES_MAX (256u << 10)

enum event { SAMPLED, SIDEBAND, FRAMES, EVENTS };
static const uint64_t ids[EVENTS] = {1, 2, 3};

/* A thread that is held, and what was read of it. */
struct held {
	struct stopped stopped;
	size_t thread; /* in the snapshot */
	uint64_t regs[64];
	bool has_regs;
	struct held_stack {
		uint64_t sp, end; /* of the map that sp is in; 0 where it is in none */
		unsigned char *bytes;
		size_t len;
	} stack, interrupted; /* of a handler that has a stack of its own, and by its signal */
	struct {
		struct py_raw_frames head;
		struct py_raw_frame frames[PY_FRAMES_MAX];
	} python;
};

struct taking {
	struct snapshot *snapshot;
	struct data_writer *writer;
	struct roots *roots;
	struct hits *hits;
	struct pythons *pythons; /* for maps of jitted code; samples are not walked by it */
	struct native *native;
	struct runtime_cache *runtimes;
	struct intern strings;
	struct py_codes *codes;
	struct sources *sources;
	struct perf_event_attr attr;
	struct {
		VEC_OF(struct held *)
	} held;
};

/* The three events that all recordings have; the first one is not counted here. */
static int open_writer(struct taking *taking, const char *path, struct err *err)
{
	const struct event_spec spec = {
		.name = (char *)"threads",
		.attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK},
	};
	const struct recorder_options options = {.chain = RECORDER_CHAIN_FP, .period = 1};
	const struct data_writer_options plain = {0};
	struct data_event events[EVENTS] = {
		{.name = spec.name}, {.name = "dummy"}, {.name = "frames"}};

	attr_sampled(&events[SAMPLED].attr, &spec, &options, RECORDER_PROCESSES, NULL);
	attr_sideband(&events[SIDEBAND].attr, RECORDER_PROCESSES);
	attr_python(&events[FRAMES].attr);
	for (int i = 0; i < EVENTS; i++) {
		events[i].ids = &ids[i];
		events[i].id_count = 1;
		events[i].leader = i;
	}
	taking->attr = events[SAMPLED].attr;
	return data_writer_open(&taking->writer, path, events, EVENTS, &plain, err);
}

static int prepare(struct taking *taking, const struct recorder_target *target, struct err *err)
{
	enum recorder_python off = RECORDER_PYTHON_OFF;
	int ret;

	intern_init(&taking->strings);
	taking->codes = py_codes_new(&taking->strings);
	taking->sources = sources_new();
	taking->roots = roots_new();
	taking->runtimes = runtime_cache_new();
	taking->hits = taking->roots ? hits_new(taking->roots) : NULL;
	if (!taking->codes || !taking->sources || !taking->hits || !taking->runtimes)
		return err_nomem(err);
	ret = pythons_new(&taking->pythons, &off, target, taking->roots, err);
	if (!ret)
		ret = native_new(&taking->native, taking->hits, taking->pythons,
				 RECORDER_STACK_BYTES, err);
	return ret;
}

static void finish(struct taking *taking)
{
	pythons_free(taking->pythons);
	native_free(taking->native);
	hits_free(taking->hits);
	roots_free(taking->roots);
	runtime_cache_free(taking->runtimes);
	sources_free(taking->sources);
	py_codes_free(taking->codes);
	intern_fini(&taking->strings);
	vec_fini(&taking->held);
}

/* Which thread it is, and what it was doing before it was held. */
static int add_thread(struct taking *taking, pid_t pid, pid_t tid, struct err *err)
{
	struct snapshot_thread thread = {.pid = (uint32_t)pid, .tid = (uint32_t)tid}, *slot;
	struct held *held, **place;

	if (proc_state(pid, tid, &thread.state, thread.sleeps_in, sizeof(thread.sleeps_in)) < 0)
		return 0; /* it has ended */
	slot = vec_push(&taking->snapshot->threads);
	place = vec_push(&taking->held);
	held = slot && place ? calloc(1, sizeof(*held)) : NULL;
	if (!held) {
		taking->held.len -= place != NULL;
		return err_nomem(err);
	}
	*slot = thread;
	*place = held;
	held->thread = taking->snapshot->threads.len - 1;
	held->stopped.tid = tid;
	return 0;
}

/* All of them, then all are read: so they fit together. */
static void hold_all(struct taking *taking)
{
	struct snapshot *snapshot = taking->snapshot;
	size_t kept = 0;

	for (size_t i = 0; i < taking->held.len; i++) {
		struct held *held = taking->held.items[i];
		struct err err = {0};
		int ret = stopped_hold(&held->stopped, held->stopped.tid, &err);

		if (ret == 0) {
			taking->held.items[kept++] = held;
			continue;
		}
		if (ret != ERR_NOT_FOUND) {
			snapshot->missed++;
			snprintf(snapshot->missed_why, sizeof(snapshot->missed_why), "%.255s",
				 err.text);
		}
		free(held);
	}
	taking->held.len = kept;
}

static void read_registers(struct held *held)
{
	const struct arch *arch = arch_host();
	uint64_t mask = arch->perf_regs_mask;
	size_t sp = (size_t)__builtin_popcountll(mask & ((UINT64_C(1) << arch->perf_sp) - 1));

	held->has_regs = stopped_registers(held->stopped.tid, mask, held->regs);
	held->stack.sp = held->has_regs ? held->regs[sp] : 0;
}

static void find_end(struct held_stack *stack, const struct proc_map *map)
{
	if (stack->sp >= map->start && stack->sp < map->end)
		stack->end = map->end;
}

static int find_stacks(const struct proc_map *map, void *ctx)
{
	struct taking *taking = ctx;

	for (size_t i = 0; i < taking->held.len; i++) {
		struct held *held = taking->held.items[i];

		find_end(&held->stack, map);
		find_end(&held->interrupted, map);
	}
	return 0;
}

static void read_stack(struct held_stack *stack, const struct memory *memory)
{
	if (!stack->end)
		return;
	stack->len = stack->end - stack->sp;
	if (stack->len > STACK_BYTES_MAX)
		stack->len = STACK_BYTES_MAX;
	stack->bytes = malloc(stack->len);
	if (!stack->bytes || memory_read(memory, stack->sp, stack->bytes, stack->len))
		stack->len = 0;
}

static uint64_t word_at(const struct held_stack *stack, size_t at)
{
	uint64_t word;

	memcpy(&word, stack->bytes + at, sizeof(word));
	return word;
}

/*
 * The stack pointer that a signal interrupted, where a handler runs on a stack of its own; 0: none.
 * What the kernel saved lies on that stack and tells where it is (uc_stack: address, flags, size),
 * by which it is known; a stack that was interrupted is another one. The outermost signal counts:
 * those within come first.
 */
static uint64_t find_interrupted(const struct held_stack *stack)
{
	const struct arch_sigreturn *sigreturn = arch_host()->sigreturn;
	size_t to_sp, end = stack->len < HANDLER_BYTES_MAX ? stack->len : HANDLER_BYTES_MAX;

	if (!sigreturn)
		return 0;
	to_sp = (size_t)(sigreturn->saved[arch_host()->dwarf_sp] - sigreturn->altstack);
	for (size_t at = 0; at + to_sp + sizeof(uint64_t) <= end; at += sizeof(uint64_t)) {
		uint64_t base = word_at(stack, at), size, sp;

		if (base >= stack->sp + at || base & 7 || !base)
			continue;
		size = word_at(stack, at + 2 * sizeof(uint64_t));
		sp = word_at(stack, at + to_sp);
		if (stack->sp >= base && stack->sp + at - base < size && sp - base >= size)
			return sp;
	}
	return 0;
}

/* The maps are read once for all threads: it is the kernel's slowest part. */
static void read_native(struct taking *taking, pid_t pid, const struct memory *memory)
{
	bool handler = false;

	for (size_t i = 0; i < taking->held.len; i++)
		read_registers(taking->held.items[i]);
	proc_each_map(pid, find_stacks, taking, NULL);
	for (size_t i = 0; i < taking->held.len; i++) {
		struct held *held = taking->held.items[i];

		read_stack(&held->stack, memory);
		held->interrupted.sp = find_interrupted(&held->stack);
		handler |= held->interrupted.sp != 0;
	}
	if (!handler)
		return;
	proc_each_map(pid, find_stacks, taking, NULL);
	for (size_t i = 0; i < taking->held.len; i++)
		read_stack(&taking->held.items[i]->interrupted, memory);
}

static void read_codes(struct taking *taking, struct held *held, const struct py_process *process,
		       const struct memory *memory)
{
	for (unsigned int i = 0; i < held->python.head.count; i++) {
		const struct py_raw_frame *frame = &held->python.frames[i];

		if (py_codes_find(taking->codes, process->lineage, frame->code,
				  frame->fingerprint) < 0)
			py_codes_read(taking->codes, memory, &process->layout, process->lineage,
				      frame->code, frame->fingerprint, NULL);
	}
}

/* Of the code that was read since; when the threads run on. */
static void read_sources(struct taking *taking, pid_t pid, size_t since)
{
	char cwd[PATH_MAX] = "/", link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
	len = readlink(link, cwd, sizeof(cwd) - 1);
	if (len > 0)
		cwd[len] = '\0';
	for (size_t i = since; i < py_codes_count(taking->codes); i++) {
		uint32_t filename = py_codes_get(taking->codes, (int)i)->filename;

		sources_read(taking->sources, intern_text(&taking->strings, filename, NULL),
			     roots_path(taking->roots, pid), cwd, NULL);
	}
}

/* Its outermost frame is that of threading's own function. */
static bool is_threadings(const struct taking *taking, const struct held *held)
{
	const struct py_raw_frame *root;
	int code;

	if (held->python.head.status != PY_WALK_OK || !held->python.head.count)
		return false;
	root = &held->python.frames[held->python.head.count - 1];
	code = py_codes_find(taking->codes, held->python.head.lineage, root->code,
			     root->fingerprint);
	return code >= 0 &&
	       strcmp(intern_text(&taking->strings, py_codes_get(taking->codes, code)->name, NULL),
		      PY_THREAD_ROOT) == 0;
}

struct naming {
	struct taking *taking;
	const __u64 *idents; /* of the threads that are held */
};

static void take_name(__u64 ident, const char *name, void *ctx)
{
	const struct naming *naming = ctx;
	struct taking *taking = naming->taking;

	for (size_t i = 0; i < taking->held.len; i++) {
		struct snapshot_thread *thread =
			&taking->snapshot->threads.items[taking->held.items[i]->thread];

		if (naming->idents[i] == ident)
			text_cut(thread->name, sizeof(thread->name), name);
	}
}

static void read_names(struct taking *taking, const struct py_process *process,
		       const struct memory *memory, const __u64 *states)
{
	__u64 *idents = process->layout.tstate_thread_id
				? calloc(taking->held.len + 1, sizeof(*idents))
				: NULL;
	struct naming naming = {taking, idents};
	__u64 state = 0;

	for (size_t i = 0; idents && i < taking->held.len; i++) {
		if (!states[i] || memory_read(memory, states[i] + process->layout.tstate_thread_id,
					      &idents[i], sizeof(idents[i])))
			continue;
		if (!state && is_threadings(taking, taking->held.items[i]))
			state = states[i];
	}
	if (state)
		py_thread_names(process, memory, state, take_name, &naming);
	free(idents);
}

static void read_python(struct taking *taking, const struct py_process *process,
			const struct memory *memory)
{
	struct snapshot *snapshot = taking->snapshot;
	__u64 *states = calloc(taking->held.len + 1, sizeof(*states));
	int holder;

	for (size_t i = 0; states && i < taking->held.len; i++) {
		struct held *held = taking->held.items[i];
		unsigned int count = 0;
		int status = py_walk(process, memory, held->stopped.thread_pointer,
				     held->python.frames, PY_FRAMES_MAX, &count);

		held->python.head = (struct py_raw_frames){
			.magic = PY_RAW_FRAMES,
			.status = (uint16_t)status,
			.count = (uint16_t)count,
			.lineage = process->lineage,
		};
		read_codes(taking, held, process, memory);
		snapshot->threads.items[held->thread].python =
			py_thread_state(process, memory, held->stopped.thread_pointer,
					&states[i]) == PY_WALK_OK;
	}
	holder = states ? py_gil_holder(process, memory, states, taking->held.len) : PY_GIL_UNKNOWN;
	if (states)
		read_names(taking, process, memory, states);
	if (holder >= 0)
		snapshot->threads.items[taking->held.items[holder]->thread].has_gil = true;
	free(states);
}

static void release_all(struct taking *taking)
{
	for (size_t i = 0; i < taking->held.len; i++)
		stopped_release(&taking->held.items[i]->stopped);
}

/* One sample, as the kernel writes it for the event's attr. */
static void sample_record(struct strbuf *out, const struct record_id *id, uint64_t ip,
			  const struct unwind_stack *stack)
{
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE,
					   .misc = PERF_RECORD_MISC_USER};
	size_t start = out->len;

	strbuf_add(out, &header, sizeof(header));
	strbuf_u64(out, ids[SAMPLED]);
	strbuf_u64(out, ip);
	strbuf_u32(out, id->pid);
	strbuf_u32(out, id->tid);
	strbuf_u64(out, id->time);
	strbuf_u64(out, id->cpu);
	strbuf_u64(out, 1); /* period */
	strbuf_u64(out, 1 + stack->count);
	strbuf_u64(out, (uint64_t)PERF_CONTEXT_USER);
	/* Readers take all but the first address for one behind a call. */
	for (size_t i = 0; i < stack->count; i++)
		strbuf_u64(out, stack->frames[i].ip + (i > 0 && stack->frames[i].exact));
	if (strbuf_failed(out))
		return;
	header.size = (uint16_t)(out->len - start);
	memcpy(out->buf + start, &header, sizeof(header));
}

static int write_thread(struct taking *taking, const struct held *held, struct err *err)
{
	const struct snapshot_thread *thread = &taking->snapshot->threads.items[held->thread];
	struct record_id id = {.pid = thread->pid, .tid = thread->tid, .time = clock_now_ns()};
	struct record_sample sample = {
		.id = id,
		.regs_user = held->regs,
		.regs_user_abi = PERF_SAMPLE_REGS_ABI_64,
		.stack_user = held->stack.bytes,
		.stack_user_size = held->stack.len,
	};
	const struct unwind_copy interrupted = {.bytes = held->interrupted.bytes,
						.addr = held->interrupted.sp,
						.len = held->interrupted.len};
	struct unwind_stack stack = {0};
	struct strbuf records = {0};
	uint64_t ip = 0;
	int ret;

	if (held->has_regs && native_unwind(taking->native, &sample, &interrupted, &stack) &&
	    stack.count)
		ip = stack.frames[0].ip;
	if (held->python.head.count)
		frame_record(
			&records, ids[FRAMES], &id,
			bytes_of(&held->python,
				 sizeof(held->python.head) +
					 held->python.head.count * sizeof(held->python.frames[0])));
	sample_record(&records, &id, ip, &stack);
	ret = strbuf_failed(&records) ? err_nomem(err)
				      : data_write(taking->writer, records.buf, records.len, err);
	if (!ret && records.len) {
		struct perf_event_header *header = (struct perf_event_header *)(void *)records.buf;

		if (held->python.head.count)
			header = (struct perf_event_header *)(void *)(records.buf + header->size);
		if (record_decode_sample(header, &taking->attr, &sample))
			hits_sample(taking->hits, &sample);
		data_writer_time(taking->writer, id.time);
	}
	strbuf_fini(&records);
	return ret;
}

static void drop_held(struct taking *taking)
{
	for (size_t i = 0; i < taking->held.len; i++) {
		free(taking->held.items[i]->stack.bytes);
		free(taking->held.items[i]->interrupted.bytes);
		free(taking->held.items[i]);
	}
	taking->held.len = 0;
}

/* Looks for an interpreter; its maps are known. */
static bool find_python(struct taking *taking, struct snapshot_process *found,
			struct py_process *process)
{
	struct runtime_info info = {0};
	struct err err = {0};
	int ret = runtime_find(taking->runtimes, (pid_t)found->pid, process, &info, &err);

	if (ret >= RUNTIME_PARTIAL && info.micro >= 0)
		snprintf(found->version, sizeof(found->version), "%d.%d.%d", info.major, info.minor,
			 info.micro);
	else if (ret >= RUNTIME_PARTIAL)
		snprintf(found->version, sizeof(found->version), "%d.%d", info.major, info.minor);
	if (ret == RUNTIME_READY)
		return true;
	snprintf(found->why, sizeof(found->why), "%.255s",
		 ret == RUNTIME_NONE ? "no CPython is in it" : err.text);
	return false;
}

/* Its words, apart by blanks. */
static void read_command(struct snapshot_process *process)
{
	struct strbuf text = {0};
	char path[32];
	size_t len;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cmdline", process->pid);
	if (io_read_file(path, &text, 1 << 20, NULL) == 0 && text.len) {
		len = text.len < sizeof(process->command) ? text.len : sizeof(process->command);
		memcpy(process->command, text.buf, len - 1);
		for (size_t i = 0; i + 1 < len; i++)
			if (!process->command[i])
				process->command[i] = ' ';
	}
	strbuf_fini(&text);
}

static int find_threads(struct taking *taking, pid_t pid, struct err *err)
{
	struct tasks threads = {0};
	int ret = target_threads(pid, &threads, err);

	for (size_t i = 0; !ret && i < threads.len; i++)
		ret = add_thread(taking, pid, threads.items[i], err);
	vec_fini(&threads);
	return ret;
}

/* While this runs, the process does not. */
static void hold_and_read(struct taking *taking, struct snapshot_process *found,
			  const struct py_process *process)
{
	struct memory_process live;
	struct memory memory;
	uint64_t begin = clock_now_ns();

	memory_process_init(&live, (pid_t)found->pid);
	memory = memory_of_process(&live);
	hold_all(taking);
	read_native(taking, (pid_t)found->pid, &memory);
	if (process)
		read_python(taking, process, &memory);
	release_all(taking);
	memory_process_fini(&live);
	found->held_ns = clock_now_ns() - begin;
}

static int take_process(struct taking *taking, pid_t pid, struct err *err)
{
	struct snapshot_process *found = vec_push(&taking->snapshot->processes);
	size_t codes = py_codes_count(taking->codes);
	struct py_process process = {0};
	bool python;
	int ret;

	if (!found)
		return err_nomem(err);
	*found = (struct snapshot_process){.pid = (uint32_t)pid};
	read_command(found);
	python = find_python(taking, found, &process);
	process.lineage = (uint32_t)taking->snapshot->processes.len;
	found->gil_known = python && !process.layout.free_threaded;
	ret = find_threads(taking, pid, err);
	if (!ret)
		hold_and_read(taking, found, python ? &process : NULL);
	read_sources(taking, pid, codes);
	for (size_t i = 0; !ret && i < taking->held.len; i++)
		ret = write_thread(taking, taking->held.items[i], err);
	drop_held(taking);
	return ret;
}

static int store_sections(struct taking *taking, struct err *err)
{
	struct strbuf section = {0};
	int ret = py_codes_encode(taking->codes, NULL, &section) < 0 ? err_nomem(err) : 0;

	if (!ret && section.len)
		ret = data_writer_section(taking->writer, DATA_SECTION_CODE, section.buf,
					  section.len, err);
	strbuf_fini(&section);
	if (!ret)
		ret = pythons_store(taking->pythons, taking->sources, taking->writer, err);
	if (!ret)
		ret = hits_store(taking->hits, taking->writer, err);
	return ret;
}

static int take_all(struct taking *taking, const struct recorder_target *target, struct err *err)
{
	const struct outlet out = outlet_to_file(taking->writer);
	const struct synth synth = {.out = &out, .id = ids[SIDEBAND], .native = taking->native};
	int ret = existing_store(&synth, target, taking->roots, taking->pythons, taking->hits, err);

	for (size_t i = 0; !ret && i < target->tasks.len; i++) {
		pid_t pid = target->tasks.items[i].pid;
		bool again = false;

		for (size_t before = 0; before < i; before++)
			again |= target->tasks.items[before].pid == pid;
		if (!again)
			ret = take_process(taking, pid, err);
	}
	if (!ret)
		ret = data_write_round(taking->writer, err);
	return ret ? ret : store_sections(taking, err);
}

int snapshot_take(struct snapshot *snapshot, const char *path, const struct recorder_target *target,
		  struct err *err)
{
	struct taking taking = {.snapshot = snapshot};
	struct machine_facts facts;
	int ret, closed;

	*snapshot = (struct snapshot){0};
	ret = prepare(&taking, target, err);
	if (!ret)
		ret = open_writer(&taking, path, err);
	if (!ret) {
		meta_machine(&facts, NULL);
		ret = take_all(&taking, target, err);
		closed = data_writer_close(taking.writer, &facts.info, ret ? NULL : err);
		ret = ret ? ret : closed;
	}
	finish(&taking);
	if (!ret && snapshot->missed && snapshot->missed == snapshot->threads.len)
		return err_set(err, ERR_PERMISSION, "%s", snapshot->missed_why);
	return ret;
}

void snapshot_fini(struct snapshot *snapshot)
{
	vec_fini(&snapshot->processes);
	vec_fini(&snapshot->threads);
}
