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
#include <gelf.h>
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
	struct map known;     /* vaddr -> id of the rule */
	uint64_t first;	      /* bare: vaddr of its function */
	struct elf_file *own; /* made around the tables: holds .eh_frame, or .debug_frame alone */
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

/* The least ELF file around a section of tables, which libdw wants to have. */
static struct elf_file *wrap(const struct arch *arch, bool debug_frame, const void *bytes,
			     size_t len)
{
	static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";
	const uint32_t eh_frame_at = 1, debug_frame_at = sizeof("\0.eh_frame"),
		       names_at = sizeof("\0.eh_frame\0.debug_frame");
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
		.sections = {[1] = {.sh_name = debug_frame ? debug_frame_at : eh_frame_at,
				    .sh_type = SHT_PROGBITS,
				    .sh_flags = debug_frame ? 0 : SHF_ALLOC,
				    .sh_addr = debug_frame ? 0 : BARE_VADDR,
				    .sh_offset = sizeof(head),
				    .sh_size = len,
				    .sh_addralign = 1},
			     [2] = {.sh_name = names_at,
				    .sh_type = SHT_STRTAB,
				    .sh_offset = offsetof(__typeof__(head), names),
				    .sh_size = sizeof(names),
				    .sh_addralign = 1}},
	};
	struct elf_file *elf = NULL;
	char *file = malloc(sizeof(head) + len);

	if (file) {
		memcpy(head.names, names, sizeof(names));
		memcpy(file, &head, sizeof(head));
		memcpy(file + sizeof(head), bytes, len);
		elf_open_memory(&elf, file, sizeof(head) + len, NULL);
	}
	free(file);
	return elf;
}

/* The section, unpacked; NULL where there is none or it is too large. */
static const Elf_Data *debug_frame_of(struct Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		GElf_Chdr packed;
		const char *name;
		bool bounded;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS ||
		    !(name = elf_strptr(elf, names, header.sh_name)) ||
		    strcmp(name, ".debug_frame") != 0)
			continue;
		if (!(header.sh_flags & SHF_COMPRESSED))
			bounded = header.sh_size <= UNSORTED_BYTES_MAX;
		else
			bounded = gelf_getchdr(section, &packed) &&
				  packed.ch_size <= UNSORTED_BYTES_MAX &&
				  elf_compress(section, 0, 0) >= 0;
		return bounded ? elf_rawdata(section, NULL) : NULL;
	}
	return NULL;
}

/* libdw would unpack all sections of DWARF first, which takes as long as thousands of stacks: it
 * gets a file that has this one alone. */
static void open_debug_frame(struct cfi *cfi)
{
	cfi->debug_tried = true;
	for (int separate = 0; separate < 2 && !cfi->debug_frame && cfi->arch && !cfi->own;
	     separate++) {
		struct Elf *libelf = elf_libelf(cfi->elf, separate);
		const Elf_Data *data = libelf ? debug_frame_of(libelf) : NULL;

		if (!data || !data->d_buf)
			continue;
		cfi->own = wrap(cfi->arch, true, data->d_buf, data->d_size);
		cfi->dwarf = cfi->own ? dwarf_begin_elf(elf_libelf(cfi->own, false), DWARF_C_READ,
							NULL)
				      : NULL;
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
	elf = wrap(arch, false, eh_frame, len);
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
