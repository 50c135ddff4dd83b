/* ELF files against what binutils say of the same files. */
#include "symbol/elf.h"

#include <ctype.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Files that are looked at: this program, and libraries it is linked with. */
static char self[4096], libc_path[4096], libelf_path[4096];
static uintptr_t self_base, libc_base;

static int note_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	if (!info->dlpi_name[0])
		self_base = info->dlpi_addr;
	if (strstr(info->dlpi_name, "/libc.so")) {
		snprintf(libc_path, sizeof(libc_path), "%s", info->dlpi_name);
		libc_base = info->dlpi_addr;
	}
	if (strstr(info->dlpi_name, "/libelf"))
		snprintf(libelf_path, sizeof(libelf_path), "%s", info->dlpi_name);
	return 0;
}

static int setup(void **state)
{
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	dl_iterate_phdr(note_library, NULL);
	return len > 0 ? 0 : -1;
}

static FILE *tool(const char *fmt, ...)
{
	char command[9000];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return popen(command, "r");
}

static void need(const char *name)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
	if (system(command) != 0) {
		print_message("%s is not installed\n", name);
		skip();
	}
}

static struct elf_file *open_elf(const char *path)
{
	struct elf_file *elf;
	struct err err = {0};

	if (elf_open(&elf, path, &err) != 0)
		fail_msg("%s", err.text);
	return elf;
}

static void build_ids_are_readelfs(void **state)
{
	const char *files[] = {self, libc_path, libelf_path};

	need("readelf");
	for (size_t f = 0; f < 3; f++) {
		struct elf_file *elf = open_elf(files[f]);
		uint8_t id[ELF_BUILD_ID_MAX];
		size_t len = elf_build_id(elf, id);
		char want[128] = "", have[64] = "";
		FILE *pipe = tool("readelf -n '%s' | sed -n 's/.*Build ID: //p'", files[f]);

		if (fgets(want, sizeof(want), pipe))
			want[strcspn(want, "\n")] = '\0';
		pclose(pipe);
		for (size_t i = 0; i < len; i++)
			sprintf(have + 2 * i, "%02x", id[i]);
		assert_string_equal(have, want);
		elf_close(elf);
	}
}

/* Every defined dynamic symbol of libc and each global of ours has nm's value. */
static void names_are_nms(void **state)
{
	static const struct {
		const char *path, *flags;
		size_t least;
	} files[] = {{libc_path, "-D", 1000}, {libelf_path, "-D", 50}, {self, "", 8}};

	need("nm");
	for (size_t f = 0; f < 3; f++) {
		struct elf_file *elf = open_elf(files[f].path);
		FILE *pipe = tool("nm --defined-only %s '%s'", files[f].flags, files[f].path);
		char line[512], name[256], last[256] = "", type;
		unsigned long long value;
		size_t compared = 0, walked = 0;

		while (fgets(line, sizeof(line), pipe)) {
			struct elf_symbol symbol;
			char *at;

			if (sscanf(line, "%llx %c %255s", &value, &type, name) != 3)
				continue;
			/* libc is large: a walk per name would be quadratic in the test. */
			if (islower((unsigned char)type) || type == 'A' || type == 'N' ||
			    walked++ % 4)
				continue;
			at = strchr(name, '@');
			/* Older versions of a name (one @) differ from the default one. */
			if (at && at[1] != '@')
				continue;
			if (at)
				*at = '\0';
			assert_true(elf_symbol_by_name(elf, name, &symbol));
			assert_string_equal(symbol.name, name);
			if (symbol.vaddr != value && strcmp(name, last) != 0) {
				/* The name may have older versions at other places: nm's
				 * default one must then be among them. */
				FILE *all = tool("nm --defined-only %s '%s' | grep -c "
						 "'^%016llx .* %s@'",
						 files[f].flags, files[f].path,
						 (unsigned long long)symbol.vaddr, name);
				int count = 0;

				assert_int_equal(fscanf(all, "%d", &count), 1);
				pclose(all);
				assert_int_equal(count, 1);
			}
			strcpy(last, name);
			compared++;
		}
		pclose(pipe);
		assert_true(compared >= files[f].least / 4);
		{
			struct elf_symbol symbol;

			assert_false(elf_symbol_by_name(elf, "no_such_symbol", &symbol));
			assert_false(elf_symbol_by_name(elf, "", &symbol));
		}
		elf_close(elf);
	}
}

