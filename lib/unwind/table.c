/*
 * The back end of our own: rules of frames, looked up and applied.
 *
 * A step is one look-up of the address and a few loads from the copy of the stack. The rule comes
 * from the file's tables (cfi.h), for generated code from its own tables or by its bytes, and where
 * there is none from the frame pointer or a search (fallback.c). An unwinder itself holds next to
 * nothing, so that one for each state of each process's maps is cheap.
 *
 * It ends: every step but one out of a signal handler must move the stack pointer up, and of those
 * there are few.
 */
#include "arch/arch.h"
#include "symbol/elf.h"
#include "unwind/backends.h"
#include "unwind/fallback.h"
#include "unwind/files.h"

#include <stdlib.h>
#include <string.h>

#define SIGNALS_MAX 64

struct unwinder {
	struct modules modules;
	struct fallback fallback;
};

struct walk {
	struct unwinder *unwinder;
	const struct unwind_input *input;
	struct unwind_stack *out;
	struct unwind_regs regs;
	uint64_t sp; /* of the frame, while the registers become its caller's */
	size_t signals;
	bool exact;
};

static bool read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct walk *walk = ctx;

	if (modules_read(&walk->unwinder->modules, walk->input, addr, buf, len))
		return true;
	walk->out->fault = addr;
	return false;
}

static bool stop(struct walk *walk, enum unwind_end end)
{
	walk->out->end = end;
	return false;
}

static bool stop_unreadable(struct walk *walk)
{
	return stop(walk, unwind_missing(walk->input, walk->out, walk->out->fault));
}

static bool find_value(struct walk *walk, const struct rule_reg *reg, struct expr_env *env,
		       uint64_t *value)
{
	const struct rules *rules = unwind_files_rules(walk->unwinder->modules.files);
	const struct arch *arch = walk->unwinder->modules.source.arch;
	const struct rule_op *ops;
	uint64_t addr, word;
	size_t count;

	switch ((enum rule_how)reg->how) {
	case RULE_AT_CFA:
		addr = env->cfa + (uint64_t)(int64_t)reg->value;
		break;
	case RULE_IS_CFA:
		*value = env->cfa + (uint64_t)(int64_t)reg->value;
		return true;
	case RULE_REGISTER:
		*value = env->regs[reg->value];
		return true;
	default:
		ops = rules_expression(rules, (uint32_t)reg->value, &count);
		if (!expr_value(ops, count, env, &addr))
			return stop(walk, UNWIND_BAD_RULE);
		if (reg->how == RULE_IS_EXPR) {
			*value = addr;
			return true;
		}
	}
	if (read_memory(walk, addr, &word, sizeof(word))) {
		*value = word;
		return true;
	}
	/* Behind a pop in an epilogue the row still tells of the slot, which now lies below the
	 * stack pointer, where no copy reaches; the register has its value again. */
	if (addr < walk->sp && reg->reg != arch->dwarf_ra)
		return true;
	return stop_unreadable(walk);
}

