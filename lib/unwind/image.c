/*
 * A file from its memory image. The headers lie at the start of the first segment; every segment
 * is copied back to its place in the file. What is not loaded, the section table above all, is
 * gone: tables and notes are found by the program headers.
 */
#include "symbol/elf.h"
#include "unwind/files.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_BYTES_MAX (512u << 20)
#define HEADERS_MAX 64
#define STEP 4096u

/* Data may have changed since, and pages of it may be gone: what cannot be read stays zero. */
static void copy(const struct unwind_source *source, uint64_t addr, char *to, uint64_t len)
{
	if (source->read(source->ctx, addr, to, len) == 0)
		return;
	for (uint64_t at = 0; at < len; at += STEP) {
		uint64_t n = len - at < STEP ? len - at : STEP;

		if (source->read(source->ctx, addr + at, to + at, n) < 0)
			memset(to + at, 0, n);
	}
}

static bool read_headers(const struct unwind_source *source, uint64_t base, Elf64_Ehdr *ehdr,
			 Elf64_Phdr phdrs[HEADERS_MAX])
{
	if (source->read(source->ctx, base, ehdr, sizeof(*ehdr)) < 0 ||
	    memcmp(ehdr->e_ident, ELFMAG, SELFMAG) != 0 || ehdr->e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr->e_phentsize != sizeof(phdrs[0]) || ehdr->e_phnum > HEADERS_MAX)
		return false;
	return source->read(source->ctx, base + ehdr->e_phoff, phdrs,
			    ehdr->e_phnum * sizeof(phdrs[0])) == 0;
}

/* How long the file is at least, by its segments; the address of vaddr 0. */
static bool measure(const Elf64_Ehdr *ehdr, const Elf64_Phdr *phdrs, uint64_t base, uint64_t *len,
		    uint64_t *bias)
{
	bool found = false;

	*len = *bias = 0;
	for (int i = 0; i < ehdr->e_phnum; i++) {
		const Elf64_Phdr *ph = &phdrs[i];

		if (ph->p_type != PT_LOAD)
			continue;
		if (ph->p_offset > IMAGE_BYTES_MAX || ph->p_filesz > IMAGE_BYTES_MAX - ph->p_offset)
			return false;
		if (ph->p_offset == 0) {
			*bias = base - ph->p_vaddr;
			found = true;
		}
		*len = *len > ph->p_offset + ph->p_filesz ? *len : ph->p_offset + ph->p_filesz;
	}
	return found && *len >= sizeof(*ehdr);
}

struct elf_file *image_of_memory(const struct unwind_source *source, uint64_t map_start,
				 uint64_t file_offset)
{
	uint64_t base = map_start - file_offset, len, bias;
	Elf64_Phdr phdrs[HEADERS_MAX];
	struct elf_file *elf = NULL;
	Elf64_Ehdr ehdr;
	char *bytes;

	if (!source->read || !read_headers(source, base, &ehdr, phdrs) ||
	    !measure(&ehdr, phdrs, base, &len, &bias))
		return NULL;
	bytes = calloc(1, len);
	if (!bytes)
		return NULL;
	for (int i = 0; i < ehdr.e_phnum; i++)
		if (phdrs[i].p_type == PT_LOAD)
			copy(source, bias + phdrs[i].p_vaddr, bytes + phdrs[i].p_offset,
			     phdrs[i].p_filesz);
	/* A table that is not within the image would make the whole of it be refused. */
	if (ehdr.e_shoff > len || (uint64_t)ehdr.e_shnum * ehdr.e_shentsize > len - ehdr.e_shoff) {
		ehdr.e_shoff = 0;
		ehdr.e_shnum = ehdr.e_shstrndx = 0;
	}
	memcpy(bytes, &ehdr, sizeof(ehdr));
	elf_open_memory(&elf, bytes, len, NULL);
	free(bytes);
	return elf;
}
