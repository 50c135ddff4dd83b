/*
 * elfutils' libdwfl as a back end: one Dwfl per unwinder, to which modules are reported as stacks
 * come by them. It asks for the registers once per stack and for words of memory.
 *
 * libdwfl does not tell why it stopped; that is known from what it asked for in vain, and from the
 * tables of the frame it stopped at.
 */
#include "arch/arch.h"
#include "symbol/elf.h"
#include "unwind/backends.h"
#include "unwind/files.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* There is one thread, and its number means nothing. */
#define THREAD 1

struct unwinder {
	struct modules modules;
	Dwfl *dwfl;
	bool attached;
	/* Of the stack that is walked: */
	const struct unwind_input *input;
	struct unwind_stack *out;
	bool missing; /* memory was */
};

static int find_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	struct unwind_file *file = *userdata;

	/* One more reference: libdwfl ends its own. */
	*elf = file ? elf_begin(-1, ELF_C_READ, elf_libelf(file->elf, false)) : NULL;
	return -1;
}

static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *debuglink, GElf_Word crc,
			  char **debuginfo_name)
{
	return -1;
}

/* The vaddr range of a file's segments, as libdwfl reckons it. */
static bool find_extent(struct Elf *elf, uint64_t *start, uint64_t *end)
{
	bool found = false;
	size_t count;

	if (elf_getphdrnum(elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		if (!found)
			*start = ph.p_align ? ph.p_vaddr & -ph.p_align : ph.p_vaddr;
		*end = ph.p_vaddr + ph.p_memsz;
		found = true;
	}
	return found && *end > *start;
}

/* Has libdwfl know the module at an address. */
static void report(struct unwinder *unwinder, uint64_t addr)
{
	const struct module *module = modules_find(&unwinder->modules, addr);
	uint64_t start = 0, end = 0;
	Dwfl_Module *mod;
	void **userdata;
	char name[32];

	if (!module || !module->usable || dwfl_addrmodule(unwinder->dwfl, addr) ||
	    !find_extent(elf_libelf(module->file->elf, false), &start, &end))
		return;
	snprintf(name, sizeof(name), "%llx", (unsigned long long)module->bias);
	dwfl_report_begin_add(unwinder->dwfl);
	mod = dwfl_report_module(unwinder->dwfl, name, module->bias + start, module->bias + end);
	if (mod && dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL))
		*userdata = module->file;
	dwfl_report_end(unwinder->dwfl, NULL, NULL);
}

static pid_t next_thread(Dwfl *dwfl, void *ctx, void **thread)
{
	return 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *ctx, void **thread)
{
	*thread = ctx;
	return tid == THREAD;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *value, void *ctx)
{
	struct unwinder *unwinder = ctx;

	if (modules_read(&unwinder->modules, unwinder->input, addr, value, sizeof(*value)))
		return true;
	unwinder->missing = true;
	unwinder->out->fault = addr;
	return false;
}

