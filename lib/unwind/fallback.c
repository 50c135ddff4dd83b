#include "unwind/fallback.h"

#include "arch/arch.h"
#include "symbol/elf.h"

#include <string.h>

#define SEARCH_WORDS 512u
#define CODE_BYTES 64u

void fallback_fini(struct fallback *fallback)
{
	map_fini(&fallback->known);
}

static bool generated(struct modules *modules, uint64_t pc, struct unwind_code *code)
{
	const struct unwind_source *source = &modules->source;

	*code = (struct unwind_code){0};
	return source->code && source->code(source->ctx, pc, code) == 0 && pc >= code->start &&
	       pc < code->end;
}

/* Code does not change: a file's is read from there, so that no memory is needed. */
static bool read_code(struct modules *modules, uint64_t addr, void *buf, size_t len)
{
	const struct module *module = modules_find(modules, addr);
	const struct unwind_source *source = &modules->source;
	struct unwind_code code;

	if (module && module->usable)
		return elf_read(module->file->elf, addr - module->bias, buf, len) == 0;
	if (generated(modules, addr, &code) && code.bytes && addr - code.start <= code.bytes_len &&
	    len <= code.bytes_len - (addr - code.start)) {
		memcpy(buf, (const char *)code.bytes + (addr - code.start), len);
		return true;
	}
	return source->read && source->read(source->ctx, addr, buf, len) == 0;
}

uint32_t fallback_generated(struct modules *modules, uint64_t pc)
{
	struct unwind_code code;

	if (!generated(modules, pc, &code) || !code.eh_frame)
		return RULE_NONE;
	return unwind_code_rule(modules->files, modules->source.arch, &code, pc - code.start);
}

static uint32_t add_row(struct modules *modules, const struct arch_code_row *row)
{
	const struct arch *arch = modules->source.arch;
	union rule_draft draft = {
		.rule = {.ra = arch->dwarf_ra, .cfa_reg = arch->dwarf_sp, .cfa = row->cfa}};

	if (row->ra)
		rule_draft_add(&draft, arch->dwarf_ra, RULE_AT_CFA, row->ra);
	if (row->fp)
		rule_draft_add(&draft, arch->dwarf_fp, RULE_AT_CFA, row->fp);
	return rules_add(unwind_files_rules(modules->files), &draft);
}

/* The row for an offset into the code; a return address belongs to the call in front of it. */
static const struct arch_code_row *row_at(const struct arch_code *code, size_t offset)
{
	const struct arch_code_row *row = &code->rows[0];

	for (size_t i = 0; i < code->row_count; i++)
		if (code->rows[i].from <= offset)
			row = &code->rows[i];
	return row;
}

/* Whether the code begins `offset` bytes in front of the ip (or just behind it, where that lies in
 * an instruction for branch protection). */
static bool begins_at(struct modules *modules, const struct arch_code *code, uint64_t ip,
		      int offset)
{
	unsigned char bytes[sizeof(code->bytes)];

	return read_code(modules, ip - (uint64_t)(int64_t)offset, bytes, code->len) &&
	       memcmp(bytes, code->bytes, code->len) == 0;
}

static uint32_t find_trampoline(struct modules *modules, uint64_t ip, bool exact)
{
	const struct arch *arch = modules->source.arch;
	unsigned char byte;

	if (!read_code(modules, ip, &byte, 1))
		return RULE_NONE;
	for (size_t i = 0; i < arch->trampoline_count; i++) {
		const struct arch_code *code = &arch->trampolines[i];

		for (int offset = -ARCH_CODE_BEFORE; offset < code->len + code->behind; offset++)
			if (begins_at(modules, code, ip, offset))
				return add_row(
					modules,
					row_at(code, offset <= 0 ? 0 : (size_t)offset - !exact));
	}
	return RULE_NONE;
}

/* A trampoline whose bytes nobody has: the row in which all of them call, told apart by whether
 * they keep a frame pointer. */
static uint32_t guess_trampoline(struct modules *modules, const struct unwind_regs *regs)
{
	const struct arch *arch = modules->source.arch;
	const struct arch_code_row *best = NULL;

	for (size_t i = 0; i < arch->trampoline_count; i++) {
		const struct arch_code *code = &arch->trampolines[i];

		for (size_t n = 0; n < code->row_count; n++) {
			const struct arch_code_row *row = &code->rows[n];

			if (row->cfa && row->ra && (!best || row->cfa >= best->cfa) &&
			    (!row->fp || regs->reg[arch->dwarf_fp] == regs->sp))
				best = row;
		}
	}
	return best ? add_row(modules, best) : RULE_NONE;
}

