#include "profile/chain.h"

#include "base/map.h"
#include "perfmap/frames.h"
#include "perfmap/merge.h"
#include "process/process.h"
#include "profile/inlined.h"
#include "profile/objects.h"
#include "profile/store.h"
#include "symbol/elf.h"
#include "unwind/native_stacks.h"

#include <stdlib.h>
#include <string.h>

#define CACHE_SIZE 16384u /* entries of either cache; a power of two */

/* perf's record size is 16 bits, so no chain is longer than this. */
#define NATIVE_MAX 8192u
#define PYTHON_MAX 4096u
#define UNWOUND_MAX 1024u

struct native_hit {
	uint32_t frame;
	uint32_t plain; /* a trampoline as what it is, not as its Python function; or KEYED_NONE */
	uint8_t class;	/* enum merge_class */
	bool mapped;
	bool nameless;		     /* in no file, and nobody told what it is */
	struct inlined_list inlined; /* into it */
};

struct native_entry {
	uint64_t generation, addr; /* generation 0: free */
	struct native_hit hit;
};

struct python_entry {
	struct py_raw_frame raw; /* code 0: free */
	uint32_t lineage, frame;
};

struct chains {
	struct profile *profile;
	bool expand; /* what is inlined gets frames of its own */
	enum profile_native native_wanted;
	struct inlined inlined;
	const struct arch *arch;	/* of the recording */
	struct native_stacks *unwinder; /* made when a sample needs it */
	bool no_unwinder;
	uint64_t now; /* time of the sample that is unwound */
	struct native_entry native[CACHE_SIZE];
	struct python_entry python[CACHE_SIZE];
	/* The sample at hand, leaf first. */
	uint32_t native_frames[NATIVE_MAX], plain_frames[NATIVE_MAX];
	uint8_t classes[NATIVE_MAX];
	bool mapped[NATIVE_MAX], nameless[NATIVE_MAX];
	size_t native_count;
	struct py_raw_frame python_frames[PYTHON_MAX];
	size_t python_count;
	bool python_cut; /* it has more frames than were recorded */
	uint32_t lineage;
	bool trampolined;    /* a trampoline of Python was seen */
	uint64_t calls_most; /* that a sample had of the CPU's record of calls */
	struct map jitted;   /* lineages whose interpreter was seen to run code that it made */
	struct unwind_frame unwound[UNWOUND_MAX];
	struct merge_item merged[NATIVE_MAX + PYTHON_MAX];
	uint32_t frames[NATIVE_MAX + PYTHON_MAX + 1];
};

struct chains *chains_new(struct profile *profile, const struct arch *arch, bool expand,
			  enum profile_native native)
{
	struct chains *chains = calloc(1, sizeof(*chains));

	if (!chains)
		return NULL;
	chains->profile = profile;
	chains->expand = expand;
	chains->native_wanted = native;
	chains->arch = arch;
	return chains;
}

void chains_free(struct chains *chains)
{
	if (!chains)
		return;
	inlined_fini(&chains->inlined);
	map_fini(&chains->jitted);
	native_stacks_free(chains->unwinder);
	free(chains);
}

bool chain_frames_sound(const void *payload, size_t len)
{
	struct py_raw_frames head;

	if (len < sizeof(head))
		return false;
	memcpy(&head, payload, sizeof(head));
	return head.magic == PY_RAW_FRAMES && head.count <= PYTHON_MAX &&
	       head.count <= (len - sizeof(head)) / sizeof(head.frames[0]);
}

/* What a dump tells of a function beside its name. False when memory ran out. */
static bool keep_code(struct profile *profile, uint32_t function, const struct jit_hit *found)
{
	uint64_t *index = map_put(&profile->jit_by_function, function, NULL);
	struct jit_code *code = index && !*index ? vec_push(&profile->jit_codes) : NULL;

	if (!code)
		return index && *index;
	*code = (struct jit_code){found->dump, found->code};
	*index = profile->jit_codes.len;
	return true;
}

