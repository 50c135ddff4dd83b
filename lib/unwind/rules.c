#include "unwind/rules.h"

#include "arch/arch.h"
#include "unwind/unwind.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

void rules_init(struct rules *rules)
{
	intern_init(&rules->rules);
	intern_init(&rules->expressions);
}

void rules_fini(struct rules *rules)
{
	intern_fini(&rules->rules);
	intern_fini(&rules->expressions);
}

const struct rule *rules_get(const struct rules *rules, uint32_t id)
{
	return (const struct rule *)intern_text(&rules->rules, id, NULL);
}

const struct rule_op *rules_expression(const struct rules *rules, uint32_t id, size_t *count)
{
	size_t len;
	const char *ops = intern_text(&rules->expressions, id, &len);

	*count = len / sizeof(struct rule_op);
	return (const struct rule_op *)ops;
}

size_t rules_bytes(const struct rules *rules)
{
	return rules->rules.arena.total + rules->expressions.arena.total;
}

void rule_draft_add(union rule_draft *draft, uint8_t reg, enum rule_how how, int32_t value)
{
	struct rule *rule = &draft->rule;

	if (rule->count < RULE_REGS_MAX)
		rule->regs[rule->count++] = (struct rule_reg){
			.reg = reg,
			.how = how,
			.value = value,
		};
	rule->copies |= how != RULE_AT_CFA && how != RULE_IS_CFA;
}

uint32_t rules_add(struct rules *rules, union rule_draft *draft)
{
	const struct rule *rule = &draft->rule;

	return intern_add(&rules->rules, draft->bytes,
			  sizeof(*rule) + rule->count * sizeof(rule->regs[0]));
}

/* Whether evaluation stays within the registers that we have. */
static bool known_registers(const struct rule_op *op)
{
	if (op->op >= DW_OP_breg0 && op->op <= DW_OP_breg31)
		return true;
	return op->op != DW_OP_bregx || op->number < UNWIND_REGS;
}

static bool add_expression(struct rules *rules, const Dwarf_Op *ops, size_t count, int32_t *id)
{
	struct rule_op copy[RULE_OPS_MAX];
	uint32_t added;

	if (count > RULE_OPS_MAX)
		return false;
	for (size_t i = 0; i < count; i++) {
		copy[i] = (struct rule_op){
			.op = ops[i].atom, .number = ops[i].number, .number2 = ops[i].number2};
		if (!known_registers(&copy[i]))
			return false;
	}
	added = intern_add(&rules->expressions, copy, count * sizeof(copy[0]));
	*id = (int32_t)added;
	return added != INTERN_NONE && added <= INT32_MAX;
}

static bool fits(uint64_t number, int32_t *value)
{
	*value = (int32_t)number;
	return (uint64_t)(int64_t)*value == number;
}

static bool take_cfa(struct rules *rules, Dwarf_Frame *frame, struct rule *rule)
{
	Dwarf_Op *ops;
	size_t count;

	if (dwarf_frame_cfa(frame, &ops, &count) != 0 || !count)
		return false;
	if (count == 1 && ops[0].atom == DW_OP_bregx && ops[0].number < UNWIND_REGS) {
		rule->cfa_reg = (uint8_t)ops[0].number;
		return fits(ops[0].number2, &rule->cfa);
	}
	rule->cfa_expr = true;
	return add_expression(rules, ops, count, &rule->cfa);
}

/* As dwarf_frame_register() describes them in elfutils/libdw.h. */
static bool take_register(struct rules *rules, const struct arch *arch, Dwarf_Frame *frame, int reg,
			  union rule_draft *draft)
{
	Dwarf_Op mem[3], *ops;
	size_t count;
	int32_t value;
	bool is;

	if (dwarf_frame_register(frame, reg, mem, &ops, &count) != 0)
		return false;
	if (!count) {
		/* Undefined, or the same. Callers never miss what calls clobber, but of the return
		 * address it says that there is none. */
		draft->rule.root |= ops == mem && reg == draft->rule.ra;
		return true;
	}
	if (count == 1 && ops[0].atom == DW_OP_regx) {
		if (ops[0].number >= UNWIND_REGS)
			return false;
		rule_draft_add(draft, (uint8_t)reg, RULE_REGISTER, (int32_t)ops[0].number);
		return true;
	}
	if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
		rule_draft_add(draft, (uint8_t)reg, RULE_REGISTER, ops[0].atom - DW_OP_reg0);
		return true;
	}
	is = ops[count - 1].atom == DW_OP_stack_value;
	count -= is;
	value = 0;
	if (count && ops[0].atom == DW_OP_call_frame_cfa &&
	    (count == 1 ||
	     (count == 2 && ops[1].atom == DW_OP_plus_uconst && fits(ops[1].number, &value)))) {
		/* By convention the caller's stack pointer is the CFA. */
		if (!is || reg != arch->dwarf_sp || value != 0)
			rule_draft_add(draft, (uint8_t)reg, is ? RULE_IS_CFA : RULE_AT_CFA, value);
		return true;
	}
	if (!add_expression(rules, ops, count, &value))
		return false;
	rule_draft_add(draft, (uint8_t)reg, is ? RULE_IS_EXPR : RULE_AT_EXPR, value);
	return true;
}

uint32_t rules_add_row(struct rules *rules, const struct arch *arch, Dwarf_Frame *frame)
{
	union rule_draft draft = {.rule = {0}};
	bool cfa;
	int ra;

	ra = dwarf_frame_info(frame, NULL, NULL, &draft.rule.signal);
	if (ra < 0 || ra >= UNWIND_REGS)
		return RULE_BAD;
	cfa = take_cfa(rules, frame, &draft.rule);
	draft.rule.ra = (uint8_t)ra;
	for (int reg = 0; reg < arch->dwarf_regs; reg++)
		if (!take_register(rules, arch, frame, reg, &draft))
			return RULE_BAD;
	if (!cfa && !draft.rule.root)
		return RULE_BAD;
	return rules_add(rules, &draft);
}
