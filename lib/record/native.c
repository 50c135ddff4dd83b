#include "record/native.h"

#include "arch/arch.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "perfmap/frames.h"
#include "process/process.h"
#include "record/copies.h"
#include "record/hits.h"
#include "ring/record.h"
#include "unwind/native_stacks.h"

#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 1000

struct end {
	uint32_t dso;
	enum unwind_end why;
	uint64_t samples;
};

struct native {
	struct hits *hits;
	struct process_table *processes;
	struct native_stacks *stacks;
	struct copies copies;
	uint32_t stack_bytes;
	struct unwind_frame frames[FRAMES_MAX];
	struct strbuf record; /* the one that was made last */
	uint64_t total, complete;
	struct map end_of; /* dso and reason -> index + 1 */
	struct {
		VEC_OF(struct end)
	} ends;
};

static const char *object_path(void *ctx, uint32_t id)
{
	const struct native *native = ctx;
	const struct dso *dso = process_dso(native->processes, id);

	return hits_path(native->hits, dso->path, dso->build_id, dso->build_id_len);
}

int native_new(struct native **out, struct hits *hits, struct pythons *pythons,
	       uint32_t stack_bytes, struct err *err)
{
	struct native *native = calloc(1, sizeof(*native));
	const struct native_stacks_options options = {
		.live = true, .path = object_path, .ctx = native};
	int ret;

	*out = NULL;
	if (!native)
		return err_nomem(err);
	native->hits = hits;
	native->stack_bytes = stack_bytes ? stack_bytes : RECORDER_STACK_BYTES;
	copies_init(&native->copies, pythons, native->stack_bytes,
		    stack_bytes ? stack_bytes : PY_STACK_BYTES_MAX);
	native->processes = process_table_new();
	ret = native->processes
		      ? native_stacks_new(&native->stacks, native->processes, &options, err)
		      : err_nomem(err);
	if (ret)
		native_free(native);
	else
		*out = native;
	return ret;
}

void native_free(struct native *native)
{
	if (!native)
		return;
	native_stacks_free(native->stacks);
	copies_fini(&native->copies);
	process_table_free(native->processes);
	strbuf_fini(&native->record);
	map_fini(&native->end_of);
	vec_fini(&native->ends);
	free(native);
}

/* Of 0 bytes the kernel writes more than it made room for (perf_output_sample_ustack(),
 * kernel/events/core.c). */
#define NO_COPY 8

void native_attr(const struct native *native, struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = arch_host()->perf_regs_mask;
	attr->sample_stack_user = native->copies.made ? NO_COPY : native->stack_bytes;
	attr->exclude_callchain_user = 1;
}

