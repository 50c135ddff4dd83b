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

#include "base/bytes.h"
#include "base/vec.h"
#include "symbol/elf.h"
#include "unwind/backends.h"

#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

/* Exported by libunwind for this very use, but declared only in its private headers. */
#define dwarf_search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
int dwarf_search_unwind_table(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di,
			      unw_proc_info_t *pi, int need_unwind_info, void *arg);

#define VDSO_BYTES_MAX (1u << 20)

/* DW_EH_PE_*: how a pointer is written (Linux Standard Base, "DWARF Exception Header Encoding"). */
enum { PE_OMIT = 0xff, PE_SIZE = 0x0f, PE_TABLE = 0x3b /* datarel, sdata4: binary search */ };

struct section {
	uint64_t start, end; /* in the target */
};

struct module {
	uint64_t start, end;
	uint64_t bias;
	struct elf_file *elf; /* NULL: cannot be opened */
	struct section frame_hdr, frame;
	uint64_t table; /* 0: no search table */
	uint64_t fde_count;
};

struct unwinder {
	struct unwind_source source;
	unw_addr_space_t space;
	const struct unwind_regs *regs; /* of the stack that is walked */
	struct {
		VEC_OF(struct module)
	} modules;
	bool no_table; /* for some frame of this stack there was none */
};

static void find_section(struct module *module, const char *name, struct section *section)
{
	uint64_t vaddr, size;

	if (elf_section(module->elf, name, &vaddr, &size) && vaddr && vaddr + size > vaddr) {
		section->start = module->bias + vaddr;
		section->end = section->start + size;
	}
}

static size_t encoded_size(uint8_t encoding)
{
	static const uint8_t sizes[16] = {8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8};

	return encoding == PE_OMIT ? 0 : sizes[encoding & PE_SIZE];
}

/* Where .eh_frame_hdr's table begins and how many functions it holds, bounded by the section. */
static void find_table(struct module *module)
{
	uint64_t size = module->frame_hdr.end - module->frame_hdr.start, room;
	unsigned char header[4 + 8 + 8];
	size_t pointer, count, skip;
	struct bytes b;

	if (size < sizeof(header) ||
	    elf_read(module->elf, module->frame_hdr.start - module->bias, header, sizeof(header)))
		return;
	pointer = encoded_size(header[1]);
	count = encoded_size(header[2]);
	skip = 4 + pointer + count;
	if (header[0] != 1 || header[3] != PE_TABLE || !pointer || (count != 4 && count != 8))
		return;
	b = bytes_of(header + 4 + pointer, count);
	module->fde_count = count == 4 ? bytes_u32(&b) : bytes_u64(&b);
	room = (size - skip) / (2 * sizeof(int32_t));
	module->fde_count = module->fde_count < room ? module->fde_count : room;
	module->table = module->frame_hdr.start + skip;
}

/* The vDSO has no file, but an image of one in memory. */
static struct elf_file *open_in_memory(const struct unwinder *unwinder,
				       const struct unwind_module *found)
{
	uint64_t len = found->end - found->start;
	struct elf_file *elf = NULL;
	void *image;

	if (len > VDSO_BYTES_MAX || found->file_offset)
		return NULL;
	image = malloc(len);
	if (image && unwinder->source.read(unwinder->source.ctx, found->start, image, len) == 0)
		elf_open_memory(&elf, image, len, NULL);
	free(image);
	return elf;
}

