#include "unwind/native_stacks.h"

#include "arch/arch.h"
#include "base/map.h"
#include "base/vec.h"
#include "process/memory.h"
#include "ring/record.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 256 /* unwinders that are kept; the oldest goes */

/* One state of one process. */
struct slot {
	struct native_stacks *stacks;
	uint32_t pid;
	uint64_t generation;
	struct unwinder *unwinder; /* NULL: free */
	struct memory_process process;
	struct memory memory;
};

/* What stands for an object here. */
struct object {
	bool known;
	char *path; /* NULL: nothing */
};

struct native_stacks {
	struct process_table *processes;
	struct native_stacks_options options;
	struct unwind_files *files;
	struct slot slots[SLOTS];
	struct map slot_of; /* process and generation -> index + 1 */
	size_t next;	    /* the slot to be taken */
	struct slot *last;
	struct {
		VEC_OF(struct object)
	} objects; /* by dso */
};

int native_stacks_new(struct native_stacks **out, struct process_table *processes,
		      const struct native_stacks_options *options, struct err *err)
{
	const struct unwind_backend *backend = options->backend ? options->backend
								: unwind_backends()[0];
	struct native_stacks *stacks;

	*out = NULL;
	if (!backend)
		return err_set(err, ERR_UNSUPPORTED, "pyperf was built without an unwinder");
	stacks = calloc(1, sizeof(*stacks));
	if (!stacks)
		return err_nomem(err);
	stacks->processes = processes;
	stacks->options = *options;
	stacks->options.backend = backend;
	if (!stacks->options.arch)
		stacks->options.arch = arch_host();
	stacks->files = unwind_files_new();
	if (!stacks->files) {
		native_stacks_free(stacks);
		return err_nomem(err);
	}
	*out = stacks;
	return 0;
}

static void release(struct slot *slot)
{
	if (!slot->unwinder)
		return;
	slot->stacks->options.backend->close(slot->unwinder);
	memory_process_fini(&slot->process);
	slot->unwinder = NULL;
}

void native_stacks_free(struct native_stacks *stacks)
{
	if (!stacks)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		release(&stacks->slots[i]);
	unwind_files_free(stacks->files);
	map_fini(&stacks->slot_of);
	for (size_t i = 0; i < stacks->objects.len; i++)
		free(stacks->objects.items[i].path);
	vec_fini(&stacks->objects);
	free(stacks);
}

static const char *object_path(struct native_stacks *stacks, const struct map_hit *hit)
{
	const struct dso *dso = process_dso(stacks->processes, hit->dso);
	struct object *object;
	const char *path;

	if (!dso || dso->kind != DSO_ELF)
		return NULL;
	while (stacks->objects.len <= hit->dso)
		if (!vec_push(&stacks->objects))
			return NULL;
	object = &stacks->objects.items[hit->dso];
	if (object->known)
		return object->path;
	object->known = true;
	path = stacks->options.path(stacks->options.ctx, hit->dso);
	object->path = path ? strdup(path) : NULL;
	return object->path;
}

static int find_module(void *ctx, uint64_t addr, struct unwind_module *module)
{
	struct slot *slot = ctx;
	struct native_stacks *stacks = slot->stacks;
	struct map_hit hit;

	if (!process_find(stacks->processes, slot->pid, addr, false, &hit))
		return -1;
	*module = (struct unwind_module){
		.start = hit.start,
		.end = hit.end,
		.path = object_path(stacks, &hit),
	};
	/* Only of a file is it a place in it. */
	if (module->path || process_dso(stacks->processes, hit.dso)->kind == DSO_ELF)
		module->file_offset = hit.file_offset - (addr - hit.start);
	/* Generated code and what has no name is another in each process. */
	if (module->path || process_dso(stacks->processes, hit.dso)->kind == DSO_VDSO)
		module->id = hit.dso;
	return 0;
}

static int find_code(void *ctx, uint64_t addr, struct unwind_code *code)
{
	struct slot *slot = ctx;
	const struct native_stacks_options *options = &slot->stacks->options;

	return options->code(options->ctx, slot->pid, addr, code);
}

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct slot *slot = ctx;

	return memory_read(&slot->memory, addr, buf, len);
}

static bool open_slot(struct native_stacks *stacks, struct slot *slot, uint32_t pid,
		      uint64_t generation)
{
	struct unwind_source source = {
		.arch = stacks->options.arch,
		.module = find_module,
		.running = true,
		.ctx = slot,
	};

	*slot = (struct slot){.stacks = stacks, .pid = pid, .generation = generation};
	memory_process_init(&slot->process, (pid_t)pid);
	slot->memory = memory_of_process(&slot->process);
	if (stacks->options.live)
		source.read = read_memory;
	if (stacks->options.code)
		source.code = find_code;
	slot->unwinder = stacks->options.backend->open(stacks->files, &source, NULL);
	return slot->unwinder != NULL;
}

/* NULL when memory runs out. */
static struct slot *find_slot(struct native_stacks *stacks, uint32_t pid)
{
	uint64_t generation = process_generation(stacks->processes, pid);
	uint64_t *index;
	struct slot *slot = stacks->last;

	if (slot && slot->unwinder && slot->pid == pid && slot->generation == generation)
		return slot;
	index = map_get(&stacks->slot_of, map_mix(generation, pid));
	if (index) {
		slot = &stacks->slots[*index - 1];
		if (slot->pid == pid && slot->generation == generation)
			return stacks->last = slot;
	}
	slot = &stacks->slots[stacks->next];
	stacks->next = (stacks->next + 1) % SLOTS;
	if (slot->unwinder) {
		map_remove(&stacks->slot_of, map_mix(slot->generation, slot->pid));
		release(slot);
	}
	if (!open_slot(stacks, slot, pid, generation))
		return NULL;
	index = map_put(&stacks->slot_of, map_mix(generation, pid), NULL);
	if (index)
		*index = (uint64_t)(slot - stacks->slots) + 1;
	return stacks->last = slot;
}

bool native_stacks_of_sample(struct native_stacks *stacks, uint64_t regs_mask,
			     const struct record_sample *sample,
			     const struct unwind_copy *interrupted, struct unwind_stack *out)
{
	struct unwind_input input;
	struct slot *slot;

	if (unwind_of_sample(stacks->options.arch, regs_mask, sample, &input) < 0)
		return false;
	slot = find_slot(stacks, sample->id.pid);
	if (!slot)
		return false;
	if (interrupted)
		input.interrupted = *interrupted;
	stacks->options.backend->stack(slot->unwinder, &input, out);
	return true;
}
