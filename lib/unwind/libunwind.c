/*
 * libunwind as a back end, in its remote mode: it asks us for registers, for words of memory and
 * for the unwind table that covers an address.
 *
 * The table is the sorted one of .eh_frame_hdr. It and .eh_frame are read from the module's file,
 * never from the target, so that a recording that kept only registers and stack is enough. All
 * other memory comes from the source first and from the file where the source does not have it
 * (code, which libunwind looks at to tell signal frames). libunwind keeps the rules that it worked
 * out per address in its address space, of which an unwinder owns one.
 */
#ifdef HAVE_UNWIND

#include "arch/arch.h"
#include "base/bytes.h"
#include "base/vec.h"
#include "symbol/elf.h"
#include "unwind/backends.h"
#include "unwind/files.h"

#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

/* Exported by libunwind for this very use, but declared only in its private headers. */
#define dwarf_search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
int dwarf_search_unwind_table(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di,
			      unw_proc_info_t *pi, int need_unwind_info, void *arg);

/* DW_EH_PE_*: how a pointer is written (Linux Standard Base, "DWARF Exception Header Encoding"). */
enum { PE_OMIT = 0xff, PE_SIZE = 0x0f, PE_TABLE = 0x3b /* datarel, sdata4: binary search */ };

struct section {
	uint64_t start, end; /* in the target */
};

/* The tables of a module, as addresses in the target. */
struct tables {
	uint64_t start, end; /* of the module */
	uint64_t bias;
	const struct elf_file *elf;
	struct section frame_hdr, frame;
	uint64_t search; /* the sorted one; 0: none */
	uint64_t fde_count;
};

struct unwinder {
	struct modules modules;
	unw_addr_space_t space;
	const struct unwind_input *input;
	struct {
		VEC_OF(struct tables)
	} tables;
	enum unwind_end end; /* what stopped the walk, as far as the tables are not to blame */
	bool missing;	     /* memory that it asked for: at `fault` */
	uint64_t fault;
};

static void find_section(struct tables *tables, const char *name, struct section *section)
{
	uint64_t vaddr, size;

	if (elf_section(tables->elf, name, &vaddr, &size) && vaddr && vaddr + size > vaddr) {
		section->start = tables->bias + vaddr;
		section->end = section->start + size;
	}
}

static size_t encoded_size(uint8_t encoding)
{
	static const uint8_t sizes[16] = {8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8};

	return encoding == PE_OMIT ? 0 : sizes[encoding & PE_SIZE];
}

/* Where .eh_frame_hdr's table begins and how many functions it holds, bounded by the section. */
static void find_search(struct tables *tables)
{
	uint64_t size = tables->frame_hdr.end - tables->frame_hdr.start, room;
	unsigned char header[4 + 8 + 8];
	size_t pointer, count, skip;
	struct bytes b;

	if (size < sizeof(header) ||
	    elf_read(tables->elf, tables->frame_hdr.start - tables->bias, header, sizeof(header)))
		return;
	pointer = encoded_size(header[1]);
	count = encoded_size(header[2]);
	skip = 4 + pointer + count;
	if (header[0] != 1 || header[3] != PE_TABLE || !pointer || (count != 4 && count != 8))
		return;
	b = bytes_of(header + 4 + pointer, count);
	tables->fde_count = count == 4 ? bytes_u32(&b) : bytes_u64(&b);
	room = (size - skip) / (2 * sizeof(int32_t));
	tables->fde_count = tables->fde_count < room ? tables->fde_count : room;
	tables->search = tables->frame_hdr.start + skip;
}

