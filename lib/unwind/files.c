#include "unwind/files.h"

#include "arch/arch.h"
#include "base/map.h"
#include "base/partition.h"
#include "symbol/elf.h"
#include "unwind/cfi.h"

#include <stdlib.h>
#include <string.h>

/* How far behind the copy of the stack an address is still taken for one of the stack. */
#define STACK_BYTES_MAX (64ull << 20)
#define SIGNAL_FRAME_MAX (64u << 10) /* with all registers that there are */

struct unwind_files {
	struct rules rules;
	struct {
		VEC_OF(struct unwind_file *)
	} files;
	struct map by_id;   /* -> index + 1 into files */
	struct map by_code; /* address of an .eh_frame -> index + 1 into codes */
	struct {
		VEC_OF(struct cfi *) /* NULL: unusable */
	} codes;
};

struct unwind_files *unwind_files_new(void)
{
	struct unwind_files *files = calloc(1, sizeof(*files));

	if (files)
		rules_init(&files->rules);
	return files;
}

static void file_free(struct unwind_file *file)
{
	if (!file)
		return;
	cfi_close(file->cfi);
	elf_close(file->elf);
	free(file);
}

void unwind_files_free(struct unwind_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->files.len; i++)
		file_free(files->files.items[i]);
	vec_fini(&files->files);
	for (size_t i = 0; i < files->codes.len; i++)
		cfi_close(files->codes.items[i]);
	vec_fini(&files->codes);
	map_fini(&files->by_id);
	map_fini(&files->by_code);
	rules_fini(&files->rules);
	free(files);
}

struct rules *unwind_files_rules(struct unwind_files *files)
{
	return &files->rules;
}

void unwind_files_statistics(const struct unwind_files *files, struct unwind_statistics *out)
{
	*out = (struct unwind_statistics){
		.files = files->files.len,
		.rules = files->rules.rules.count,
		.bytes = rules_bytes(&files->rules),
	};
	for (size_t i = 0; i < files->files.len; i++) {
		const struct cfi *cfi = files->files.items[i]->cfi;

		out->addresses += cfi ? cfi_addresses(cfi) : 0;
		out->bytes += cfi ? cfi_bytes(cfi) : 0;
	}
}

uint32_t unwind_file_rule(struct unwind_files *files, struct unwind_file *file, uint64_t vaddr)
{
	if (!file->elf)
		return RULE_NONE;
	if (!file->cfi)
		file->cfi = cfi_open(file->elf);
	return file->cfi ? cfi_rule(file->cfi, &files->rules, vaddr) : RULE_NOMEM;
}

uint32_t unwind_code_rule(struct unwind_files *files, const struct arch *arch,
			  const struct unwind_code *code, uint64_t offset)
{
	bool added;
	uint64_t *place = map_put(&files->by_code, (uint64_t)(uintptr_t)code->eh_frame, &added);
	struct cfi **cfi;

	if (!place)
		return RULE_NOMEM;
	if (added) {
		cfi = vec_push(&files->codes);
		if (!cfi) {
			map_remove(&files->by_code, (uint64_t)(uintptr_t)code->eh_frame);
			return RULE_NOMEM;
		}
		*cfi = cfi_open_bare(arch, code->eh_frame, code->eh_frame_len);
		*place = files->codes.len;
	}
	cfi = &files->codes.items[*place - 1];
	return *cfi ? cfi_rule_at(*cfi, &files->rules, offset) : RULE_NONE;
}

static struct unwind_file *file_open(const struct unwind_source *source,
				     const struct unwind_module *found)
{
	struct unwind_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	if (found->image)
		elf_open_memory(&file->elf, found->image, found->image_len, NULL);
	else if (found->path)
		elf_open(&file->elf, found->path, NULL);
	if (!file->elf)
		file->elf = image_of_memory(source, found->start, found->file_offset);
	return file;
}

/* The file of the id, opened when it is new. */
static struct unwind_file *file_of(struct unwind_files *files, const struct unwind_source *source,
				   const struct unwind_module *found)
{
	struct unwind_file **file;
	uint64_t *place = NULL;

	if (found->id) {
		place = map_get(&files->by_id, found->id);
		if (place)
			return files->files.items[*place - 1];
		place = map_put(&files->by_id, found->id, NULL);
		if (!place)
			return NULL;
	}
	file = vec_push(&files->files);
	if (file)
		*file = file_open(source, found);
	if (!file || !*file) {
		files->files.len -= file != NULL;
		if (found->id)
			map_remove(&files->by_id, found->id);
		return NULL;
	}
	if (place)
		*place = files->files.len;
	return *file;
}