/* The trampoline of a Python function stands for the function. It has no lines to tell apart. */
static uint32_t trampoline_frame(struct profile *profile, const struct perfmap_entry *entry)
{
	struct intern *strings = &profile->strings;
	const char *dot = memrchr(entry->qualname, '.', entry->qualname_len);
	const char *name = dot ? dot + 1 : entry->qualname;
	const struct function_item key = {
		.function = {
			.kind = FRAME_PYTHON,
			.qualname = intern_add(strings, entry->qualname, entry->qualname_len),
			.name = intern_add(strings, name,
					   (size_t)(entry->qualname + entry->qualname_len - name)),
			.file = intern_add(strings, entry->filename, entry->filename_len),
		}};
	uint32_t function = profile_add_function(profile, &key, entry->size);

	return function == KEYED_NONE ? KEYED_NONE
				      : profile_add_frame(profile, ORIGIN_TRAMPOLINE, function, 0);
}

static uint32_t generated_frame(struct profile *profile, const struct jit_hit *found, uint64_t addr)
{
	const struct perfmap_entry *entry = &found->entry;
	struct function_item key = {.function.kind = FRAME_NATIVE, .vaddr = entry->start};
	uint32_t function;

	key.function.name = key.function.qualname = intern_str(&profile->strings, entry->name);
	key.function.file = intern_str(&profile->strings, "[JIT]");
	function = profile_add_function(profile, &key, entry->size);
	if (function == KEYED_NONE ||
	    (found->code && !entry->python && !keep_code(profile, function, found)))
		return KEYED_NONE;
	return profile_add_frame(profile, ORIGIN_JIT, function, addr);
}

/* Code without a file: a JIT's, which may have left a perf map or a dump. False when memory ran
 * out. */
static bool find_jit(struct chains *chains, const struct chain_sample *in, uint64_t addr,
		     struct native_hit *hit)
{
	struct profile *profile = chains->profile;
	struct jit_hit found;

	if (!jit_find(&profile->jit, in->sample->id.pid, in->sample->id.time, addr, &found))
		return true;
	if (!found.entry.python) {
		hit->frame = generated_frame(profile, &found, addr);
		return hit->frame != KEYED_NONE;
	}
	chains->trampolined = true;
	hit->class = MERGE_TRAMPOLINE;
	hit->frame = trampoline_frame(profile, &found.entry);
	if (hit->frame != KEYED_NONE && chains->native_wanted == PROFILE_NATIVE_ALL) {
		hit->plain = generated_frame(profile, &found, addr);
		return hit->plain != KEYED_NONE;
	}
	return hit->frame != KEYED_NONE;
}

static bool is_named(const struct profile *profile, uint32_t dso, uint64_t vaddr, const char *name)
{
	struct elf_symbol symbol;

	return objects_symbol(profile->objects, dso, vaddr, &symbol) &&
	       strcmp(symbol.name, name) == 0;
}

static uint8_t class_of(const struct chains *chains, uint32_t dso, uint64_t vaddr)
{
	if (objects_is_eval(chains->profile->objects, dso, vaddr))
		return MERGE_EVAL;
	/* Where it called a trampoline, that was seen before. */
	if (chains->trampolined && is_named(chains->profile, dso, vaddr, "py_trampoline_evaluator"))
		return MERGE_EVALUATOR;
	return MERGE_NATIVE;
}

static bool is_shown(const struct chains *chains, uint8_t class)
{
	return class == MERGE_NATIVE || chains->native_wanted == PROFILE_NATIVE_ALL;
}