/* Function symbols of nm -S: the middle of each that no other one shares belongs to it. */
static void symbols_at_addresses_are_nms(void **state)
{
	static const struct {
		const char *path, *flags;
		size_t least;
	} files[] = {{libc_path, "-D", 500}, {libelf_path, "-D", 50}, {self, "", 50}};

	need("nm");
	for (size_t f = 0; f < 3; f++) {
		struct elf_file *elf = open_elf(files[f].path);
		FILE *pipe = tool("nm -S --defined-only %s '%s'", files[f].flags, files[f].path);
		char line[512], name[256], type;
		unsigned long long value, size;
		size_t compared = 0, aliases = 0;

		while (fgets(line, sizeof(line), pipe)) {
			struct elf_symbol symbol;

			if (sscanf(line, "%llx %llx %c %255s", &value, &size, &type, name) != 4 ||
			    !strchr("tTwWi", type) || size == 0)
				continue;
			for (int place = 0; place < 3; place++) {
				uint64_t addr = value + (place == 1   ? size / 2
							 : place == 2 ? size - 1
								      : 0);

				assert_true(elf_symbol_at(elf, addr, &symbol));
				assert_true(addr >= symbol.vaddr &&
					    addr - symbol.vaddr < symbol.size);
				/* Nested ones may be smaller, never begin before it. */
				assert_true(symbol.vaddr >= value);
			}
			assert_true(elf_symbol_at(elf, value, &symbol));
			assert_int_equal(symbol.vaddr, value);
			name[strcspn(name, "@")] = '\0';
			if (strcmp(symbol.name, name) == 0)
				compared++;
			else
				aliases++;
		}
		pclose(pipe);
		print_message("%s: %zu by name, %zu under another name\n", files[f].path, compared,
			      aliases);
		assert_true(compared >= files[f].least);
		elf_close(elf);
	}
}

/* A stripped library: its local functions come from the separate debug file, as nm reads it. */
static void symbols_of_separate_debug_files(void **state)
{
	struct elf_file *elf;
	struct elf_symbol symbol;
	char path[256] = "/usr/lib/debug/.build-id/", line[512], name[256], type;
	unsigned long long value, size;
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t len, compared = 0, at;
	FILE *pipe;

	need("nm");
	elf = open_elf(libc_path);
	len = elf_build_id(elf, id);
	at = strlen(path);
	for (size_t i = 0; i < len; i++)
		at += (size_t)sprintf(path + at, i ? "%02x" : "%02x/", id[i]);
	strcpy(path + at, ".debug");
	if (access(path, R_OK) != 0) {
		elf_close(elf);
		print_message("no debug file for %s\n", libc_path);
		skip();
	}
	pipe = tool("nm -S --defined-only '%s' | grep ' t '", path);
	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line, "%llx %llx %c %255s", &value, &size, &type, name) != 4 || !size)
			continue;
		assert_true(elf_symbol_at(elf, value + size / 2, &symbol));
		compared += symbol.vaddr == value && strcmp(symbol.name, name) == 0;
	}
	pclose(pipe);
	print_message("%zu local functions of %s\n", compared, path);
	assert_true(compared > 500);
	assert_true(elf_symbol_by_name(elf, "__restore_rt", &symbol));
	elf_close(elf);
}

struct walk {
	uint64_t last;
	size_t count;
};

static int count_function(const struct elf_symbol *symbol, void *ctx)
{
	struct walk *walk = ctx;

	assert_true(symbol->size > 0 && (!walk->count || symbol->vaddr > walk->last));
	walk->last = symbol->vaddr;
	return ++walk->count == 100 ? 5 : 0;
}

static void walks_functions(void **state)
{
	struct elf_file *elf = open_elf(libc_path);
	struct walk walk = {0};
	struct elf_symbol symbol;

	assert_int_equal(elf_each_function(elf, count_function, &walk), 5);
	assert_int_equal(walk.count, 100);
	assert_false(elf_symbol_at(elf, 0, &symbol));
	assert_false(elf_symbol_at(elf, UINT64_MAX, &symbol));
	elf_close(elf);
}

