/*
 * Symbols of one ELF file, by name and by address.
 *
 * By name a table is walked from its start, .dynsym before .symtab: no index, since a process is
 * asked for a dozen names once. By address there is an index, made at the first look-up: function
 * symbols of .symtab (where the file is stripped those of the debug file, or those that are packed
 * within the file) and .dynsym, sorted, one per address. Symbols may nest (a local within the range
 * of an outer one): each entry knows the entry that encloses its start, so a look-up takes the last
 * symbol at or below the address and steps outwards until one covers it.
 */
#include "symbol/elf.h"

#include "base/partition.h"
#include "base/vec.h"
#include "symbol/elf_file.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define NO_ENTRY UINT32_MAX
#define RANK_LABEL 4 /* any other name of the address is better */

struct symbol_table {
	Elf_Data *symbols;
	size_t count;
	const char *names;
	size_t names_len; /* names[names_len - 1] is NUL */
	int machine;
};

struct entry {
	uint64_t vaddr;
	uint32_t size;
	uint32_t name;	/* in the table's names */
	uint32_t outer; /* the entry that covers our start, or NO_ENTRY */
	uint8_t table, rank;
	bool guessed; /* the symbol has no size: ours is how far it may reach */
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

/* The file that holds the .symtab of a stripped one. */
static struct elf_file *symbol_file(struct elf_file *elf)
{
	struct elf_file *debug = elf_debug_file(elf);

