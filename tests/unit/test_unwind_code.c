/* Code without a file: trampolines of every architecture at every instruction, generated code with
 * tables of its own; and samples of the kernel as input. */
#include "arch/arch.h"
#include "base/err.h"
#include "ring/record.h"
#include "unwind/unwind.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CODE 0x10000u	/* where the code lies */
#define CALLER 0x20000u /* where it was called from: mapped, without tables */
#define STACK 0x700000u
#define WORDS 16
#define ENTRY (STACK + 64) /* the stack pointer before the code's first instruction */
#define FP 0xabc0u	   /* the caller's frame pointer */

/* .eh_frame of a function of 0x20 bytes that lies 0x100 in front of it: CFA = rsp + 8; from 4 on
 * rsp + 16 with rbp saved at CFA - 16; from 10 on rsp + 8. */
static const unsigned char bare[] = {
	20, 0,	  0,	0,    0,    0,	  0,	0, 1, 'z', 'R', 0,    1,    0x78, 16,
	1,  0x1b, 0x0c, 7,    8,    0x90, 1,	0, 0, 28,  0,	0,    0,    28,	  0,
	0,  0,	  0xe0, 0xfe, 0xff, 0xff, 0x20, 0, 0, 0,   0,	0x44, 0x0e, 16,	  0x86,
	2,  0x46, 0x0e, 8,    0,    0,	  0,	0, 0, 0,   0,	0,    0,    0,	  0};

/* A leaf with these tables. */
#define LEAF (CALLER + 0x800)

struct place {
	const struct arch *arch;
	const unsigned char *code;
	size_t code_len;
	bool readable;
	struct unwind_code told; /* start 0: nothing */
	uint64_t words[WORDS];
	struct unwind_frame frames[8];
	struct unwind_stack stack;
	struct unwind_input input;
};

static int find_module(void *ctx, uint64_t addr, struct unwind_module *module)
{
	if (addr < CODE || addr >= CALLER + 0x1000)
		return -1;
	*module = (struct unwind_module){.start = addr & ~0xfffull,
					 .end = (addr & ~0xfffull) + 0x1000};
	return 0;
}

static int read_code(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct place *place = ctx;

	if (!place->readable || addr < CODE || addr - CODE > place->code_len ||
	    len > place->code_len - (addr - CODE))
		return -1;
	memcpy(buf, place->code + (addr - CODE), len);
	return 0;
}

static int tell_code(void *ctx, uint64_t addr, struct unwind_code *code)
{
	const struct place *place = ctx;

	if (addr >= LEAF && addr < LEAF + 0x20)
		*code = (struct unwind_code){.start = LEAF,
					     .end = LEAF + 0x20,
					     .eh_frame = bare,
					     .eh_frame_len = sizeof(bare)};
	else
		*code = place->told;
	return code->start && addr >= code->start && addr < code->end ? 0 : -1;
}

static uint64_t *word_at(struct place *place, uint64_t addr)
{
	assert_true(addr >= STACK && addr < STACK + sizeof(place->words) && addr % 8 == 0);
	return &place->words[(addr - STACK) / 8];
}

static void walk(struct place *place)
{
	struct unwind_source source = {.arch = place->arch,
				       .read = read_code,
				       .module = find_module,
				       .code = tell_code,
				       .ctx = place};
	struct unwind_files *files = unwind_files_new();
	const struct unwind_backend *table = unwind_backend_by_name("table");
	struct unwinder *unwinder = table->open(files, &source, NULL);

	assert_non_null(unwinder);
	place->stack = (struct unwind_stack){.frames = place->frames, .max = 8};
	place->input.stack = place->words;
	place->input.stack_addr = place->input.regs.sp;
	place->input.stack = word_at(place, place->input.regs.sp);
	place->input.stack_len = STACK + sizeof(place->words) - place->input.regs.sp;
	table->stack(unwinder, &place->input, &place->stack);
	table->close(unwinder);
	unwind_files_free(files);
}

/* What one instruction after another has done to the machine, written down from the processors'
 * manuals: at `at` the stack pointer is `down` below its value on entry, the caller's frame pointer
 * is saved there and the return address at `ra` from the entry's stack pointer (0: a register). */
struct state {
	uint8_t at, down;
	bool fp;
	int8_t ra;
};

struct trampoline {
	const char *arch;
	const char *name;
	unsigned char code[28];
	uint8_t len;
	uint8_t returns; /* where the call returns to */
	struct state states[8];
};