static struct native_hit find_native(struct chains *chains, const struct chain_sample *in,
				     uint64_t addr)
{
	struct profile *profile = chains->profile;
	struct native_hit hit = {.frame = KEYED_NONE, .plain = KEYED_NONE, .class = MERGE_NATIVE};
	struct map_hit map;
	const struct dso *dso;
	uint64_t vaddr = 0;
	bool is_file;

	if (!process_find(profile->processes, in->sample->id.pid, addr, false, &map)) {
		hit.frame = profile_add_frame(profile, ORIGIN_NATIVE, 0, addr);
		return hit;
	}
	hit.mapped = true;
	dso = process_dso(profile->processes, map.dso);
	if (dso->kind == DSO_ANON && !find_jit(chains, in, addr, &hit))
		return hit;
	hit.nameless = dso->kind == DSO_ANON && hit.frame == KEYED_NONE;
	is_file = dso->kind == DSO_ELF &&
		  objects_vaddr(profile->objects, map.dso, map.file_offset, &vaddr);
	if (is_file)
		hit.class = class_of(chains, map.dso, vaddr);
	if (hit.frame == KEYED_NONE)
		hit.frame = profile_add_frame(profile, ORIGIN_NATIVE, map.dso, map.file_offset);
	if (chains->expand && is_file && is_shown(chains, hit.class) && hit.frame != KEYED_NONE &&
	    !inlined_find(&chains->inlined, profile, hit.frame, vaddr, &hit.inlined))
		hit.frame = KEYED_NONE;
	return hit;
}

static struct native_hit find_kernel(struct chains *chains, uint32_t pid, uint64_t addr)
{
	struct profile *profile = chains->profile;
	struct map_hit map = {0};

	process_find(profile->processes, pid, addr, true, &map);
	return (struct native_hit){
		.frame = profile_add_frame(profile, ORIGIN_KERNEL, map.dso, addr),
		.plain = KEYED_NONE,
		.class = MERGE_KERNEL,
		.mapped = true,
	};
}

static struct native_hit native_hit(struct chains *chains, const struct chain_sample *in,
				    uint64_t addr, bool kernel)
{
	/* The kernel is the same whatever process runs. */
	uint64_t generation = kernel ? UINT64_MAX : in->generation + 1;
	struct native_entry *entry = &chains->native[map_mix(generation, addr) & (CACHE_SIZE - 1)];

	if (entry->generation != generation || entry->addr != addr) {
		*entry = (struct native_entry){
			.generation = generation,
			.addr = addr,
			.hit = kernel ? find_kernel(chains, in->sample->id.pid, addr)
				      : find_native(chains, in, addr),
		};
	}
	return entry->hit;
}

static bool is_kernel(uint64_t context)
{
	return context == PERF_CONTEXT_KERNEL || context == PERF_CONTEXT_HV ||
	       context == PERF_CONTEXT_GUEST_KERNEL;
}

static bool add_frame(struct chains *chains, uint32_t frame, uint8_t class,
		      const struct native_hit *hit)
{
	size_t at = chains->native_count;

	if (at == NATIVE_MAX)
		return true;
	chains->native_frames[at] = frame;
	chains->plain_frames[at] = hit->plain;
	chains->classes[at] = class;
	chains->mapped[at] = hit->mapped;
	chains->nameless[at] = hit->nameless;
	chains->native_count++;
	return frame != KEYED_NONE;
}

static bool add_native(struct chains *chains, const struct chain_sample *in, uint64_t addr,
		       bool kernel)
{
	const struct native_hit hit = native_hit(chains, in, addr, kernel);

	for (uint32_t i = 0; i < hit.inlined.count; i++)
		if (!add_frame(chains, chains->inlined.frames.items[hit.inlined.first + i],
			       MERGE_NATIVE, &hit))
			return false;
	return add_frame(chains, hit.frame, hit.class, &hit);
}

/* PERF_CONTEXT_USER_DEFERRED (Linux 6.18): a cookie follows, not an address. */
#define CONTEXT_USER_DEFERRED ((uint64_t)-640)

static uint64_t context_of(uint16_t cpumode)
{
	switch (cpumode & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return PERF_CONTEXT_KERNEL;
	case PERF_RECORD_MISC_HYPERVISOR:
		return PERF_CONTEXT_HV;
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return PERF_CONTEXT_GUEST_KERNEL;
	default:
		return PERF_CONTEXT_USER;
	}
}

/* A chain by frame pointers that ran into code without them ends in words that are no return
 * addresses. The first user frame is always true. */
