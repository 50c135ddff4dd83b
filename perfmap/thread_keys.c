#include "perfmap/thread_keys.h"

#include "arch/arch.h"
#include "symbol/disasm.h"

#include <stdio.h>
#include <string.h>

static bool read_symbol(struct elf_file *elf, const char *name, void *buf, size_t len)
{
	struct elf_symbol symbol;

	return elf_symbol_by_name(elf, name, &symbol) && elf_read(elf, symbol.vaddr, buf, len) == 0;
}

/*
 * glibc describes struct pthread to libthread_db (nptl_db/db_info.c): a field is { bits, count,
 * offset }, a size one number. Where struct pthread lies from the thread pointer, lib/arch knows.
 */
static bool read_glibc(struct elf_file *elf, struct py_tsd *tsd)
{
	struct {
		uint32_t bits, count, offset;
	} specific, data, tid;
	const struct arch *arch = arch_by_machine(elf_machine(elf));
	uint32_t size_pthread, size_entry, size_block;
	uint8_t code[4];
	int32_t self;

	if (!arch ||
	    !read_symbol(elf, "_thread_db_pthread_specific", &specific, sizeof(specific)) ||
	    !read_symbol(elf, "_thread_db_pthread_key_data_data", &data, sizeof(data)) ||
	    !read_symbol(elf, "_thread_db_sizeof_pthread", &size_pthread, sizeof(uint32_t)) ||
	    !read_symbol(elf, "_thread_db_sizeof_pthread_key_data", &size_entry,
			 sizeof(uint32_t)) ||
	    !read_symbol(elf, "_thread_db_sizeof_pthread_key_data_level2", &size_block,
			 sizeof(uint32_t)))
		return false;
	if (size_pthread > 1u << 20 || specific.offset > size_pthread || size_entry == 0 ||
	    size_entry > 256 || data.offset + 8 > size_entry || size_block < size_entry ||
	    size_block > 1u << 20 || specific.bits < 64 || specific.bits > 1u << 20)
		return false;
	self = arch->pthread_at_tp ? 0 : -(int32_t)size_pthread;
	if (arch->pthread_self && (!read_symbol(elf, "pthread_self", code, sizeof(code)) ||
				   !arch->pthread_self(code, sizeof(code), &self)))
		return false;
	*tsd = (struct py_tsd){
		.self = self,
		.blocks = self + (int32_t)specific.offset,
		.block_keys = size_block / size_entry,
		.block_count = specific.bits / 64,
		.entry_size = size_entry,
		.data = data.offset,
	};
	if (read_symbol(elf, "_thread_db_pthread_tid", &tid, sizeof(tid)) && tid.bits == 32 &&
	    tid.offset < size_pthread)
		tsd->tid = tid.offset;
	return true;
}

/*
 * musl has no such description, but pthread_getspecific(key) is `pthread_self()->tsd[key]` and
 * nothing else (src/thread/pthread_getspecific.c), so its code tells the offset:
 *
 *	mov rax, qword ptr fs:[0]		mrs x1, tpidr_el0
 *	mov rax, qword ptr [rax + 0x80]		ldur x1, [x1, #-0x58]
 *	mov rax, qword ptr [rax + rdi*8]	ldr x0, [x1, w0, uxtw #3]
 *
 * Code that does anything beside is not taken. pthread_self() is the first of these, and on arm64 a
 * subtraction.
 */
#define MUSL_KEYS 128 /* PTHREAD_KEYS_MAX */

struct getter {
	enum { SELF, ARRAY, ENTRY, RETURN, DONE } expects;
	int32_t self, array; /* from the thread pointer */
};

static bool is_padding(const char *text)
{
	static const char *const texts[] = {"endbr64", "hint", "mov edi, edi"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strncmp(text, texts[i], strlen(texts[i])) == 0)
			return true;
	return false;
}

static bool is_array(const char *text, int *offset)
{
	static const char *const formats[] = {
		"mov %*[a-z0-9], qword ptr [%*[a-z0-9] + %i]",
		"ldr %*[a-z0-9], [%*[a-z0-9], #%i]",
		"ldur %*[a-z0-9], [%*[a-z0-9], #%i]",
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (sscanf(text, formats[i], offset) == 1)
			return true;
	return false;
}

/* Stops at what is not expected, and at the end. */
static int take_instruction(const struct disasm_line *line, void *ctx)
{
	struct getter *getter = ctx;
	const char *text = line->text;
	int n;

	if (is_padding(text))
		return 0;
	switch (getter->expects) {
	case SELF:
		getter->expects = ARRAY;
		return !strstr(text, "fs:[0]") && !strstr(text, "tpidr_el0");
	case ARRAY:
		if (sscanf(text, "sub %*[a-z0-9], %*[a-z0-9], #%i", &n) == 1) {
			getter->self -= n;
			return 0;
		}
		if (strcmp(text, "ret") == 0) {
			getter->expects = DONE;
			return 1;
		}
		getter->expects = ENTRY;
		if (!is_array(text, &n))
			return 1;
		getter->array = getter->self + n;
		return 0;
	case ENTRY:
		getter->expects = RETURN;
		return !strstr(text, "*8]") && !strstr(text, "#3]");
	case RETURN:
		getter->expects = strcmp(text, "ret") == 0 ? DONE : RETURN;
		return 1;
	default:
		return 1;
	}
}

static bool read_getter(struct elf_file *elf, const char *name, struct getter *getter)
{
	struct elf_symbol symbol;
	uint8_t code[64];
	size_t len;

	*getter = (struct getter){0};
	if (!elf_symbol_by_name(elf, name, &symbol))
		return false;
	len = symbol.size < sizeof(code) ? symbol.size : sizeof(code);
	if (elf_read(elf, symbol.vaddr, code, len) < 0)
		return false;
	disasm(elf_machine(elf), symbol.vaddr, code, len, take_instruction, getter, NULL);
	return getter->expects == DONE;
}

static bool read_musl(struct elf_file *elf, struct py_tsd *tsd)
{
	struct getter getter, self;

	if (!read_getter(elf, "pthread_getspecific", &getter) || !getter.array)
		return false;
	/* A program that does not call it has none; sub-interpreters alone need it. */
	read_getter(elf, "pthread_self", &self);
	*tsd = (struct py_tsd){
		.self = self.self,
		.blocks = getter.array,
		.block_keys = MUSL_KEYS,
		.block_count = 1,
		.entry_size = 8,
	};
	return true;
}

bool thread_keys_read(struct elf_file *elf, struct py_tsd *tsd)
{
	return read_glibc(elf, tsd) || read_musl(elf, tsd);
}
