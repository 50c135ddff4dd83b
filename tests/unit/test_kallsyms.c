/* Kernel symbols: a small file by hand, and the kernel's own read a second, dumber way. */
#include "symbol/kallsyms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int open_text(struct kallsyms **ks, const char *text, struct err *err)
{
	char path[] = "/tmp/pyperf-kallsyms-XXXXXX";
	int fd = mkstemp(path), ret;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	ret = kallsyms_open(ks, path, err);
	unlink(path);
	return ret;
}

static const char sample[] = "0000000000000000 D percpu_thing\n"
			     "ffffffff81000000 T first\n"
			     "ffffffff81000000 T _stext\n"
			     "ffffffff81000000 T _text\n"
			     "ffffffff81000100 t local_one\n"
			     "ffffffff81000100 W weak_one\n"
			     "ffffffff81000140 d some_data\n"
			     "ffffffff81000180 T __second\n"
			     "ffffffff81000180 T second\n"
			     "ffffffff81000200 T _etext\n"
			     "ffffffffa0010000 t module_b_init\t[module_b]\n"
			     "ffffffffa0000000 t module_a_init\t[module_a]\n"
			     "ffffffffa0000040 T module_a_work\t[module_a]";

static void finds_by_hand(void **state)
{
	static const struct {
		uint64_t addr;
		const char *name, *module;
		uint64_t start, end;
	} rows[] = {
		{0xffffffff81000000, "first", "", 0xffffffff81000000, 0xffffffff81000100},
		{0xffffffff810000ff, "first", "", 0xffffffff81000000, 0xffffffff81000100},
		{0xffffffff81000150, "local_one", "", 0xffffffff81000100, 0xffffffff81000180},
		{0xffffffff81000180, "second", "", 0xffffffff81000180, 0xffffffff81000200},
		{0xffffffff81000200, "_etext", "", 0xffffffff81000200, 0xffffffff81001200},
		{0xffffffffa000003f, "module_a_init", "module_a", 0xffffffffa0000000,
		 0xffffffffa0000040},
		{0xffffffffa0000fff, "module_a_work", "module_a", 0xffffffffa0000040,
		 0xffffffffa0001040},
		{0xffffffffa0010001, "module_b_init", "module_b", 0xffffffffa0010000,
		 0xffffffffa0011000},
	};
	struct kallsyms_symbol symbol;
	struct kallsyms *ks;
	struct err err = {0};

	assert_int_equal(open_text(&ks, sample, &err), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(kallsyms_find(ks, rows[i].addr, &symbol));
		assert_string_equal(symbol.name, rows[i].name);
		assert_string_equal(symbol.module, rows[i].module);
		assert_true(symbol.start == rows[i].start && symbol.end == rows[i].end);
	}
	assert_false(kallsyms_find(ks, 0xffffffff80ffffff, &symbol));
	assert_false(kallsyms_find(ks, 0xffffffff81001200, &symbol));
	assert_false(kallsyms_find(ks, 0xffffffffa0011000, &symbol));
	assert_false(kallsyms_find(ks, UINT64_MAX, &symbol));
	assert_false(kallsyms_find(ks, 0, &symbol));
	assert_true(kallsyms_address(ks, "_text") == 0xffffffff81000000);
	assert_true(kallsyms_address(ks, "_stext") == 0xffffffff81000000);
	assert_true(kallsyms_address(ks, "some_data") == 0xffffffff81000140);
	assert_true(kallsyms_address(ks, "weak_one") == 0xffffffff81000100);
	assert_true(kallsyms_address(ks, "module_a_work") == 0xffffffffa0000040);
	assert_true(kallsyms_address(ks, "none") == 0);
	kallsyms_close(ks);
	kallsyms_close(NULL);
}

static void says_what_is_wrong(void **state)
{
	static const char *const broken[] = {
		"ffffffff81000000",
		"ffffffff81000000 T",
		"ffffffff81000000 T ",
		"ffffffff81000000 T \n",
		"ffffffff81000000  name\nx",
		"fffffffff81000000 T name\n",
		"T name\n",
		"\n",
		"ffffffff81000000 T a\n\nffffffff81000000 T b\n",
		"ffffffff81000000 T a\t[mod\n",
		"ffffffff81000000 T a\tmod]\n",
		"ffffffff81000000 T a\t[\n",
		"ffffffff81000000 T a\t",
	};
	struct kallsyms *ks;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		assert_int_equal(open_text(&ks, broken[i], &err), ERR_CORRUPT);
		assert_null(ks);
	}
	assert_int_equal(open_text(&ks, "", &err), ERR_NOT_FOUND);
	assert_int_equal(kallsyms_open(&ks, "/no/such/file", &err), ERR_NOT_FOUND);
	assert_int_equal(open_text(&ks, "0000000000000000 T a\n0000000000000000 t b\n", &err),
			 ERR_PERMISSION);
	assert_non_null(strstr(err.hint, "kptr_restrict"));
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* For every 97th function of the running kernel: the address is found, with a name that the
 * kernel gives it, and belongs to the same symbol up to the next address. */
static void agrees_with_the_kernel(void **state)
{
	struct kallsyms *ks;
	struct err err = {0};
	double start = now();
	char line[1024], names[4096] = " ";
	unsigned long long addr, last = 0;
	size_t groups = 0, checked = 0;
	FILE *file;
	int ret = kallsyms_open(&ks, NULL, &err);

	if (ret) {
		print_message("%s\n", err.text);
		skip();
	}
	print_message("opened in %.1f ms\n", (now() - start) * 1e3);
	file = fopen("/proc/kallsyms", "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		char type, name[512];

		if (sscanf(line, "%llx %c %511s", &addr, &type, name) != 3)
			continue;
		if (strchr(line, '[')) /* modules come behind, out of order */
			break;
		if (!strchr("tTwW", type))
			continue;
		if (addr == last && strlen(names) + strlen(name) + 3 < sizeof(names)) {
			strcat(strcat(names, name), " ");
			continue;
		}
		if (last && groups++ % 97 == 0 && addr > last) {
			struct kallsyms_symbol symbol;
			char padded[600];

			assert_true(kallsyms_find(ks, last, &symbol));
			snprintf(padded, sizeof(padded), " %s ", symbol.name);
			assert_non_null(strstr(names, padded));
			assert_true(symbol.start == last && symbol.end == addr);
			assert_true(kallsyms_find(ks, addr - 1, &symbol));
			assert_true(symbol.start == last);
			checked++;
		}
		last = addr;
		snprintf(names, sizeof(names), " %s ", name);
	}
	fclose(file);
	assert_true(checked > 100);
	kallsyms_close(ks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_by_hand),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(agrees_with_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
