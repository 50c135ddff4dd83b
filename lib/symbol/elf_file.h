#ifndef PYPERF_ELF_FILE_H
#define PYPERF_ELF_FILE_H

#include "symbol/elf.h"

/* What the files behind symbol/elf.h share; nobody else includes this. */

struct Elf;
struct elf_index; /* function symbols by address: elf_symbols.c */
struct elf_lines; /* DWARF: elf_lines.c */

struct elf_load {
	uint64_t vaddr, offset, file_size, mem_size;
	bool executable;
};

struct elf_file {
	const unsigned char *bytes; /* the whole file, mapped or copied */
	size_t len;
	bool mapped;
	struct Elf *elf;
	uint16_t machine, type;
	struct elf_load *loads;
	size_t load_count;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t build_id_len;
	struct elf_index *index;
	struct elf_lines *lines;
	/* The separate debug file with the same build-id, opened when first needed. */
	struct elf_file *debug;
	bool debug_tried;
};

struct elf_file *elf_debug_file(struct elf_file *elf);
void elf_index_free(struct elf_index *index);
void elf_lines_free(struct elf_lines *lines);

#endif