static bool set_registers(Dwfl_Thread *thread, void *ctx)
{
	struct unwinder *unwinder = ctx;
	const struct arch *arch = unwinder->modules.source.arch;
	const struct unwind_regs *regs = &unwinder->input->regs;
	uint64_t values[UNWIND_REGS];
	unsigned int count = arch->return_address ? arch->dwarf_regs : arch->dwarf_regs - 1u;

	memcpy(values, regs->reg, sizeof(values));
	values[arch->dwarf_sp] = regs->sp;
	if (arch->return_address)
		values[arch->dwarf_ra] = regs->ip;
	dwfl_thread_state_register_pc(thread, regs->ip);
	return dwfl_thread_state_registers(thread, 0, count, values);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static int add_frame(Dwfl_Frame *state, void *ctx)
{
	struct unwinder *unwinder = ctx;
	struct unwind_stack *out = unwinder->out;
	Dwarf_Word sp = 0;
	Dwarf_Addr ip;
	bool exact = !out->count;

	/* Asked whether the frame is exact, libdwfl would look for the caller, too early. */
	if (!dwfl_frame_pc(state, &ip, NULL))
		return DWARF_CB_ABORT;
	if (out->count && !ip) {
		if (modules_rule(&unwinder->modules, &out->frames[out->count - 1]))
			out->end = UNWIND_COMPLETE;
		return DWARF_CB_ABORT;
	}
	if (out->count == out->max) {
		out->end = UNWIND_NO_ROOM;
		return DWARF_CB_ABORT;
	}
	dwfl_frame_reg(state, unwinder->modules.source.arch->dwarf_sp, &sp);
	if (out->count) {
		struct unwind_frame *before = &out->frames[out->count - 1];
		const struct rule *rule = modules_rule(&unwinder->modules, before);

		exact = rule && rule->signal;
		before->cfa = sp > before->sp ? sp : 0;
		if (!rule) {
			before->by = UNWIND_BY_FRAME_POINTER;
			out->guessed++;
		}
	}
	out->frames[out->count++] = (struct unwind_frame){.ip = ip, .sp = sp, .exact = exact};
	unwinder->missing = false;
	report(unwinder, ip - !exact);
	return modules_find(&unwinder->modules, ip - !exact) ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/* libdwfl does not tell an end from a failure. */
static enum unwind_end why(struct unwinder *unwinder, const struct module *module)
{
	struct unwind_stack *out = unwinder->out;
	const struct rule *rule;

	if (!module)
		return UNWIND_UNMAPPED;
	rule = modules_rule(&unwinder->modules, &out->frames[out->count - 1]);
	if (!rule)
		return UNWIND_NO_TABLES;
	if (rule->root)
		return UNWIND_COMPLETE;
	if (unwinder->missing)
		return unwind_missing(unwinder->input, out, out->fault);
	return UNWIND_BAD_RULE;
}

static void unwinder_stack(struct unwinder *unwinder, const struct unwind_input *input,
			   struct unwind_stack *out)
{
	const struct module *module;

	*out = (struct unwind_stack){.frames = out->frames, .max = out->max, .end = UNWIND_ENDS};
	if (!out->max) {
		out->end = UNWIND_NO_ROOM;
		return;
	}
	unwinder->input = input;
	unwinder->out = out;
	unwinder->missing = false;
	report(unwinder, input->regs.ip);
	if (!unwinder->attached)
		unwinder->attached = dwfl_attach_state(unwinder->dwfl, NULL, THREAD,
						       &thread_callbacks, unwinder);
	if (unwinder->attached)
		dwfl_getthread_frames(unwinder->dwfl, THREAD, add_frame, unwinder);
	if (!out->count)
		out->frames[out->count++] = (struct unwind_frame){
			.ip = input->regs.ip, .sp = input->regs.sp, .exact = true};
	module = modules_find(&unwinder->modules,
			      out->frames[out->count - 1].ip - (out->count > 1));
	if (out->end == UNWIND_ENDS)
		out->end = why(unwinder, module);
	if (out->end != UNWIND_COMPLETE)
		out->module = module ? module->id : 0;
	if (!unwind_is_missing(out->end))
		out->fault = 0;
}

static void unwinder_close(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	if (unwinder->dwfl)
		dwfl_end(unwinder->dwfl);
	modules_fini(&unwinder->modules);
	free(unwinder);
}

static struct unwinder *unwinder_open(struct unwind_files *files,
				      const struct unwind_source *source, struct err *err)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = find_elf,
		.find_debuginfo = find_debuginfo,
	};
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (unwinder) {
		modules_init(&unwinder->modules, files, source);
		unwinder->dwfl = dwfl_begin(&callbacks);
	}
	if (!unwinder || !unwinder->dwfl) {
		unwinder_close(unwinder);
		err_nomem(err);
		return NULL;
	}
	return unwinder;
}

const struct unwind_backend unwind_by_libdw = {
	.name = "libdw",
	.open = unwinder_open,
	.stack = unwinder_stack,
	.close = unwinder_close,
};
