/*
 * Source lines by libdw.
 *
 * Which unit covers an address is our own table, made at the first look-up from the ranges of the
 * units: .debug_aranges, which dwarf_addrdie() goes by, is left out by clang and by assemblers.
 * libdw then parses the line program of a unit when it is first asked about it and keeps it.
 */
#include "symbol/elf.h"

#include "base/partition.h"
#include "base/vec.h"
#include "symbol/elf_file.h"

#include <elfutils/libdw.h>
#include <stdlib.h>

/* Units of a hostile file may all share one long list of ranges. */
#define RANGES_MAX (1u << 22)

struct unit_range {
	uint64_t start, end;
	Dwarf_Off unit; /* of its DIE */
};

struct elf_lines {
	Dwarf *dwarf; /* NULL: the file has none */
	struct elf_file *file;
	struct {
		VEC_OF(struct unit_range)
	} ranges; /* by start */
};

void elf_lines_free(struct elf_lines *lines)
{
	if (!lines)
		return;
	dwarf_end(lines->dwarf);
	vec_fini(&lines->ranges);
	free(lines);
}

static bool executable(const struct elf_file *elf, uint64_t vaddr)
{
	for (size_t i = 0; i < elf->load_count; i++)
		if (elf->loads[i].executable && vaddr >= elf->loads[i].vaddr &&
		    vaddr - elf->loads[i].vaddr < elf->loads[i].mem_size)
			return true;
	return false;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct unit_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* Functions that the linker threw away keep their ranges, at addresses where no code is. */
static int add_unit(struct elf_lines *lines, const struct elf_file *elf, Dwarf_Die *unit)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while (lines->ranges.len < RANGES_MAX &&
	       (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0) {
		struct unit_range *range;

		if (start >= end || !executable(elf, start))
			continue;
		range = vec_push(&lines->ranges);
		if (!range)
			return -1;
		*range = (struct unit_range){
			.start = start, .end = end, .unit = dwarf_dieoffset(unit)};
	}
	return 0;
}

static int read_units(struct elf_lines *lines, const struct elf_file *elf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (dwarf_get_units(lines->dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0) {
		if (add_unit(lines, elf, &unit) < 0)
			return -1;
		elf_was_read(lines->file, ELF_PAGES_READ);
	}
	if (lines->ranges.len)
		qsort(lines->ranges.items, lines->ranges.len, sizeof(struct unit_range),
		      compare_ranges);
	return 0;
}

/* NULL when memory runs out. */
static struct elf_lines *get_lines(struct elf_file *elf)
{
	struct elf_lines *lines = elf->lines;
	struct elf_file *debug;
	uint64_t addr, size;

	if (lines)
		return lines;
	lines = calloc(1, sizeof(*lines));
	if (!lines)
		return NULL;
	debug = elf_section(elf, ".debug_line", &addr, &size) ? elf : elf_debug_file(elf);
	lines->file = debug;
	lines->dwarf = debug ? dwarf_begin_elf(debug->elf, DWARF_C_READ, NULL) : NULL;
	if (lines->dwarf && read_units(lines, elf) < 0) {
		elf_lines_free(lines);
		return NULL;
	}
	return elf->lines = lines;
}

struct Dwarf *elf_dwarf(struct elf_file *elf)
{
	const struct elf_lines *lines = get_lines(elf);

	return lines ? lines->dwarf : NULL;
}

struct elf_file *elf_dwarf_file(struct elf_file *elf)
{
	const struct elf_lines *lines = get_lines(elf);

	return lines ? lines->file : NULL;
}

bool elf_unit_at(struct elf_file *elf, uint64_t vaddr, uint64_t *unit)
{
	const struct elf_lines *lines = get_lines(elf);
	size_t at = lines ? partition_point(lines->ranges.items, lines->ranges.len, range,
					    range->start <= vaddr)
			  : 0;

	if (!at || vaddr >= lines->ranges.items[at - 1].end)
		return false;
	*unit = lines->ranges.items[at - 1].unit;
	return true;
}

bool elf_line(struct elf_file *elf, uint64_t vaddr, const char **file, uint32_t *line)
{
	Dwarf_Line *row;
	uint64_t offset;
	Dwarf_Die unit;
	int number;

	if (!elf_unit_at(elf, vaddr, &offset) || !dwarf_offdie(elf_dwarf(elf), offset, &unit))
		return false;
	row = dwarf_getsrc_die(&unit, vaddr);
	/* Line 0: code that no line of the source stands for. */
	if (!row || dwarf_lineno(row, &number) < 0 || number <= 0)
		return false;
	*file = dwarf_linesrc(row, NULL, NULL);
	*line = (uint32_t)number;
	return *file != NULL;
}