static bool trim_garbage(struct chains *chains, size_t first_user)
{
	size_t count = chains->native_count;

	while (chains->native_count > first_user + 1 && !chains->mapped[chains->native_count - 1])
		chains->native_count--;
	return chains->native_count < count;
}

static const char *unwinder_path(void *ctx, uint32_t dso)
{
	const struct chains *chains = ctx;

	return objects_path(chains->profile->objects, dso);
}

static int unwinder_code(void *ctx, uint32_t pid, uint64_t addr, struct unwind_code *code)
{
	struct chains *chains = ctx;
	struct jit_hit hit;

	if (!jit_find(&chains->profile->jit, pid, chains->now, addr, &hit))
		return -1;
	*code = (struct unwind_code){
		.start = hit.entry.start,
		.end = hit.entry.start + hit.entry.size,
		.python = hit.entry.python,
	};
	if (hit.code) {
		code->eh_frame = hit.code->unwind.eh_frame.at;
		code->eh_frame_len = bytes_left(&hit.code->unwind.eh_frame);
		code->bytes = hit.code->code.at;
		code->bytes_len = bytes_left(&hit.code->code);
	}
	return 0;
}

/* The user's part of the stack by registers and a copy, where the sample has them. */
static bool unwind_native(struct chains *chains, const struct chain_sample *in)
{
	struct profile *profile = chains->profile;
	const struct native_stacks_options options = {
		.arch = chains->arch, .path = unwinder_path, .code = unwinder_code, .ctx = chains};
	struct unwind_stack stack = {.frames = chains->unwound, .max = UNWOUND_MAX};
	const struct dso *dso;

	if (!in->sample->regs_user || !in->sample->stack_user_size || chains->no_unwinder)
		return true;
	if (!chains->unwinder &&
	    native_stacks_new(&chains->unwinder, profile->processes, &options, NULL) < 0) {
		chains->no_unwinder = true;
		return true;
	}
	chains->now = in->sample->id.time;
	if (!native_stacks_of_sample(chains->unwinder, in->regs_mask, in->sample, NULL, &stack))
		return true;
	for (size_t i = 0; i < stack.count; i++)
		if (!add_native(chains, in, stack.frames[i].ip - !stack.frames[i].exact, false))
			return false;
	profile->summary.unwound++;
	if (stack.end == UNWIND_COMPLETE) {
		profile->summary.unwound_whole++;
		return true;
	}
	dso = process_dso(profile->processes, stack.module);
	return profile_add_incomplete(profile, unwind_end_text(stack.end), dso ? dso->path : "", 1);
}

/* How many calls an Intel CPU remembers: 16 up to Broadwell, then 32. */
static bool fills_record(struct chains *chains, uint64_t calls)
{
	if (chains->calls_most < calls)
		chains->calls_most = calls;
	return calls == chains->calls_most && (calls == 16 || calls == 32);
}

/* The CPU's own record of calls, below the innermost user address. */
static bool add_calls(struct chains *chains, const struct chain_sample *in, enum chain_cut *cut)
{
	const struct record_sample *sample = in->sample;

	for (uint64_t i = 0; i < sample->calls_len; i++)
		if (!add_native(chains, in, sample->calls[i].from, false))
			return false;
	if (fills_record(chains, sample->calls_len))
		*cut = CHAIN_CUT_CALLS;
	return true;
}

