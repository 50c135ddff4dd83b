#ifndef PYPERF_DISASM_H
#define PYPERF_DISASM_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Disassembly by capstone; ERR_UNSUPPORTED where it is not built in or does not know the machine.
 */

struct disasm_line {
	uint64_t addr;
	uint32_t size;
	const char *text; /* "mov rax, qword ptr [rdi]"; valid during the callback */
};

/* `machine` is the ELF e_machine. Bytes that are no instruction come as ".byte 0x..", one each. */
int disasm(uint16_t machine, uint64_t addr, const void *code, size_t len,
	   int (*each)(const struct disasm_line *line, void *ctx), void *ctx, struct err *err);

#endif