/* Those of the module at an address, looked up when it is first seen; NULL where none is usable. */
static const struct tables *get_tables(struct unwinder *unwinder, uint64_t addr)
{
	const struct module *module;
	struct tables *tables;

	for (size_t i = 0; i < unwinder->tables.len; i++)
		if (addr >= unwinder->tables.items[i].start && addr < unwinder->tables.items[i].end)
			return &unwinder->tables.items[i];
	module = modules_find(&unwinder->modules, addr);
	if (!module || !module->usable)
		return NULL;
	tables = vec_push(&unwinder->tables);
	if (!tables)
		return NULL;
	tables->start = module->start;
	tables->end = module->end;
	tables->bias = module->bias;
	tables->elf = module->file->elf;
	find_section(tables, ".eh_frame_hdr", &tables->frame_hdr);
	find_section(tables, ".eh_frame", &tables->frame);
	find_search(tables);
	return tables;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info,
			  int need_unwind_info, void *ctx)
{
	struct unwinder *unwinder = ctx;
	const struct tables *tables = get_tables(unwinder, ip);
	unw_dyn_info_t table = {.format = UNW_INFO_FORMAT_REMOTE_TABLE};
	int ret = -UNW_ENOINFO;

	if (tables && tables->search) {
		table.start_ip = tables->start;
		table.end_ip = tables->end;
		table.u.rti.segbase = tables->frame_hdr.start;
		table.u.rti.table_data = tables->search;
		table.u.rti.table_len = tables->fde_count * 2 * sizeof(int32_t) /
					sizeof(unw_word_t);
		ret = dwarf_search_unwind_table(space, ip, &table, info, need_unwind_info, ctx);
	}
	return ret;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *ctx)
{
}

static int get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t *addr, void *ctx)
{
	return -UNW_ENOINFO;
}

static bool touches(const struct section *section, uint64_t addr)
{
	return addr < section->end && addr + sizeof(unw_word_t) > section->start;
}

/* libunwind asks for aligned words, which may stick out of a section at both ends. */
static const struct tables *tables_around(const struct unwinder *unwinder, uint64_t addr)
{
	for (size_t i = 0; i < unwinder->tables.len; i++) {
		const struct tables *tables = &unwinder->tables.items[i];

		if (touches(&tables->frame_hdr, addr) || touches(&tables->frame, addr))
			return tables;
	}
	return NULL;
}

static bool read_file(const struct tables *tables, uint64_t addr, unw_word_t *value)
{
	return tables && elf_read(tables->elf, addr - tables->bias, value, sizeof(*value)) == 0;
}

static int access_mem(unw_addr_space_t space, unw_word_t addr, unw_word_t *value, int write,
		      void *ctx)
{
	struct unwinder *unwinder = ctx;

	if (write)
		return -UNW_EINVAL;
	if (read_file(tables_around(unwinder, addr), addr, value) ||
	    modules_read(&unwinder->modules, unwinder->input, addr, value, sizeof(*value)) ||
	    read_file(get_tables(unwinder, addr), addr, value))
		return 0;
	unwinder->missing = true;
	unwinder->fault = addr;
	return -UNW_EINVAL;
}

/* libunwind numbers the general registers of x86-64, arm64 and riscv64 as DWARF does. */
static int access_reg(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write,
		      void *ctx)
{
	const struct unwind_regs *regs = &((struct unwinder *)ctx)->input->regs;

	if (write)
		return -UNW_EREADONLYREG;
	if (number == UNW_REG_IP)
		*value = regs->ip;
	else if (number == UNW_REG_SP)
		*value = regs->sp;
	else if (number >= 0 && (size_t)number < sizeof(regs->reg) / sizeof(regs->reg[0]))
		*value = regs->reg[number];
	else
		return -UNW_EBADREG;
	return 0;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int write,
			void *ctx)
{
	return -UNW_EINVAL;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *ctx)
{
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t space, unw_word_t addr, char *name, size_t size,
			 unw_word_t *offset, void *ctx)
{
	return -UNW_EINVAL;
}

static void unwinder_close(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	if (unwinder->space)
		unw_destroy_addr_space(unwinder->space);
	vec_fini(&unwinder->tables);
	modules_fini(&unwinder->modules);
	free(unwinder);
}