static bool read_native(struct chains *chains, const struct chain_sample *in, enum chain_cut *cut)
{
	const struct record_sample *sample = in->sample;
	uint64_t context = context_of(in->cpumode);
	size_t first_user = SIZE_MAX;
	bool exact = true; /* the interrupted instruction, not a return address */

	chains->native_count = 0;
	for (uint64_t i = 0; i < sample->callchain_len; i++) {
		uint64_t ip = sample->callchain[i];

		if (ip == CONTEXT_USER_DEFERRED)
			break;
		if (ip >= (uint64_t)PERF_CONTEXT_MAX) {
			context = ip;
			exact = true;
			continue;
		}
		if (ip == 0 && !exact)
			continue;
		if (first_user != SIZE_MAX && sample->calls_len && !is_kernel(context))
			break; /* what frame pointers led to */
		if (first_user == SIZE_MAX && !is_kernel(context))
			first_user = chains->native_count;
		if (!add_native(chains, in, ip - !exact, is_kernel(context)))
			return false;
		exact = false;
	}
	if (first_user == SIZE_MAX && !unwind_native(chains, in))
		return false;
	if (first_user != SIZE_MAX && trim_garbage(chains, first_user))
		*cut = CHAIN_CUT_POINTERS;
	if (first_user != SIZE_MAX && !add_calls(chains, in, cut))
		return false;
	if (chains->native_count == 0)
		return add_native(chains, in, sample->ip, is_kernel(context_of(in->cpumode)));
	return true;
}

/* By this function of its own the eval loop calls jitted code, from CPython 3.15 on. */
static bool is_jit_entry(const struct chains *chains, size_t native)
{
	const struct profile *profile = chains->profile;
	const struct frame_item *item;
	uint64_t vaddr;

	if (chains->classes[native] != MERGE_NATIVE)
		return false;
	item = profile_frame_item(profile, chains->native_frames[native]);
	return objects_vaddr(profile->objects, item->key.owner, item->key.addr, &vaddr) &&
	       is_named(profile, item->key.owner, vaddr, "_PyJIT_Entry");
}

/*
 * What the interpreter's JIT made is its function's time, and belongs to the eval loop that called
 * it, which takes the frames. The walker knows it where it was interrupted. From then on, what lies
 * in no file and was called by the eval loop itself is known for the same: jitted code that called
 * native code, was about to begin or uses the register for something else, and its callers.
 */
static void mark_jitted(struct chains *chains, bool state_held)
{
	bool known = map_get(&chains->jitted, chains->lineage);

	if (state_held && chains->native_count && chains->nameless[0] && !known)
		known = map_put(&chains->jitted, chains->lineage, NULL);
	for (size_t end, i = 0; known && i < chains->native_count; i = end + 1) {
		bool by_eval;

		for (end = i; end < chains->native_count && chains->nameless[end];)
			end++;
		if (end == i)
			continue;
		if (end < chains->native_count && is_jit_entry(chains, end))
			end++;
		by_eval = end < chains->native_count && chains->classes[end] == MERGE_EVAL;
		for (size_t j = i; j < end && (by_eval || (i == 0 && state_held)); j++)
			chains->classes[j] = MERGE_TRAMPOLINE;
	}
}

static void read_python(struct chains *chains, const void *payload)
{
	struct py_raw_frames head = {0};

	chains->python_count = 0;
	chains->python_cut = false;
	if (!payload)
		return;
	memcpy(&head, payload, sizeof(head));
	memcpy(chains->python_frames, (const char *)payload + sizeof(head),
	       head.count * sizeof(head.frames[0]));
	chains->python_count = head.count;
	chains->lineage = head.lineage;
	chains->python_cut = head.status == PY_WALK_TRUNCATED && head.count;
	if (chains->python_count)
		mark_jitted(chains, head.flags & PY_FRAMES_STATE_HELD);
}

static uint32_t python_frame(struct chains *chains, const struct py_raw_frame *raw)
{
	uint64_t where = (uint64_t)raw->fingerprint << 32 | raw->instr;
	struct python_entry *entry =
		&chains->python[map_mix(raw->code ^ chains->lineage, where) & (CACHE_SIZE - 1)];

	if (!entry->raw.code || entry->lineage != chains->lineage ||
	    memcmp(&entry->raw, raw, sizeof(*raw)) != 0) {
		struct code_key key = {raw->code, chains->lineage, raw->fingerprint};
		uint32_t code = keyed_add(&chains->profile->codes_seen, &key, NULL);

		if (code == KEYED_NONE)
			return KEYED_NONE;
		*entry = (struct python_entry){
			.raw = *raw,
			.lineage = chains->lineage,
			.frame = profile_add_frame(chains->profile, ORIGIN_CODE, code,
						   raw->instr &
							   (PY_INSTR_MASK | PY_FRAME_NO_INSTR)),
		};
	}
	return entry->frame;
}

