#include "perfmap/runtime.h"
#include "perfmap/walk.h"

#include "live_python.h"
#include "walk_image.h"

#include <elf.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <cmocka.h>

/*
 * Real interpreters, stopped where they are known to be: the walker must say exactly what
 * sys._current_frames() said, down to f_lasti. With PYPERF_WRITE_IMAGES=FOLDER what was read is
 * kept as FOLDER/walk-3.N.img, which test_walk.c walks without any interpreter.
 */

/* A thread describes the main one, which waits in os.read() below Python, C and generator frames.
 */
static const char stacked[] = "import os, sys, threading, time\n"
			      "def wait():\n"
			      "    os.read(GATE, 1)\n"
			      "def generator():\n"
			      "    yield 1\n"
			      "    wait()\n"
			      "class Thing:\n"
			      "    def method(self, x):\n"
			      "        for _ in generator():\n"
			      "            pass\n"
			      "    def __getattr__(self, name):\n"
			      "        return self.method(\n"
			      "            name)\n"
			      "def closure(a):\n"
			      "    def inner(x, key=lambda y: y.missing + a):\n"
			      "        return key(x)\n"
			      "    return list(map(inner, [Thing()]))\n"
			      "def recurse(n):\n"
			      "    return recurse(n - 1) if n else closure(2)\n"
			      "def describe():\n"
			      "    time.sleep(.1)\n"
			      "    f = sys._current_frames()[MAIN]\n"
			      "    while f:\n"
			      "        c = f.f_code\n"
			      "        name = getattr(c, 'co_qualname', c.co_name)\n"
			      "        print(hex(id(c)), f.f_lasti, name, flush=True)\n"
			      "        f = f.f_back\n"
			      "    print('end', flush=True)\n"
			      "    time.sleep(1000)\n"
			      "GATE, _ = os.pipe()\n"
			      "MAIN = threading.get_ident()\n"
			      "threading.Thread(target=describe, daemon=True).start()\n"
			      "recurse(10)\n";

/* Functions that C calls, so each is the first frame of its eval loop; without the classes that
 * qualified names (3.11) have. */
static const char *const called_by_c[] = {"inner", "__getattr__", "<module>", NULL};

/* It keeps the GIL: up to 3.11 nothing leads from a thread to a sub-interpreter that gave it up. */
static const char in_subinterpreter[] =
	"import os\n"
	"try:\n"
	"    import _interpreters as i\n"
	"except ImportError:\n"
	"    try:\n"
	"        import _xxsubinterpreters as i\n"
	"    except ImportError:\n"
	"        import _testcapi as i\n"
	"code = '''if 1:\n"
	"    import sys, os\n"
	"    def sub():\n"
	"        f = sys._getframe()\n"
	"        while f:\n"
	"            name = getattr(f.f_code, 'co_qualname', f.f_code.co_name)\n"
	"            print(hex(id(f.f_code)), -1, name, flush=True)\n"
	"            f = f.f_back\n"
	"        print('end', flush=True)\n"
	"        while True:\n"
	"            pass\n"
	"    sub()\n"
	"'''\n"
	"def outer():\n"
	"    if hasattr(i, 'create'):\n"
	"        i.run_string(i.create(), code)\n"
	"    else:\n"
	"        i.run_in_subinterp(code)\n"
	"outer()\n";

struct said {
	uint64_t code;
	int lasti; /* -1: not said */
	char qualname[80];
};

static size_t read_said(struct live_child *child, struct said *said, size_t max)
{
	char line[512];
	size_t n = 0;

	while (live_child_line(child, line, sizeof(line)) && strcmp(line, "end") != 0) {
		assert_true(n < max);
		assert_int_equal(sscanf(line, "%" SCNx64 " %d %79[^\n]", &said[n].code,
					&said[n].lasti, said[n].qualname),
				 3);
		n++;
	}
	return n;
}

static bool thread_pointer(pid_t tid, uint64_t *pointer)
{
#if defined(__x86_64__)
	struct user_regs_struct regs;
	struct iovec io = {.iov_base = &regs, .iov_len = sizeof(regs)};

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) != 0)
		return false;
	*pointer = regs.fs_base;
