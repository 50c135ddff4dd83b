#include "arch/arch.h"

#include <elf.h>
#include <string.h>

/*
 * Register numbers of perf are those of arch/ARCH/include/uapi/asm/perf_regs.h, DWARF numbers those
 * of each processor's psABI. Trampolines are CPython's Python/asm_trampoline.S, assembled; a build
 * with branch protection puts one more instruction in front (endbr64, hint 25).
 */

/* AX BX CX DX SI DI BP SP IP FLAGS CS SS DS ES FS GS R8..R15 */
static const int8_t x86_64_dwarf[] = {
	0, 3, 2, 1, 4, 5, 6, 7, 16, 49, 51, 52, 53, 50, 54, 55, 8, 9, 10, 11, 12, 13, 14, 15,
};
/* sub $8,%rsp; call *%rcx; add $8,%rsp; ret */
static const uint8_t x86_64_trampoline[] = {
	0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3,
};

/* X0..X30 (X29 is the frame pointer, X30 the link register) SP PC */
static const int8_t aarch64_dwarf[] = {
	0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15, 16,
	17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
};
/* stp x29,x30,[sp,-16]!; mov x29,sp; blr x3; ldp x29,x30,[sp],16; ret */
static const uint8_t aarch64_trampoline[] = {
	0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x60, 0x00,
	0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
};

/* PC RA SP GP TP T0..T2 S0 S1 A0..A7 S2..S11 T3..T6: x1..x31 but for the first, which DWARF does
 * not number. */
static const int8_t riscv64_dwarf[] = {
	-1, 1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
};
/* addi sp,sp,-16; sd ra,8(sp); jalr a3; ld ra,8(sp); addi sp,sp,16; jr ra, all compressed */
static const uint8_t riscv64_trampoline[] = {
	0x41, 0x11, 0x06, 0xe4, 0x82, 0x96, 0xa2, 0x60, 0x41, 0x01, 0x82, 0x80,
};

#define REGS(name) \
	.perf_to_dwarf = name##_dwarf, .perf_regs = sizeof(name##_dwarf) / sizeof(name##_dwarf[0])
#define TRAMPOLINE(name) \
	.trampoline = name##_trampoline, .trampoline_len = sizeof(name##_trampoline)

static const struct arch archs[] = {
	{
		.name = "x86_64",
		.elf_machine = EM_X86_64,
		/* Everything that is not canonical belongs to nobody: one bound serves both 4
		 * and 5 levels of page tables. */
		.kernel_start = 0x8000000000000000,
		/* The general registers and IP. The kernel refuses DS, ES, FS and GS. */
		.perf_regs_mask = 0xff01ff,
		REGS(x86_64),
		.perf_ip = 8,
		.perf_sp = 7,
		.thread_regset = NT_PRSTATUS,
		.thread_offset = 21 * 8, /* user_regs_struct.fs_base */
		TRAMPOLINE(x86_64),
	},
	{
		.name = "aarch64",
		.elf_machine = EM_AARCH64,
		.kernel_start = 0xfff0000000000000, /* with 52-bit addresses, the widest */
		.perf_regs_mask = 0x1ffffffff,
		REGS(aarch64),
		.perf_ip = 32,
		.perf_sp = 31,
		.thread_regset = 0x401, /* NT_ARM_TLS */
		.thread_offset = 0,
		TRAMPOLINE(aarch64),
	},
	{
		.name = "riscv64",
		.elf_machine = EM_RISCV,
		.kernel_start = 0xff00000000000000, /* with Sv57, the widest */
		.perf_regs_mask = 0xffffffff,
		REGS(riscv64),
		.perf_ip = 0,
		.perf_sp = 2,
		.thread_regset = NT_PRSTATUS,
		.thread_offset = 4 * 8, /* tp, x4 */
		TRAMPOLINE(riscv64),
	},
};

#define ARCHS (sizeof(archs) / sizeof(archs[0]))

const struct arch *arch_host(void)
{
#if defined(__x86_64__)
	return arch_by_machine(EM_X86_64);
#elif defined(__aarch64__)
	return arch_by_machine(EM_AARCH64);
#elif defined(__riscv) && __riscv_xlen == 64
	return arch_by_machine(EM_RISCV);
#else
#error "this architecture needs a row in lib/arch/arch.c"
#endif
}

const struct arch *arch_by_name(const char *name)
{
	for (size_t i = 0; i < ARCHS; i++)
		if (strcmp(archs[i].name, name) == 0)
			return &archs[i];
	return NULL;
}

const struct arch *arch_by_machine(uint16_t elf_machine)
{
	for (size_t i = 0; i < ARCHS; i++)
		if (archs[i].elf_machine == elf_machine)
			return &archs[i];
	return NULL;
}
