#include "profile/store.h"

#include "arch/arch.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "perfmap/code.h"
#include "perfmap/frames.h"
#include "process/process.h"
#include "profile/objects.h"
#include "symbol/elf.h"
#include "symbol/kallsyms.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Names, at the end of loading or as frames come: each frame gets its function, its line and, for
 * native code, its address in the object. Frames of one function meet in one entry.
 */
struct resolver {
	struct profile *profile;
	struct kallsyms *kernel; /* NULL: the recording's kernel is not the one that runs */
	bool kernel_tried;
	bool no_symbols;
	uint32_t done;	     /* frames that were resolved */
	uint32_t unreadable; /* the first of them whose code object may still come */
};

static uint32_t text_id(struct resolver *r, const char *text)
{
	return intern_str(&r->profile->strings, text);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* How much of an object's name names it: that of an extension module goes on with the interpreter
 * and the machine it is for, "_ssl.cpython-311-x86_64-linux-gnu.so". */
static int object_name_length(const char *base)
{
	const char *tag = strstr(base, ".cpython-");

	return (int)(tag && tag != base ? (size_t)(tag - base) : strlen(base));
}

/* A function of an object that has no symbol for it. Where the unwinder's tables say from where to
 * where it goes it is "0x12af [libfoo.so]"; all the rest of an object is one function
 * "[libfoo.so]" (size 0), since single addresses tell nobody anything. */
static uint32_t add_unnamed(struct resolver *r, enum frame_kind kind, uint32_t dso,
			    const char *object, uint64_t start, uint64_t size)
{
	struct function_item key = {.function.kind = kind, .dso = dso, .vaddr = start};
	const char *base = base_name(object);
	char name[320], address[24];

	snprintf(address, sizeof(address), "0x%" PRIx64, start);
	snprintf(name, sizeof(name), base[0] == '[' ? "%s%s%.*s" : "%s%s[%.*s]",
		 size ? address : "", size ? " " : "", object_name_length(base), base);
	key.function.qualname = text_id(r, name);
	key.function.name = size ? text_id(r, address) : key.function.qualname;
	key.function.file = text_id(r, object);
	return profile_add_function(r->profile, &key, size);
}

/* Of a string that was cut there is its beginning. */
static uint32_t code_text(struct resolver *r, const struct py_code *code, uint32_t id, uint8_t bit)
{
	struct strbuf text = {0};

	if (!(code->missing & bit) || !id)
		return id;
	strbuf_printf(&text, "%s...", profile_text(r->profile, id));
	id = strbuf_failed(&text) ? INTERN_NONE : text_id(r, strbuf_text(&text));
	strbuf_fini(&text);
	return id;
}

static int find_code(const struct resolver *r, uint32_t seen)
{
	const struct code_key *key = keyed_at(&r->profile->codes_seen, seen);

	return py_codes_find(r->profile->codes, key->lineage, key->code, key->fingerprint);
}

static uint32_t resolve_code(struct resolver *r, struct frame_item *item)
{
	struct function_item key = {.function.kind = FRAME_PYTHON};
	int index = find_code(r, item->key.owner);
	const struct py_code *code = index < 0 ? NULL : py_codes_get(r->profile->codes, index);

	item->frame.addr = item->key.addr & PY_INSTR_MASK;
	if (!code || ((code->missing & PY_CODE_MISSING_NAME) && !code->name)) {
		key.function.name = key.function.qualname = text_id(r,
								    "[unreadable Python function]");
		item->unreadable = true;
		if (code)
			key.function.file = code_text(r, code, code->filename,
						      PY_CODE_MISSING_FILENAME);
		return profile_add_function(r->profile, &key, 0);
	}
	key.function.name = code_text(r, code, code->name, PY_CODE_MISSING_NAME);
	key.function.qualname = code->qualname ? code_text(r, code, code->qualname,
							   PY_CODE_MISSING_QUALNAME)
					       : key.function.name;
	key.function.file = code_text(r, code, code->filename, PY_CODE_MISSING_FILENAME);
	key.function.line = code->firstlineno;
	if (!(item->key.addr & PY_FRAME_NO_INSTR))
		item->frame.line = py_codes_line(r->profile->codes, index,
						 (uint32_t)item->frame.addr);
	return profile_add_function(r->profile, &key, 0);
}

static uint32_t resolve_native(struct resolver *r, struct frame_item *item)
{
	static const struct dso unknown = {.path = "[unknown]", .kind = DSO_SPECIAL};
	struct function_item key = {.function.kind = FRAME_NATIVE, .dso = item->key.owner};
	const struct dso *dso = process_dso(r->profile->processes, item->key.owner);
	struct elf_symbol symbol;
	uint64_t start, size;

	if (!dso)
		dso = &unknown;
	item->frame.addr = item->key.addr;
	if (dso->kind == DSO_ANON)
		return add_unnamed(r, FRAME_NATIVE, item->key.owner, "[anon]", 0, 0);
	if (dso->kind == DSO_SPECIAL || r->no_symbols ||
	    !objects_vaddr(r->profile->objects, item->key.owner, item->key.addr, &item->frame.addr))
		return add_unnamed(r, FRAME_NATIVE, item->key.owner, dso->path, 0, 0);
	if (!objects_symbol(r->profile->objects, item->key.owner, item->frame.addr, &symbol)) {
		if (!objects_range(r->profile->objects, item->key.owner, item->frame.addr, &start,
				   &size))
			start = size = 0;
		return add_unnamed(r, FRAME_NATIVE, item->key.owner, dso->path, start, size);
	}
	key.function.name = key.function.qualname = profile_symbol_id(r->profile, symbol.name,
								      false);
	key.function.file = text_id(r, dso->path);
	key.vaddr = symbol.vaddr;
	return profile_add_function(r->profile, &key, symbol.size);
}

/* Kernel addresses mean something only in the boot that they were sampled in: where the kernel's
 * map was recorded, its start must be where it is now. */
static struct kallsyms *open_kernel(const struct profile *profile)
{
	struct kallsyms *kernel;

	if (!objects_same_kernel(profile->objects) || kallsyms_open(&kernel, NULL, NULL) < 0)
		return NULL;
	if (profile->kernel_text && kallsyms_address(kernel, "_text") != profile->kernel_text) {
		kallsyms_close(kernel);
		return NULL;
	}
	return kernel;
}

/* As the recording has it, else as the kernel says that runs here and now. */
static bool find_kernel(struct resolver *r, uint64_t addr, struct elf_symbol *symbol, char *module,
			size_t size)
{
	struct kallsyms_symbol found;
	const char *tab;

	module[0] = '\0';
	if (r->no_symbols)
		return false;
	if (objects_kernel_symbol(r->profile->objects, addr, symbol)) {
		tab = strchr(symbol->name, '\t');
		if (tab)
			snprintf(module, size, "%s", tab + 1);
		return true;
	}
	if (!r->kernel_tried)
		r->kernel = open_kernel(r->profile);
	r->kernel_tried = true;
	if (!r->kernel || !kallsyms_find(r->kernel, addr, &found))
		return false;
	*symbol = (struct elf_symbol){found.name, found.start, found.end - found.start};
	if (found.module[0])
		snprintf(module, size, "[%s]", found.module);
	return true;
}

static uint32_t resolve_kernel(struct resolver *r, struct frame_item *item)
{
	struct function_item key = {.function.kind = FRAME_KERNEL};
	const struct dso *dso = process_dso(r->profile->processes, item->key.owner);
	struct elf_symbol symbol;
	char module[80];

	item->frame.addr = item->key.addr;
	if (!find_kernel(r, item->key.addr, &symbol, module, sizeof(module)))
		return add_unnamed(r, FRAME_KERNEL, item->key.owner,
				   dso && dso->kind == DSO_MODULE ? dso->path : "[kernel]", 0, 0);
	key.function.name = key.function.qualname = intern_add(&r->profile->strings, symbol.name,
							       strcspn(symbol.name, "\t"));
	key.function.file = text_id(r, module[0] ? module : "[kernel]");
	key.vaddr = symbol.vaddr;
	return profile_add_function(r->profile, &key, symbol.size);
}

/* Entries of perf maps and what was inlined got their functions when they were found. */
static uint32_t resolve_jit(struct resolver *r, struct frame_item *item)
{
	item->frame.addr = item->key.addr;
	return item->key.owner;
}

static uint32_t resolve_cut(struct resolver *r, struct frame_item *item)
{
	struct function_item key = {.function.kind = FRAME_PYTHON};

	key.function.name = key.function.qualname = text_id(r, PROFILE_CUT_NAME);
	return profile_add_function(r->profile, &key, 0);
}

static uint32_t (*const resolvers[])(struct resolver *r, struct frame_item *item) = {
	[ORIGIN_CODE] = resolve_code,	  [ORIGIN_TRAMPOLINE] = resolve_jit,
	[ORIGIN_JIT] = resolve_jit,	  [ORIGIN_NATIVE] = resolve_native,
	[ORIGIN_KERNEL] = resolve_kernel, [ORIGIN_CUT] = resolve_cut,
	[ORIGIN_INLINED] = resolve_jit,
};

struct resolver *resolver_new(struct profile *profile, bool no_symbols)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (r)
		*r = (struct resolver){.profile = profile, .no_symbols = no_symbols};
	return r;
}

