/* The process model against a plain array of pages, and the rules of exec, fork and names. */
#include "process/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void map_into(struct process_table *table, uint32_t pid, uint64_t start, uint64_t len,
		     uint64_t pgoff, const char *path)
{
	struct process_map map = {
		.pid = pid, .start = start, .len = len, .pgoff = pgoff, .path = path};

	assert_int_equal(process_mmap(table, &map, NULL), 0);
}

static const char *path_at(struct process_table *table, uint32_t pid, uint64_t addr, bool kernel)
{
	struct map_hit hit;

	if (!process_find(table, pid, addr, kernel, &hit))
		return NULL;
	assert_true(addr >= hit.start && addr < hit.end);
	return process_dso(table, hit.dso)->path;
}

#define assert_path(table, pid, addr, want) \
	assert_string_equal(path_at((table), (pid), (addr), false), (want))

/* Each process's pages hold (file, page of the file) or nothing. Enough for sets with a base. */
enum { PAGES = 1500, PROCESSES = 5, FILES = 7 };

struct page {
	int file;
	uint64_t pgoff;
};

/* All pages of a hit are pieces of the same file one behind the other. */
static void check_extent(const struct page *model, int page, const struct map_hit *hit)
{
	for (int i = (int)(hit->start >> 12); i < (int)(hit->end >> 12); i++) {
		assert_int_equal(model[i].file, model[page].file);
		assert_int_equal(model[i].pgoff - model[page].pgoff, (uint64_t)(i - page));
	}
}

static void agrees_with_an_array_of_pages(void **state)
{
	static struct page model[PROCESSES][PAGES];
	static const char *const names[FILES] = {"/a", "/b", "/c", "/d", "/e", "/f", "/g"};
	struct process_table *table = process_table_new();
	unsigned int seed = 42;

	for (int p = 0; p < PROCESSES; p++)
		for (int i = 0; i < PAGES; i++)
			model[p][i].file = -1;
	for (int step = 0; step < 8000; step++) {
		int p = rand_r(&seed) % PROCESSES, what = rand_r(&seed) % 200;
		uint64_t before[PROCESSES];

		for (int q = 0; q < PROCESSES; q++)
			before[q] = process_generation(table, 100 + q);
		if (what == 0) {
			assert_int_equal(process_comm(table, 100 + p, 100 + p, "new", true, NULL),
					 0);
			for (int i = 0; i < PAGES; i++)
				model[p][i].file = -1;
		} else if (what == 1) {
			int from = (p + 1) % PROCESSES;

			assert_int_equal(
				process_fork(table, 100 + p, 100 + p, 100 + from, 100 + from, NULL),
				0);
			memcpy(model[p], model[from], sizeof(model[p]));
			assert_int_equal(process_generation(table, 100 + p),
					 process_generation(table, 100 + from));
		} else {
			int start = rand_r(&seed) % PAGES;
			int len = 1 + rand_r(&seed) % (step % 100 ? 12 : PAGES);
			int file = rand_r(&seed) % FILES;
			uint64_t pgoff = (uint64_t)(rand_r(&seed) % 1000);

			len = start + len > PAGES ? PAGES - start : len;
			map_into(table, 100 + p, (uint64_t)start << 12, (uint64_t)len << 12,
				 pgoff << 12, names[file]);
			for (int i = 0; i < len; i++)
				model[p][start + i] = (struct page){file, pgoff + i};
		}
		for (int q = 0; q < PROCESSES; q++) {
			uint64_t after = process_generation(table, 100 + q);

			if (q == p && what != 1)
				assert_int_not_equal(after, before[q]);
			else if (q != p)
				assert_int_equal(after, before[q]);
		}
		for (int i = 0; i < PAGES; i += 1 + step % 17) {
			uint64_t addr = ((uint64_t)i << 12) + 5;
			const struct page *page = &model[p][i];
			struct map_hit hit;

			if (!process_find(table, 100 + p, addr, false, &hit)) {
				assert_int_equal(page->file, -1);
				continue;
			}
			assert_true(page->file >= 0);
			assert_string_equal(process_dso(table, hit.dso)->path, names[page->file]);
			assert_int_equal(hit.file_offset, (page->pgoff << 12) + 5);
			assert_true(addr >= hit.start && addr < hit.end);
			check_extent(model[p], i, &hit);
		}
	}
	assert_int_equal(process_dso_count(table), FILES);
	process_table_free(table);
	process_table_free(NULL);
}

