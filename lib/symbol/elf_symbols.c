/*
 * Symbols of one ELF file, by name and by address.
 *
 * By name a table is walked from its start, .dynsym before .symtab: no index, since a process is
 * asked for a dozen names once. By address there is an index, made at the first look-up: function
 * symbols of .symtab (the separate debug file's where the file is stripped) and .dynsym, sorted,
 * one per address. Symbols may nest (a local within the range of an outer one): each entry knows
 * the entry that encloses its start, so a look-up takes the last symbol at or below the address
 * and steps outwards until one covers it.
 */
#include "symbol/elf.h"

#include "base/vec.h"
#include "symbol/elf_file.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define NO_ENTRY UINT32_MAX

struct symbol_table {
	Elf_Data *symbols;
	size_t count;
	const char *names;
	size_t names_len; /* names[names_len - 1] is NUL */
	int machine;
};

struct entry {
	uint64_t vaddr;
	uint32_t size;	/* 0 only while the index is made */
	uint32_t name;	/* in the table's names */
	uint32_t outer; /* the entry that covers our start, or NO_ENTRY */
	uint8_t table, rank;
};

enum { TABLE_DYNSYM, TABLE_SYMTAB, TABLE_DEBUG, TABLE_COUNT };

struct elf_index {
	struct symbol_table tables[TABLE_COUNT];
	struct {
		VEC_OF(struct entry)
	} entries;
};

/* False where the file has no such table or one that is unsound. */
static bool find_table(const struct elf_file *elf, uint32_t type, struct symbol_table *table)
{
	Elf_Scn *scn = NULL;

	*table = (struct symbol_table){.machine = elf->machine};
	while ((scn = elf_nextscn(elf->elf, scn))) {
		Elf_Scn *names_scn;
		Elf_Data *data, *names;
		GElf_Shdr sh;
		size_t len;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != type)
			continue;
		names_scn = elf_getscn(elf->elf, sh.sh_link);
		data = elf_getdata(scn, NULL);
		names = names_scn ? elf_getdata(names_scn, NULL) : NULL;
		if (!data || !data->d_buf || data->d_type != ELF_T_SYM || !names || !names->d_buf)
			return false;
		/* What lies behind the last NUL has no end. */
		len = names->d_size < UINT32_MAX ? names->d_size : UINT32_MAX;
		while (len && ((const char *)names->d_buf)[len - 1])
			len--;
		table->symbols = data;
		table->count = data->d_size / gelf_fsize(elf->elf, ELF_T_SYM, 1, EV_CURRENT);
		table->count = table->count < INT32_MAX ? table->count : INT32_MAX;
		table->names = names->d_buf;
		table->names_len = len;
		return true;
	}
	return false;
}

/* The i-th symbol that is defined and has a name. */
static const char *table_get(const struct symbol_table *table, size_t i, GElf_Sym *sym)
{
	if (!gelf_getsym(table->symbols, (int)i, sym) || sym->st_shndx == SHN_UNDEF ||
	    sym->st_name >= table->names_len || !table->names[sym->st_name])
		return NULL;
	return table->names + sym->st_name;
}

static bool find_name(const struct symbol_table *table, const char *name, struct elf_symbol *symbol)
{
	bool found = false;

	for (size_t i = 1; i < table->count; i++) {
		GElf_Sym sym;
		const char *have = table_get(table, i, &sym);

		if (!have || strcmp(have, name) != 0)
			continue;
		if (GELF_ST_TYPE(sym.st_info) == STT_SECTION ||
		    GELF_ST_TYPE(sym.st_info) == STT_FILE)
			continue;
		*symbol = (struct elf_symbol){
			.name = have, .vaddr = sym.st_value, .size = sym.st_size};
		found = true;
		/* Several files of a program may each have a local symbol of this name. */
		if (GELF_ST_BIND(sym.st_info) != STB_LOCAL)
			return true;
	}
	return found;
}

bool elf_symbol_by_name(struct elf_file *elf, const char *name, struct elf_symbol *symbol)
{
	struct symbol_table table;
	struct elf_file *debug;

	if (find_table(elf, SHT_DYNSYM, &table) && find_name(&table, name, symbol))
		return true;
	if (find_table(elf, SHT_SYMTAB, &table))
		return find_name(&table, name, symbol);
	debug = elf_debug_file(elf);
	return debug && find_table(debug, SHT_SYMTAB, &table) && find_name(&table, name, symbol);
}

void elf_index_free(struct elf_index *index)
{
	if (!index)
		return;
	vec_fini(&index->entries);
	free(index);
}
