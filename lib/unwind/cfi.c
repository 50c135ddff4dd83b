/*
 * Call-frame tables by libdw.
 *
 * libdw finds the description of a function by .eh_frame_hdr's sorted table and runs its program up
 * to the address: a third of a microsecond and more. A profile has few distinct addresses beside
 * its samples, since callers return to the same places, so each is asked for once and its rule
 * remembered. Nothing is compiled ahead: a start costs nothing, however large the file.
 */
#include "unwind/cfi.h"

#include "arch/arch.h"
#include "base/map.h"
#include "symbol/elf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

/* Tables without a sorted index are read from the front to the end when first asked. */
#define UNSORTED_BYTES_MAX (256u << 20)
/* A bare .eh_frame: where it is made to lie, and how long it may be. */
#define BARE_VADDR 0x10000000u
#define BARE_BYTES_MAX (1u << 20)

struct cfi {
	const struct arch *arch;
	struct elf_file *elf;
	Dwarf_CFI *eh_frame, *debug_frame;
	Dwarf *dwarf;
	bool debug_tried;
	struct map known; /* vaddr -> id of the rule */
	uint64_t first;	  /* bare: vaddr of its function */
	struct elf_file *own;
};

static bool is_bounded(struct elf_file *elf, const char *name)
{
	uint64_t vaddr, size;

	return !elf_section(elf, name, &vaddr, &size) || size <= UNSORTED_BYTES_MAX;
}

struct cfi *cfi_open(struct elf_file *elf)
{
	struct cfi *cfi = calloc(1, sizeof(*cfi));

	if (!cfi)
		return NULL;
	cfi->elf = elf;
	cfi->arch = arch_by_machine(elf_machine(elf));
	if (cfi->arch && is_bounded(elf, ".eh_frame"))
		cfi->eh_frame = dwarf_getcfi_elf(elf_libelf(elf, false));
	return cfi;
}

void cfi_close(struct cfi *cfi)
{
	if (!cfi)
		return;
	if (cfi->eh_frame)
		dwarf_cfi_end(cfi->eh_frame);
	dwarf_end(cfi->dwarf); /* and debug_frame, which is its */
	elf_close(cfi->own);
	map_fini(&cfi->known);
	free(cfi);
}

static void open_debug_frame(struct cfi *cfi)
{
	cfi->debug_tried = true;
	for (int separate = 0; separate < 2 && !cfi->debug_frame && cfi->arch; separate++) {
		struct Elf *libelf = elf_libelf(cfi->elf, separate);

		if (!libelf || !is_bounded(cfi->elf, ".debug_frame"))
			continue;
		dwarf_end(cfi->dwarf);
		cfi->dwarf = dwarf_begin_elf(libelf, DWARF_C_READ, NULL);
		if (cfi->dwarf)
			cfi->debug_frame = dwarf_getcfi(cfi->dwarf);
	}
}

static uint32_t look_up(struct cfi *cfi, struct rules *rules, uint64_t vaddr)
{
	Dwarf_Frame *frame = NULL;
	uint32_t id;

	if (!cfi->eh_frame || dwarf_cfi_addrframe(cfi->eh_frame, vaddr, &frame) != 0) {
		if (!cfi->debug_tried)
			open_debug_frame(cfi);
		if (!cfi->debug_frame || dwarf_cfi_addrframe(cfi->debug_frame, vaddr, &frame) != 0)
			return RULE_NONE;
	}
	id = rules_add_row(rules, cfi->arch, frame);
	free(frame);
	return id;
}

uint32_t cfi_rule(struct cfi *cfi, struct rules *rules, uint64_t vaddr)
{
	uint64_t *place;
	bool added;

	place = map_put(&cfi->known, vaddr, &added);
	if (!place)
		return RULE_NOMEM;
	if (added)
		*place = look_up(cfi, rules, vaddr);
	return (uint32_t)*place;
}

size_t cfi_addresses(const struct cfi *cfi)
{
	return cfi->known.count;
}

size_t cfi_bytes(const struct cfi *cfi)
{
	return sizeof(*cfi) + map_bytes(&cfi->known);
}

