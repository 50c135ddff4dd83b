#ifndef PYPERF_SAVED_H
#define PYPERF_SAVED_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The names of native code that a recording carries (section SYMBOL, lib/data/FORMAT.md): of each
 * file the functions that were hit, so that a report needs neither the file nor the machine nor the
 * container that it was in.
 */
struct elf_file;
struct elf_inlined;
struct saved_inlines;

struct saved_function {
	uint64_t vaddr, size;
	const char *name; /* "": the file has no symbol for it */
	bool eval;	  /* part of CPython's interpreter loop */
};

/* Building: a section is begun, then gets its files. Functions in any order, each once; `inlines`
 * may be NULL. */
struct saved_file {
	const char *path; /* as mapped */
	const uint8_t *build_id;
	uint32_t build_id_len;	    /* 0: it has none */
	const struct elf_file *elf; /* NULL: addresses are absolute */
};

/* The kernel's functions are those of one file. A module's has the module's name behind its own, as
 * /proc/kallsyms has it: "ext4_readdir\t[ext4]". */
#define SAVED_KERNEL "[kernel.kallsyms]"
void saved_begin(struct strbuf *section);
void saved_add(struct strbuf *section, const struct saved_file *file,
	       const struct saved_function *functions, uint32_t count,
	       const struct saved_inlines *inlines);

/* Reading. */
struct saved;
struct saved_object;

/* Keeps what it read of a section that is broken, with ERR_CORRUPT. */
int saved_decode(struct saved **saved, struct bytes section, struct err *err);
void saved_free(struct saved *saved);

/* NULL where the recording has none. Valid until saved_free(). */
const struct saved_object *saved_find(const struct saved *saved, const char *path,
				      const uint8_t *build_id, uint32_t build_id_len);
bool saved_vaddr(const struct saved_object *object, uint64_t offset, uint64_t *vaddr);
/* The function that covers the address; its name is valid until saved_free(). */
bool saved_at(const struct saved_object *object, uint64_t vaddr, struct saved_function *function);
/* As elf_inlined(), of addresses that were hit; names are valid until saved_free(). */
size_t saved_inlined(const struct saved_object *object, uint64_t vaddr, struct elf_inlined *calls,
		     size_t max);

#endif