/* Entries of linkage tables, as objdump names them; what it calls an offset of one is a header. */
static size_t compare_plt(const char *path)
{
	struct elf_file *elf = open_elf(path);
	FILE *pipe = tool("objdump -d --no-show-raw-insn -j .plt -j .plt.sec -j .plt.got '%s' "
			  "2>/dev/null | grep '>:$'",
			  path);
	size_t compared = 0, indirect = 0;
	char line[512], want[400];
	unsigned long long addr, target;
	struct elf_symbol symbol, picked;

	while (fgets(line, sizeof(line), pipe)) {
		char *end;

		if (sscanf(line, "%llx <%399[^>]>", &addr, want) != 2)
			continue;
		end = strstr(want, "@plt");
		if (!elf_symbol_at(elf, addr, &symbol))
			fail_msg("%s: nothing at %llx, objdump %s", path, addr, want);
		assert_int_equal(symbol.vaddr, addr);
		if (!end || end[4]) {
			assert_int_equal(strncmp(symbol.name, ".plt", 4), 0);
			continue;
		}
		if (sscanf(want, "*ABS*+%llx@plt", &target) == 1 &&
		    strncmp(symbol.name, "*ABS*", 5) != 0) {
			assert_true(elf_symbol_at(elf, target, &picked));
			assert_int_equal(picked.vaddr, target);
			snprintf(want, sizeof(want), "%s@plt", picked.name);
			indirect++;
		}
		assert_string_equal(symbol.name, want);
		assert_true(symbol.size >= 8 && symbol.size <= 16);
		assert_true(elf_symbol_at(elf, addr + 7, &symbol));
		assert_int_equal(symbol.vaddr, addr);
		compared++;
	}
	pclose(pipe);
	print_message("%s: %zu entries, %zu of them indirect\n", path, compared, indirect);
	elf_close(elf);
	return compared;
}

static void linkage_tables_are_objdumps(void **state)
{
	need("objdump");
	assert_true(compare_plt(self) > 20);
	assert_true(compare_plt(libelf_path) > 20);
	assert_true(compare_plt(libc_path) > 5);
}

/* Files of other machines and linkers, with what objdump says of them. */
static void linkage_tables_elsewhere(void **state)
{
#define SEEDS "tests/fuzz/corpus/fuzz_elf/"
	static const struct {
		const char *path;
		uint64_t vaddr, size;
		const char *name;
	} entries[] = {
		{SEEDS "plt-aarch64.so", 0x2f0, 32, ".plt"},
		{SEEDS "plt-aarch64.so", 0x310, 16, "ext@plt"},
		{SEEDS "plt-aarch64.so", 0x320, 16, "puts@plt"},
		{SEEDS "plt-aarch64-bti", 0x400380, 32, ".plt"},
		{SEEDS "plt-aarch64-bti", 0x4003a0, 24, "ext@plt"},
		{SEEDS "plt-aarch64-bti", 0x4003b8, 24, "puts@plt"},
		{SEEDS "plt-x86-ibt.so", 0x350, 48, ".plt"},
		{SEEDS "plt-x86-ibt.so", 0x380, 16, "ext@plt"},
		{SEEDS "plt-x86-ibt.so", 0x390, 16, "puts@plt"},
	};
	static const struct {
		const char *path;
		uint64_t start, size;
	} ranges[] = {
		{SEEDS "plt-aarch64.so", 0x330, 0x40},
		{SEEDS "plt-aarch64-bti", 0x4003d0, 0x40},
	};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		struct elf_file *elf = open_elf(entries[i].path);
		struct elf_symbol symbol;

		for (uint64_t at = 0; at < entries[i].size; at += 4) {
			assert_true(elf_symbol_at(elf, entries[i].vaddr + at, &symbol));
			assert_string_equal(symbol.name, entries[i].name);
			assert_int_equal(symbol.vaddr, entries[i].vaddr);
			assert_int_equal(symbol.size, entries[i].size);
		}
		elf_close(elf);
	}
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		struct elf_file *elf = open_elf(ranges[i].path);
		uint64_t start, size;

		assert_true(elf_function_range(elf, ranges[i].start + 17, &start, &size));
		assert_int_equal(start, ranges[i].start);
		assert_int_equal(size, ranges[i].size);
		elf_close(elf);
	}
}