static void generations_are_unique(void **state)
{
	struct process_table *table = process_table_new();

	map_into(table, 1, 0x1000, 0x1000, 0, "/a");
	map_into(table, 2, 0x1000, 0x1000, 0, "/a");
	assert_int_not_equal(process_generation(table, 1), process_generation(table, 2));
	assert_int_not_equal(process_generation(table, 8), process_generation(table, 9));
	assert_int_equal(process_fork(table, 3, 3, 1, 1, NULL), 0);
	assert_int_equal(process_generation(table, 1), process_generation(table, 3));
	map_into(table, 1, 0x9000, 0x1000, 0, "/b");
	assert_int_not_equal(process_generation(table, 1), process_generation(table, 3));
	assert_null(path_at(table, 3, 0x9000, false));
	assert_path(table, 3, 0x1fff, "/a");
	process_table_free(table);
}

static void kernel_maps(void **state)
{
	struct process_table *table = process_table_new();
	struct process_map image = {.pid = UINT32_MAX,
				    .start = 0xffffffff81000000,
				    .len = 0x40000000,
				    .pgoff = 0xffffffff81000000,
				    .path = "[kernel.kallsyms]_text",
				    .kernel = true};
	struct process_map module = {.pid = UINT32_MAX,
				     .start = 0xffffffffa0000000,
				     .len = 0x3000,
				     .path = "[nf_tables]",
				     .kernel = true};
	struct process_map file = {.pid = UINT32_MAX,
				   .start = 0xffffffffa0008000,
				   .len = 0x3000,
				   .path = "/lib/modules/6.1/kernel/net/x.ko",
				   .kernel = true};
	struct process_map guest = image;
	struct map_hit hit;

	assert_int_equal(process_mmap(table, &module, NULL), 0);
	assert_int_equal(process_mmap(table, &image, NULL), 0);
	assert_int_equal(process_mmap(table, &file, NULL), 0);
	guest.path = "[guest.kernel.kallsyms]";
	assert_int_equal(process_mmap(table, &guest, NULL), 0);

	assert_true(process_find(table, 7, 0xffffffff81234567, true, &hit));
	assert_string_equal(process_dso(table, hit.dso)->path, "[kernel.kallsyms]");
	assert_int_equal(process_dso(table, hit.dso)->kind, DSO_KERNEL);
	assert_true(hit.file_offset == 0xffffffff81234567);
	assert_true(process_find(table, 7, 0xffffffffa0001234, true, &hit));
	assert_string_equal(process_dso(table, hit.dso)->path, "[nf_tables]");
	assert_int_equal(process_dso(table, hit.dso)->kind, DSO_MODULE);
	assert_int_equal(hit.file_offset, 0x1234);
	assert_true(process_find(table, 7, 0xffffffffa0003000, true, &hit));
	assert_int_equal(process_dso(table, hit.dso)->kind, DSO_KERNEL);
	assert_true(process_find(table, 7, 0xffffffffa0008001, true, &hit));
	assert_int_equal(process_dso(table, hit.dso)->kind, DSO_MODULE);
	/* The kernel half is the kernel's for whoever asks; the rest is not. */
	assert_true(process_find(table, 7, 0xffffffff81234567, false, &hit));
	assert_false(process_find(table, 7, 0x1000, true, &hit));
	assert_false(process_find(table, 7, 0xffffffffc8000000, true, &hit));
	/* What the process itself has mapped there goes first. */
	map_into(table, 7, 0xffffffffff600000, 0x1000, 0, "[vsyscall]");
	assert_path(table, 7, 0xffffffffff600400, "[vsyscall]");
	process_table_free(table);
}

