#ifndef PYPERF_ARCH_H
#define PYPERF_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Everything that differs between architectures, one row each. Nothing else in lib/ knows one; the
 * BPF program has its own few lines, since it cannot call here.
 */
struct arch {
	const char *name; /* as uname -m has it: "x86_64" */
	uint16_t elf_machine;
	uint64_t kernel_start; /* addresses from here on are the kernel's */
	/* PERF_SAMPLE_REGS_USER: mask of the registers an unwinder needs, and for each perf
	 * register number its DWARF number (-1: none). */
	uint64_t perf_regs_mask;
	const int8_t *perf_to_dwarf;
	unsigned int perf_regs;
	int perf_ip, perf_sp; /* perf register numbers */
	/* Where PTRACE_GETREGSET has the thread pointer: NT_* and the offset in its bytes. */
	unsigned int thread_regset;
	size_t thread_offset;
	/* Code of CPython's -X perf trampoline, for recognising it without a perf map. */
	const uint8_t *trampoline;
	size_t trampoline_len;
};

const struct arch *arch_host(void);
/* NULL for one that is not known. */
const struct arch *arch_by_name(const char *name);
const struct arch *arch_by_machine(uint16_t elf_machine);

#endif