/* No section's code goes by a symbol of another one. */
static void symbols_stay_in_their_sections(void **state)
{
	const char *files[] = {self, libc_path, libelf_path};
	static const char *const names[] = {".init",	".plt",	 ".plt.got",
					    ".plt.sec", ".text", ".fini"};
	size_t compared = 0;

	for (size_t f = 0; f < 3; f++) {
		struct elf_file *elf = open_elf(files[f]);

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			struct elf_symbol symbol;
			uint64_t start, size;

			if (!elf_section(elf, names[i], &start, &size))
				continue;
			for (uint64_t at = start; at < start + size; at += 5) {
				if (!elf_symbol_at(elf, at, &symbol))
					continue;
				assert_true(symbol.vaddr >= start &&
					    symbol.vaddr + symbol.size <= start + size);
				compared++;
			}
		}
		elf_close(elf);
	}
	assert_true(compared > 1000);
}

/* The ranges of .eh_frame, as readelf prints them. */
static size_t compare_ranges(const char *path)
{
	struct elf_file *elf = open_elf(path);
	FILE *pipe = tool("readelf --debug-dump=frames '%s' 2>/dev/null | grep ' FDE '", path);
	size_t compared = 0;
	char line[512];

	while (fgets(line, sizeof(line), pipe)) {
		const char *pc = strstr(line, " pc=");
		unsigned long long from, to;
		uint64_t start, size;

		if (!pc || sscanf(pc, " pc=%llx..%llx", &from, &to) != 2 || from == to)
			continue;
		for (uint64_t at = from; at < to;
		     at += at == from && to - from > 2 ? (to - from) / 2 : to - from) {
			if (!elf_function_range(elf, at, &start, &size))
				fail_msg("%s: no range at %llx", path, (unsigned long long)at);
			assert_int_equal(start, from);
			assert_int_equal(size, to - from);
		}
		if (elf_function_range(elf, to, &start, &size))
			assert_int_equal(start, to);
		if (elf_function_range(elf, from - 1, &start, &size))
			assert_true(start < from && start + size == from);
		compared++;
	}
	pclose(pipe);
	print_message("%s: %zu ranges\n", path, compared);
	elf_close(elf);
	return compared;
}

static void ranges_are_readelfs(void **state)
{
	struct elf_file *elf;
	uint64_t start, size;

	need("readelf");
	assert_true(compare_ranges(self) > 20);
	assert_true(compare_ranges(libelf_path) > 100);
	assert_true(compare_ranges(libc_path) > 1000);
	elf = open_elf(libc_path);
	assert_false(elf_function_range(elf, 0, &start, &size));
	assert_false(elf_function_range(elf, UINT64_MAX, &start, &size));
	elf_close(elf);
}