static const struct trampoline trampolines[] = {
	{"x86_64",
	 "sub",
	 {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3},
	 11,
	 6,
	 {{0, 0, false, 0}, {4, 8, false, 0}, {6, 8, false, 0}, {10, 0, false, 0}}},
	{"x86_64",
	 "endbr64 sub",
	 {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3},
	 15,
	 10,
	 {{0, 0, false, 0},
	  {4, 0, false, 0},
	  {8, 8, false, 0},
	  {10, 8, false, 0},
	  {14, 0, false, 0}}},
	{"x86_64",
	 "push",
	 {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3},
	 8,
	 6,
	 {{0, 0, false, 0}, {1, 8, true, 0}, {4, 8, true, 0}, {6, 8, true, 0}, {7, 0, false, 0}}},
	{"x86_64",
	 "endbr64 push",
	 {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3},
	 12,
	 10,
	 {{0, 0, false, 0},
	  {4, 0, false, 0},
	  {5, 8, true, 0},
	  {8, 8, true, 0},
	  {10, 8, true, 0},
	  {11, 0, false, 0}}},
	{"aarch64",
	 "stp",
	 {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x60, 0x00,
	  0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6},
	 20,
	 12,
	 {{0, 0, false, 0},
	  {4, 16, true, -8},
	  {8, 16, true, -8},
	  {12, 16, true, -8},
	  {16, 0, false, 0}}},
	{"aarch64",
	 "paciasp stp autiasp",
	 {0x3f, 0x23, 0x03, 0xd5, 0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x60, 0x00,
	  0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xbf, 0x23, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6},
	 28,
	 16,
	 {{0, 0, false, 0},
	  {4, 0, false, 0},
	  {8, 16, true, -8},
	  {12, 16, true, -8},
	  {16, 16, true, -8},
	  {20, 0, false, 0},
	  {24, 0, false, 0}}},
	{"riscv64",
	 "addi",
	 {0x41, 0x11, 0x06, 0xe4, 0x82, 0x96, 0xa2, 0x60, 0x41, 0x01, 0x82, 0x80},
	 12,
	 6,
	 {{0, 0, false, 0},
	  {2, 16, false, 0},
	  {4, 16, false, -8},
	  {6, 16, false, -8},
	  {8, 16, false, 0},
	  {10, 0, false, 0}}},
};

#define SIGNATURE (0x5aull << 48)

/* The machine in that state; returns what the caller's stack pointer will be. */
static uint64_t set_state(struct place *place, const struct state *state)
{
	const struct arch *arch = place->arch;
	struct unwind_regs *regs = &place->input.regs;
	uint64_t back = CALLER + 0x10;

	memset(place->words, 0x55, sizeof(place->words));
	memset(regs, 0x33, sizeof(*regs));
	regs->sp = ENTRY - state->down;
	regs->reg[arch->dwarf_fp] = state->fp ? regs->sp : FP;
	if (state->fp)
		*word_at(place, regs->sp) = FP;
	if (arch->return_address)
		*word_at(place, ENTRY) = back;
	else if (state->ra)
		*word_at(place, ENTRY + (uint64_t)(int64_t)state->ra) =
			back | (~arch->address_mask & SIGNATURE);
	else
		regs->reg[arch->dwarf_ra] = back;
	return ENTRY + arch->return_address;
}

static void check_out(struct place *place, size_t at, uint64_t sp, const char *what, size_t offset)
{
	const struct unwind_frame *frames = place->frames;

	if (place->stack.count <= at + 1 || frames[at].by != UNWIND_BY_CODE ||
	    frames[at].cfa != sp || frames[at + 1].ip != CALLER + 0x10 || frames[at + 1].sp != sp)
		fail_msg("%s at %zu", what, offset);
	assert_true(frames[0].exact);
	assert_false(frames[at + 1].exact);
}

static void test_trampolines(void **state)
{
	for (size_t t = 0; t < sizeof(trampolines) / sizeof(trampolines[0]); t++) {
		const struct trampoline *each = &trampolines[t];
		struct place place = {.arch = arch_by_name(each->arch),
				      .code = each->code,
				      .code_len = each->len,
				      .readable = true};

		for (size_t s = 0; s < 8 && (s == 0 || each->states[s].at); s++) {
			uint64_t sp = set_state(&place, &each->states[s]);

			place.input.regs.ip = CODE + each->states[s].at;
			walk(&place);
			check_out(&place, 0, sp, each->name, each->states[s].at);
			assert_int_equal(place.stack.guessed, place.stack.count > 2);
		}
	}
}