void resolver_free(struct resolver *r)
{
	if (r)
		kallsyms_close(r->kernel);
	free(r);
}

static int resolve(struct resolver *r, struct frame_item *item, struct err *err)
{
	item->unreadable = false;
	item->frame.function = resolvers[item->key.origin](r, item);
	if (item->frame.function == KEYED_NONE)
		return err_nomem(err);
	if (profile_function(r->profile, item->frame.function)->kind != FRAME_PYTHON)
		item->frame.ip = item->key.addr;
	return 0;
}

int resolver_run(struct resolver *r, struct err *err)
{
	uint32_t count = r->profile->frames.count, unreadable = count, work;
	int rc = 0;

	work = progress_start("naming functions", PROGRESS_COUNT, count);
	for (uint32_t i = r->unreadable; i < count && !rc; i++) {
		struct frame_item *item = profile_frame_item(r->profile, i);

		progress_at(work, i);
		if (i >= r->done || item->unreadable)
			rc = resolve(r, item, err);
		if (item->unreadable && unreadable == count)
			unreadable = i;
	}
	progress_end(work);
	r->done = count;
	r->unreadable = unreadable;
	return rc;
}

int profile_resolve(struct profile *profile, bool no_symbols, struct err *err)
{
	struct resolver *r = resolver_new(profile, no_symbols);
	int rc = r ? resolver_run(r, err) : err_nomem(err);

	resolver_free(r);
	return rc;
}