	return debug ? debug : elf_mini_file(elf);
}

bool elf_symbol_by_name(struct elf_file *elf, const char *name, struct elf_symbol *symbol)
{
	struct symbol_table table;
	struct elf_file *debug;

	if (find_table(elf, SHT_DYNSYM, &table) && find_name(&table, name, symbol))
		return true;
	if (find_table(elf, SHT_SYMTAB, &table))
		return find_name(&table, name, symbol);
	debug = symbol_file(elf);
	return debug && find_table(debug, SHT_SYMTAB, &table) && find_name(&table, name, symbol);
}

bool elf_defines(const struct elf_file *elf, const char *name, bool local)
{
	struct symbol_table table;
	struct elf_symbol symbol;

	return (find_table(elf, SHT_DYNSYM, &table) && find_name(&table, name, &symbol)) ||
	       (local && find_table(elf, SHT_SYMTAB, &table) && find_name(&table, name, &symbol));
}

/* Of two aliases the plainer one: fewer leading underscores. */
static int compare_names(const char *a, const char *b)
{
	size_t a_bars = strspn(a, "_"), b_bars = strspn(b, "_");

	if (a_bars != b_bars)
		return a_bars < b_bars ? -1 : 1;
	return strcmp(a, b);
}

static const char *entry_name(const struct elf_index *index, const struct entry *entry)
{
	return index->tables[entry->table].names + entry->name;
}

static int compare_entries(const void *a, const void *b, void *ctx)
{
	const struct entry *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return compare_names(entry_name(ctx, x), entry_name(ctx, y));
}

/* Where the segment that holds the address ends in memory; behind the address where none does. */
static uint64_t segment_end(const struct elf_file *elf, uint64_t vaddr)
{
	for (size_t i = 0; i < elf->load_count; i++)
		if (vaddr >= elf->loads[i].vaddr &&
		    vaddr - elf->loads[i].vaddr < elf->loads[i].mem_size)
			return elf->loads[i].vaddr + elf->loads[i].mem_size;
	return vaddr + 1;
}

/* How far a symbol without a size may reach: to the end of its section. */
static uint64_t symbol_reach(const struct elf_file *elf, const struct elf_file *of,
			     const GElf_Sym *sym)
{
	Elf_Scn *scn = sym->st_shndx < SHN_LORESERVE ? elf_getscn(of->elf, sym->st_shndx) : NULL;
	GElf_Shdr sh;

	if (scn && gelf_getshdr(scn, &sh) && sym->st_value >= sh.sh_addr &&
	    sym->st_value - sh.sh_addr < sh.sh_size)
		return sh.sh_size - (sym->st_value - sh.sh_addr);
	return segment_end(elf, sym->st_value) - sym->st_value;
}

/* Assembly may call a function nothing but a label: the dynamic linker's _start is one. Labels that
 * begin with $ tell code from data (arm64, riscv64). */
static bool is_label(const struct elf_file *of, const GElf_Sym *sym, const char *name)
{
	Elf_Scn *scn = sym->st_shndx < SHN_LORESERVE ? elf_getscn(of->elf, sym->st_shndx) : NULL;
	GElf_Shdr sh;

	return GELF_ST_TYPE(sym->st_info) == STT_NOTYPE && name[0] != '$' && scn &&
	       gelf_getshdr(scn, &sh) && sh.sh_flags & SHF_EXECINSTR &&
	       sym->st_value >= sh.sh_addr && sym->st_value - sh.sh_addr < sh.sh_size;
}

static bool is_function(const struct elf_file *of, const GElf_Sym *sym, const char *name)
{
	int type = GELF_ST_TYPE(sym->st_info);

	return type == STT_FUNC || type == STT_GNU_IFUNC || is_label(of, sym, name);
}

/* `of` is the file with the symbols: `elf` or its debug file. */
static int add_functions(struct elf_index *index, const struct elf_file *elf,
			 const struct elf_file *of, int which, uint32_t type)
{
	static const uint8_t ranks[] = {[STB_LOCAL] = 3, [STB_GLOBAL] = 1, [STB_WEAK] = 2};
	struct symbol_table *table = &index->tables[which];

	if (!find_table(of, type, table))
		return 0;
	for (size_t i = 1; i < table->count; i++) {
		unsigned int binding;
		struct entry *entry;
		uint64_t size;
		const char *name;
		GElf_Sym sym;

		name = table_get(table, i, &sym);
		if (!name || !is_function(of, &sym, name))
			continue;
		entry = vec_push(&index->entries);
		if (!entry)
			return -1;
		binding = GELF_ST_BIND(sym.st_info);
		size = sym.st_size ? sym.st_size : symbol_reach(elf, of, &sym);
		*entry = (struct entry){
			.vaddr = sym.st_value,
			.size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX,
			.name = sym.st_name,
			.table = (uint8_t)which,
			.rank = is_label(of, &sym, name)  ? RANK_LABEL
				: binding < sizeof(ranks) ? ranks[binding]
							  : 1,
			.guessed = !sym.st_size,
		};
	}
	return 0;
}

static uint64_t entry_end(const struct entry *entry)
{
	return entry->size <= UINT64_MAX - entry->vaddr ? entry->vaddr + entry->size : UINT64_MAX;
}

/* One entry per address: the best name, the largest size that any of its names has. */
static void drop_aliases(struct elf_index *index)
{
	struct entry *entries = index->entries.items;
	size_t kept = 0;

	for (size_t i = 0; i < index->entries.len; i++) {
		if (kept && entries[kept - 1].vaddr == entries[i].vaddr) {
			if (entries[kept - 1].guessed) {
				entries[kept - 1].size = entries[i].size;
				entries[kept - 1].guessed = entries[i].guessed;
			}
			continue;
		}
		entries[kept++] = entries[i];
	}
	index->entries.len = kept;
}

/* Behind a function without a size they are places in it: up to the next function all is its own.
 */
static void drop_labels(struct elf_index *index)
{
	struct entry *entries = index->entries.items;
	uint64_t reach = 0;
	size_t kept = 0;

	for (size_t i = 0; i < index->entries.len; i++) {
		const struct entry entry = entries[i];

		if (entry.rank == RANK_LABEL && entry.vaddr < reach)
			continue;
		if (entry.rank != RANK_LABEL)
			reach = entry.guessed ? entry_end(&entry) : 0;
		entries[kept++] = entry;
	}
	index->entries.len = kept;
}

/* Sizes for those without one, and who lies in whom. A label without a size in the midst of a
 * function that has one is a place in that function, no function of its own. */
static void nest_entries(struct elf_index *index)
{
	struct entry *entries = index->entries.items;
	uint32_t outer = NO_ENTRY;
	size_t kept = 0;

	for (size_t i = 0; i < index->entries.len; i++) {
		struct entry entry = entries[i];

		while (outer != NO_ENTRY && entry_end(&entries[outer]) <= entry.vaddr)
			outer = entries[outer].outer;
		if (entry.guessed) {
			if (outer != NO_ENTRY)
				continue;
			if (i + 1 < index->entries.len &&
			    entries[i + 1].vaddr - entry.vaddr < entry.size)
				entry.size = (uint32_t)(entries[i + 1].vaddr - entry.vaddr);
		}
		entry.outer = outer;
		outer = (uint32_t)kept;
		entries[kept++] = entry;
	}
	index->entries.len = kept;
}

/* NULL when memory runs out. */
static struct elf_index *get_index(struct elf_file *elf)
{
	struct elf_index *index = elf->index;
	struct elf_file *debug = NULL;
	int ret;

