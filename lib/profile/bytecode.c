#include "profile/bytecode.h"

#include "base/partition.h"
#include "perfmap/code.h"
#include "profile/numbering.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct variant {
	const struct py_code *code;
	int index; /* among the profile's code objects */
	struct {
		VEC_OF(struct py_instruction)
	} instructions;
};

struct making {
	const struct profile *profile;
	struct {
		VEC_OF(struct variant)
	} variants;
	struct map of_code; /* index of a code object -> variant + 1; 0: cannot be shown */
	struct numbering n;
	bool partial;
};

static bool is_same(const struct py_code *a, const struct py_code *b)
{
	return a->minor == b->minor && a->bytecode_len == b->bytecode_len &&
	       a->table_len == b->table_len &&
	       (a->bytecode == b->bytecode ||
		memcmp(a->bytecode, b->bytecode, a->bytecode_len) == 0) &&
	       (!a->table_len || memcmp(a->table, b->table, a->table_len) == 0);
}

/* The interpreter writes into its code, so two copies seldom are the same bytes: what the compiler
 * made is compared. */
static bool is_variant(const struct variant *variant, const struct py_code *code)
{
	struct py_bytecode bytecode;
	struct py_instruction instruction;
	size_t i = 0;

	if (is_same(variant->code, code))
		return true;
	if (variant->code->minor != code->minor ||
	    variant->code->bytecode_len != code->bytecode_len ||
	    variant->code->table_len != code->table_len ||
	    (code->table_len && memcmp(variant->code->table, code->table, code->table_len)))
		return false;
	py_bytecode_init(&bytecode, code->minor, code->bytecode, code->bytecode_len);
	for (; py_bytecode_next(&bytecode, &instruction); i++)
		if (i >= variant->instructions.len ||
		    variant->instructions.items[i].opcode != instruction.opcode ||
		    variant->instructions.items[i].arg != instruction.arg)
			return false;
	return i == variant->instructions.len;
}

static int add_variant(struct making *m, const struct py_code *code, int index)
{
	struct variant *variant = vec_push(&m->variants);
	struct py_bytecode bytecode;
	struct py_instruction instruction;

	if (!variant)
		return -1;
	*variant = (struct variant){.code = code, .index = index};
	py_bytecode_init(&bytecode, code->minor, code->bytecode, code->bytecode_len);
	while (py_bytecode_next(&bytecode, &instruction)) {
		struct py_instruction *place = vec_push(&variant->instructions);

		if (!place)
			return -1;
		*place = instruction;
	}
	return (int)m->variants.len - 1;
}

/* Its number; -1 when memory ran out, -2 where the bytecode is not known. */
static int variant_of(struct making *m, int index)
{
	const struct py_code *code = profile_code(m->profile, index);
	uint64_t *known;
	bool added;
	int found = -1;

	if (!code || !code->bytecode_len)
		return -2;
	known = map_put(&m->of_code, (uint64_t)index, &added);
	if (!known)
		return -1;
	if (!added)
		return *known ? (int)*known - 1 : -2;
	if (!py_bytecode_is_whole(code->minor, code->bytecode, code->bytecode_len))
		return -2;
	for (size_t i = 0; i < m->variants.len && found < 0; i++)
		if (is_variant(&m->variants.items[i], code))
			found = (int)i;
	if (found < 0)
		found = add_variant(m, code, index);
	if (found >= 0)
		*known = (uint64_t)found + 1;
	return found;
}

/* The instruction that the offset lies in, or in whose caches: callers of 3.11 and 3.12 are at the
 * last unit of their call. */
static const struct py_instruction *instruction_at(const struct variant *variant, uint64_t offset)
{
	size_t low = 0, high = variant->instructions.len;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (variant->instructions.items[mid].offset <= offset)
			low = mid;
		else
			high = mid;
	}
	if (low >= variant->instructions.len || offset - variant->instructions.items[low].offset >=
							variant->instructions.items[low].size)
		return NULL;
	return &variant->instructions.items[low];
}

/* The row of a Python frame; ROW_NONE where its instruction is not known. */
static int number_frame(struct making *m, uint32_t frame, uint32_t *row)
{
	const struct py_instruction *instruction = NULL;
	int index = profile_frame_code(m->profile, frame);
	int variant = index < 0 ? -2 : variant_of(m, index);

	*row = ROW_NONE;
	if (variant == -1)
		return -1;
	if (variant >= 0)
		instruction = instruction_at(&m->variants.items[variant],
					     profile_frame(m->profile, frame)->addr);
	if (!instruction) {
		m->partial = true;
		return 0;
	}
	*row = numbering_row(
		&m->n, numbering_key((uint32_t)variant, instruction->offset),
		(struct row_id){.function = (uint32_t)variant, .line = instruction->offset});
	return *row == ROW_NONE ? -1 : 0;
}