/* The least ELF file that holds a section .eh_frame, which libdw wants to have around it. */
static struct elf_file *wrap(const struct arch *arch, const void *eh_frame, size_t len)
{
	static const char names[] = "\0.eh_frame\0.shstrtab";
	struct {
		Elf64_Ehdr ehdr;
		Elf64_Shdr sections[3];
		char names[sizeof(names)];
	} head = {
		.ehdr = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT},
			 .e_type = ET_DYN,
			 .e_machine = arch->elf_machine,
			 .e_version = EV_CURRENT,
			 .e_shoff = offsetof(__typeof__(head), sections),
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = 3,
			 .e_shstrndx = 2},
		.sections = {[1] = {.sh_name = 1,
				    .sh_type = SHT_PROGBITS,
				    .sh_flags = SHF_ALLOC,
				    .sh_addr = BARE_VADDR,
				    .sh_offset = sizeof(head),
				    .sh_size = len,
				    .sh_addralign = 1},
			     [2] = {.sh_name = sizeof("\0.eh_frame"),
				    .sh_type = SHT_STRTAB,
				    .sh_offset = offsetof(__typeof__(head), names),
				    .sh_size = sizeof(names),
				    .sh_addralign = 1}},
	};
	struct elf_file *elf = NULL;
	char *bytes = malloc(sizeof(head) + len);

	if (bytes) {
		memcpy(head.names, names, sizeof(names));
		memcpy(bytes, &head, sizeof(head));
		memcpy(bytes + sizeof(head), eh_frame, len);
		elf_open_memory(&elf, bytes, sizeof(head) + len, NULL);
	}
	free(bytes);
	return elf;
}

/* Where the first function begins that the tables describe. */
static bool find_first(const void *eh_frame, size_t len, uint64_t *vaddr)
{
	const unsigned char ident[EI_NIDENT] = {ELFMAG0,    ELFMAG1,	 ELFMAG2,   ELFMAG3,
						ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
	Elf_Data data = {.d_buf = (void *)(uintptr_t)eh_frame,
			 .d_type = ELF_T_BYTE,
			 .d_size = len,
			 .d_version = EV_CURRENT};
	uint8_t encoding = DW_EH_PE_absptr;
	Dwarf_Off offset = 0;
	Dwarf_CFI_Entry entry;
	uint64_t place;
	int32_t distance;

	while (dwarf_next_cfi(ident, &data, true, offset, &offset, &entry) == 0) {
		if (dwarf_cfi_cie_p(&entry)) {
			if (strcmp(entry.cie.augmentation, "zR") == 0 &&
			    entry.cie.augmentation_data_size)
				encoding = *entry.cie.augmentation_data;
			continue;
		}
		place = (uint64_t)(entry.fde.start - (const uint8_t *)eh_frame);
		if (encoding == DW_EH_PE_absptr && len - place >= sizeof(*vaddr)) {
			memcpy(vaddr, entry.fde.start, sizeof(*vaddr));
			return true;
		}
		if (encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata4) &&
		    len - place >= sizeof(distance)) {
			memcpy(&distance, entry.fde.start, sizeof(distance));
			*vaddr = BARE_VADDR + place + (uint64_t)(int64_t)distance;
			return true;
		}
		return false;
	}
	return false;
}

struct cfi *cfi_open_bare(const struct arch *arch, const void *eh_frame, size_t len)
{
	struct elf_file *elf;
	struct cfi *cfi;
	uint64_t first;

	if (len > BARE_BYTES_MAX || !find_first(eh_frame, len, &first))
		return NULL;
	elf = wrap(arch, eh_frame, len);
	cfi = elf ? cfi_open(elf) : NULL;
	if (!cfi) {
		elf_close(elf);
		return NULL;
	}
	cfi->own = elf;
	cfi->first = first;
	return cfi;
}

uint32_t cfi_rule_at(struct cfi *cfi, struct rules *rules, uint64_t offset)
{
	return cfi_rule(cfi, rules, cfi->first + offset);
}
