/*
 * Names for the entries of procedure linkage tables: "malloc@plt", as objdump and perf write them.
 *
 * No symbol stands for such an entry. Each is a jump through a slot of the GOT, and the dynamic
 * relocation of that slot names the function; so the jumps are decoded, which holds for every
 * layout that linkers make (.plt with its header, .plt.sec behind branch targets, .plt.got). What
 * is left of a section (the header, entries that only push a number) goes by the section's name.
 */
#include "symbol/elf.h"

#include "base/bytes.h"
#include "base/partition.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "symbol/elf_file.h"

#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plt_entry {
	uint64_t vaddr;
	uint32_t size, name; /* in names */
};

struct elf_plt {
	struct {
		VEC_OF(struct plt_entry)
	} entries; /* by vaddr */
	struct strbuf names;
};

struct slot {
	uint64_t vaddr;
	int64_t addend;
	uint32_t symbol; /* 0: the addend is the address of a function that picks the target */
};

struct slots {
	VEC_OF(struct slot)
};

/* Bytes of the entry's code up to the jump, with the slot that it goes through; 0: no entry. */
typedef size_t decode_fn(struct bytes code, uint64_t vaddr, uint64_t *slot);

/* [endbr64] [bnd] jmp *slot(%rip) */
static size_t decode_x86_64(struct bytes code, uint64_t vaddr, uint64_t *slot)
{
	static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const unsigned char *start = code.at;

	if (bytes_left(&code) >= sizeof(endbr64) && !memcmp(code.at, endbr64, sizeof(endbr64)))
		bytes_take(&code, sizeof(endbr64));
	if (bytes_left(&code) && *code.at == 0xf2)
		bytes_take(&code, 1);
	if (bytes_u8(&code) != 0xff || bytes_u8(&code) != 0x25)
		return 0;
	*slot = (uint64_t)(int64_t)(int32_t)bytes_u32(&code);
	*slot += vaddr + (uint64_t)(code.at - start);
	return code.bad ? 0 : (size_t)(code.at - start);
}

/* [bti c]; adrp x16, page; ldr x17, [x16, #offset] */
static size_t decode_aarch64(struct bytes code, uint64_t vaddr, uint64_t *slot)
{
	const unsigned char *start = code.at;
	uint32_t word = bytes_u32(&code), load;
	int64_t pages;

	if (word == 0xd503245f) {
		word = bytes_u32(&code);
		vaddr += 4;
	}
	load = bytes_u32(&code);
	if (code.bad || (word & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
		return 0;
	/* 21 bits, the lower two of them apart, with their sign */
	pages = (int64_t)((uint64_t)((word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3)) << 43) >> 43;
	*slot = (vaddr & ~(uint64_t)4095) + (uint64_t)pages * 4096 + (load >> 10 & 0xfff) * 8;
	return (size_t)(code.at - start);
}

static const struct machine {
	uint16_t machine;
	uint32_t jump_slot, glob_dat, irelative;
	unsigned int step, longest; /* bytes from one possible entry to the next; of one entry */
	decode_fn *decode;
} machines[] = {
	{EM_X86_64, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE, 8, 16,
	 decode_x86_64},
	{EM_AARCH64, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_IRELATIVE, 4, 24,
	 decode_aarch64},
};

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int read_slots(struct slots *slots, const struct elf_file *elf,
		      const struct machine *machine)
{
	size_t budget = elf->len; /* sections that overlap could make it more than the file */
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf->elf, scn))) {
		Elf_Data *data;
		GElf_Shdr sh;
		GElf_Rela rela;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_RELA || !(sh.sh_flags & SHF_ALLOC))
			continue;
		data = elf_getdata(scn, NULL);
		if (!data || data->d_size > budget)
			continue;
		budget -= data->d_size;
		for (int i = 0; i < INT32_MAX && gelf_getrela(data, i, &rela); i++) {
			uint32_t type = GELF_R_TYPE(rela.r_info);
			struct slot *slot;

			if (type != machine->jump_slot && type != machine->glob_dat &&
			    type != machine->irelative)
				continue;
			slot = vec_push(slots);
			if (!slot)
				return -1;
			*slot = (struct slot){.vaddr = rela.r_offset,
					      .addend = rela.r_addend,
					      .symbol = GELF_R_SYM(rela.r_info)};
		}
	}
	if (slots->len)
		qsort(slots->items, slots->len, sizeof(*slots->items), compare_slots);
	return 0;
}

static const struct slot *find_slot(const struct slots *slots, uint64_t vaddr)
{
	struct slot key = {.vaddr = vaddr};

	return slots->len ? bsearch(&key, slots->items, slots->len, sizeof(key), compare_slots)
			  : NULL;
}

static int add_entry(struct elf_plt *plt, uint64_t vaddr, uint64_t size, const char *name)
{
	struct plt_entry *entry;

	if (plt->names.len > UINT32_MAX / 2)
		return 0;
	entry = vec_push(&plt->entries);
	if (!entry)
		return -1;
	*entry = (struct plt_entry){
		.vaddr = vaddr,
		.size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX,
		.name = (uint32_t)plt->names.len,
	};
	strbuf_str(&plt->names, name);
	strbuf_char(&plt->names, '\0');
	return strbuf_failed(&plt->names) ? -1 : 0;
}