#else
	struct iovec io = {.iov_base = pointer, .iov_len = sizeof(*pointer)};

	if (ptrace(PTRACE_GETREGSET, tid, (void *)0x401 /* NT_ARM_TLS */, &io) != 0)
		return false;
#endif
	return true;
}

/* Copies what goes through it into an image. */
struct tee {
	struct memory inner;
	FILE *file;
	uint64_t runtime; /* where the debug offsets lie */
	struct {
		uint64_t addr;
		size_t len;
	} kept[512];
	size_t kept_count;
};

static bool tee_is_new(struct tee *tee, uint64_t addr, size_t len)
{
	for (size_t i = 0; i < tee->kept_count; i++)
		if (tee->kept[i].addr == addr && tee->kept[i].len == len)
			return false;
	assert_true(tee->kept_count < 512);
	tee->kept[tee->kept_count].addr = addr;
	tee->kept[tee->kept_count++].len = len;
	return true;
}

static int tee_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct tee *tee = ctx;
	int ret;

	/* Refused, the walker's wide reads become exact ones, which keep images small. */
	if (tee->file && len > 256 && addr != tee->runtime)
		return -1;
	ret = memory_read(&tee->inner, addr, buf, len);
	if (ret == 0 && tee->file && tee_is_new(tee, addr, len)) {
		fprintf(tee->file, "memory %" PRIx64 " ", addr);
		for (size_t i = 0; i < len; i++)
			fprintf(tee->file, "%02x", ((unsigned char *)buf)[i]);
		fprintf(tee->file, "\n");
	}
	return ret;
}

static void write_header(FILE *file, const struct py_process *process, struct memory *memory,
			 const struct runtime_info *info, uint64_t pointer)
{
	const struct py_tsd *tsd = &process->tsd;
	unsigned char offsets[PY_DEBUG_OFFSETS_BYTES];

	fprintf(file, "version 0x03%02x%02xf0\nthread %" PRIx64 "\nruntime %" PRIx64 "\n",
		info->minor, info->micro < 0 ? 0 : info->micro, pointer,
		(uint64_t)process->runtime);
	fprintf(file, "key %" PRIx64 "\ncurrent %" PRIx64 "\n", (uint64_t)process->tss_key,
		(uint64_t)process->current);
	fprintf(file, "tsd %d %d %u %u %u %u\n", tsd->self, tsd->blocks, tsd->block_keys,
		tsd->block_count, tsd->entry_size, tsd->data);
	if (info->minor >= 13)
		assert_int_equal(memory_read(memory, process->runtime, offsets, sizeof(offsets)),
				 0);
}

static bool is_called_by_c(const char *qualname)
{
	const char *dot = strrchr(qualname, '.');

	if (dot)
		qualname = dot + 1;
	for (size_t i = 0; called_by_c[i]; i++)
		if (strcmp(called_by_c[i], qualname) == 0)
			return true;
	return false;
}

static void check_frames(const struct py_process *process, const struct memory *memory,
			 const struct py_raw_frame *frames, size_t count, const struct said *said,
			 size_t said_count, FILE *image)
{
	assert_int_equal(count, said_count);
	for (size_t i = 0; i < count; i++) {
		uint32_t fingerprint;
		char qualname[80];
		uint64_t pointer;

		assert_true(frames[i].code == said[i].code);
		assert_false(frames[i].instr & PY_FRAME_NO_INSTR);
		if (said[i].lasti >= 0)
			assert_int_equal(frames[i].instr & PY_INSTR_MASK, said[i].lasti);
		assert_int_equal(
			py_code_fingerprint(&process->layout, memory, frames[i].code, &fingerprint),
			0);
		assert_int_equal(fingerprint, frames[i].fingerprint);
		assert_int_equal(memory_read(memory,
					     frames[i].code + walk_image_name(&process->layout),
					     &pointer, sizeof(pointer)),
				 0);
		assert_true(walk_image_string(memory, &process->layout, pointer, qualname,
					      sizeof(qualname)));
		assert_string_equal(qualname, said[i].qualname);
		if (is_called_by_c(qualname) && said[i].lasti >= 0)
			assert_true(frames[i].instr & PY_FRAME_ENTRY);
		if (strcmp(qualname, "recurse") == 0)
			assert_int_equal(!!(frames[i].instr & PY_FRAME_ENTRY),
					 process->layout.minor <= 10);
		if (image)
			fprintf(image, "frame %" PRIx64 " %u %d %s\n", (uint64_t)frames[i].code,
				frames[i].instr & PY_INSTR_MASK,
				!!(frames[i].instr & PY_FRAME_ENTRY), qualname);
	}
}