static int number_stacks(struct making *m, uint32_t function)
{
	const struct profile *profile = m->profile;

	for (uint32_t i = 1; i < profile_stack_count(profile); i++) {
		const struct profile_stack *stack = profile_stack(profile, i);
		uint32_t of = numbering_leaf(profile, i)->function;

		if (!numbering_python(profile, of)) {
			m->n.self[i] = m->n.split[i] = m->n.self[stack->parent];
		} else if (of == function) {
			if (number_frame(m, stack->frame, &m->n.total[i]))
				return -1;
			m->n.self[i] = m->n.split[i] = m->n.total[i];
		}
	}
	return 0;
}

static int by_line(const void *a, const void *b)
{
	const struct view_instruction *ra = a, *rb = b;
	uint32_t ka[] = {ra->line, ra->variant, ra->as.offset};
	uint32_t kb[] = {rb->line, rb->variant, rb->as.offset};

	for (int i = 0; i < 3; i++)
		if (ka[i] != kb[i])
			return ka[i] < kb[i] ? -1 : 1;
	return 0;
}

static int make_rows(struct making *m, struct view_bytecode *bytecode)
{
	size_t events = profile_event_count(m->profile), count = 0;

	for (size_t i = 0; i < m->variants.len; i++)
		count += m->variants.items[i].instructions.len;
	bytecode->rows = calloc(count + 1, sizeof(*bytecode->rows));
	bytecode->variants = calloc(m->variants.len + 1, sizeof(struct py_code *));
	if (!bytecode->rows || !bytecode->variants)
		return -1;
	for (size_t i = 0; i < m->variants.len; i++) {
		const struct variant *variant = &m->variants.items[i];

		bytecode->variants[bytecode->variant_count++] = variant->code;
		for (size_t j = 0; j < variant->instructions.len; j++) {
			const struct py_instruction *as = &variant->instructions.items[j];
			const uint64_t *row = map_get(&m->n.by_key,
						      numbering_key((uint32_t)i, as->offset));
			const struct view_count *counts = row ? bytecode->counts + *row * events
							      : NULL;

			bytecode->rows[bytecode->count++] = (struct view_instruction){
				.line = profile_code_line(m->profile, variant->index, as->offset),
				.variant = (uint32_t)i,
				.as = *as,
				.counts = counts && numbering_any(counts, events) ? counts : NULL,
			};
		}
	}
	qsort(bytecode->rows, bytecode->count, sizeof(*bytecode->rows), by_line);
	return 0;
}

int view_bytecode(struct view_bytecode **result, const struct profile *profile,
		  const struct view_filter *filter, uint32_t function, struct err *err)
{
	struct view_bytecode *bytecode = calloc(1, sizeof(*bytecode));
	struct making m = {.profile = profile};
	int rc = numbering_init(&m.n, profile);

	if (rc || !bytecode || number_stacks(&m, function))
		rc = err_nomem(err);
	if (!rc) {
		bytecode->counts = numbering_tally(&m.n, filter, NULL, err);
		rc = bytecode->counts ? 0 : ERR_NOMEM;
	}
	if (!rc && make_rows(&m, bytecode))
		rc = err_nomem(err);
	if (bytecode)
		bytecode->partial = m.partial;
	for (size_t i = 0; i < m.variants.len; i++)
		vec_fini(&m.variants.items[i].instructions);
	vec_fini(&m.variants);
	map_fini(&m.of_code);
	numbering_fini(&m.n);
	if (rc) {
		view_bytecode_free(bytecode);
		return rc;
	}
	*result = bytecode;
	return 0;
}

void view_bytecode_free(struct view_bytecode *bytecode)
{
	if (!bytecode)
		return;
	free(bytecode->rows);
	free(bytecode->variants);
	free(bytecode->counts);
	free(bytecode);
}

const struct view_instruction *view_bytecode_line(const struct view_bytecode *bytecode,
						  uint32_t line, size_t *count)
{
	size_t at = partition_point(bytecode->rows, bytecode->count, row, row->line < line), end;

	for (end = at; end < bytecode->count && bytecode->rows[end].line == line;)
		end++;
	*count = end - at;
	return bytecode->rows + at;
}

void view_instruction_argument(const struct profile *profile, const struct view_bytecode *bytecode,
			       const struct view_instruction *row, struct strbuf *out)
{
	const struct py_code *code = bytecode->variants[row->variant];
	enum py_names_list list;
	uint32_t numbers[2];
	unsigned int count = py_instruction_names(code->minor, &row->as, &list, numbers);

	if (row->as.arg_kind == PY_ARG_NONE)
		return;
	if (row->as.arg_kind >= PY_ARG_JUMP_FORWARD) {
		strbuf_printf(out, "to %" PRIu32, row->as.target);
		return;
	}
	for (unsigned int i = 0; i < count; i++)
		if (numbers[i] >= code->names[list].count)
			count = 0;
	if (!count) {
		const char *operator= py_instruction_operator(code->minor, &row->as);

		if (operator)
			strbuf_str(out, operator);
		else
			strbuf_printf(out, "%" PRId32, row->as.arg);
	}
	for (unsigned int i = 0; i < count; i++) {
		if (i)
			strbuf_str(out, ", ");
		strbuf_str(out, profile_text(profile, code->names[list].ids[numbers[i]]));
	}
}