/* One that called another: seen from the return address, by its bytes, by the bytes that a jitdump
 * has, and by no more than a perf map's name. */
static void test_trampolines_as_callers(void **state)
{
	for (size_t t = 0; t < sizeof(trampolines) / sizeof(trampolines[0]); t++) {
		const struct trampoline *each = &trampolines[t];
		const struct state *inside = NULL;

		for (size_t s = 0; s < 8; s++)
			if (each->states[s].at == each->returns)
				inside = &each->states[s];
		for (int way = 0; way < 3; way++) {
			struct place place = {.arch = arch_by_name(each->arch),
					      .code = each->code,
					      .code_len = each->len,
					      .readable = way == 0};
			struct unwind_regs *regs = &place.input.regs;
			uint64_t sp = set_state(&place, inside);

			place.told = (struct unwind_code){.start = CODE,
							  .end = CODE + each->len,
							  .bytes = way == 1 ? each->code : NULL,
							  .bytes_len = each->len,
							  .python = way == 2};
			if (way == 0)
				place.told.start = 0;
			/* The leaf's tables are x86-64's: CFA = register 7 + 8. */
			regs->ip = LEAF;
			regs->sp -= 8;
			regs->reg[7] = regs->sp;
			*word_at(&place, regs->sp) = CODE + each->returns;
			walk(&place);
			assert_int_equal(place.frames[1].ip, CODE + each->returns);
			check_out(&place, 1, sp, each->name, each->returns);
		}
	}
}

static void test_tables_of_generated_code(void **state)
{
	static const struct state states[] = {
		{0, 0, false, 0}, {4, 8, true, 0}, {9, 8, true, 0}, {10, 0, false, 0}};

	for (size_t s = 0; s < 4; s++) {
		struct place place = {.arch = arch_by_name("x86_64")};
		uint64_t sp = set_state(&place, &states[s]);

		place.told = (struct unwind_code){.start = CODE,
						  .end = CODE + 0x20,
						  .eh_frame = bare,
						  .eh_frame_len = sizeof(bare)};
		place.input.regs.ip = CODE + states[s].at;
		walk(&place);
		assert_true(place.stack.count >= 2);
		assert_int_equal(place.frames[0].by, UNWIND_BY_TABLE);
		assert_int_equal(place.frames[0].cfa, sp);
		assert_int_equal(place.frames[1].ip, CALLER + 0x10);
		/* Cut anywhere it is refused or used, and never read behind its end. */
		for (size_t len = 0; len < sizeof(bare); len++) {
			void *copy = malloc(len ? len : 1);

			memcpy(copy, bare, len);
			place.told.eh_frame = copy;
			place.told.eh_frame_len = len;
			walk(&place);
			free(copy);
		}
	}
}

/* A rule that leads to where it came from. */
static void test_loop(void **state)
{
	struct place place = {.arch = arch_by_name("x86_64")};
	struct unwind_regs *regs = &place.input.regs;
	unsigned char loop[sizeof(bare)];

	memcpy(loop, bare, sizeof(bare));
	loop[18] = 6; /* CFA = rbp + 8, and rbp stays */
	loop[41] = 0;
	loop[42] = loop[43] = loop[44] = loop[45] = loop[46] = loop[47] = loop[48] = 0;
	place.told = (struct unwind_code){
		.start = CODE, .end = CODE + 0x20, .eh_frame = loop, .eh_frame_len = sizeof(loop)};
	regs->sp = STACK;
	regs->reg[6] = STACK + 32;
	regs->ip = CODE + 1;
	*word_at(&place, STACK + 32) = CODE + 1;
	walk(&place);
	assert_string_equal(unwind_end_text(place.stack.end), unwind_end_text(UNWIND_LOOP));
	assert_int_equal(place.stack.count, 2);
}