/* The module at an address, opened when it is first seen; NULL where none is mapped. */
static const struct module *get_module(struct unwinder *unwinder, uint64_t addr)
{
	struct unwind_module found;
	struct module *module;

	for (size_t i = 0; i < unwinder->modules.len; i++)
		if (addr >= unwinder->modules.items[i].start &&
		    addr < unwinder->modules.items[i].end)
			return &unwinder->modules.items[i];
	if (unwinder->source.module(unwinder->source.ctx, addr, &found) < 0 || addr < found.start ||
	    addr >= found.end)
		return NULL;
	module = vec_push(&unwinder->modules);
	if (!module)
		return NULL;
	module->start = found.start;
	module->end = found.end;
	if (elf_open(&module->elf, found.path, NULL) < 0)
		module->elf = open_in_memory(unwinder, &found);
	if (module->elf && !elf_bias(module->elf, found.start, found.file_offset, &module->bias)) {
		elf_close(module->elf);
		module->elf = NULL;
	}
	if (module->elf) {
		find_section(module, ".eh_frame_hdr", &module->frame_hdr);
		find_section(module, ".eh_frame", &module->frame);
		find_table(module);
	}
	return module;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info,
			  int need_unwind_info, void *ctx)
{
	struct unwinder *unwinder = ctx;
	const struct module *module = get_module(unwinder, ip);
	unw_dyn_info_t table = {.format = UNW_INFO_FORMAT_REMOTE_TABLE};
	int ret = -UNW_ENOINFO;

	if (module && module->table) {
		table.start_ip = module->start;
		table.end_ip = module->end;
		table.u.rti.segbase = module->frame_hdr.start;
		table.u.rti.table_data = module->table;
		table.u.rti.table_len = module->fde_count * 2 * sizeof(int32_t) /
					sizeof(unw_word_t);
		ret = dwarf_search_unwind_table(space, ip, &table, info, need_unwind_info, ctx);
	}
	unwinder->no_table |= ret < 0;
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
static const struct module *module_of_tables(const struct unwinder *unwinder, uint64_t addr)
{
	for (size_t i = 0; i < unwinder->modules.len; i++) {
		const struct module *module = &unwinder->modules.items[i];

		if (module->elf &&
		    (touches(&module->frame_hdr, addr) || touches(&module->frame, addr)))
			return module;
	}
	return NULL;
}

static int access_mem(unw_addr_space_t space, unw_word_t addr, unw_word_t *value, int write,
		      void *ctx)
{
	struct unwinder *unwinder = ctx;
	const struct module *module = module_of_tables(unwinder, addr);

	if (write)
		return -UNW_EINVAL;
	if (module && elf_read(module->elf, addr - module->bias, value, sizeof(*value)) == 0)
		return 0;
	if (unwinder->source.read(unwinder->source.ctx, addr, value, sizeof(*value)) == 0)
		return 0;
	module = get_module(unwinder, addr);
	if (module && module->elf &&
	    elf_read(module->elf, addr - module->bias, value, sizeof(*value)) == 0)
		return 0;
	return -UNW_EINVAL;
}

/* libunwind numbers the general registers of x86-64, arm64 and riscv64 as DWARF does. */
static int access_reg(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write,
		      void *ctx)
{
	const struct unwind_regs *regs = ((struct unwinder *)ctx)->regs;

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
	for (size_t i = 0; i < unwinder->modules.len; i++)
		elf_close(unwinder->modules.items[i].elf);
	vec_fini(&unwinder->modules);
	free(unwinder);
}

static struct unwinder *unwinder_open(const struct unwind_source *source, struct err *err)
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
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (unwinder) {
		unwinder->source = *source;
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

static size_t unwinder_stack(struct unwinder *unwinder, const struct unwind_regs *regs,
			     uint64_t *ips, size_t max, int *complete)
{
	unw_cursor_t cursor;
	size_t count = 0;

	*complete = 0;
	if (!max)
		return 0;
	ips[count++] = regs->ip;
	unwinder->regs = regs;
	unwinder->no_table = false;
	if (unw_init_remote(&cursor, unwinder->space, unwinder) < 0)
		return count;
	for (;;) {
		unw_word_t ip = 0;
		int ret;

		ret = unw_step(&cursor);
		if (ret > 0 && unw_get_reg(&cursor, UNW_REG_IP, &ip) < 0)
			break;
		if (ret == 0 || (ret > 0 && !ip)) {
			/* Where there is no table libunwind follows the frame pointer, which may
			 * be none, and takes its end for the root. */
			*complete = !unwinder->no_table;
			break;
		}
		if (ret < 0 || count == max)
			break;
		ips[count++] = ip;
	}
	return count;
}

const struct unwind_backend unwind_by_libunwind = {
	.name = "libunwind",
	.open = unwinder_open,
	.stack = unwinder_stack,
	.close = unwinder_close,
};

#endif