static uint32_t find_sigreturn(struct modules *modules, uint64_t ip)
{
	const struct arch *arch = modules->source.arch;
	const struct arch_sigreturn *sigreturn = arch->sigreturn;
	unsigned char bytes[sizeof(sigreturn->bytes)];
	union rule_draft draft = {.rule = {.cfa_reg = arch->dwarf_sp, .signal = true}};
	size_t last = arch->dwarf_regs - 1u; /* the interrupted ip */

	if (!sigreturn || !read_code(modules, ip, bytes, sigreturn->len) ||
	    memcmp(bytes, sigreturn->bytes, sigreturn->len) != 0)
		return RULE_NONE;
	draft.rule.ra = (uint8_t)last;
	for (size_t reg = 0; reg <= last; reg++)
		if (sigreturn->saved[reg])
			rule_draft_add(&draft, (uint8_t)reg, RULE_AT_CFA, sigreturn->saved[reg]);
	return rules_add(unwind_files_rules(modules->files), &draft);
}

uint32_t fallback_code(struct fallback *fallback, struct modules *modules,
		       const struct unwind_regs *regs, bool exact)
{
	struct unwind_code code;
	uint64_t *place;
	uint32_t id;
	bool added;

	place = map_put(&fallback->known, regs->ip << 1 | exact, &added);
	if (!place)
		return RULE_NOMEM;
	if (added) {
		id = find_sigreturn(modules, regs->ip);
		if (id == RULE_NONE)
			id = find_trampoline(modules, regs->ip, exact);
		*place = id;
	}
	id = (uint32_t)*place;
	if (id == RULE_NONE && !exact && generated(modules, regs->ip - 1, &code) && code.python)
		id = guess_trampoline(modules, regs);
	return id;
}

/* Whether a call lies in front of the address. */
static bool follows_call(struct modules *modules, uint64_t ip, bool *unknown)
{
	const struct arch *arch = modules->source.arch;

	*unknown = false;
	for (size_t i = 0; i < arch->call_count; i++) {
		const struct arch_call *call = &arch->calls[i];
		unsigned char bytes[2] = {0};

		if (!read_code(modules, ip - call->len + call->at, bytes, sizeof(bytes))) {
			*unknown = true;
			continue;
		}
		if ((bytes[0] & call->mask[0]) == call->value[0] &&
		    (bytes[1] & call->mask[1]) == call->value[1])
			return true;
	}
	return false;
}

bool fallback_frame_pointer(struct modules *modules, fallback_read *read, void *ctx,
			    struct unwind_regs *regs, uint64_t *cfa)
{
	const struct arch *arch = modules->source.arch;
	uint64_t fp = regs->reg[arch->dwarf_fp];
	uint64_t sp = fp + (uint64_t)(int64_t)arch->fp_cfa, ip, caller;
	bool unknown;

	if (fp % sizeof(uint64_t) || sp <= regs->sp || fp < regs->sp ||
	    !read(ctx, fp + (uint64_t)(int64_t)arch->fp_return, &ip, sizeof(ip)) ||
	    !read(ctx, fp + (uint64_t)(int64_t)arch->fp_caller, &caller, sizeof(caller)))
		return false;
	ip &= arch->address_mask;
	if (!ip || !modules_find(modules, ip - 1) ||
	    (!follows_call(modules, ip, &unknown) && !unknown))
		return false;
	*cfa = regs->sp = regs->reg[arch->dwarf_sp] = sp;
	regs->reg[arch->dwarf_fp] = caller;
	regs->ip = ip;
	return true;
}

bool fallback_search(struct modules *modules, fallback_read *read, void *ctx, bool exact,
		     struct unwind_regs *regs, uint64_t *cfa)
{
	const struct arch *arch = modules->source.arch;
	uint64_t ip, addr = regs->sp;
	bool unknown;

	/* A leaf may not have saved its return address. */
	if (exact && !arch->return_address) {
		ip = regs->reg[arch->dwarf_ra] & arch->address_mask;
		if (ip && modules_find(modules, ip - 1) && follows_call(modules, ip, &unknown)) {
			regs->ip = ip;
			*cfa = regs->sp;
			return true;
		}
	}
	if (addr % sizeof(ip))
		return false;
	for (size_t i = 0; i < SEARCH_WORDS; i++, addr += sizeof(ip)) {
		if (!read(ctx, addr, &ip, sizeof(ip)))
			return false;
		ip &= arch->address_mask;
		if (ip < CODE_BYTES || !modules_find(modules, ip - 1) ||
		    !follows_call(modules, ip, &unknown))
			continue;
		*cfa = regs->sp = regs->reg[arch->dwarf_sp] = addr + sizeof(ip);
		regs->ip = ip;
		return true;
	}
	return false;
}