static bool find_cfa(struct walk *walk, const struct rule *rule, struct expr_env *env)
{
	const struct rules *rules = unwind_files_rules(walk->unwinder->modules.files);
	const struct rule_op *ops;
	size_t count;

	if (!rule->cfa_expr) {
		env->cfa = env->regs[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa;
		return true;
	}
	ops = rules_expression(rules, (uint32_t)rule->cfa, &count);
	if (expr_value(ops, count, env, &env->cfa))
		return true;
	return env->unreadable ? stop_unreadable(walk) : stop(walk, UNWIND_BAD_RULE);
}

/* From the registers of a frame to its caller's. */
static bool apply(struct walk *walk, const struct rule *rule, struct unwind_frame *frame)
{
	const struct arch *arch = walk->unwinder->modules.source.arch;
	struct unwind_regs *regs = &walk->regs;
	uint64_t copy[UNWIND_REGS];
	struct expr_env env = {.regs = regs->reg, .read = read_memory, .ctx = walk};
	bool grown;

	walk->sp = regs->sp;
	if (!find_cfa(walk, rule, &env))
		return false;
	if (rule->copies) {
		memcpy(copy, regs->reg, sizeof(copy));
		env.regs = copy;
	}
	regs->reg[arch->dwarf_sp] = env.cfa;
	for (size_t i = 0; i < rule->count; i++)
		if (!find_value(walk, &rule->regs[i], &env, &regs->reg[rule->regs[i].reg]))
			return false;
	frame->cfa = env.cfa;
	regs->ip = regs->reg[rule->ra] & arch->address_mask;
	regs->sp = regs->reg[arch->dwarf_sp];
	/* A leaf need not have moved the stack pointer. */
	grown = regs->sp > walk->sp ||
		(walk->exact && regs->sp == walk->sp && !arch->return_address);
	if (rule->signal ? ++walk->signals > SIGNALS_MAX : !grown)
		return stop(walk, UNWIND_LOOP);
	walk->exact = rule->signal;
	return true;
}

static const struct rule *get_rule(struct walk *walk, uint32_t id)
{
	const struct rules *rules = unwind_files_rules(walk->unwinder->modules.files);

	if (rule_is(id))
		return rules_get(rules, id);
	stop(walk, id == RULE_NOMEM ? UNWIND_NO_MEMORY : UNWIND_BAD_RULE);
	return NULL;
}

static bool use(struct walk *walk, const struct rule *rule, struct unwind_frame *frame)
{
	if (!rule)
		return false;
	if (rule->root)
		return stop(walk, UNWIND_COMPLETE);
	return apply(walk, rule, frame);
}

/* No table covers the address. */
static bool fall_back(struct walk *walk, const struct module *module, struct unwind_frame *frame)
{
	struct unwinder *unwinder = walk->unwinder;
	uint64_t entry = module->usable ? module->bias + elf_entry(module->file->elf) : 0;
	uint32_t id;

	id = fallback_code(&unwinder->fallback, &unwinder->modules, &walk->regs, walk->exact);
	if (id != RULE_NONE) {
		frame->by = UNWIND_BY_CODE;
		return use(walk, get_rule(walk, id), frame);
	}
	if (entry && walk->regs.ip - entry < FALLBACK_ENTRY_BYTES)
		return stop(walk, UNWIND_COMPLETE);
	frame->by = UNWIND_BY_FRAME_POINTER;
	if (!fallback_frame_pointer(&unwinder->modules, read_memory, walk, &walk->regs,
				    &frame->cfa)) {
		frame->by = UNWIND_BY_SEARCH;
		if (!fallback_search(&unwinder->modules, read_memory, walk, walk->exact,
				     &walk->regs, &frame->cfa))
			return stop(walk, UNWIND_NO_TABLES);
	}
	walk->exact = false;
	walk->out->guessed++;
	return true;
}

/* From this frame to its caller; false where there is none. */
static bool step(struct walk *walk, struct unwind_frame *frame)
{
	struct modules *modules = &walk->unwinder->modules;
	uint64_t pc = frame->ip - !frame->exact;
	const struct module *module = modules_find(modules, pc);
	uint32_t id;

	if (!module)
		return stop(walk, UNWIND_UNMAPPED);
	if (module->usable)
		id = unwind_file_rule(modules->files, module->file, pc - module->bias);
	else
		id = fallback_generated(modules, pc);
	return id == RULE_NONE ? fall_back(walk, module, frame)
			       : use(walk, get_rule(walk, id), frame);
}

static void unwinder_stack(struct unwinder *unwinder, const struct unwind_input *input,
			   struct unwind_stack *out)
{
	const struct arch *arch = unwinder->modules.source.arch;
	struct walk walk = {
		.unwinder = unwinder,
		.input = input,
		.out = out,
		.regs = input->regs,
		.exact = true,
	};
	struct unwind_frame *frame;

	out->count = out->guessed = 0;
	out->fault = 0;
	out->module = 0;
	out->end = UNWIND_NO_ROOM;
	walk.regs.reg[arch->dwarf_sp] = walk.regs.sp;
	if (arch->return_address)
		walk.regs.reg[arch->dwarf_ra] = walk.regs.ip;
	while (out->count < out->max) {
		bool last = false;

		frame = &out->frames[out->count++];
		*frame = (struct unwind_frame){
			.ip = walk.regs.ip, .sp = walk.regs.sp, .exact = walk.exact};
		last = !step(&walk, frame);
		if (!last && !walk.regs.ip)
			last = !stop(&walk, UNWIND_COMPLETE);
		if (last)
			break;
	}
	if (out->end != UNWIND_COMPLETE && out->count) {
		const struct module *module = modules_find(&unwinder->modules,
							   out->frames[out->count - 1].ip);

		out->module = module ? module->id : 0;
	}
	if (!unwind_is_missing(out->end))
		out->fault = 0;
}

static void unwinder_close(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	modules_fini(&unwinder->modules);
	fallback_fini(&unwinder->fallback);
	free(unwinder);
}

static struct unwinder *unwinder_open(struct unwind_files *files,
				      const struct unwind_source *source, struct err *err)
{
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder)
		err_nomem(err);
	else
		modules_init(&unwinder->modules, files, source);
	return unwinder;
}

const struct unwind_backend unwind_by_table = {
	.name = "table",
	.open = unwinder_open,
	.stack = unwinder_stack,
	.close = unwinder_close,
};
