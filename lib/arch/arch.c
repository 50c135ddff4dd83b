#include "arch/arch.h"

#include <elf.h>
#include <string.h>

/*
 * Register numbers of perf are those of arch/ARCH/include/uapi/asm/perf_regs.h, DWARF numbers those
 * of each processor's psABI. Trampolines are CPython's Python/asm_trampoline*.S, assembled; a build
 * with branch protection puts one more instruction in front (endbr64, hint 25).
 */

/* AX BX CX DX SI DI BP SP IP FLAGS CS SS DS ES FS GS R8..R15 */
static const int8_t x86_64_dwarf[] = {
	0, 3, 2, 1, 4, 5, 6, 7, 16, 49, 51, 52, 53, 50, 54, 55, 8, 9, 10, 11, 12, 13, 14, 15,
};
/* struct user_regs_struct, sys/user.h */
static const uint8_t x86_64_ptrace[] = {
	10, 5, 11, 12, 13, 14, 4, 19, 16, 18, 17, 20, 23, 24, 25, 26, 9, 8, 7, 6, 3, 2, 1, 0,
};
static const struct arch_code x86_64_trampolines[] = {
	{
		/* sub $8,%rsp; call *%rcx; add $8,%rsp; ret: to 3.13 */
		.bytes = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3},
		.len = 11,
		.row_count = 3,
		.rows = {{0, 8, -8, 0}, {4, 16, -8, 0}, {10, 8, -8, 0}},
	},
	{
		/* push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret: later 3.13, from 3.14 */
		.bytes = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3},
		.len = 8,
		.row_count = 3,
		.rows = {{0, 8, -8, 0}, {1, 16, -8, -16}, {7, 8, -8, 0}},
	},
};
/* mov $__NR_rt_sigreturn,%rax; syscall. Behind it lie the kernel's struct ucontext and its gregs,
 * from R8 on (asm/sigcontext.h). */
static const struct arch_sigreturn x86_64_sigreturn = {
	.bytes = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05},
	.len = 9,
	.saved = {144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80, 88, 96, 168},
	.altstack = 16,
};
/* call rel32; call *reg, *disp8(reg), *disp32(reg), with SIB and REX or without */
static const struct arch_call x86_64_calls[] = {
	{5, 0, {0xff, 0x00}, {0xe8, 0x00}}, {2, 0, {0xff, 0xf8}, {0xff, 0xd0}},
	{2, 0, {0xff, 0xf8}, {0xff, 0x10}}, {3, 0, {0xff, 0xf8}, {0xff, 0x50}},
	{3, 0, {0xff, 0xff}, {0xff, 0x14}}, {4, 0, {0xff, 0xff}, {0xff, 0x54}},
	{6, 0, {0xff, 0xf8}, {0xff, 0x90}}, {6, 0, {0xff, 0xff}, {0xff, 0x15}},
	{7, 0, {0xff, 0xff}, {0xff, 0x94}},
};

/* X0..X30 (X29 is the frame pointer, X30 the link register) SP PC */
static const int8_t aarch64_dwarf[] = {
	0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15, 16,
	17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
};
static const struct arch_code aarch64_trampolines[] = {{
	/* stp x29,x30,[sp,-16]!; mov x29,sp; blr x3; ldp x29,x30,[sp],16; (autiasp;) ret */
	.bytes = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x60, 0x00, 0x3f, 0xd6, 0xfd,
		  0x7b, 0xc1, 0xa8},
	.len = 16,
	.behind = 8,
	.row_count = 3,
	.rows = {{0, 0, 0, 0}, {4, 16, -8, -16}, {16, 0, 0, 0}},
}};
/* mov x8,#__NR_rt_sigreturn; svc #0. Behind it lie a struct siginfo and the kernel's struct
 * ucontext with X0 to X30, SP and PC from 184 on (asm/sigcontext.h). */
static const struct arch_sigreturn aarch64_sigreturn = {
	.bytes = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
	.len = 8,
	.saved = {312, 320, 328, 336, 344, 352, 360, 368, 376, 384, 392,
		  400, 408, 416, 424, 432, 440, 448, 456, 464, 472, 480,
		  488, 496, 504, 512, 520, 528, 536, 544, 552, 560, 568},
	.altstack = 144,
};
/* bl, blr: their last two bytes */
static const struct arch_call aarch64_calls[] = {
	{4, 2, {0x00, 0xfc}, {0x00, 0x94}},
	{4, 2, {0xff, 0xff}, {0x3f, 0xd6}},
};

/* PC RA SP GP TP T0..T2 S0 S1 A0..A7 S2..S11 T3..T6: x1..x31 but for the first, which DWARF does
 * not number. */
