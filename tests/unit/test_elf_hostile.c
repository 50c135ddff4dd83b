/* Files that are no ELF files, that are cut short, or large. */
#include "symbol/elf.h"

#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define LARGE_BYTES (100 << 20)

/* One that this program is linked with. */
static char library[4096];

static int note_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	if (strstr(info->dlpi_name, "/libc.so"))
		snprintf(library, sizeof(library), "%s", info->dlpi_name);
	return 0;
}

static int setup(void **state)
{
	dl_iterate_phdr(note_library, NULL);
	return library[0] ? 0 : -1;
}

static void refuses_what_is_no_elf(void **state)
{
	struct elf_file *elf;
	struct err err = {0};
	unsigned char header[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};

	assert_int_equal(elf_open(&elf, "/no/such/file", &err), ERR_NOT_FOUND);
	assert_null(elf);
	assert_int_equal(elf_open(&elf, "/proc/self/maps", &err), ERR_PERMISSION);
	assert_int_equal(elf_open(&elf, "/dev/zero", &err), ERR_PERMISSION);
	assert_int_equal(elf_open(&elf, "/tmp", &err), ERR_PERMISSION);
	assert_int_equal(elf_open_memory(&elf, "", 0, &err), ERR_CORRUPT);
	for (size_t len = 0; len < sizeof(header); len++)
		assert_int_equal(elf_open_memory(&elf, header, len, &err), ERR_CORRUPT);
	elf_close(NULL);
}

/* A file cut anywhere is refused or read as far as it goes. */
static void survives_files_cut_short(void **state)
{
	FILE *file = fopen(library, "rb");
	struct stat st;
	unsigned char *bytes;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	bytes = malloc((size_t)st.st_size);
	assert_int_equal(fread(bytes, 1, (size_t)st.st_size, file), st.st_size);
	fclose(file);
	for (size_t len = 0; len < (size_t)st.st_size; len += 1 + len / 8) {
		struct elf_file *elf;
		struct elf_symbol symbol;
		uint8_t id[ELF_BUILD_ID_MAX];
		char buf[256];

		if (elf_open_memory(&elf, bytes, len, NULL) != 0)
			continue;
		elf_build_id(elf, id);
		elf_symbol_by_name(elf, "qsort", &symbol);
		for (uint64_t vaddr = 0; vaddr < (uint64_t)st.st_size; vaddr += 4096)
			elf_read(elf, vaddr, buf, sizeof(buf));
		elf_close(elf);
	}
	free(bytes);
}

/* Pages that this process touched. */
static long touched(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static void opens_large_files_at_once(void **state)
{
	struct elf_file *elf;
	struct elf_symbol symbol;
	char path[] = "/tmp/pyperf-large-XXXXXX";
	char buf[1 << 16];
	int fd = mkstemp(path), from = open(library, O_RDONLY);
	long before;
	ssize_t n;

	/* libc with a hundred megabytes behind it. */
	assert_true(fd >= 0 && from >= 0);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		assert_int_equal(write(fd, buf, (size_t)n), n);
	assert_int_equal(ftruncate(fd, LARGE_BYTES), 0);
	close(from);
	close(fd);
	before = touched();
	assert_int_equal(elf_open(&elf, path, NULL), 0);
	assert_true(elf_symbol_by_name(elf, "qsort", &symbol));
	elf_close(elf);
	unlink(path);
	/* The file has 25,600 pages; libc's own are less than a tenth of them. */
	print_message("open and one look-up in 100 MB: %ld page faults\n", touched() - before);
	assert_true(touched() - before < LARGE_BYTES / 4096 / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_no_elf),
		cmocka_unit_test(survives_files_cut_short),
		cmocka_unit_test(opens_large_files_at_once),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
