/* Inlined functions against what llvm-addr2line says of the same addresses. */
#include "symbol/elf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char folder[64];

static const char source[] =
	"#include <algorithm>\n"
	"#include <cstdio>\n"
	"#include <vector>\n"
	"namespace shape {\n"
	"struct Point { double x, y; inline double square() const { return x * x + y * y; } };\n"
	"static inline double twice(const Point &p) { return p.square() + p.square(); }\n"
	"static inline double sum(const std::vector<Point> &all) {\n"
	"    double total = 0;\n"
	"    for (const Point &p : all)\n"
	"        total += twice(p);\n"
	"    return total;\n"
	"}\n"
	"}\n"
	"int main(int argc, char **argv) {\n"
	"    std::vector<shape::Point> all;\n"
	"    for (int i = 0; i < argc * 100; i++)\n"
	"        all.push_back({double(i), double(argc)});\n"
	"    std::sort(all.begin(), all.end(),\n"
	"              [](const shape::Point &a, const shape::Point &b) { return a.square() < "
	"b.square(); });\n"
	"    std::printf(\"%f\\n\", shape::sum(all));\n"
	"}\n";

static int setup(void **state)
{
	char path[128];
	FILE *file;

	snprintf(folder, sizeof(folder), "/tmp/pyperf-inline-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/t.cc", folder);
	file = fopen(path, "w");
	if (!file)
		return -1;
	fputs(source, file);
	return fclose(file);
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* What addr2line -i says of one address: functions, innermost first, and the line within each. */
struct said {
	char name[512];
	unsigned int line;
};

/* llvm-addr2line says "0xADDRESS", then two lines for each frame. */
static bool next_line(FILE *in, char *line, size_t size)
{
	if (!fgets(line, (int)size, in))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

static unsigned int compare(struct elf_file *elf, uint64_t vaddr, const struct said *said,
			    size_t count)
{
	struct elf_inlined calls[64];
	size_t found = elf_inlined(elf, vaddr, calls, 64);

	if (found + 1 != count)
		fail_msg("%llx: %zu inlined, llvm-addr2line says %zu", (unsigned long long)vaddr,
			 found, count - 1);
	for (size_t i = 0; i < found; i++) {
		if (strcmp(calls[i].name, said[i].name) != 0 || calls[i].line != said[i + 1].line)
			fail_msg("%llx: %s called on %u, llvm-addr2line says %s on %u",
				 (unsigned long long)vaddr, calls[i].name, calls[i].line,
				 said[i].name, said[i + 1].line);
	}
	return (unsigned int)found;
}

static void as_addr2line_says(const char *compiler, const char *flags)
{
	char command[512], path[128], line[4096] = "";
	uint64_t start = 0, size = 0, vaddr = 0;
	unsigned int inlined = 0, most = 0;
	struct said said[64];
	struct elf_file *elf;
	size_t count = 0;
	FILE *tool;

	snprintf(command, sizeof(command),
		 "command -v llvm-addr2line %s >/dev/null && cd %s && %s %s -o t t.cc 2>/dev/null",
		 compiler, folder, compiler, flags);
	if (system(command) != 0) {
		print_message("skipped: takes %s and llvm-addr2line\n", compiler);
		skip();
	}
	snprintf(path, sizeof(path), "%s/t", folder);
	assert_int_equal(elf_open(&elf, path, NULL), 0);
	assert_true(elf_section(elf, ".text", &start, &size));
	/* Every third byte of the code. */
	snprintf(command, sizeof(command),
		 "seq %llu 3 %llu | xargs printf '%%x\\n' | llvm-addr2line -i -f -a -e %s",
		 (unsigned long long)start, (unsigned long long)(start + size - 1), path);
	tool = popen(command, "r");
	for (bool more = true; more;) {
		more = next_line(tool, line, sizeof(line));
		if (!more || strncmp(line, "0x", 2) == 0) {
			/* Addresses of no function at all have "??". */
			if (count && strcmp(said[0].name, "??") != 0) {
				unsigned int depth = compare(elf, vaddr, said, count);

				inlined += depth > 0;
				most = depth > most ? depth : most;
			}
			vaddr = strtoull(line, NULL, 16);
			count = 0;
			continue;
		}
		assert_true(count < 64);
		snprintf(said[count].name, sizeof(said[count].name), "%.511s", line);
		assert_true(next_line(tool, line, sizeof(line)));
		said[count].line = strrchr(line, ':') ? (unsigned int)atoi(strrchr(line, ':') + 1)
						      : 0;
		count++;
	}
	pclose(tool);
	elf_close(elf);
	print_message("%u addresses inlined, up to %u deep\n", inlined, most);
	assert_true(inlined > 50 && most >= 3);
}

static void of_gcc(void **state)
{
	as_addr2line_says("g++", "-O2 -g");
}

static void of_gcc_in_dwarf_4(void **state)
{
	as_addr2line_says("g++", "-O2 -gdwarf-4");
}

static void of_clang(void **state)
{
	as_addr2line_says("clang++", "-O2 -g");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_gcc),
		cmocka_unit_test(of_gcc_in_dwarf_4),
		cmocka_unit_test(of_clang),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
