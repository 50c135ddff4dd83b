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
	uint8_t nop[4];	       /* an instruction that does nothing, */
	uint8_t nop_len;       /* and its length */
	uint64_t kernel_start; /* addresses from here on are the kernel's */
	/* PERF_SAMPLE_REGS_USER: mask of the registers an unwinder needs, and for each perf
	 * register number its DWARF number (-1: none). */
	uint64_t perf_regs_mask;
	const int8_t *perf_to_dwarf;
	unsigned int perf_regs;
	int perf_ip, perf_sp; /* perf register numbers */
	/* NT_PRSTATUS of PTRACE_GETREGSET: where it has each perf register, in words; NULL: in the
	 * same order. */
	const uint8_t *perf_to_ptrace;
	/* Where PTRACE_GETREGSET has the thread pointer: NT_* and the offset in its bytes. */
	unsigned int thread_regset;
	size_t thread_offset;
	/* glibc's struct pthread begins at the thread pointer; elsewhere it ends there. Where more
	 * lies between, pthread_self() tells: reads the distance out of its code. */
	bool pthread_at_tp;
	bool (*pthread_self)(const uint8_t *code, size_t len, int32_t *from_tp);

	/* What an unwinder needs beside the tables, registers by their DWARF numbers. */
	uint8_t dwarf_regs; /* general registers and the return address: numbers below this */
	uint8_t dwarf_sp, dwarf_fp;
	uint8_t dwarf_ra;	/* where the return address is while a function is entered */
	uint64_t address_mask;	/* bits of a code pointer that are not a signature */
	uint8_t return_address; /* bytes that a call pushes */
	/* What the frame pointer points to, from there: the caller's frame pointer, the return
	 * address, and where the caller's stack begins at the lowest. */
	int8_t fp_caller, fp_return, fp_cfa;
	/* Code without tables that is known by its bytes. */
	const struct arch_code *trampolines; /* CPython's -X perf */
	size_t trampoline_count;
	const struct arch_sigreturn *sigreturn; /* NULL: the C libraries have tables for it */
	/* Instructions that call, for telling return addresses from other words. */
	const struct arch_call *calls;
	size_t call_count;
};

/* From the byte `from` on: the caller's stack pointer, from this one's; where the return address
 * and the caller's frame pointer lie, from there (0: still in their registers). */
struct arch_code_row {
	uint8_t from;
	int8_t cfa, ra, fp;
};

/* One instruction may stand in front for branch protection, and `behind` bytes be of its end. */
#define ARCH_CODE_BEFORE 4
struct arch_code {
	uint8_t bytes[16];
	uint8_t len, behind;
	uint8_t row_count;
	struct arch_code_row rows[6];
};

/* Where a signal handler returns to, and what the kernel saved above the stack pointer then. */
struct arch_sigreturn {
	uint8_t bytes[16];
	uint8_t len;
	int16_t saved[33]; /* by DWARF number; 0: not saved */
	int16_t altstack;  /* uc_stack: which stack the handler is on (sigaltstack(2)) */
};

/* The two bytes that begin the call instruction `len` bytes in front of a return address. */
struct arch_call {
	uint8_t len;
	uint8_t at; /* which bytes of it are compared: this and the next */
	uint8_t mask[2], value[2];
};

const struct arch *arch_host(void);
/* The counter that traces have their times of, and how often a second it ticks; false where the
 * architecture has none. */
bool arch_counter(uint64_t *ticks, uint64_t *hz);
/* NULL for one that is not known. */
const struct arch *arch_by_name(const char *name);
const struct arch *arch_by_machine(uint16_t elf_machine);

#endif