#define NAME_MAX_LEN 1024

/* The target of an indirect function is not known before it runs: its own name stands for it. */
static void slot_name(struct elf_file *elf, const struct slot *slot, char name[NAME_MAX_LEN])
{
	const char *target = slot->symbol ? elf_dynamic_name(elf, slot->symbol) : NULL;
	struct elf_symbol symbol;

	if (!slot->symbol && elf_index_find(elf, (uint64_t)slot->addend, &symbol) &&
	    symbol.vaddr == (uint64_t)slot->addend)
		target = symbol.name;
	if (target)
		snprintf(name, NAME_MAX_LEN, "%s@plt", target);
	else
		snprintf(name, NAME_MAX_LEN, "*ABS*+0x%" PRIx64 "@plt", (uint64_t)slot->addend);
}

static int add_section(struct elf_plt *plt, struct elf_file *elf, const struct slots *slots,
		       const struct machine *machine, const GElf_Shdr *sh, const char *section,
		       const Elf_Data *data)
{
	uint64_t at = 0, end = data->d_size < sh->sh_size ? data->d_size : sh->sh_size, rest = 0;

	while (machine && at < end) {
		struct bytes code = bytes_of((const char *)data->d_buf + at, end - at);
		uint64_t vaddr = sh->sh_addr + at, target;
		const struct slot *slot = NULL;
		char name[NAME_MAX_LEN];
		size_t len = machine->decode(code, vaddr, &target), size;

		if (len)
			slot = find_slot(slots, target);
		if (!slot) {
			at += machine->step;
			continue;
		}
		/* The bytes since the last entry. An entry's own tail is cut where the next
		 * begins. */
		if (rest < at && add_entry(plt, sh->sh_addr + rest, at - rest, section) < 0)
			return -1;
		size = machine->longest;
		for (uint64_t next = at + (len + 7) / 8 * 8; next < at + size && next < end;
		     next += machine->step)
			if (machine->decode(bytes_of((const char *)data->d_buf + next, end - next),
					    sh->sh_addr + next, &target) &&
			    find_slot(slots, target))
				size = next - at;
		size = size < end - at ? size : end - at;
		slot_name(elf, slot, name);
		if (add_entry(plt, vaddr, size, name) < 0)
			return -1;
		at = rest = at + size;
	}
	return rest < end ? add_entry(plt, sh->sh_addr + rest, end - rest, section) : 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct plt_entry *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int read_sections(struct elf_plt *plt, struct elf_file *elf, const struct slots *slots,
			 const struct machine *machine)
{
	size_t names, budget = elf->len;
	Elf_Scn *scn = NULL;

	if (elf_getshdrstrndx(elf->elf, &names) < 0)
		return 0;
	while ((scn = elf_nextscn(elf->elf, scn))) {
		const char *name;
		Elf_Data *data;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_PROGBITS ||
		    !(sh.sh_flags & SHF_EXECINSTR))
			continue;
		name = elf_strptr(elf->elf, names, sh.sh_name);
		if (!name || (strncmp(name, ".plt", 4) != 0 && strncmp(name, ".iplt", 5) != 0))
			continue;
		data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf || data->d_size > budget)
			continue;
		budget -= data->d_size;
		if (add_section(plt, elf, slots, machine, &sh, name, data) < 0)
			return -1;
	}
	if (plt->entries.len)
		qsort(plt->entries.items, plt->entries.len, sizeof(struct plt_entry),
		      compare_entries);
	return 0;
}

/* NULL when memory runs out. */
static struct elf_plt *get_plt(struct elf_file *elf)
{
	const struct machine *machine = NULL;
	struct slots slots = {0};
	struct elf_plt *plt = elf->plt;
	int ret = 0;

	if (plt)
		return plt;
	plt = calloc(1, sizeof(*plt));
	if (!plt)
		return NULL;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].machine == elf->machine && !elf->swap)
			machine = &machines[i];
	if (machine)
		ret = read_slots(&slots, elf, machine);
	if (!ret)
		ret = read_sections(plt, elf, &slots, machine);
	vec_fini(&slots);
	if (ret) {
		elf_plt_free(plt);
		return NULL;
	}
	return elf->plt = plt;
}

bool elf_plt_find(struct elf_file *elf, uint64_t vaddr, struct elf_symbol *symbol)
{
	const struct elf_plt *plt = get_plt(elf);
	size_t at = plt ? partition_point(plt->entries.items, plt->entries.len, before,
					  before->vaddr <= vaddr)
			: 0;
	const struct plt_entry *entry;

	entry = at ? &plt->entries.items[at - 1] : NULL;
	if (!entry || vaddr - entry->vaddr >= entry->size)
		return false;
	*symbol = (struct elf_symbol){.name = strbuf_text(&plt->names) + entry->name,
				      .vaddr = entry->vaddr,
				      .size = entry->size};
	return true;
}

void elf_plt_free(struct elf_plt *plt)
{
	if (!plt)
		return;
	vec_fini(&plt->entries);
	strbuf_fini(&plt->names);
	free(plt);
}
