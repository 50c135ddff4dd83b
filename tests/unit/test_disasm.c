/* Disassembly against objdump's of the same functions. */
#include "symbol/disasm.h"
#include "symbol/elf.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct listing {
	struct {
		uint64_t addr;
		uint32_t size;
		char text[200];
	} lines[4096];
	size_t count;
};

static int collect(const struct disasm_line *line, void *ctx)
{
	struct listing *listing = ctx;

	if (listing->count == sizeof(listing->lines) / sizeof(listing->lines[0]))
		return 1;
	listing->lines[listing->count].addr = line->addr;
	listing->lines[listing->count].size = line->size;
	snprintf(listing->lines[listing->count].text, sizeof(listing->lines[0].text), "%s",
		 line->text);
	listing->count++;
	return 0;
}

static void need_capstone(void)
{
	struct err err = {0};
	struct listing *listing = calloc(1, sizeof(*listing));
	int ret = disasm(EM_X86_64, 0, "\x90", 1, collect, listing, &err);

	free(listing);
	if (ret == ERR_UNSUPPORTED) {
		assert_non_null(strstr(err.hint, "capstone"));
		print_message("%s\n", err.text);
		skip();
	}
	assert_int_equal(ret, 0);
}

static void agrees_with_objdump(void **state)
{
	static const char *const functions[] = {"elf_open", "elf_symbol_at", "main", "disasm",
						"elf_line"};
	struct listing *listing = calloc(1, sizeof(*listing));
	char self[4096] = "", command[4400], line[512];
	size_t lines = 0, same_words = 0;
	struct elf_file *elf;

	need_capstone();
	if (system("command -v objdump >/dev/null") != 0) {
		free(listing);
		print_message("objdump is not installed\n");
		skip();
	}
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	assert_int_equal(elf_open(&elf, self, NULL), 0);
	for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
		struct elf_symbol symbol;
		unsigned char code[16384];
		size_t at = 0;
		FILE *pipe;

		assert_true(elf_symbol_by_name(elf, functions[f], &symbol));
		assert_true(symbol.size > 0 && symbol.size <= sizeof(code));
		assert_int_equal(elf_read(elf, symbol.vaddr, code, symbol.size), 0);
		listing->count = 0;
		assert_int_equal(disasm(elf_machine(elf), symbol.vaddr, code, symbol.size, collect,
					listing, NULL),
				 0);
		snprintf(command, sizeof(command),
			 "objdump -d -w -M intel --no-show-raw-insn --start-address=%llu "
			 "--stop-address=%llu '%s' 2>/dev/null || true",
			 (unsigned long long)symbol.vaddr,
			 (unsigned long long)(symbol.vaddr + symbol.size), self);
		pipe = popen(command, "r");
		while (fgets(line, sizeof(line), pipe)) {
			unsigned long long addr;
			char word[64] = "";

			if (line[0] != ' ' || sscanf(line, " %llx: %63s", &addr, word) != 2)
				continue;
			assert_true(at < listing->count);
			assert_int_equal(listing->lines[at].addr, addr);
			same_words += strncmp(listing->lines[at].text, word, strlen(word)) == 0;
			at++;
			lines++;
		}
		pclose(pipe);
		assert_int_equal(at, listing->count);
		assert_int_equal(listing->lines[at - 1].addr + listing->lines[at - 1].size,
				 symbol.vaddr + symbol.size);
	}
	elf_close(elf);
	free(listing);
	print_message("%zu instructions at the same places, %zu by the same name\n", lines,
		      same_words);
	assert_true(lines > 300);
	/* The two name some differently: "movabs", "cs nop". */
	assert_true(same_words * 100 > lines * 95);
}

static void passes_over_what_is_no_code(void **state)
{
	static const unsigned char code[] = {0x90, 0x06, 0xc3, 0xe8, 0x00};
	static const struct {
		uint64_t addr;
		uint32_t size;
		const char *text;
	} want[] = {{0x1000, 1, "nop"},
		    {0x1001, 1, ".byte 0x06"},
		    {0x1002, 1, "ret"},
		    {0x1003, 1, ".byte 0xe8"},
		    {0x1004, 1, ".byte 0x00"}};
	struct listing *listing = calloc(1, sizeof(*listing));

	need_capstone();
	assert_int_equal(disasm(EM_X86_64, 0x1000, code, sizeof(code), collect, listing, NULL), 0);
	assert_int_equal(listing->count, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(listing->lines[i].addr, want[i].addr);
		assert_int_equal(listing->lines[i].size, want[i].size);
		assert_string_equal(listing->lines[i].text, want[i].text);
	}
	listing->count = 4096;
	assert_int_equal(disasm(EM_X86_64, 0, code, sizeof(code), collect, listing, NULL), 1);
	listing->count = 0;
	assert_int_equal(disasm(EM_X86_64, 0, code, 0, collect, listing, NULL), 0);
	assert_int_equal(disasm(EM_AARCH64, 0x40, "\xc0\x03\x5f\xd6", 4, collect, listing, NULL),
			 0);
	assert_string_equal(listing->lines[0].text, "ret");
	assert_int_equal(listing->lines[0].size, 4);
	assert_int_equal(disasm(EM_SPARC, 0, code, sizeof(code), collect, listing, NULL),
			 ERR_UNSUPPORTED);
	free(listing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_objdump),
		cmocka_unit_test(passes_over_what_is_no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