	if (index)
		return index;
	index = calloc(1, sizeof(*index));
	if (!index)
		return NULL;
	ret = add_functions(index, elf, elf, TABLE_DYNSYM, SHT_DYNSYM);
	if (!ret)
		ret = add_functions(index, elf, elf, TABLE_SYMTAB, SHT_SYMTAB);
	if (!index->tables[TABLE_SYMTAB].symbols)
		debug = symbol_file(elf);
	if (!ret && debug)
		ret = add_functions(index, elf, debug, TABLE_DEBUG, SHT_SYMTAB);
	if (ret) {
		elf_index_free(index);
		return NULL;
	}
	if (index->entries.len)
		qsort_r(index->entries.items, index->entries.len, sizeof(struct entry),
			compare_entries, index);
	drop_aliases(index);
	drop_labels(index);
	nest_entries(index);
	return elf->index = index;
}

const char *elf_dynamic_name(struct elf_file *elf, uint32_t symbol)
{
	const struct elf_index *index = get_index(elf);
	const struct symbol_table *table = index ? &index->tables[TABLE_DYNSYM] : NULL;
	GElf_Sym sym;

	if (!table || symbol >= table->count || !gelf_getsym(table->symbols, (int)symbol, &sym) ||
	    sym.st_name >= table->names_len || !table->names[sym.st_name])
		return NULL;
	return table->names + sym.st_name;
}

static struct elf_symbol symbol_of(const struct elf_index *index, const struct entry *entry)
{
	return (struct elf_symbol){
		.name = entry_name(index, entry), .vaddr = entry->vaddr, .size = entry->size};
}

/* The unwinder's tables know better where a symbol without a size ends than its neighbours do. */
static bool confirm_guess(struct elf_file *elf, uint64_t vaddr, struct elf_symbol *symbol)
{
	uint64_t start, size;

	if (elf_function_range(elf, symbol->vaddr, &start, &size) && start == symbol->vaddr) {
		symbol->size = size;
		return vaddr - start < size;
	}
	return !elf_function_range(elf, vaddr, &start, &size) || start <= symbol->vaddr;
}

bool elf_index_find(struct elf_file *elf, uint64_t vaddr, struct elf_symbol *symbol)
{
	const struct elf_index *index = get_index(elf);
	size_t before = index ? partition_point(index->entries.items, index->entries.len, entry,
						entry->vaddr <= vaddr)
			      : 0;
	uint32_t at = before ? (uint32_t)(before - 1) : NO_ENTRY;

	while (at != NO_ENTRY && vaddr >= entry_end(&index->entries.items[at]))
		at = index->entries.items[at].outer;
	if (at == NO_ENTRY)
		return false;
	*symbol = symbol_of(index, &index->entries.items[at]);
	return !index->entries.items[at].guessed || confirm_guess(elf, vaddr, symbol);
}

bool elf_symbol_at(struct elf_file *elf, uint64_t vaddr, struct elf_symbol *symbol)
{
	return elf_index_find(elf, vaddr, symbol) || elf_plt_find(elf, vaddr, symbol);
}

int elf_each_function(struct elf_file *elf, int (*each)(const struct elf_symbol *symbol, void *ctx),
		      void *ctx)
{
	const struct elf_index *index = get_index(elf);
	int ret = index ? 0 : ERR_NOMEM;

	for (size_t i = 0; !ret && i < index->entries.len; i++) {
		struct elf_symbol symbol = symbol_of(index, &index->entries.items[i]);

		ret = each(&symbol, ctx);
	}
	return ret;
}

void elf_index_free(struct elf_index *index)
{
	if (!index)
		return;
	vec_fini(&index->entries);
	free(index);
}