static struct unwinder *unwinder_open(struct unwind_files *files,
				      const struct unwind_source *source, struct err *err)
{
	static unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list_addr,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = get_proc_name,
	};
	struct unwinder *unwinder;

	if (source->arch && source->arch != arch_host()) {
		err_set(err, ERR_UNSUPPORTED, "libunwind unwinds only what ran on %s",
			arch_host()->name);
		return NULL;
	}
	unwinder = calloc(1, sizeof(*unwinder));
	if (unwinder) {
		modules_init(&unwinder->modules, files, source);
		unwinder->space = unw_create_addr_space(&accessors, 0);
	}
	if (!unwinder || !unwinder->space) {
		unwinder_close(unwinder);
		err_nomem(err);
		return NULL;
	}
	unw_set_caching_policy(unwinder->space, UNW_CACHE_GLOBAL);
	return unwinder;
}

/* Fills the next frame; 0 or libunwind's code. */
static int add_frame(unw_cursor_t *cursor, bool exact, struct unwind_stack *out)
{
	struct unwind_frame *frame = &out->frames[out->count];
	unw_word_t ip = 0, sp = 0;
	int ret = unw_get_reg(cursor, UNW_REG_IP, &ip);

	if (ret == 0)
		ret = unw_get_reg(cursor, UNW_REG_SP, &sp);
	if (ret < 0)
		return ret;
	*frame = (struct unwind_frame){.ip = ip, .sp = sp, .exact = exact};
	if (out->count && sp > frame[-1].sp)
		frame[-1].cfa = sp;
	out->count++;
	return 0;
}

static void finish(struct unwinder *unwinder, struct unwind_stack *out)
{
	const struct unwind_frame *last = &out->frames[out->count - 1];
	const struct module *module = modules_find(&unwinder->modules, last->ip - !last->exact);
	const struct rule *rule = modules_rule(&unwinder->modules, last);

	if (!module)
		out->end = UNWIND_UNMAPPED;
	else if (!rule)
		out->end = UNWIND_NO_TABLES;
	else if (rule->root)
		out->end = UNWIND_COMPLETE;
	else if (unwinder->end == UNWIND_BAD_RULE && unwinder->missing)
		out->end = unwind_missing(unwinder->input, out, unwinder->fault);
	else
		out->end = unwinder->end;
	if (out->end != UNWIND_COMPLETE)
		out->module = module ? module->id : 0;
	if (unwind_is_missing(out->end))
		out->fault = unwinder->fault;
}

static void unwinder_stack(struct unwinder *unwinder, const struct unwind_input *input,
			   struct unwind_stack *out)
{
	unw_cursor_t cursor;
	int ret;

	*out = (struct unwind_stack){.frames = out->frames, .max = out->max, .end = UNWIND_NO_ROOM};
	unwinder->input = input;
	if (!out->max)
		return;
	out->frames[0] = (struct unwind_frame){
		.ip = input->regs.ip, .sp = input->regs.sp, .exact = true};
	out->count = 1;
	ret = unw_init_remote(&cursor, unwinder->space, unwinder);
	while (ret == 0) {
		const struct rule *rule = modules_rule(&unwinder->modules,
						       &out->frames[out->count - 1]);
		bool known = rule, signal = rule && rule->signal;

		unwinder->end = UNWIND_BAD_RULE;
		unwinder->missing = false;
		if (unw_step(&cursor) <= 0)
			break;
		if (!known) {
			out->frames[out->count - 1].by = UNWIND_BY_FRAME_POINTER;
			out->guessed++;
		}
		if (out->count == out->max)
			return;
		ret = add_frame(&cursor, signal, out);
		if (ret == 0 && !out->frames[out->count - 1].ip) {
			out->count--;
			unwinder->end = UNWIND_COMPLETE;
			break;
		}
	}
	finish(unwinder, out);
}

const struct unwind_backend unwind_by_libunwind = {
	.name = "libunwind",
	.open = unwinder_open,
	.stack = unwinder_stack,
	.close = unwinder_close,
};

#endif