/* In a stripped library the part that gcc moved away is found where its symbol was. */
static void cold_parts_are_where_symbols_were(void **state)
{
	char folder[] = "/tmp/pyperf-cold-XXXXXX", path[128];
	uint64_t start, size;
	struct elf_symbol hot, cold;
	struct elf_file *elf;
	FILE *source;

	need("gcc");
	need("strip");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/f.c", folder);
	source = fopen(path, "w");
	assert_non_null(source);
	fputs("void g(int) __attribute__((cold)); void h(int);\n"
	      "int f(int a, const int *p) {\n",
	      source);
	for (int i = 0; i < 12; i++)
		fprintf(source, "if (p[%d] == %d) { g(%d); a += p[%d]; } h(a);\n", i, i, i, i + 20);
	fputs("return a; }\nint plain(int a) { h(a); return a; }\n", source);
	fclose(source);
	pclose(tool("cd %s && gcc -O2 -shared -fPIC -o f.so f.c && strip -o s.so f.so", folder));
	snprintf(path, sizeof(path), "%s/f.so", folder);
	elf = open_elf(path);
	if (!elf_symbol_by_name(elf, "f.cold", &cold) || !elf_symbol_by_name(elf, "f", &hot)) {
		print_message("this gcc keeps functions whole\n");
		skip();
	}
	elf_close(elf);
	snprintf(path, sizeof(path), "%s/s.so", folder);
	elf = open_elf(path);
	assert_false(elf_symbol_by_name(elf, "f.cold", &(struct elf_symbol){0}));
	assert_true(elf_cold_part(elf, hot.vaddr, &start, &size));
	assert_int_equal(start, cold.vaddr);
	assert_int_equal(size, cold.size);
	assert_true(elf_symbol_by_name(elf, "plain", &hot));
	assert_false(elf_cold_part(elf, hot.vaddr, &start, &size));
	elf_close(elf);
	pclose(tool("rm -r %s", folder));
	/* Whole functions of real libraries have none. */
	elf = open_elf(libc_path);
	assert_true(elf_symbol_by_name(elf, "qsort", &hot));
	assert_false(elf_cold_part(elf, hot.vaddr, &start, &size));
	elf_close(elf);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Asked for many addresses, addr2line remembers the last line beyond its end; asked for one it does
 * not. */
static bool addr2line_alone(const char *path, uint64_t addr)
{
	FILE *pipe = tool("addr2line -e '%s' %llx", path, (unsigned long long)addr);
	char line[4096] = "";
	const char *colon;

	assert_non_null(fgets(line, sizeof(line), pipe));
	pclose(pipe);
	colon = strrchr(line, ':');
	return colon && atoi(colon + 1) != 0;
}

/* Lines at every so many bytes of the code of a file, all in one run of addr2line. It takes file 1
 * of some DWARF 5 tables for file 0 (objdump --dwarf=decodedline does not): so many may differ. */
static size_t compare_lines(const char *path, uint64_t from, uint64_t to, uint64_t step,
			    size_t other_names)
{
	struct elf_file *elf = open_elf(path);
	char list[] = "/tmp/pyperf-lines-XXXXXX", line[4096];
	FILE *addresses = fdopen(mkstemp(list), "w"), *pipe;
	size_t known = 0, missing = 0;

	assert_non_null(addresses);
	for (uint64_t addr = from; addr < to; addr += step)
		fprintf(addresses, "%llx\n", (unsigned long long)addr);
	fclose(addresses);
	pipe = tool("addr2line -e '%s' <%s 2>/dev/null", path, list);
	for (uint64_t addr = from; addr < to; addr += step) {
		const char *file = NULL;
		uint32_t number = 0;
		char *colon;

		assert_non_null(fgets(line, sizeof(line), pipe));
		colon = strrchr(line, ':');
		assert_non_null(colon);
		*colon = '\0';
		/* Code of no line is ":0" or ":?" there. */
		if (atoi(colon + 1) == 0) {
			missing += elf_line(elf, addr, &file, &number);
			continue;
		}
		if (!elf_line(elf, addr, &file, &number)) {
			if (!addr2line_alone(path, addr))
				continue;
			print_message("%s: no line at %llx (%s:%d)\n", path,
				      (unsigned long long)addr, line, atoi(colon + 1));
			fail();
		}
		if ((int)number != atoi(colon + 1) ||
		    (strcmp(base_name(file), base_name(line)) != 0 && other_names-- == 0)) {
			print_message("%s %llx: %s:%u, addr2line %s:%d\n", path,
				      (unsigned long long)addr, file, number, line,
				      atoi(colon + 1));
			fail();
		}
		known++;
	}
	pclose(pipe);
	unlink(list);
	print_message("%s: %zu lines equal, %zu that addr2line does not know\n", path, known,
		      missing);
	elf_close(elf);
	return known;
}

static void lines_are_addr2lines(void **state)
{
	struct elf_file *elf;
	uint64_t text, size;

	need("addr2line");
	elf = open_elf(self);
	assert_true(elf_section(elf, ".text", &text, &size));
	elf_close(elf);
	assert_true(compare_lines(self, text, text + size, 13, 0) > 200);
}

static void lines_of_separate_debug_files(void **state)
{
	struct elf_file *elf;
	const char *file;
	uint64_t text, size;
	uint32_t line;
	struct elf_symbol symbol;
	bool found;

	need("addr2line");
	elf = open_elf(libc_path);
	assert_true(elf_section(elf, ".text", &text, &size));
	assert_true(elf_symbol_by_name(elf, "qsort", &symbol));
	found = elf_line(elf, symbol.vaddr, &file, &line);
	elf_close(elf);
	if (!found) {
		print_message("no debug file for %s\n", libc_path);
		skip();
	}
	assert_true(compare_lines(libc_path, text, text + size, 4099, 40) > 50);
}

static void sections_are_readelfs(void **state)
{
	struct elf_file *elf;
	FILE *pipe;
	char line[512];
	size_t compared = 0;
	uint64_t vaddr, size;

	need("readelf");
	elf = open_elf(libc_path);
	pipe = tool("readelf -SW '%s' | sed 's/^ *\\[ *[0-9]*\\] //'", libc_path);
	while (fgets(line, sizeof(line), pipe)) {
		unsigned long long want_addr, off, want_size;
		char name[128], type[64];

		if (sscanf(line, ".%126s %63s %llx %llx %llx", name + 1, type, &want_addr, &off,
			   &want_size) != 5)
			continue;
		name[0] = '.';
		assert_true(elf_section(elf, name, &vaddr, &size));
		assert_int_equal(vaddr, want_addr);
		assert_int_equal(size, want_size);
		compared++;
	}
	pclose(pipe);
	assert_true(compared > 20);
	assert_false(elf_section(elf, ".none", &vaddr, &size));
	elf_close(elf);
}

/* What elf_read() says of an address is what the loader put there. */
static void reads_what_is_mapped(void **state)
{
	struct elf_file *elf = open_elf(libc_path);
	static const char *const names[] = {"_thread_db_pthread_specific",
					    "_thread_db_sizeof_pthread", "strlen", "qsort"};
	struct elf_symbol symbol;
	unsigned char bytes[16];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!elf_symbol_by_name(elf, names[i], &symbol))
			continue;
		assert_int_equal(elf_read(elf, symbol.vaddr, bytes, 8), 0);
		assert_memory_equal(bytes, (void *)(libc_base + symbol.vaddr), 8);
	}
	assert_int_equal(elf_read(elf, UINT64_MAX - 4, bytes, 8), -1);
	assert_int_equal(elf_read(elf, UINT64_MAX, bytes, 1), -1);
	assert_int_equal(elf_read(elf, 1ull << 40, bytes, 1), -1);
	elf_close(elf);
}

