#ifndef PYPERF_ELF_FILE_H
#define PYPERF_ELF_FILE_H

#include "symbol/elf.h"

/* What the files behind symbol/elf.h share; nobody else includes this. */

struct Elf;
struct elf_index;   /* function symbols by address: elf_symbols.c */
struct elf_plt;	    /* entries of the linkage table: elf_plt.c */
struct elf_lines;   /* DWARF: elf_lines.c */
struct elf_inlines; /* elf_inline.c */
struct Dwarf;

/* .eh_frame_hdr: elf_frame.c */
struct elf_frames {
	bool tried;
	uint32_t count;
	uint64_t vaddr;
};

struct elf_load {
	uint64_t vaddr, offset, file_size, mem_size;
	bool executable;
};

struct elf_file {
	const unsigned char *bytes; /* the whole file, mapped or copied */
	size_t len;
	bool mapped;
	bool swap;	    /* the other byte order than ours */
	bool compressed;    /* has sections that libdw unpacks */
	uint64_t read_once; /* bytes, of elf_was_read() */
	struct Elf *elf;
	uint16_t machine, type;
	struct elf_load *loads;
	size_t load_count;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t build_id_len;
	struct elf_index *index;
	struct elf_plt *plt;
	struct elf_frames frames;
	struct elf_lines *lines;
	struct elf_inlines *inlines;
	char *path; /* as it was opened; NULL: from memory */
	/* elf_debug.c: opened when first needed. */
	struct elf_file *debug, *mini;
	bool debug_tried, mini_tried;
};

/* The debug file that was split from this one, where this machine has it, or NULL. */
struct elf_file *elf_debug_file(struct elf_file *elf);
/* What the kernel maps with a page that is read (fault_around_bytes). */
#define ELF_PAGES_READ (64u << 10)
/* So many bytes of it were read that hardly anybody will read again: when they are many, their
 * pages are given back. The file has them, should they be needed. */
void elf_was_read(struct elf_file *elf, uint64_t bytes);
/* The symbols that are packed within the file, or NULL. */
struct elf_file *elf_mini_file(struct elf_file *elf);
/* A section's bytes in the file; NULL where there are none. */
const void *elf_section_bytes(const struct elf_file *elf, const char *name, size_t *len);
/* As elf_section(), where the file has the section's bytes. */
bool elf_section_in_file(const struct elf_file *elf, const char *name, uint64_t *vaddr,
			 uint64_t *size);
/* elf_symbol_at() without what has no symbol of its own. */
bool elf_index_find(struct elf_file *elf, uint64_t vaddr, struct elf_symbol *symbol);
/* Name of an entry of .dynsym, defined here or not; NULL where it has none. */
const char *elf_dynamic_name(struct elf_file *elf, uint32_t symbol);
bool elf_plt_find(struct elf_file *elf, uint64_t vaddr, struct elf_symbol *symbol);
void elf_plt_free(struct elf_plt *plt);
void elf_index_free(struct elf_index *index);
void elf_lines_free(struct elf_lines *lines);
void elf_inlines_free(struct elf_inlines *inlines);
/* elf_lines.c: the DWARF of the file or of its debug file, NULL where there is none; which of both
 * has it; and the offset of the unit that covers an address. */
struct Dwarf *elf_dwarf(struct elf_file *elf);
struct elf_file *elf_dwarf_file(struct elf_file *elf);
bool elf_unit_at(struct elf_file *elf, uint64_t vaddr, uint64_t *unit);

#endif
