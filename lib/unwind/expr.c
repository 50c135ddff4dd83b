/* DWARF expressions in call-frame tables: what linkage tables, signal frames and hand-written
 * assembly have for rules. Straight-line ones only; no producer branches there. */
#include "unwind/rules.h"

#include <dwarf.h>

#define STACK_MAX 32

struct stack {
	uint64_t words[STACK_MAX];
	size_t depth;
	bool bad;
};

static void push(struct stack *stack, uint64_t word)
{
	if (stack->depth == STACK_MAX)
		stack->bad = true;
	else
		stack->words[stack->depth++] = word;
}

static uint64_t pop(struct stack *stack)
{
	if (!stack->depth) {
		stack->bad = true;
		return 0;
	}
	return stack->words[--stack->depth];
}

static void pick(struct stack *stack, uint64_t from_top)
{
	if (from_top >= stack->depth)
		stack->bad = true;
	else
		push(stack, stack->words[stack->depth - 1 - from_top]);
}

static void turn(struct stack *stack, size_t count)
{
	uint64_t top;

	if (stack->depth < count) {
		stack->bad = true;
		return;
	}
	top = stack->words[stack->depth - 1];
	for (size_t i = 1; i < count; i++)
		stack->words[stack->depth - i] = stack->words[stack->depth - i - 1];
	stack->words[stack->depth - count] = top;
}

static void load(struct stack *stack, struct expr_env *env, uint64_t size)
{
	uint64_t addr = pop(stack), word = 0;

	if (stack->bad || size == 0 || size > sizeof(word)) {
		stack->bad = true;
	} else if (!env->read(env->ctx, addr, &word, size)) {
		env->unreadable = true;
		stack->bad = true;
	}
	push(stack, word); /* the low bytes: all architectures here are little-endian */
}

static uint64_t binary(uint8_t op, uint64_t a, uint64_t b, bool *bad)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (op) {
	case DW_OP_and:
		return a & b;
	case DW_OP_or:
		return a | b;
	case DW_OP_xor:
		return a ^ b;
	case DW_OP_plus:
		return a + b;
	case DW_OP_minus:
		return a - b;
	case DW_OP_mul:
		return a * b;
	case DW_OP_shl:
		return b < 64 ? a << b : 0;
	case DW_OP_shr:
		return b < 64 ? a >> b : 0;
	case DW_OP_shra:
		return (uint64_t)(x >> (b < 63 ? b : 63));
	case DW_OP_eq:
		return a == b;
	case DW_OP_ne:
		return a != b;
	case DW_OP_ge:
		return x >= y;
	case DW_OP_gt:
		return x > y;
	case DW_OP_le:
		return x <= y;
	case DW_OP_lt:
		return x < y;
	default:
		*bad = true;
		return 0;
	}
}

static void step(struct stack *stack, const struct rule_op *op, struct expr_env *env)
{
	uint64_t a, b;

	if (op->op >= DW_OP_lit0 && op->op <= DW_OP_lit31) {
		push(stack, op->op - DW_OP_lit0);
		return;
	}
	if (op->op >= DW_OP_breg0 && op->op <= DW_OP_breg31) {
		push(stack, env->regs[op->op - DW_OP_breg0] + op->number);
		return;
	}
	switch (op->op) {
	case DW_OP_nop:
		break;
	case DW_OP_addr:
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		push(stack, op->number);
		break;
	case DW_OP_bregx:
		push(stack, env->regs[op->number] + op->number2);
		break;
	case DW_OP_call_frame_cfa:
		push(stack, env->cfa);
		break;
	case DW_OP_plus_uconst:
		push(stack, pop(stack) + op->number);
		break;
	case DW_OP_deref:
		load(stack, env, sizeof(uint64_t));
		break;
	case DW_OP_deref_size:
		load(stack, env, op->number);
		break;
	case DW_OP_dup:
		pick(stack, 0);
		break;
	case DW_OP_over:
		pick(stack, 1);
		break;
	case DW_OP_pick:
		pick(stack, op->number);
		break;
	case DW_OP_drop:
		pop(stack);
		break;
	case DW_OP_swap:
		turn(stack, 2);
		break;
	case DW_OP_rot:
		turn(stack, 3);
		break;
	case DW_OP_not:
		push(stack, ~pop(stack));
		break;
	case DW_OP_neg:
		push(stack, -pop(stack));
		break;
	case DW_OP_abs:
		a = pop(stack);
		push(stack, (int64_t)a < 0 ? -a : a);
		break;
	default:
		b = pop(stack);
		a = pop(stack);
		push(stack, binary(op->op, a, b, &stack->bad));
	}
}

bool expr_value(const struct rule_op *ops, size_t count, struct expr_env *env, uint64_t *value)
{
	struct stack stack = {.depth = 0};

	env->unreadable = false;
	for (size_t i = 0; i < count && !stack.bad; i++)
		step(&stack, &ops[i], env);
	*value = pop(&stack);
	return !stack.bad;
}