static const int8_t riscv64_dwarf[] = {
	-1, 1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
};
static const struct arch_code riscv64_trampolines[] = {{
	/* addi sp,sp,-16; sd ra,8(sp); jalr a3; ld ra,8(sp); addi sp,sp,16; jr ra, compressed */
	.bytes = {0x41, 0x11, 0x06, 0xe4, 0x82, 0x96, 0xa2, 0x60, 0x41, 0x01, 0x82, 0x80},
	.len = 12,
	.row_count = 5,
	.rows = {{0, 0, 0, 0}, {2, 16, 0, 0}, {4, 16, -8, 0}, {8, 16, 0, 0}, {10, 0, 0, 0}},
}};
/* jal ra; jalr ra; c.jalr */
static const struct arch_call riscv64_calls[] = {
	{4, 0, {0xff, 0x0f}, {0xef, 0x00}},
	{4, 0, {0xff, 0x0f}, {0xe7, 0x00}},
	{2, 0, {0x7f, 0xf0}, {0x02, 0x90}},
};

/* addi a0,tp,IMM: the size of struct pthread, the thread control block and padding. */
static bool riscv64_pthread_self(const uint8_t *code, size_t len, int32_t *from_tp)
{
	uint32_t insn;

	if (len < sizeof(insn))
		return false;
	memcpy(&insn, code, sizeof(insn));
	if ((insn & 0xfffff) != 0x20513)
		return false;
	*from_tp = (int32_t)insn >> 20;
	return true;
}

#define REGS(name) \
	.perf_to_dwarf = name##_dwarf, .perf_regs = sizeof(name##_dwarf) / sizeof(name##_dwarf[0])
#define ROWS(field, field_count, name) \
	.field = name, .field_count = sizeof(name) / sizeof((name)[0])

static const struct arch archs[] = {
	{
		.name = "x86_64",
		.elf_machine = EM_X86_64,
		.nop = {0x90},
		.nop_len = 1,
		/* Everything that is not canonical belongs to nobody: one bound serves both 4
		 * and 5 levels of page tables. */
		.kernel_start = 0x8000000000000000,
		/* The general registers and IP. The kernel refuses DS, ES, FS and GS. */
		.perf_regs_mask = 0xff01ff,
		REGS(x86_64),
		.perf_ip = 8,
		.perf_sp = 7,
		.perf_to_ptrace = x86_64_ptrace,
		.thread_regset = NT_PRSTATUS,
		.thread_offset = 21 * 8, /* user_regs_struct.fs_base */
		.dwarf_regs = 17,
		.dwarf_sp = 7,
		.dwarf_fp = 6,
		.dwarf_ra = 16,
		.address_mask = UINT64_MAX,
		.return_address = 8,
		.fp_caller = 0,
		.fp_return = 8,
		.fp_cfa = 16,
		ROWS(trampolines, trampoline_count, x86_64_trampolines),
		.sigreturn = &x86_64_sigreturn,
		ROWS(calls, call_count, x86_64_calls),
		.pthread_at_tp = true,
	},
	{
		.name = "aarch64",
		.elf_machine = EM_AARCH64,
		.nop = {0x1f, 0x20, 0x03, 0xd5},
		.nop_len = 4,
		.kernel_start = 0xfff0000000000000, /* with 52-bit addresses, the widest */
		.perf_regs_mask = 0x1ffffffff,
		REGS(aarch64),
		.perf_ip = 32,
		.perf_sp = 31,
		.thread_regset = 0x401, /* NT_ARM_TLS */
		.thread_offset = 0,
		.dwarf_regs = 33,
		.dwarf_sp = 31,
		.dwarf_fp = 29,
		.dwarf_ra = 30,
		.address_mask = 0x0000ffffffffffff, /* above is a signature */
		.fp_caller = 0,
		.fp_return = 8,
		.fp_cfa = 16,
		ROWS(trampolines, trampoline_count, aarch64_trampolines),
		.sigreturn = &aarch64_sigreturn,
		ROWS(calls, call_count, aarch64_calls),
	},
	{
		.name = "riscv64",
		.elf_machine = EM_RISCV,
		.nop = {0x13},
		.nop_len = 4,
		.kernel_start = 0xff00000000000000, /* with Sv57, the widest */
		.perf_regs_mask = 0xffffffff,
		REGS(riscv64),
		.perf_ip = 0,
		.perf_sp = 2,
		.thread_regset = NT_PRSTATUS,
		.thread_offset = 4 * 8, /* tp, x4 */
		.dwarf_regs = 33,
		.dwarf_sp = 2,
		.dwarf_fp = 8,
		.dwarf_ra = 1,
		.address_mask = UINT64_MAX,
		.fp_caller = -16,
		.fp_return = -8,
		.fp_cfa = 0,
		ROWS(trampolines, trampoline_count, riscv64_trampolines),
		ROWS(calls, call_count, riscv64_calls),
		.pthread_self = riscv64_pthread_self,
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

bool arch_counter(uint64_t *ticks, uint64_t *hz)
{
#if defined(__aarch64__)
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(*ticks));
	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(*hz));
	return *hz > 0;
#else
	*ticks = *hz = 0;
	return false;
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
