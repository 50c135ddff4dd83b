#include "perfmap/eval.h"

#include "symbol/elf.h"

#include <string.h>

/* The compiler moves unlikely parts to functions of their own (".cold", ".part.0"); the
 * interpreter that tail-calls (CPython 3.14) has one function per instruction. */
static const struct {
	const char *name;
	bool prefix;
} eval_names[] = {
	{"_PyEval_EvalFrameDefault", false},
	{"_PyEval_EvalFrameDefault.", true},
	{"_TAIL_CALL_", true},
};

static bool add(struct eval_ranges *ranges, uint64_t start, uint64_t size)
{
	struct eval_range *range = vec_push(ranges);

	if (range)
		*range = (struct eval_range){start, start + size};
	return range;
}

static int add_function(const struct elf_symbol *symbol, void *ctx)
{
	for (size_t i = 0; i < sizeof(eval_names) / sizeof(eval_names[0]); i++) {
		const char *name = eval_names[i].name;

		if (eval_names[i].prefix ? strncmp(symbol->name, name, strlen(name)) != 0
					 : strcmp(symbol->name, name) != 0)
			continue;
		if (!add(ctx, symbol->vaddr, symbol->size))
			return ERR_NOMEM;
	}
	return 0;
}

int eval_find(struct eval_ranges *ranges, struct elf_file *elf, struct elf_file *debug,
	      struct err *err)
{
	uint64_t start, size;
	int ret = 0;

	if (elf)
		ret = elf_each_function(elf, add_function, ranges);
	if (!ret && debug)
		ret = elf_each_function(debug, add_function, ranges);
	/* A stripped interpreter exports the loop itself, but has no symbol for its cold part. */
	if (!ret && elf && ranges->len == 1 &&
	    elf_cold_part(elf, ranges->items[0].start, &start, &size) && !add(ranges, start, size))
		ret = ERR_NOMEM;
	return ret ? err_nomem(err) : 0;
}

bool eval_covers(const struct eval_ranges *ranges, uint64_t vaddr)
{
	for (size_t i = 0; i < ranges->len; i++)
		if (vaddr >= ranges->items[i].start && vaddr < ranges->items[i].end)
			return true;
	return false;
}
