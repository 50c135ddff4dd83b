/*
 * Where members lie in structures, by libdw: what the debug information of a file says of the types
 * that one of its units knows. Only the unit's own, outermost entries are looked at, once for all
 * questions, since a unit has tens of thousands of them: 10 ms of an interpreter with 20 MB. Packed
 * (SHF_COMPRESSED) the same takes 300, so that, and what is huge, counts as not there.
 */
#include "symbol/elf.h"

#include "symbol/elf_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

#define TYPE_DEPTH_MAX 16 /* typedefs of typedefs */
#define INFO_BYTES_MAX (256u << 20)

/* The structure that a type's name stands for. */
static bool strip_type(Dwarf_Die *type, Dwarf_Die *structure)
{
	Dwarf_Attribute attr;

	*structure = *type;
	for (int i = 0; i < TYPE_DEPTH_MAX; i++) {
		int tag = dwarf_tag(structure);

		if (tag == DW_TAG_structure_type)
			return dwarf_haschildren(structure) > 0;
		if ((tag != DW_TAG_typedef && tag != DW_TAG_volatile_type &&
		     tag != DW_TAG_const_type) ||
		    !dwarf_attr_integrate(structure, DW_AT_type, &attr) ||
		    !dwarf_formref_die(&attr, structure))
			return false;
	}
	return false;
}

/* Member `name` of a structure: where it lies, and its type. */
static bool find_member(Dwarf_Die *structure, const char *name, size_t len, uint64_t *offset,
			Dwarf_Die *type)
{
	Dwarf_Attribute attr;
	Dwarf_Die member;
	Dwarf_Word at = 0;

	if (dwarf_child(structure, &member) != 0)
		return false;
	do {
		const char *is = dwarf_diename(&member);

		if (dwarf_tag(&member) != DW_TAG_member || !is || strncmp(is, name, len) != 0 ||
		    is[len])
			continue;
		if (dwarf_attr(&member, DW_AT_data_member_location, &attr)) {
			if (dwarf_formudata(&attr, &at) != 0)
				return false;
		} else if (dwarf_attr(&member, DW_AT_data_bit_offset, &attr)) {
			if (dwarf_formudata(&attr, &at) != 0)
				return false;
			at /= 8;
		}
		*offset += at;
		return dwarf_attr_integrate(&member, DW_AT_type, &attr) &&
		       dwarf_formref_die(&attr, type);
	} while (dwarf_siblingof(&member, &member) == 0);
	return false;
}

/* "gilstate.autoTSSkey._key" */
static bool find_path(Dwarf_Die *type, const char *path, uint64_t *offset)
{
	Dwarf_Die structure, next = *type;

	*offset = 0;
	for (;;) {
		size_t len = strcspn(path, ".");

		if (!strip_type(&next, &structure) ||
		    !find_member(&structure, path, len, offset, &next))
			return false;
		if (!path[len])
			return true;
		path += len + 1;
	}
}

/* At hand: .debug_info is in the file, or in its debug file, as it is. */
static bool at_hand(struct elf_file *elf)
{
	const struct elf_file *debug;
	uint64_t addr, size;
	size_t len;

	debug = elf_section(elf, ".debug_line", &addr, &size) ? elf : elf_debug_file(elf);
	return debug && elf_section_bytes(debug, ".debug_info", &len) && len <= INFO_BYTES_MAX;
}

size_t elf_members(struct elf_file *elf, uint64_t vaddr, struct elf_member *members, size_t count)
{
	Dwarf_Die unit, type;
	uint64_t offset;
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		members[i].known = false;
	if (!at_hand(elf) || !elf_unit_at(elf, vaddr, &offset) ||
	    !dwarf_offdie(elf_dwarf(elf), offset, &unit) || dwarf_child(&unit, &type) != 0)
		return 0;
	do {
		int tag = dwarf_tag(&type);
		const char *name;

		if (tag != DW_TAG_typedef && tag != DW_TAG_structure_type)
			continue;
		name = dwarf_diename(&type);
		for (size_t i = 0; name && i < count; i++) {
			struct elf_member *member = &members[i];

			if (!member->known && strcmp(member->type, name) == 0 &&
			    find_path(&type, member->path, &member->offset)) {
				member->known = true;
				found++;
			}
		}
	} while (found < count && dwarf_siblingof(&type, &type) == 0);
	return found;
}