static int on_mmap(struct native *native, const struct perf_event_header *header, struct err *err)
{
	struct record_mmap mmap;
	struct process_map map;

	if ((header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL ||
	    !record_decode_mmap(header, &mmap))
		return 0;
	map = (struct process_map){
		.pid = mmap.pid,
		.start = mmap.addr,
		.len = mmap.len,
		.pgoff = mmap.pgoff,
		.path = mmap.filename,
		.build_id = mmap.build_id,
		.build_id_len = mmap.build_id_len,
	};
	return process_mmap(native->processes, &map, err);
}

int native_sideband(struct native *native, const struct perf_event_header *header, struct err *err)
{
	struct record_comm comm;
	struct record_task task;

	switch (header->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return on_mmap(native, header, err);
	case PERF_RECORD_COMM:
		if (!record_decode_comm(header, &comm) || !comm.exec)
			return 0;
		return process_comm(native->processes, comm.pid, comm.tid, comm.comm, true, err);
	case PERF_RECORD_FORK:
		if (!record_decode_task(header, &task) || header->misc & PERF_RECORD_MISC_FORK_EXEC)
			return 0;
		return process_fork(native->processes, task.pid, task.tid, task.ppid, task.ptid,
				    err);
	}
	return 0;
}

static void count_end(struct native *native, const struct unwind_stack *stack)
{
	uint64_t key = (uint64_t)stack->module << 8 | stack->end;
	uint64_t *index = map_put(&native->end_of, key, NULL);
	struct end *end;

	if (!index)
		return;
	if (!*index) {
		end = vec_push(&native->ends);
		if (!end)
			return;
		*end = (struct end){.dso = stack->module, .why = stack->end};
		*index = native->ends.len;
	}
	native->ends.items[*index - 1].samples++;
}

bool native_copy(struct native *native, size_t ring, const struct record_sample *record)
{
	return copies_take(&native->copies, ring, record);
}

/* Registers, the size of the copy, its bytes, how many of them are real. */
static void add_copy(struct strbuf *out, const char *regs, const char *size,
		     const struct record_sample *sample)
{
	uint64_t len = sample->stack_user_size & ~UINT64_C(7);

	strbuf_add(out, regs, (size_t)(size - regs));
	strbuf_u64(out, len);
	strbuf_add(out, sample->stack_user, len);
	strbuf_u64(out, len);
}

/*
 * The same sample with the stack in its chain, and without registers (abi 0) and copy (size 0); or
 * where there is no stack, with the copy that `with` has. These lie, in this order, behind the
 * chain and what may come between (linux/perf_event.h).
 */
static const struct perf_event_header *rewrite(struct native *native,
					       const struct perf_event_header *header,
					       const struct record_sample *sample,
					       const struct record_sample *with,
					       const struct unwind_stack *stack)
{
	struct strbuf *out = &native->record;
	const char *start = (const char *)header, *end = start + header->size;
	const char *chain = (const char *)(sample->callchain - 1);
	const char *between = (const char *)(sample->callchain + sample->callchain_len);
	const char *regs = (const char *)(sample->regs_user - 1);
	/* u64 size; the bytes; u64 how many of them are real */
	const char *copy = (const char *)sample->stack_user - sizeof(uint64_t);
	const char *rest;
	struct perf_event_header *made;
	uint64_t reserved;

	memcpy(&reserved, copy, sizeof(reserved));
	rest = copy + sizeof(reserved) + reserved + (reserved ? sizeof(uint64_t) : 0);
	strbuf_reset(out);
	strbuf_add(out, start, (size_t)(chain - start));
	strbuf_u64(out, sample->callchain_len + (stack ? 1 + stack->count : 0));
	strbuf_add(out, sample->callchain, sample->callchain_len * sizeof(uint64_t));
	if (stack)
		strbuf_u64(out, (uint64_t)PERF_CONTEXT_USER);
	/* Readers take all but the first address for one behind a call. */
	for (size_t i = 0; stack && i < stack->count; i++)
		strbuf_u64(out, stack->frames[i].ip + (i > 0 && stack->frames[i].exact));
	strbuf_add(out, between, (size_t)(regs - between));
	if (stack) {
		strbuf_u64(out, PERF_SAMPLE_REGS_ABI_NONE);
		strbuf_u64(out, 0);
	} else {
		add_copy(out, regs, copy, with);
	}
	strbuf_add(out, rest, (size_t)(end - rest));
	if (strbuf_failed(out) || out->len > UINT16_MAX)
		return header;
	made = (struct perf_event_header *)out->buf;
	made->size = (uint16_t)out->len;
	return made;
}

const struct perf_event_header *native_sample(struct native *native, size_t ring,
					      const struct perf_event_header *header,
					      const struct perf_event_attr *attr,
					      struct record_sample *sample)
{
	struct unwind_stack stack = {.frames = native->frames, .max = FRAMES_MAX};
	const struct copy *copy = copies_of(&native->copies, ring, sample);
	struct unwind_copy interrupted = {0};
	struct record_sample with = *sample;

	if (!sample->regs_user || !sample->stack_user || !sample->callchain)
		return header;
	if (copy) {
		with.stack_user = copy->top.bytes.items;
		with.stack_user_size = copy->top.bytes.len;
		interrupted = (struct unwind_copy){.bytes = copy->interrupted.bytes.items,
						   .addr = copy->interrupted.sp,
						   .len = copy->interrupted.bytes.len};
	}
	/* Another program's maps: see native.h. */
	if (!native_stacks_of_sample(native->stacks, attr->sample_regs_user, &with, &interrupted,
				     &stack) ||
	    (stack.end == UNWIND_UNMAPPED && stack.count == 1)) {
		if (!copy)
			return header;
		header = rewrite(native, header, sample, &with, NULL);
	} else {
		if (copy)
			copies_learn(&native->copies, copy, &stack);
		native->total++;
		if (stack.end == UNWIND_COMPLETE)
			native->complete++;
		else
			count_end(native, &stack);
		header = rewrite(native, header, sample, &with, &stack);
	}
	record_decode_sample(header, attr, sample);
	return header;
}

bool native_unwind(struct native *native, const struct record_sample *sample,
		   const struct unwind_copy *interrupted, struct unwind_stack *stack)
{
	*stack = (struct unwind_stack){.frames = native->frames, .max = FRAMES_MAX};
	return native_stacks_of_sample(native->stacks, arch_host()->perf_regs_mask, sample,
				       interrupted, stack);
}

void native_each_end(const struct native *native,
		     void (*each)(const char *reason, const char *object, uint64_t samples,
				  void *ctx),
		     void *ctx)
{
	for (size_t i = 0; i < native->ends.len; i++) {
		const struct end *end = &native->ends.items[i];
		const struct dso *dso = process_dso(native->processes, end->dso);

		each(unwind_end_text(end->why), dso ? dso->path : "", end->samples, ctx);
	}
}

void native_counts(const struct native *native, uint64_t *stacks, uint64_t *complete)
{
	*stacks = native->total;
	*complete = native->complete;
}
