/* Whatever calls itself an ELF file: opened, and asked everything that we ask of one. */
#include "symbol/elf.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void ask_inlined(struct elf_file *elf, uint64_t vaddr)
{
	struct elf_inlined calls[8];
	size_t count = elf_inlined(elf, vaddr, calls, 8);

	if (count > 8)
		__builtin_trap();
	for (size_t i = 0; i < count; i++)
		if (!calls[i].name)
			__builtin_trap();
}

static int ask_function(const struct elf_symbol *symbol, void *ctx)
{
	struct elf_file *elf = ctx;
	struct elf_symbol found;
	const char *file;
	uint64_t start, size;
	uint32_t line;

	if (!elf_symbol_at(elf, symbol->vaddr, &found))
		__builtin_trap();
	if (!elf_symbol_by_name(elf, symbol->name, &found))
		__builtin_trap();
	elf_line(elf, symbol->vaddr + symbol->size / 2, &file, &line);
	elf_cold_part(elf, symbol->vaddr, &start, &size);
	ask_inlined(elf, symbol->vaddr + symbol->size / 2);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elf_file *elf;
	struct elf_symbol symbol;
	uint8_t id[ELF_BUILD_ID_MAX], buf[512];
	uint64_t vaddr, size, bias, start;
	const char *file;
	uint32_t line;

	if (len > 1 << 16 || elf_open_memory(&elf, data, len, NULL) < 0)
		return 0;
	elf_build_id(elf, id);
	elf_machine(elf);
	elf_is_position_independent(elf);
	elf_bias(elf, 0x10000, 0x1000, &bias);
	if (elf_section(elf, ".eh_frame_hdr", &vaddr, &size))
		elf_read(elf, vaddr, buf, sizeof(buf));
	for (uint64_t offset = 0; offset < len; offset += 1000)
		if (elf_vaddr(elf, offset, &vaddr)) {
			elf_read(elf, vaddr, buf, sizeof(buf));
			elf_line(elf, vaddr, &file, &line);
		}
	/* The entries of a linkage table have 8 bytes and more. */
	for (uint64_t offset = 0; offset < len; offset += 8) {
		if (!elf_vaddr(elf, offset, &vaddr))
			continue;
		if (elf_symbol_at(elf, vaddr, &symbol) && vaddr - symbol.vaddr >= symbol.size)
			__builtin_trap();
		if (elf_function_range(elf, vaddr, &start, &size) && vaddr - start >= size)
			__builtin_trap();
	}
	elf_each_function(elf, ask_function, elf);
	elf_close(elf);
	return 0;
}
