#include "profile/profile.h"
#include "symbol/elf.h"
#include "symbol/saved.h"
#include "tests/unit/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * Code that the interpreter's JIT made lies in no file: where the walker knew it, it is its
 * function's from then on, and what else lies in no file stays what it is.
 */

#define PYTHON 0x7f1000000000u /* where its code is mapped */
#define JITTED 0x7f2000000000u
#define LOOP (PYTHON + 0x110)
#define ENTRY (PYTHON + 0x210)
#define NATIVE (PYTHON + 0x310)
#define CODE 0x2000u

static char path[64];

/* The test's own file lends its segments: names are of three ranges of its code. */
static uint64_t write_names(struct recording *r)
{
	struct strbuf section = {0};
	struct elf_file *elf;
	uint64_t entry, vaddr, at = 0;
	struct err err = {0};

	assert_int_equal(elf_open(&elf, "/proc/self/exe", &err), 0);
	entry = elf_entry(elf);
	/* The file offset of its page. */
	for (; at < 1u << 26; at += 0x1000)
		if (elf_vaddr(elf, at, &vaddr) && vaddr == (entry & ~(uint64_t)0xfff))
			break;
	assert_true(at < 1u << 26);

	const struct saved_file file = {.path = "/nowhere/python3.15", .elf = elf};
	const struct saved_function functions[] = {
		{vaddr + 0x100, 0x100, "_PyEval_EvalFrameDefault", true},
		{vaddr + 0x200, 0x100, "_PyJIT_Entry", false},
		{vaddr + 0x300, 0x100, "PyLong_FromLong", false},
	};

	saved_begin(&section);
	saved_add(&section, &file, functions, 3, NULL);
	assert_false(strbuf_failed(&section));
	assert_int_equal(
		data_writer_section(r->writer, DATA_SECTION_SYMBOL, section.buf, section.len, NULL),
		0);
	strbuf_fini(&section);
	elf_close(elf);
	return at;
}

static void write_frames(struct recording *r, uint32_t lineage, bool held)
{
	struct {
		struct py_raw_frames head;
		struct py_raw_frame frame;
	} payload = {
		.head = {.magic = PY_RAW_FRAMES,
			 .count = 1,
			 .lineage = lineage,
			 .flags = held ? PY_FRAMES_STATE_HELD : 0},
		.frame = {.code = CODE, .fingerprint = 6, .instr = PY_FRAME_ENTRY},
	};

	recording_raw(r, &payload, sizeof(payload));
}

static const struct {
	const char *name;
	bool held;
	uint64_t chain[5];
	const char *stack;
} cases[] = {
	{"not known yet", false, {JITTED, LOOP}, "[anon];work"},
	{"interrupted", true, {JITTED, LOOP}, "work"},
	{"interrupted, of a broken chain", true, {JITTED, NATIVE}, "work"},
	{"its state is elsewhere", false, {JITTED, LOOP}, "work"},
	{"has callers", true, {JITTED, JITTED + 0x17, LOOP}, "work"},
	{"called native code",
	 false,
	 {NATIVE, JITTED + 0x40, JITTED + 0x17, LOOP},
	 "PyLong_FromLong;work"},
	{"called by its entry", false, {JITTED, ENTRY, LOOP}, "work"},
	{"another's: C called it", false, {JITTED, NATIVE, LOOP}, "[anon];PyLong_FromLong;work"},
	{"another's: of no loop", false, {JITTED, ENTRY, NATIVE}, "[anon];work"},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static const char *stack_text(const struct profile *profile, uint32_t stack)
{
	static char text[256];
	size_t len = 0;

	text[0] = '\0';
	for (; stack; stack = profile_stack(profile, stack)->parent) {
		const struct profile_frame *frame = profile_frame(
			profile, profile_stack(profile, stack)->frame);

		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "%s%s", len ? ";" : "",
			profile_text(profile,
				     profile_function(profile, frame->function)->qualname));
	}
	return text;
}

/* Samples of each case, one thread each. */
static void record(struct recording *r, uint32_t lineage, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		size_t len = 0;

		while (cases[i].chain[len])
			len++;
		r->time += 1000;
		r->tid = 200 + (uint32_t)i;
		write_frames(r, lineage, cases[i].held);
		r->time++;
		recording_sample(r, EVENT_CYCLES, 1, cases[i].chain, len);
	}
	recording_round(r);
}

static void test_jitted(void **state)
{
	struct data_file *file;
	struct profile *profile;
	struct recording r;
	struct err err = {0};
	uint64_t offset;
	int fd;

	strcpy(path, "/tmp/pyperf-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	recording_open(&r, path, 0);
	assert_int_equal(r.rc, 0);
	offset = write_names(&r);
	recording_comm(&r, "python3", true);
	recording_mmap(&r, PYTHON, 0x1000, offset, "/nowhere/python3.15");
	recording_mmap(&r, JITTED, 0x1000, 0, "//anon");
	recording_code(&r, 1, CODE, 6, "work", "/app/work.py", 100, 8);
	recording_code(&r, 2, CODE, 6, "work", "/app/work.py", 100, 8);
	record(&r, 1, 0, CASES);
	/* Of another interpreter nothing is known by that. */
	record(&r, 2, 0, 1);
	assert_int_equal(recording_close(&r, NULL), 0);
	assert_int_equal(data_open(&file, path, &err), 0);
	if (profile_load(&profile, file, NULL, &err) < 0)
		fail_msg("%s", err.text);
	data_close(file);
	unlink(path);
	assert_int_equal(profile_cell_count(profile), CASES + 1);
	for (size_t i = 0; i < profile_cell_count(profile); i++) {
		const struct profile_cell *cell = profile_cell(profile, i);
		uint32_t tid = profile_thread(profile, cell->thread)->tid;
		const char *stack = stack_text(profile, cell->stack);

		if (strcmp(stack, cases[tid - 200].stack) != 0)
			fail_msg("%s: %s, not %s", cases[tid - 200].name, stack,
				 cases[tid - 200].stack);
	}
	profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jitted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