static void extreme_maps(void **state)
{
	struct process_table *table = process_table_new();
	struct map_hit hit;

	map_into(table, 1, 0x1000, 0, 0, "/empty");
	assert_null(path_at(table, 1, 0x1000, false));
	map_into(table, 1, UINT64_MAX - 10, UINT64_MAX, 0, "/top");
	assert_path(table, 1, UINT64_MAX - 10, "/top");
	map_into(table, 1, 0, UINT64_MAX, 0, "/all");
	assert_true(process_find(table, 1, 0, false, &hit));
	assert_true(process_find(table, 1, UINT64_MAX - 1, false, &hit));
	assert_string_equal(process_dso(table, hit.dso)->path, "/all");
	assert_null(process_dso(table, 0));
	assert_null(process_dso(table, 1000));
	process_table_free(table);
}

static void kinds(void **state)
{
	static const struct {
		const char *path;
		enum dso_kind kind;
	} rows[] = {
		{"/usr/bin/python3", DSO_ELF},
		{"[vdso]", DSO_VDSO},
		{"", DSO_ANON},
		{"//anon", DSO_ANON},
		{"[anon:jit]", DSO_ANON},
		{"/dev/zero (deleted)", DSO_ANON},
		{"/memfd:jit (deleted)", DSO_ANON},
		{"[heap]", DSO_SPECIAL},
		{"[stack]", DSO_SPECIAL},
		{"/SYSV0052e2c1 (deleted)", DSO_SPECIAL},
		{"anon_inode:[perf]", DSO_SPECIAL},
	};
	struct process_table *table = process_table_new();
	struct map_hit hit;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t start = 0x10000 * (i + 1);

		map_into(table, 1, start, 0x1000, 0x5000, rows[i].path);
		assert_true(process_find(table, 1, start + 8, false, &hit));
		assert_int_equal(process_dso(table, hit.dso)->kind, rows[i].kind);
		assert_int_equal(hit.file_offset,
				 rows[i].kind == DSO_ELF || rows[i].kind == DSO_VDSO ? 0x5008
										     : start + 8);
	}
	process_table_free(table);
}

static void names(void **state)
{
	struct process_table *table = process_table_new();

	assert_string_equal(process_thread_name(table, 10, 10), "");
	assert_string_equal(process_thread_name(table, 0, 0), "swapper");
	assert_int_equal(process_comm(table, 10, 10, "sh", false, NULL), 0);
	assert_string_equal(process_thread_name(table, 10, 11), "sh");
	assert_int_equal(process_fork(table, 10, 11, 10, 10, NULL), 0);
	assert_int_equal(process_comm(table, 10, 11, "worker", false, NULL), 0);
	/* A thread's thread and a thread's child process begin with its name. */
	assert_int_equal(process_fork(table, 10, 12, 10, 11, NULL), 0);
	assert_int_equal(process_fork(table, 20, 20, 10, 11, NULL), 0);
	assert_string_equal(process_thread_name(table, 10, 12), "worker");
	assert_string_equal(process_thread_name(table, 20, 20), "worker");
	assert_string_equal(process_thread_name(table, 10, 10), "sh");
	/* The leader's new name is not its threads'. */
	assert_int_equal(process_fork(table, 10, 13, 10, 10, NULL), 0);
	assert_int_equal(process_comm(table, 10, 10, "renamed", false, NULL), 0);
	assert_string_equal(process_thread_name(table, 10, 13), "sh");
	process_exit(table, 10, 13);
	assert_string_equal(process_thread_name(table, 10, 13), "renamed");
	/* exec leaves one thread, and none of the old names. */
	assert_int_equal(process_comm(table, 10, 10, "python3", true, NULL), 0);
	assert_string_equal(process_thread_name(table, 10, 11), "python3");
	/* The pid again, by another parent. */
	map_into(table, 10, 0x1000, 0x1000, 0, "/old");
	process_exit(table, 10, 10);
	assert_path(table, 10, 0x1000, "/old");
	assert_int_equal(process_fork(table, 10, 10, 20, 20, NULL), 0);
	assert_null(path_at(table, 10, 0x1000, false));
	assert_string_equal(process_thread_name(table, 10, 10), "worker");
	process_table_free(table);
}

