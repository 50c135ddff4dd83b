#include "perfmap/runtime.h"

#include "live_python.h"
#include "perfmap/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

static void test_candidates(void **state)
{
	static const struct {
		const char *path;
		bool candidate;
	} cases[] = {
		{"/usr/bin/python3.12", true},
		{"/usr/lib/libpython3.11.so.1.0", true},
		{"/opt/app/uwsgi_python3.so", true},
		{"/usr/bin/python3.11 (deleted)", true},
		{"/x/_ssl.cpython-312-x86_64-linux-gnu.so", false},
		{"/home/python/app/node", false},
		{"/usr/bin/perl", false},
		{"[heap]", false},
		{"", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(runtime_is_candidate(cases[i].path), cases[i].candidate);
}

static void test_versions(void **state)
{
	struct py_version version = py_version_of_hex(0x030d12f0);

	assert_int_equal(version.major, 3);
	assert_int_equal(version.minor, 13);
	assert_int_equal(version.micro, 18);
}

/* A process without CPython, and one that is gone. */
static void test_none(void **state)
{
	struct runtime_cache *cache = runtime_cache_new();
	struct runtime_info info;
	struct py_process process;
	struct err err = {0};
	pid_t child;

	assert_int_equal(runtime_find(cache, getpid(), &process, &info, &err), RUNTIME_NONE);
	child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_true(runtime_find(cache, child, &process, &info, &err) < 0);
	assert_true(err.text[0] != '\0');
	runtime_cache_free(cache);
	runtime_cache_free(NULL);
}

static double ms_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from->tv_sec) * 1e3 +
	       (double)(now.tv_nsec - from->tv_nsec) / 1e6;
}

/* What is found of each Python is what it says of itself. */
static void check_python(const char *python, int minor)
{
	struct runtime_cache *cache = runtime_cache_new();
	struct live_child child = {0};
	struct py_process process, again;
	struct runtime_info info;
	struct timespec start;
	struct err err = {0};
	char line[64] = "";
	double first, second;
	int micro, found;

	assert_true(live_child_start(&child, python,
				     "import sys, time\n"
				     "print(sys.version_info[2], flush=True)\n"
				     "time.sleep(100)\n"));
	assert_true(live_child_line(&child, line, sizeof(line)));
	micro = atoi(line);
	clock_gettime(CLOCK_MONOTONIC, &start);
	found = runtime_find(cache, child.pid, &process, &info, &err);
	first = ms_since(&start);
	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(runtime_find(cache, child.pid, &again, &info, &err), found);
	second = ms_since(&start);
	assert_int_equal(info.major, 3);
	assert_int_equal(info.minor, minor);
	assert_non_null(strstr(info.path, "python"));
	if (info.supported) {
		assert_int_equal(found, RUNTIME_READY);
		/* Before Py_Version (3.11) only a name says what it is. */
		if (info.micro >= 0 || minor >= 11)
			assert_int_equal(info.micro, micro);
		assert_memory_equal(&process, &again, sizeof(process));
		assert_int_equal(py_layout_check(&process.layout, &err), 0);
		assert_int_equal(process.layout.minor, minor);
	} else {
		assert_int_equal(found, RUNTIME_PARTIAL);
		assert_int_equal(err.code, ERR_UNSUPPORTED);
	}
	print_message("3.%d.%d: %s, found in %.2f ms, again in %.2f ms\n", minor, micro,
		      info.supported ? "supported" : err.text, first, second);
	live_child_stop(&child);
	runtime_cache_free(cache);
}

static void test_live(void **state)
{
	struct live_pythons list;

	live_pythons_find(&list);
	for (size_t i = 0; i < list.count; i++)
		check_python(list.path[i], list.minor[i]);
	live_pythons_free(&list);
	if (list.count == 0) {
		print_message("skipped: no python3.N was found\n");
		skip();
	}
}

/* What a file holds is asked of the file itself, once. */
static void test_embedded(void **state)
{
	char self[4096], copy[] = "/tmp/pyperf-embedded-XXXXXX";
	struct embedded embedded = {0};
	struct live_pythons list;
	char command[8192];
	ssize_t len;
	int fd;

	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(len > 0);
	self[len] = '\0';
	assert_false(embedded_look(&embedded, getpid(), self, 1));
	assert_false(embedded_look(&embedded, getpid(), "/nonexistent/file", 2));
	assert_false(embedded_look(&embedded, getpid(), "[heap]", 3));
	assert_false(embedded_knows(&embedded, self));
	live_pythons_find(&list);
	for (size_t i = 0; i < list.count; i++) {
		uint64_t identity = 10 + i;

		fd = mkstemp(copy);
		assert_true(fd >= 0);
		close(fd);
		/* The library if it has one, else the program. */
		snprintf(
			command, sizeof(command),
			"f=$(ldd %s | sed -n 's/.*=> \\(.*libpython3[^ ]*\\) .*/\\1/p' | head -1); "
			"cp \"${f:-%s}\" %s",
			list.path[i], list.path[i], copy);
		assert_int_equal(system(command), 0);
		assert_false(embedded_knows(&embedded, copy));
		assert_true(embedded_look(&embedded, getpid(), copy, identity));
		assert_true(embedded_knows(&embedded, copy));
		unlink(copy);
		assert_true(embedded_look(&embedded, getpid(), copy, identity));
		assert_false(embedded_look(&embedded, getpid(), copy, identity + 1000));
		memcpy(copy + strlen(copy) - 6, "XXXXXX", 6);
	}
	live_pythons_free(&list);
	embedded_fini(&embedded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_candidates), cmocka_unit_test(test_versions),
		cmocka_unit_test(test_none),	   cmocka_unit_test(test_embedded),
		cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
