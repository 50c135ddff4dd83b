/*
 * Stacks that lead through whatever calls itself an ELF file or call-frame tables, from registers
 * that point anywhere, over a short copy of a stack.
 *
 * Input: u8 length of the stack in words, that many words, then the file, which is mapped at BASE;
 * bytes that are no ELF file are the code and the .eh_frame of generated code. Words of the stack
 * below 64 K stand for addresses in the file, those from there to 128 K for places on the stack,
 * those from there to 192 K for places on the one that a signal interrupted, the stack's second
 * half.
 */
#include "arch/arch.h"
#include "unwind/unwind.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define BASE 0x400000u
#define STACK 0x7ffc00000000u
#define INTERRUPTED 0x7ffd00000000u
#define WORDS_MAX 255
#define MAX_FRAMES 32

struct input {
	const uint8_t *file;
	size_t len;
	bool elf;
};

static int find_module(void *ctx, uint64_t addr, struct unwind_module *module)
{
	const struct input *input = ctx;

	if (addr < BASE || addr - BASE >= input->len)
		return -1;
	*module = (struct unwind_module){.id = 1, .start = BASE, .end = BASE + input->len};
	if (input->elf) {
		module->image = input->file;
		module->image_len = input->len;
	}
	return 0;
}

static int find_code(void *ctx, uint64_t addr, struct unwind_code *code)
{
	const struct input *input = ctx;

	if (input->elf || addr < BASE)
		return -1;
	*code = (struct unwind_code){
		.start = BASE,
		.end = BASE + input->len,
		.eh_frame = input->file,
		.eh_frame_len = input->len,
		.bytes = input->file,
		.bytes_len = input->len,
		.python = input->len & 1,
	};
	return 0;
}

static int read_file(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct input *input = ctx;
	uint64_t offset = addr - BASE;

	if (offset > input->len || len > input->len - offset)
		return -1;
	memcpy(buf, input->file + offset, len);
	return 0;
}

static uint64_t place(uint64_t word)
{
	if (word < 0x10000)
		return BASE + word;
	if (word < 0x20000)
		return STACK + (word - 0x10000);
	return word < 0x30000 ? INTERRUPTED + (word - 0x20000) : word;
}

static void walk(const struct unwind_backend *with, struct unwinder *unwinder, uint64_t *words,
		 size_t count, uint64_t ip)
{
	struct unwind_frame frames[MAX_FRAMES];
	struct unwind_stack stack = {.frames = frames, .max = MAX_FRAMES};
	size_t half = count / 2;
	struct unwind_input input = {.stack = words,
				     .stack_addr = STACK,
				     .stack_len = count * sizeof(*words),
				     .interrupted = {.bytes = words + half,
						     .addr = INTERRUPTED,
						     .len = (count - half) * sizeof(*words)}};

	for (size_t i = 0; i < UNWIND_REGS; i++)
		input.regs.reg[i] = count ? words[i % count] : STACK;
	input.regs.ip = ip;
	input.regs.sp = STACK;
	with->stack(unwinder, &input, &stack);
	if (!stack.count || stack.count > MAX_FRAMES || frames[0].ip != ip ||
	    (unsigned int)stack.end >= UNWIND_ENDS || stack.guessed > stack.count)
		__builtin_trap();
}

static void walk_all(const struct unwind_backend *with, struct input *input, const char *machine,
		     uint64_t *words, size_t count)
{
	struct unwind_source source = {.arch = arch_by_name(machine),
				       .read = read_file,
				       .module = find_module,
				       .code = find_code,
				       .ctx = input};
	struct unwind_files *files = unwind_files_new();
	struct unwinder *unwinder = files ? with->open(files, &source, NULL) : NULL;
	size_t step = input->len / 64 + 1;

	for (size_t at = 0; unwinder && at < input->len; at += step)
		walk(with, unwinder, words, count, BASE + at);
	if (unwinder && count)
		walk(with, unwinder, words, count, words[0]);
	with->close(unwinder);
	unwind_files_free(files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t words[WORDS_MAX];
	struct input input;
	size_t count;

	if (len < 1 || len > 1 << 16)
		return 0;
	count = data[0];
	if (count > (len - 1) / sizeof(words[0]))
		count = (len - 1) / sizeof(words[0]);
	memcpy(words, data + 1, count * sizeof(words[0]));
	for (size_t i = 0; i < count; i++)
		words[i] = place(words[i]);
	input.file = data + 1 + count * sizeof(words[0]);
	input.len = len - 1 - count * sizeof(words[0]);
	input.elf = input.len > 4 && memcmp(input.file, "\177ELF", 4) == 0;
	for (const struct unwind_backend *const *with = unwind_backends(); *with; with++)
		walk_all(*with, &input, arch_host()->name, words, count);
	walk_all(unwind_backends()[0], &input, "aarch64", words, count);
	walk_all(unwind_backends()[0], &input, "riscv64", words, count);
	return 0;
}