int profile_frame_code(const struct profile *profile, uint32_t frame)
{
	const struct frame_item *item = profile_frame_item(profile, frame);
	const struct code_key *key;

	if (item->key.origin != ORIGIN_CODE || item->key.addr & PY_FRAME_NO_INSTR)
		return -1;
	key = keyed_at(&profile->codes_seen, item->key.owner);
	return py_codes_find(profile->codes, key->lineage, key->code, key->fingerprint);
}

const struct py_code *profile_code(const struct profile *profile, int code)
{
	return py_codes_get(profile->codes, code);
}

uint32_t profile_code_line(const struct profile *profile, int code, uint32_t offset)
{
	return py_codes_line(profile->codes, code, offset);
}

bool profile_native_line(struct profile *profile, uint32_t frame, const char **file, uint32_t *line)
{
	struct frame_item *item = profile_frame_item(profile, frame);
	const struct jit_code *jit;

	if (item->key.origin == ORIGIN_JIT) {
		jit = profile_jit_code(profile, item->key.owner);
		if (!jit || !jitdump_line(jit->dump, jit->code, item->key.addr, file, line))
			return false;
		item->frame.line = *line;
		return true;
	}
	if (item->key.origin != ORIGIN_NATIVE || !item->key.owner ||
	    !objects_line(profile->objects, item->key.owner, item->frame.addr, file, line))
		return false;
	item->frame.line = *line;
	return true;
}

/* Runtimes do not always say for which machine their code is. */
static int jit_code(const struct jit_code *jit, uint64_t *vaddr, uint8_t **bytes, size_t *len,
		    uint16_t *machine, struct err *err)
{
	struct bytes code = jit->code->code;

	*len = bytes_left(&code);
	if (!*len)
		return err_set(err, ERR_NOT_FOUND, "the jitdump does not have the code of %s",
			       jit->code->name);
	*bytes = malloc(*len);
	if (!*bytes)
		return err_nomem(err);
	memcpy(*bytes, code.at, *len);
	*vaddr = jit->code->addr;
	*machine = (uint16_t)jitdump_head_of(jit->dump)->machine;
	if (!*machine && arch_host())
		*machine = arch_host()->elf_machine;
	return 0;
}

#define NATIVE_CODE_MAX (4u << 20) /* bytes of one function; more is a broken symbol */

int profile_native_code(struct profile *profile, uint32_t function, uint64_t *vaddr,
			uint8_t **bytes, size_t *len, uint16_t *machine, struct err *err)
{
	const struct function_item *item = keyed_at(&profile->functions, function);
	const char *name = profile_text(profile, item->function.name);
	const struct jit_code *jit = profile_jit_code(profile, function);
	struct elf_file *elf;

	if (item->function.kind != FRAME_NATIVE)
		return err_set(err, ERR_UNSUPPORTED, "%s is no native function", name);
	if (jit)
		return jit_code(jit, vaddr, bytes, len, machine, err);
	elf = item->dso ? objects_elf(profile->objects, item->dso) : NULL;
	if (!elf) {
		err_set(err, ERR_NOT_FOUND, "the code of %s is not on this machine", name);
		err_hint(err, "annotate it where it was recorded, with the same build of %s",
			 profile_text(profile, item->function.file));
		return ERR_NOT_FOUND;
	}
	if (item->size == 0 || item->size > NATIVE_CODE_MAX)
		return err_set(err, ERR_NOT_FOUND, "%s has no symbol that says where it ends",
			       name);
	*bytes = malloc(item->size);
	if (!*bytes)
		return err_nomem(err);
	if (elf_read(elf, item->vaddr, *bytes, item->size) < 0) {
		free(*bytes);
		return err_set(err, ERR_CORRUPT, "%s does not hold the code of %s",
			       profile_text(profile, item->function.file), name);
	}
	*vaddr = item->vaddr;
	*len = item->size;
	*machine = elf_machine(elf);
	return 0;
}
