#ifndef PYPERF_CFI_H
#define PYPERF_CFI_H

#include "unwind/rules.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The call-frame tables of one file: .eh_frame, else .debug_frame, of it or of its separate debug
 * file. An address is looked up by libdw once; what came of it is kept.
 */
struct cfi;
struct arch;
struct elf_file;

/* NULL when memory runs out. The file must stay open. */
struct cfi *cfi_open(struct elf_file *elf);
void cfi_close(struct cfi *cfi);
uint32_t cfi_rule(struct cfi *cfi, struct rules *rules, uint64_t vaddr);

/* A bare .eh_frame whose first function begins where its code does. NULL where it is unusable. */
struct cfi *cfi_open_bare(const struct arch *arch, const void *eh_frame, size_t len);
/* `offset` counts from there. */
uint32_t cfi_rule_at(struct cfi *cfi, struct rules *rules, uint64_t offset);

size_t cfi_addresses(const struct cfi *cfi);
size_t cfi_bytes(const struct cfi *cfi);

#endif
