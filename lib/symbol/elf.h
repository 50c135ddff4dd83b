#ifndef PYPERF_ELF_H
#define PYPERF_ELF_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One ELF file: build-id, symbols, bytes at addresses, source lines.
 *
 * "vaddr" is an address as the file's symbols and program headers give it (before relocation),
 * "offset" a place in the file; elf_vaddr() converts by the program headers, which is what turns
 * a sample's map offset into an address that symbols know. Hostile files are bounded and refused,
 * never followed.
 */
struct elf_file;

struct elf_symbol {
	const char *name; /* valid until elf_close() */
	uint64_t vaddr, size;
};

#define ELF_BUILD_ID_MAX 20

int elf_open(struct elf_file **elf, const char *path, struct err *err);
/* The same from memory (the vDSO, a test); bytes are copied. */
int elf_open_memory(struct elf_file **elf, const void *bytes, size_t len, struct err *err);
/* The code that the running kernel lends to every process. */
int elf_open_vdso(struct elf_file **elf, struct err *err);
void elf_close(struct elf_file *elf);

uint16_t elf_machine(const struct elf_file *elf);
bool elf_is_position_independent(const struct elf_file *elf); /* ET_DYN */
/* 0 bytes where the file has no build-id note. */
size_t elf_build_id(const struct elf_file *elf, uint8_t id[ELF_BUILD_ID_MAX]);

struct strbuf;
/* Appends it in hexadecimal. */
void elf_build_id_text(const struct elf_file *elf, struct strbuf *out);
/* Asks the servers of $DEBUGINFOD_URLS for the debug file where this machine has none; it is used
 * from then on. To be called before the file is asked for anything. */
bool elf_fetch_debug_file(struct elf_file *elf);

bool elf_vaddr(const struct elf_file *elf, uint64_t offset, uint64_t *vaddr);
/* Load address of the file in a process, from one mapping of it: address that vaddr 0 has. */
bool elf_bias(const struct elf_file *elf, uint64_t map_start, uint64_t map_pgoff, uint64_t *bias);
/* Bytes that the file holds for a vaddr range (zero-filled where the memory image is larger). */
int elf_read(const struct elf_file *elf, uint64_t vaddr, void *buf, size_t len);
/* The section's vaddr and size; false where there is none. */
bool elf_section(const struct elf_file *elf, const char *name, uint64_t *vaddr, uint64_t *size);

/* Is it defined in .dynsym, or where `local` in .symtab? Makes no tables and opens no other file.
 */
bool elf_defines(const struct elf_file *elf, const char *name, bool local);
/* .symtab and .dynsym, first by name, then by address. Sorted tables are made at first use. */
bool elf_symbol_by_name(struct elf_file *elf, const char *name, struct elf_symbol *symbol);
/* The symbol that covers the address: functions and, where these leave room, labels in code; the
 * largest binding at one address wins (global before weak before local); one without size reaches
 * to the next one in its section. Entries of the procedure linkage table are "malloc@plt", its
 * header ".plt". */
bool elf_symbol_at(struct elf_file *elf, uint64_t vaddr, struct elf_symbol *symbol);
/* The function that covers the address by the unwinder's tables: what is known where there is no
 * symbol. A part that the compiler moved away is a function of its own there. */
bool elf_function_range(struct elf_file *elf, uint64_t vaddr, uint64_t *start, uint64_t *size);
/* How many functions those tables have, and where one of them begins; false where it is unreadable.
 */
uint32_t elf_function_count(struct elf_file *elf);
bool elf_function_start(struct elf_file *elf, uint32_t index, uint64_t *start);
/* The part that the compiler moved out of the function at `vaddr`, where one is proven. */
bool elf_cold_part(struct elf_file *elf, uint64_t vaddr, uint64_t *start, uint64_t *size);
/* Calls back for every function symbol; a non-zero return stops and is passed on. */
int elf_each_function(struct elf_file *elf, int (*each)(const struct elf_symbol *symbol, void *ctx),
		      void *ctx);

/* Where execution begins: e_entry. */
uint64_t elf_entry(const struct elf_file *elf);

/* libelf's handle, for what libdw does with one; owned by the file. `debug`: that of its separate
 * debug file, NULL where there is none. */
struct Elf;
struct Elf *elf_libelf(struct elf_file *elf, bool debug);

/* Where a member lies in a structure, as the unit that covers `vaddr` knows the type: for each
 * {"PyThreadState", "frame"} or {"_PyRuntimeState", "gilstate.autoTSSkey"} its offset, if known.
 * Returns how many are; 0 where the file has no DWARF that is at hand (elf_types.c). */
struct elf_member {
	const char *type, *path;
	uint64_t offset;
	bool known;
};
size_t elf_members(struct elf_file *elf, uint64_t vaddr, struct elf_member *members, size_t count);

/* Source line by DWARF; false where there is none. `file` is valid until elf_close(). */
bool elf_line(struct elf_file *elf, uint64_t vaddr, const char **file, uint32_t *line);

/* A function that the compiler put into its caller. */
struct elf_inlined {
	const char *name; /* of the linker where it has one, so maybe mangled; until elf_close() */
	uint32_t line;	  /* of the call in its caller's source; 0 where not known */
	uint32_t depth;
};
#define ELF_INLINED_MAX 64 /* templates go deeper, but who reads that? */
/* Those that the address is of, innermost first, at most `max`; the function that holds them is not
 * among them. */
size_t elf_inlined(struct elf_file *elf, uint64_t vaddr, struct elf_inlined *calls, size_t max);

#endif