/* File offset -> vaddr -> address and back agree with the loader's own base for our maps. */
static void biases_are_the_loaders(void **state)
{
	struct elf_file *own = open_elf(self), *libc = open_elf(libc_path);
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[5000];
	size_t compared = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long long start, end, pgoff;
		struct elf_file *elf = NULL;
		uint64_t bias, base = 0, vaddr;
		char perms[8], path[4096] = "";

		sscanf(line, "%llx-%llx %7s %llx %*s %*s %4095[^\n]", &start, &end, perms, &pgoff,
		       path);
		if (perms[2] != 'x')
			continue;
		if (strcmp(path, self) == 0) {
			elf = own;
			base = self_base;
		} else if (strcmp(path, libc_path) == 0) {
			elf = libc;
			base = libc_base;
		}
		if (!elf)
			continue;
		assert_true(elf_bias(elf, start, pgoff, &bias));
		assert_int_equal(bias, base);
		assert_true(elf_vaddr(elf, pgoff + 64, &vaddr));
		assert_int_equal(vaddr + base, start + 64);
		compared++;
	}
	fclose(maps);
	assert_true(compared >= 1);
	assert_false(elf_vaddr(own, UINT64_MAX, &(uint64_t){0}));
	assert_true(elf_machine(own) == elf_machine(libc));
	assert_true(elf_is_position_independent(libc));
	elf_close(own);
	elf_close(libc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build_ids_are_readelfs),
		cmocka_unit_test(names_are_nms),
		cmocka_unit_test(symbols_at_addresses_are_nms),
		cmocka_unit_test(symbols_of_separate_debug_files),
		cmocka_unit_test(walks_functions),
		cmocka_unit_test(linkage_tables_are_objdumps),
		cmocka_unit_test(linkage_tables_elsewhere),
		cmocka_unit_test(symbols_stay_in_their_sections),
		cmocka_unit_test(ranges_are_readelfs),
		cmocka_unit_test(cold_parts_are_where_symbols_were),
		cmocka_unit_test(lines_are_addr2lines),
		cmocka_unit_test(lines_of_separate_debug_files),
		cmocka_unit_test(sections_are_readelfs),
		cmocka_unit_test(reads_what_is_mapped),
		cmocka_unit_test(biases_are_the_loaders),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