static FILE *image_for(const struct runtime_info *info)
{
	const char *folder = getenv("PYPERF_WRITE_IMAGES");
	char path[4096];

	if (!folder)
		return NULL;
	snprintf(path, sizeof(path), "%s/walk-3.%d.img", folder, info->minor);
	return fopen(path, "w");
}

/* False where the machine forbids it. */
static bool check_python(const char *python, const char *script, bool image)
{
	struct runtime_cache *cache = runtime_cache_new();
	struct memory_process live;
	static struct tee tee;
	struct memory memory = {.read = tee_read, .ctx = &tee};
	static struct py_raw_frame frames[PY_FRAMES_MAX];
	static struct said said[64];
	struct py_process process;
	struct runtime_info info;
	struct live_child child = {0};
	struct err err = {0};
	unsigned int count;
	uint64_t pointer = 0;
	size_t said_count;
	bool allowed;
	int found;

	memset(&tee, 0, sizeof(tee));
	assert_true(live_child_start(&child, python, script));
	memory_process_init(&live, child.pid);
	tee.inner = memory_of_process(&live);
	said_count = read_said(&child, said, 64);
	found = runtime_find(cache, child.pid, &process, &info, &err);
	if (found == RUNTIME_PARTIAL && !info.supported) {
		live_child_stop(&child);
		print_message("%s: %s\n", python, err.text);
		runtime_cache_free(cache);
		return true;
	}
	assert_int_equal(found, RUNTIME_READY);
	usleep(50000); /* from its last words into os.read() */
	allowed = ptrace(PTRACE_SEIZE, child.pid, NULL, NULL) == 0 &&
		  ptrace(PTRACE_INTERRUPT, child.pid, NULL, NULL) == 0;
	if (allowed) {
		waitpid(child.pid, NULL, __WALL);
		assert_true(thread_pointer(child.pid, &pointer));
		tee.file = image ? image_for(&info) : NULL;
		tee.runtime = process.runtime;
		if (tee.file)
			write_header(tee.file, &process, &memory, &info, pointer);
		assert_int_equal(py_walk(&process, &memory, pointer, frames, PY_FRAMES_MAX, &count),
				 PY_WALK_OK);
		print_message("%s: %u frames\n", python, count);
		check_frames(&process, &memory, frames, count, said, said_count, tee.file);
		if (tee.file)
			fclose(tee.file);
	}
	live_child_stop(&child);
	memory_process_fini(&live);
	runtime_cache_free(cache);
	return allowed;
}

static void check_all(const char *script, bool image)
{
	struct live_pythons list;
	bool allowed = true;

	live_pythons_find(&list);
	if (list.count == 0)
		print_message("skipped: no python3.N was found\n");
	for (size_t i = 0; i < list.count && allowed; i++)
		allowed = check_python(list.path[i], script, image);
	live_pythons_free(&list);
	if (!allowed)
		print_message("skipped: ptrace is not allowed\n");
	if (!allowed || list.count == 0)
		skip();
}

static void test_frames_are_what_the_interpreter_says(void **state)
{
	check_all(stacked, true);
}

static void test_subinterpreter(void **state)
{
	check_all(in_subinterpreter, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_are_what_the_interpreter_says),
		cmocka_unit_test(test_subinterpreter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
