#ifndef PYPERF_RULES_H
#define PYPERF_RULES_H

#include "base/intern.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * How to get from a frame to its caller: where the canonical frame address is and where, from
 * there, the registers lie that the function saved. One row of a call-frame table, compact. Few
 * distinct ones exist (compilers save registers in few orders), so each is stored once, by id.
 */
enum rule_how {
	RULE_AT_CFA,   /* saved at CFA + value */
	RULE_IS_CFA,   /* is CFA + value */
	RULE_REGISTER, /* is in register `value` */
	RULE_AT_EXPR,  /* saved where expression `value` says */
	RULE_IS_EXPR,  /* is what expression `value` says */
};

struct rule_reg {
	uint8_t reg, how; /* of enum rule_how */
	uint16_t unused;
	int32_t value;
};

struct rule {
	uint8_t ra;	 /* the register that has the caller's ip afterwards */
	uint8_t cfa_reg; /* CFA = register + cfa, or where cfa_expr is set what expression cfa says
			  */
	bool cfa_expr;
	bool signal; /* the caller was interrupted and did not call */
	bool root;   /* there is no caller */
	bool copies; /* registers or expressions are used besides the CFA */
	uint8_t count;
	uint8_t unused;
	int32_t cfa;
	struct rule_reg regs[]; /* the others keep their values */
};

/* An operation of a DWARF expression. */
struct rule_op {
	uint64_t number, number2;
	uint8_t op; /* DW_OP_* */
	uint8_t unused[7];
};

#define RULE_OPS_MAX 64

struct rules {
	struct intern rules, expressions;
};

void rules_init(struct rules *rules);
void rules_fini(struct rules *rules);

/* What stands where an id is expected: no table covers the address, it has a row that cannot be
 * used, memory ran out. */
#define RULE_NONE 0
#define RULE_BAD (UINT32_MAX - 1)
#define RULE_NOMEM INTERN_NONE
static inline bool rule_is(uint32_t id)
{
	return id != RULE_NONE && id < RULE_BAD;
}

const struct rule *rules_get(const struct rules *rules, uint32_t id);
const struct rule_op *rules_expression(const struct rules *rules, uint32_t id, size_t *count);
size_t rules_bytes(const struct rules *rules);

/* A rule with room for a row of every register. */
#define RULE_REGS_MAX 64
union rule_draft {
	struct rule rule;
	unsigned char bytes[sizeof(struct rule) + RULE_REGS_MAX * sizeof(struct rule_reg)];
};
/* What is beyond that is left out. */
void rule_draft_add(union rule_draft *draft, uint8_t reg, enum rule_how how, int32_t value);
uint32_t rules_add(struct rules *rules, union rule_draft *draft);

struct arch;
struct Dwarf_Frame_s;
/* The row that libdw found. */
uint32_t rules_add_row(struct rules *rules, const struct arch *arch, struct Dwarf_Frame_s *frame);

/* The value of an expression; false where it cannot be had. Bounded. */
struct expr_env {
	const uint64_t *regs;
	uint64_t cfa;
	uint64_t address_mask;
	bool (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
	bool unreadable; /* out: it was memory that failed, not the expression */
};
bool expr_value(const struct rule_op *ops, size_t count, struct expr_env *env, uint64_t *value);

#endif
