/*
 * Functions that the compiler inlined, by DWARF.
 *
 * A unit's functions are listed when an address of it is first asked for, and of a function what is
 * inlined into it when one of its own is: the tree of a unit is walked once at most, and only where
 * samples are. A look-up then is two binary searches. Hostile trees end by a count of entries.
 */
#include "symbol/elf.h"

#include "base/map.h"
#include "base/partition.h"
#include "base/vec.h"
#include "symbol/elf_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>

#define DEPTH_MAX 128
#define ENTRIES_MAX (1u << 24) /* of all trees of a file */

struct call {
	uint64_t start, end;
	Dwarf_Off die;
	uint32_t depth;
	/* Looked up when an address within is asked for, which few are. */
	uint32_t line;	  /* of the call */
	const char *name; /* NULL: not yet; "": it has none */
};

struct function {
	uint64_t start, end;
	Dwarf_Off die;
	size_t first, count; /* in calls, SIZE_MAX: not read yet */
};

struct unit {
	struct {
		VEC_OF(struct function)
	} functions; /* by start */
};

struct elf_inlines {
	struct map by_unit; /* offset -> index + 1 */
	struct {
		VEC_OF(struct unit)
	} units;
	struct {
		VEC_OF(struct call)
	} calls;
	uint32_t entries; /* that were visited */
};

void elf_inlines_free(struct elf_inlines *inlines)
{
	if (!inlines)
		return;
	for (size_t i = 0; i < inlines->units.len; i++)
		vec_fini(&inlines->units.items[i].functions);
	vec_fini(&inlines->units);
	vec_fini(&inlines->calls);
	map_fini(&inlines->by_unit);
	free(inlines);
}

/* Calls back for each child; false ends the walk. */
static bool each_child(struct elf_inlines *inlines, Dwarf_Die *die, unsigned int depth,
		       bool (*visit)(struct elf_inlines *inlines, Dwarf_Die *child,
				     unsigned int depth, void *ctx),
		       void *ctx)
{
	Dwarf_Die child;
	int rc;

	if (depth > DEPTH_MAX || !dwarf_haschildren(die))
		return true;
	for (rc = dwarf_child(die, &child); rc == 0; rc = dwarf_siblingof(&child, &child))
		if (++inlines->entries > ENTRIES_MAX || !visit(inlines, &child, depth, ctx))
			return false;
	return true;
}

static bool add_function(struct elf_inlines *inlines, Dwarf_Die *die, struct unit *unit)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		struct function *function;

		if (start >= end)
			continue;
		if (++inlines->entries > ENTRIES_MAX)
			return false;
		function = vec_push(&unit->functions);
		if (!function)
			return false;
		*function = (struct function){start, end, dwarf_dieoffset(die), SIZE_MAX, 0};
	}
	return true;
}

static bool visit_unit(struct elf_inlines *inlines, Dwarf_Die *die, unsigned int depth, void *ctx)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return add_function(inlines, die, ctx);
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_enumeration_type:
		return each_child(inlines, die, depth + 1, visit_unit, ctx);
	}
	return true;
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* As the linker knows it, so that its class or namespace shows; C has but one name. */
static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	return name ? name : dwarf_diename(die);
}

static void describe(struct elf_file *elf, struct call *call)
{
	Dwarf_Attribute attr;
	Dwarf_Word line;
	Dwarf_Die die;

	call->name = dwarf_offdie(elf_dwarf(elf), call->die, &die) ? name_of(&die) : NULL;
	elf_was_read(elf_dwarf_file(elf), ELF_PAGES_READ);
	if (!call->name) {
		call->name = "";
		return;
	}
	if (dwarf_attr(&die, DW_AT_call_line, &attr) && dwarf_formudata(&attr, &line) == 0 &&
	    line < UINT32_MAX)
		call->line = (uint32_t)line;
}