void modules_init(struct modules *modules, struct unwind_files *files,
		  const struct unwind_source *source)
{
	*modules = (struct modules){.files = files, .source = *source};
	if (!modules->source.arch)
		modules->source.arch = arch_host();
}

void modules_fini(struct modules *modules)
{
	vec_fini(modules);
}

/* The first module that ends behind the address. */
static size_t locate(const struct modules *modules, uint64_t addr)
{
	return partition_point(modules->items, modules->len, module, module->end <= addr);
}

static const struct module *add(struct modules *modules, size_t at, uint64_t addr)
{
	const struct unwind_source *source = &modules->source;
	struct unwind_module found = {0};
	struct module *module, new = {0};

	if (source->module(source->ctx, addr, &found) < 0 || addr < found.start ||
	    addr >= found.end)
		return NULL;
	/* What is known already stays: a map that overlaps it is cut. */
	if (at > 0 && modules->items[at - 1].end > found.start) {
		found.file_offset += modules->items[at - 1].end - found.start;
		found.start = modules->items[at - 1].end;
	}
	if (at < modules->len && modules->items[at].start < found.end)
		found.end = modules->items[at].start;
	new.start = found.start;
	new.end = found.end;
	new.id = found.id;
	new.file = file_of(modules->files, source, &found);
	if (!new.file)
		return NULL;
	new.usable = new.file->elf &&elf_machine(new.file->elf) ==
		     source->arch->elf_machine &&elf_bias(new.file->elf, found.start,
							  found.file_offset, &new.bias);
	if (!vec_push(modules))
		return NULL;
	module = &modules->items[at];
	memmove(module + 1, module, (modules->len - 1 - at) * sizeof(*module));
	*module = new;
	return module;
}

const struct module *modules_find(struct modules *modules, uint64_t addr)
{
	const struct module *module;
	size_t at = modules->last;

	if (at >= modules->len || addr < modules->items[at].start || addr >= modules->items[at].end)
		at = locate(modules, addr);
	if (at < modules->len && addr >= modules->items[at].start)
		module = &modules->items[at];
	else
		module = add(modules, at, addr);
	if (module)
		modules->last = (size_t)(module - modules->items);
	return module;
}

const struct rule *modules_rule(struct modules *modules, const struct unwind_frame *frame)
{
	uint64_t pc = frame->ip - !frame->exact;
	const struct module *module = modules_find(modules, pc);
	uint32_t id = RULE_NONE;

	if (module && module->usable)
		id = unwind_file_rule(modules->files, module->file, pc - module->bias);
	return rule_is(id) ? rules_get(&modules->files->rules, id) : NULL;
}

static bool in_copy(uint64_t offset, size_t copied, size_t len)
{
	return offset < copied && copied - offset >= len;
}

bool modules_read(struct modules *modules, const struct unwind_input *input, uint64_t addr,
		  void *buf, size_t len)
{
	const struct unwind_source *source = &modules->source;
	uint64_t offset = addr - input->stack_addr;

	if (in_copy(offset, input->stack_len, len)) {
		/* A word, nearly always: in line. */
		if (len == sizeof(uint64_t))
			memcpy(buf, (const char *)input->stack + offset, sizeof(uint64_t));
		else
			memcpy(buf, (const char *)input->stack + offset, len);
		return true;
	}
	offset = addr - input->interrupted.addr;
	if (in_copy(offset, input->interrupted.len, len)) {
		memcpy(buf, (const char *)input->interrupted.bytes + offset, len);
		return true;
	}
	if (!source->read || (source->running && !modules_find(modules, addr)))
		return false;
	return source->read(source->ctx, addr, buf, len) == 0;
}

/* Whether the stack that a signal interrupted is not the one that its frame lies on. */
static bool left_stack(const struct unwind_stack *out)
{
	for (size_t i = out->count; i-- > 1;)
		if (out->frames[i].exact)
			return out->frames[i].sp - out->frames[i - 1].sp > SIGNAL_FRAME_MAX;
	return false;
}

enum unwind_end unwind_missing(const struct unwind_input *input, const struct unwind_stack *out,
			       uint64_t addr)
{
	if (!input->stack_len)
		return UNWIND_UNREADABLE;
	if (!left_stack(out))
		return addr - input->stack_addr < STACK_BYTES_MAX ? UNWIND_TRUNCATED
								  : UNWIND_UNREADABLE;
	return addr - input->interrupted.addr < STACK_BYTES_MAX && input->interrupted.len
		       ? UNWIND_TRUNCATED
		       : UNWIND_OTHER_STACK;
}

bool unwind_is_missing(enum unwind_end end)
{
	return end == UNWIND_TRUNCATED || end == UNWIND_OTHER_STACK || end == UNWIND_UNREADABLE;
}