/* With trampolines alone, the eval loop that a trampoline called is its Python function's. */
static bool is_functions(const struct chains *chains, size_t native)
{
	return chains->classes[native] == MERGE_EVALUATOR ||
	       (chains->classes[native] == MERGE_EVAL && native + 1 < chains->native_count &&
		chains->classes[native + 1] == MERGE_TRAMPOLINE);
}

static size_t merge_trampolines(struct chains *chains)
{
	bool all = chains->native_wanted == PROFILE_NATIVE_ALL;
	size_t count = 0;

	for (size_t i = 0; i < chains->native_count; i++)
		if (all || !is_functions(chains, i))
			chains->merged[count++] = (struct merge_item){.index = (uint32_t)i};
	return count;
}

/* Leaves Python alone, where there is any. */
static size_t fold_native(struct chains *chains, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct merge_item item = chains->merged[i];

		if (item.python || chains->classes[item.index] == MERGE_TRAMPOLINE)
			chains->merged[kept++] = item;
	}
	return kept ? kept : count;
}

static size_t merge(struct chains *chains, size_t *dropped)
{
	bool all = chains->native_wanted == PROFILE_NATIVE_ALL;
	size_t count;

	count = chains->python_count
			? merge_stacks(chains->classes, chains->native_count, chains->python_frames,
				       chains->python_count, all, chains->merged, dropped)
			: merge_trampolines(chains);
	return chains->native_wanted == PROFILE_NATIVE_OFF ? fold_native(chains, count) : count;
}

static uint32_t merged_frame(struct chains *chains, const struct merge_item *item)
{
	uint32_t plain;

	if (item->python)
		return python_frame(chains, &chains->python_frames[item->index]);
	plain = chains->plain_frames[item->index];
	return chains->python_count && plain != KEYED_NONE ? plain
							   : chains->native_frames[item->index];
}

/* Without native frames, what is innermost below Python needs no look-up. */
static bool is_alone(const struct chains *chains, const struct chain_sample *in)
{
	struct py_raw_frames head;

	if (!in->python || in->sample->callchain_len || in->sample->stack_user_size ||
	    chains->native_wanted != PROFILE_NATIVE_OFF)
		return false;
	memcpy(&head, in->python, sizeof(head));
	return head.count > 0;
}

int chains_stack(struct chains *chains, const struct chain_sample *sample, uint32_t *stack,
		 enum chain_cut *cut, struct err *err)
{
	size_t count, total = 0, left, dropped = 0;

	*cut = CHAIN_WHOLE;
	chains->native_count = 0;
	if (!is_alone(chains, sample) && !read_native(chains, sample, cut))
		return err_nomem(err);
	read_python(chains, sample->python);
	count = merge(chains, &dropped);
	if (dropped && !*cut)
		*cut = sample->sample->calls_len ? CHAIN_CUT_CALLS : CHAIN_CUT_POINTERS;
	if (chains->native_wanted == PROFILE_NATIVE_OFF)
		*cut = CHAIN_WHOLE;
	left = chains->python_count;
	for (size_t i = 0; i < count; i++) {
		const struct merge_item *item = &chains->merged[i];
		uint32_t frame = merged_frame(chains, item);

		if (frame == KEYED_NONE)
			return err_nomem(err);
		chains->frames[total++] = frame;
		left -= item->python;
		if (item->python && !left && chains->python_cut) {
			frame = profile_add_frame(chains->profile, ORIGIN_CUT, 0, 0);
			if (frame == KEYED_NONE)
				return err_nomem(err);
			chains->frames[total++] = frame;
		}
	}
	*stack = stacks_add(&chains->profile->stacks, chains->frames, total);
	return *stack == STACK_NONE ? err_nomem(err) : 0;
}