static uint32_t dso_at(struct process_table *table, uint32_t pid, uint64_t addr)
{
	struct map_hit hit;

	assert_true(process_find(table, pid, addr, false, &hit));
	return hit.dso;
}

static void build_ids(void **state)
{
	struct process_table *table = process_table_new();
	static const uint8_t id_a[20] = {1, 2, 3}, id_b[20] = {9};
	struct process_map map = {.pid = 1,
				  .start = 0x1000,
				  .len = 0x1000,
				  .path = "/lib/x.so",
				  .build_id = id_a,
				  .build_id_len = 20};
	uint32_t first;

	/* Maps with an id: one dso per id. */
	assert_int_equal(process_mmap(table, &map, NULL), 0);
	map.start = 0x3000;
	map.build_id = id_b;
	assert_int_equal(process_mmap(table, &map, NULL), 0);
	assert_int_not_equal(dso_at(table, 1, 0x1000), dso_at(table, 1, 0x3000));
	assert_int_equal(process_dso_count(table), 2);

	/* The row behind the map, and then maps with and without. */
	map_into(table, 1, 0x10000, 0x1000, 0, "/lib/y.so");
	first = dso_at(table, 1, 0x10000);
	assert_int_equal(process_dso(table, first)->build_id_len, 0);
	assert_int_equal(process_set_build_id(table, "/lib/y.so", id_a, 20, NULL), 0);
	assert_int_equal(process_dso(table, first)->build_id_len, 20);
	assert_memory_equal(process_dso(table, first)->build_id, id_a, 20);
	map_into(table, 2, 0x10000, 0x1000, 0, "/lib/y.so");
	assert_int_equal(dso_at(table, 2, 0x10000), first);

	/* The row before the map. */
	assert_int_equal(process_set_build_id(table, "/lib/z.so", id_b, 20, NULL), 0);
	assert_int_equal(process_dso_count(table), 3);
	map_into(table, 1, 0x20000, 0x1000, 0, "/lib/z.so");
	assert_memory_equal(process_dso(table, dso_at(table, 1, 0x20000))->build_id, id_b, 20);
	map = (struct process_map){.pid = 1,
				   .start = 0x30000,
				   .len = 0x1000,
				   .path = "/lib/z.so",
				   .build_id = id_b,
				   .build_id_len = 20};
	assert_int_equal(process_mmap(table, &map, NULL), 0);
	assert_int_equal(dso_at(table, 1, 0x30000), dso_at(table, 1, 0x20000));
	process_table_free(table);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void is_fast(void **state)
{
	struct process_table *table = process_table_new();
	enum { LIBRARIES = 200, FORKS = 10000, LOOKUPS = 2000000 };
	unsigned int seed = 1;
	uint64_t sum = 0;
	double start;

	for (int i = 0; i < LIBRARIES; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/lib/%d.so", i);
		map_into(table, 1, 0x7f0000000000 - (uint64_t)i * 0x200000, 0x100000, 0, path);
	}
	start = now();
	for (uint32_t pid = 2; pid < FORKS + 2; pid++)
		assert_int_equal(process_fork(table, pid, pid, 1, 1, NULL), 0);
	print_message("%d forks: %.1f ms\n", FORKS, (now() - start) * 1e3);
	start = now();
	for (int i = 0; i < LOOKUPS; i++) {
		struct map_hit hit;
		uint64_t addr = 0x7f0000000000 - (uint64_t)(rand_r(&seed) % LIBRARIES) * 0x200000;

		sum += process_find(table, 1 + (uint32_t)(i >> 6) % FORKS, addr + 64, false, &hit);
	}
	print_message("look-up at random: %.0f ns\n", (now() - start) / LOOKUPS * 1e9);
	assert_int_equal(sum, LOOKUPS);
	process_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_an_array_of_pages),
		cmocka_unit_test(generations_are_unique),
		cmocka_unit_test(kernel_maps),
		cmocka_unit_test(extreme_maps),
		cmocka_unit_test(kinds),
		cmocka_unit_test(names),
		cmocka_unit_test(build_ids),
		cmocka_unit_test(is_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
