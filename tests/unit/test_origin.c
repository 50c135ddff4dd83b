#include "profile/origin.h"
#include "profile/shown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void paths_tell_whose_code_it_is(void **state)
{
	static const struct {
		enum frame_kind kind;
		const char *path;
		enum code_origin origin;
	} rows[] = {
		{FRAME_PYTHON, "/home/u/train.py", CODE_OWN},
		{FRAME_PYTHON, "train.py", CODE_OWN},
		{FRAME_PYTHON, "<string>", CODE_OWN},
		{FRAME_PYTHON, "<frozen importlib._bootstrap>", CODE_STDLIB},
		{FRAME_PYTHON, "/usr/lib/python3.11/json/decoder.py", CODE_STDLIB},
		{FRAME_PYTHON, "/opt/py/lib/python3.13t/json/decoder.py", CODE_STDLIB},
		{FRAME_PYTHON, "/usr/lib64/python3.9/os.py", CODE_STDLIB},
		{FRAME_PYTHON, "/opt/pypy/lib/pypy3.9/os.py", CODE_STDLIB},
		{FRAME_PYTHON, "/usr/lib/python311.zip/os.py", CODE_STDLIB},
		{FRAME_PYTHON, "/usr/lib/python3/dist-packages/numpy/core/a.py", CODE_PACKAGES},
		{FRAME_PYTHON, "/w/.venv/lib/python3.12/site-packages/a/b.py", CODE_PACKAGES},
		{FRAME_PYTHON, "/w/app.pyz/site-packages/a/b.py", CODE_PACKAGES},
		{FRAME_PYTHON, "/w/.pex/installed_wheels/0a/a-1.whl/a/b.py", CODE_PACKAGES},
		{FRAME_PYTHON, "/w/app.pyz/__main__.py", CODE_OWN},
		/* Neither a folder of that name elsewhere nor a file is the library. */
		{FRAME_PYTHON, "/home/u/python3.11/a.py", CODE_OWN},
		{FRAME_PYTHON, "/home/u/lib/python/a.py", CODE_OWN},
		{FRAME_PYTHON, "/home/u/libs/python3.11/a.py", CODE_OWN},
		{FRAME_PYTHON, "/home/u/lib/pythonic/a.py", CODE_OWN},
		{FRAME_PYTHON, "/home/u/site-packages.py", CODE_OWN},
		{FRAME_NATIVE, "/usr/lib/x86_64-linux-gnu/libc.so.6", CODE_SYSTEM},
		{FRAME_NATIVE, "/usr/bin/python3.11", CODE_STDLIB},
		{FRAME_NATIVE, "/opt/py/lib/libpython3.13.so.1.0", CODE_STDLIB},
		{FRAME_NATIVE, "/opt/py/lib/python3.13/lib-dynload/_json.so", CODE_STDLIB},
		{FRAME_NATIVE, "/w/lib/python3.12/site-packages/numpy.libs/blas.so", CODE_PACKAGES},
		{FRAME_NATIVE, "/home/u/fast.cpython-311-x86_64-linux-gnu.so", CODE_OWN},
		{FRAME_NATIVE, "[vdso]", CODE_SYSTEM},
		{FRAME_NATIVE, "", CODE_UNKNOWN},
		{FRAME_KERNEL, "[kernel]", CODE_KERNEL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (code_origin_of_path(rows[i].kind, rows[i].path) != rows[i].origin)
			fail_msg("%s is %s", rows[i].path,
				 code_origin_name(code_origin_of_path(rows[i].kind, rows[i].path)));
}

static void modules_begin_where_imports_look(void **state)
{
	static const struct {
		const char *path, *pattern;
		bool in;
	} rows[] = {
		{"/v/lib/python3.12/site-packages/numpy/linalg/a.py", "numpy", true},
		{"/v/lib/python3.12/site-packages/numpy/linalg/a.py", "numpy.linalg", true},
		{"/v/lib/python3.12/site-packages/numpy/linalg/a.py", "numpy.lin*", true},
		{"/v/lib/python3.12/site-packages/numpy/linalg/a.py", "linalg", false},
		{"/v/lib/python3.12/site-packages/numpy/__init__.py", "numpy", true},
		{"/v/lib/python3.12/site-packages/numpydoc/a.py", "numpy", false},
		{"/v/lib/python3.12/site-packages/np/json.py", "json", false},
		{"/usr/lib/python3.12/json/decoder.py", "json", true},
		{"/usr/lib/python3.12/json/decoder.py", "json.d?coder", true},
		{"/usr/lib/python3.12/lib-dynload/_json.cpython-312-x86_64-linux-gnu.so", "_json",
		 true},
		{"<frozen importlib._bootstrap>", "importlib", true},
		{"<frozen zipimport>", "zipimport", true},
		/* Of the user's own code it is not known where modules begin. */
		{"/home/u/project/train/model.py", "train", true},
		{"/home/u/project/train/model.py", "train.model", true},
		{"/home/u/project/train/model.py", "model", true},
		{"/home/u/project/train/model.py", "project.model", false},
		{"model.py", "model", true},
		{"", "*", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (code_in_module(rows[i].path, rows[i].pattern) != rows[i].in)
			fail_msg("%s: %s", rows[i].path, rows[i].pattern);
}

static void files_match_by_their_end(void **state)
{
	(void)state;
	assert_true(shown_is_file("/home/u/src/a/b.py", "b.py"));
	assert_true(shown_is_file("/home/u/src/a/b.py", "src/*"));
	assert_true(shown_is_file("/home/u/src/a/b.py", "/home/u/*"));
	assert_true(shown_is_file("/home/u/src/a/b.py", "a/?.py"));
	assert_true(shown_is_file("[kernel]", "[kernel]"));
	assert_false(shown_is_file("/home/u/src/a/b.py", "a"));
	assert_false(shown_is_file("/home/u/src/a/bb.py", "b.py"));
	assert_false(shown_is_file("/home/u/src/a/b.py", "/u/*"));
	assert_false(shown_is_file("", "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_tell_whose_code_it_is),
		cmocka_unit_test(modules_begin_where_imports_look),
		cmocka_unit_test(files_match_by_their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