static void test_samples(void **state)
{
	const struct arch *arch = arch_by_name("x86_64");
	uint64_t values[64];
	struct unwind_input input;
	struct record_sample sample = {.regs_user_abi = PERF_SAMPLE_REGS_ABI_64,
				       .regs_user = values,
				       .stack_user = "0123456789abcdef",
				       .stack_user_size = 16};

	for (uint64_t i = 0; i < 64; i++)
		values[i] = 100 + i;
	assert_int_equal(unwind_of_sample(arch, arch->perf_regs_mask, &sample, &input), 0);
	/* AX BX CX DX SI DI BP SP IP R8..R15 in the order of the mask's bits. */
	assert_int_equal(input.regs.reg[0], 100);
	assert_int_equal(input.regs.reg[3], 101);
	assert_int_equal(input.regs.reg[6], 106);
	assert_int_equal(input.regs.sp, 107);
	assert_int_equal(input.regs.ip, 108);
	assert_int_equal(input.regs.reg[8], 109);
	assert_int_equal(input.regs.reg[15], 116);
	assert_int_equal(input.stack_addr, 107);
	assert_int_equal(input.stack_len, 16);
	assert_int_equal(unwind_of_sample(arch, 1 << 8, &sample, &input), ERR_UNSUPPORTED);
	sample.regs_user_abi = PERF_SAMPLE_REGS_ABI_32;
	assert_int_equal(unwind_of_sample(arch, arch->perf_regs_mask, &sample, &input),
			 ERR_UNSUPPORTED);
	sample.regs_user_abi = PERF_SAMPLE_REGS_ABI_NONE;
	assert_int_equal(unwind_of_sample(arch, arch->perf_regs_mask, &sample, &input),
			 ERR_NOT_FOUND);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"x86_64", "aarch64", "riscv64"};

		arch = arch_by_name(names[i]);
		sample.regs_user_abi = PERF_SAMPLE_REGS_ABI_64;
		assert_int_equal(unwind_of_sample(arch, arch->perf_regs_mask, &sample, &input), 0);
		assert_int_equal(input.regs.reg[arch->dwarf_sp], input.regs.sp);
	}
}

static int find_huge(void *ctx, uint64_t addr, struct unwind_module *found)
{
	*found = *(struct unwind_module *)ctx;
	return addr >= found->start && addr < found->end ? 0 : -1;
}

/* A sparse file that says that all of it is tables: no table is found, and not by reading it all.
 */
static void test_huge_tables(void **state)
{
	static const uint64_t sizes[] = {200ull << 20, 4ull << 30};
	char path[] = "/tmp/pyperf-test-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	for (size_t i = 0; i < 2; i++) {
		struct {
			Elf64_Ehdr ehdr;
			Elf64_Phdr load;
			Elf64_Shdr sections[3];
			char names[32];
		} file = {
			.ehdr = {.e_ident = ELFMAG "\2\1\1",
				 .e_type = ET_DYN,
				 .e_machine = arch_host()->elf_machine,
				 .e_version = EV_CURRENT,
				 .e_phoff = sizeof(Elf64_Ehdr),
				 .e_shoff = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
				 .e_ehsize = sizeof(Elf64_Ehdr),
				 .e_phentsize = sizeof(Elf64_Phdr),
				 .e_phnum = 1,
				 .e_shentsize = sizeof(Elf64_Shdr),
				 .e_shnum = 3,
				 .e_shstrndx = 2},
			.load = {PT_LOAD, PF_R | PF_X, 0, 0, 0, sizes[i], sizes[i], 4096},
			.sections = {[1] = {.sh_name = 1,
					    .sh_type = SHT_PROGBITS,
					    .sh_flags = SHF_ALLOC,
					    .sh_addr = 4096,
					    .sh_offset = 4096,
					    .sh_size = sizes[i] - 4096},
				     [2] = {.sh_name = 11,
					    .sh_type = SHT_STRTAB,
					    .sh_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) +
							 3 * sizeof(Elf64_Shdr),
					    .sh_size = 32}},
			.names = "\0.eh_frame\0.shstrtab",
		};
		struct unwind_module module = {
			.id = 1, .path = path, .start = 0x10000000, .end = 0x10000000 + sizes[i]};
		struct unwind_frame frames[8];

		assert_int_equal(ftruncate(fd, (off_t)sizes[i]), 0);
		assert_int_equal(pwrite(fd, &file, sizeof(file), 0), sizeof(file));
		for (const struct unwind_backend *const *with = unwind_backends(); *with; with++) {
			struct unwind_source source = {.module = find_huge, .ctx = &module};
			struct unwind_files *files = unwind_files_new();
			struct unwinder *unwinder = (*with)->open(files, &source, NULL);
			struct unwind_stack stack = {.frames = frames, .max = 8};
			struct unwind_input input = {.regs = {.ip = 0x10000000 + (100u << 20)}};

			(*with)->stack(unwinder, &input, &stack);
			assert_int_equal(stack.count, 1);
			assert_int_equal(stack.end, UNWIND_NO_TABLES);
			assert_int_equal(stack.module, 1);
			(*with)->close(unwinder);
			unwind_files_free(files);
		}
	}
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trampolines),
		cmocka_unit_test(test_trampolines_as_callers),
		cmocka_unit_test(test_tables_of_generated_code),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_huge_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