static bool add_call(struct elf_inlines *inlines, Dwarf_Die *die, unsigned int depth)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		struct call *added;

		if (start >= end)
			continue;
		if (++inlines->entries > ENTRIES_MAX)
			return false;
		added = vec_push(&inlines->calls);
		if (!added)
			return false;
		*added = (struct call){.die = dwarf_dieoffset(die), .depth = depth};
		added->start = start;
		added->end = end;
	}
	return true;
}

/* Depth counts calls, blocks between them included: only its order matters. */
static bool visit_function(struct elf_inlines *inlines, Dwarf_Die *die, unsigned int depth,
			   void *ctx)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_inlined_subroutine:
		return add_call(inlines, die, depth) &&
		       each_child(inlines, die, depth + 1, visit_function, ctx);
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return each_child(inlines, die, depth + 1, visit_function, ctx);
	}
	return true;
}

static uint64_t length_of(Dwarf *dwarf, Dwarf_Die *unit)
{
	Dwarf_Off start = dwarf_dieoffset(unit) - dwarf_cuoffset(unit), next;

	return dwarf_next_unit(dwarf, start, &next, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == 0
		       ? next - start
		       : 0;
}

/* The functions of a unit; NULL when memory runs out. */
static struct unit *get_unit(struct elf_file *elf, struct elf_inlines *inlines, Dwarf_Die *die)
{
	uint64_t *index = map_put(&inlines->by_unit, dwarf_dieoffset(die), NULL);
	struct unit *unit;

	if (!index)
		return NULL;
	if (*index)
		return &inlines->units.items[*index - 1];
	unit = vec_push(&inlines->units);
	if (!unit)
		return NULL;
	*index = inlines->units.len;
	each_child(inlines, die, 0, visit_unit, unit);
	elf_was_read(elf_dwarf_file(elf), length_of(elf_dwarf(elf), die));
	if (unit->functions.len)
		qsort(unit->functions.items, unit->functions.len, sizeof(struct function),
		      compare_functions);
	return unit;
}

static struct function *find_function(const struct unit *unit, uint64_t vaddr)
{
	size_t at = partition_point(unit->functions.items, unit->functions.len, function,
				    function->start <= vaddr);

	return at && vaddr < unit->functions.items[at - 1].end ? &unit->functions.items[at - 1]
							       : NULL;
}

size_t elf_inlined(struct elf_file *elf, uint64_t vaddr, struct elf_inlined *calls, size_t max)
{
	struct elf_inlines *inlines = elf->inlines;
	struct function *function;
	size_t count = 0;
	uint64_t offset;
	Dwarf_Die die;
	struct unit *unit;

	if (!elf_unit_at(elf, vaddr, &offset) || !dwarf_offdie(elf_dwarf(elf), offset, &die))
		return 0;
	if (!inlines)
		inlines = elf->inlines = calloc(1, sizeof(*inlines));
	unit = inlines ? get_unit(elf, inlines, &die) : NULL;
	function = unit ? find_function(unit, vaddr) : NULL;
	if (!function)
		return 0;
	if (function->first == SIZE_MAX) {
		function->first = inlines->calls.len;
		if (dwarf_offdie(elf_dwarf(elf), function->die, &die))
			each_child(inlines, &die, 0, visit_function, NULL);
		elf_was_read(elf_dwarf_file(elf), ELF_PAGES_READ);
		function->count = inlines->calls.len - function->first;
	}
	/* In the order of the tree: what is called stands behind its caller. */
	for (size_t i = function->first + function->count; i > function->first; i--) {
		struct call *call = &inlines->calls.items[i - 1];

		if (vaddr < call->start || vaddr >= call->end || count == max)
			continue;
		if (count && call->depth >= calls[count - 1].depth)
			continue;
		if (!call->name)
			describe(elf, call);
		if (*call->name)
			calls[count++] = (struct elf_inlined){call->name, call->line, call->depth};
	}
	return count;
}
