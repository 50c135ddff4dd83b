#include "profile/profile.h"
#include "tests/unit/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Stacks by the CPU's record of calls (--call-graph lbr), in a recording made record by record. */

#define LEAF 0x7f1000000000u
#define MIDDLE 0x7f2000000000u
#define ROOT 0x7f3000000000u
#define ASTRAY 0x7f4000000000u

static char path[] = "/tmp/pyperf-test-XXXXXX";

static void start(struct recording *r, uint64_t branches)
{
	struct data_event events[EVENTS] = {
		[EVENT_CYCLES] = {.name = "cycles",
				  .attr = {.type = PERF_TYPE_HARDWARE,
					   .sample_type = RECORDING_COMMON | PERF_SAMPLE_CALLCHAIN |
							  PERF_SAMPLE_BRANCH_STACK,
					   .branch_sample_type = PERF_SAMPLE_BRANCH_USER | branches,
					   .sample_period = 1}},
		[EVENT_MISSES] = {.name = "dummy",
				  .attr = {.type = PERF_TYPE_SOFTWARE,
					   .config = PERF_COUNT_SW_DUMMY,
					   .sample_type = RECORDING_COMMON},
				  .leader = EVENT_MISSES},
		[EVENT_FRAMES] = recording_frames_event(),
	};

	strcpy(path + strlen(path) - 6, "XXXXXX");
	close(mkstemp(path));
	recording_open_events(r, path, 0, events, EVENTS, recording_ids);
	recording_comm(r, "program", true);
	recording_mmap(r, LEAF, 0x1000, 0, "/nowhere/leaf.so");
	recording_mmap(r, MIDDLE, 0x1000, 0, "/nowhere/middle.so");
	recording_mmap(r, ROOT, 0x1000, 0, "/nowhere/root.so");
	recording_mmap(r, ASTRAY, 0x1000, 0, "/nowhere/astray.so");
}

static const struct perf_branch_entry calls_of_middle[] = {
	{.from = MIDDLE + 0x20, .to = LEAF},
	{.from = ROOT + 0x30, .to = MIDDLE},
};

/* In the leaf, or below it in the kernel; frame pointers lead elsewhere. */
static void sample(struct recording *r, bool kernel, const struct perf_branch_entry *calls,
		   size_t calls_len)
{
	const uint64_t chain[] = {(uint64_t)PERF_CONTEXT_KERNEL, 0xffffffff81000000,
				  (uint64_t)PERF_CONTEXT_USER, LEAF + 0x10, ASTRAY + 0x40};
	size_t first = kernel ? 0 : 2, count = 5 - first;

	r->time += 1000;
	recording_sample_head(r, EVENT_CYCLES, kernel ? MISC_KERNEL : MISC_USER,
			      chain[first + kernel], 1);
	strbuf_u64(&r->record, count);
	strbuf_add(&r->record, chain + first, count * sizeof(chain[0]));
	strbuf_u64(&r->record, calls_len);
	strbuf_add(&r->record, calls, calls_len * sizeof(*calls));
	recording_end(r);
}

/* `cut`: samples that made more calls than the CPU remembers. */
static void check_stacks(struct recording *r, const char *const *stacks, size_t count, uint64_t cut)
{
	struct data_file *file;
	struct profile *profile;
	struct err err = {0};

	recording_round(r);
	assert_int_equal(recording_close(r, NULL), 0);
	assert_int_equal(data_open(&file, path, &err), 0);
	if (profile_load(&profile, file, NULL, &err) < 0)
		fail_msg("%s", err.text);
	data_close(file);
	unlink(path);
	assert_int_equal(profile_cell_count(profile), count);
	for (size_t i = 0; i < count; i++) {
		uint32_t stack = profile_cell(profile, i)->stack;
		char text[1024] = "";

		for (; stack; stack = profile_stack(profile, stack)->parent) {
			uint32_t frame = profile_stack(profile, stack)->frame;
			uint32_t function = profile_frame(profile, frame)->function;

			strcat(text,
			       profile_text(profile, profile_function(profile, function)->name));
		}
		assert_string_equal(text, stacks[i]);
	}
	assert_int_equal(profile_summary(profile)->dropped_calls, cut);
	profile_free(profile);
}

static void calls_take_the_place_of_frame_pointers(void **state)
{
	static const char *const stacks[] = {
		"[leaf.so][middle.so][root.so]",
		"[kernel][leaf.so][middle.so][root.so]",
	};
	struct recording r;

	start(&r, PERF_SAMPLE_BRANCH_CALL_STACK);
	sample(&r, false, calls_of_middle, 2);
	sample(&r, true, calls_of_middle, 2);
	check_stacks(&r, stacks, 2, 0);
}

/* Frame pointers, where there are none, lead from one address to the same words again and again. */
static void the_same_address_has_other_callers(void **state)
{
	static const struct perf_branch_entry calls_of_root[] = {{.from = ROOT + 0x50, .to = LEAF}};
	static const char *const stacks[] = {"[leaf.so][middle.so][root.so]", "[leaf.so][root.so]"};
	struct recording r;

	start(&r, PERF_SAMPLE_BRANCH_CALL_STACK);
	sample(&r, false, calls_of_middle, 2);
	sample(&r, false, calls_of_root, 1);
	check_stacks(&r, stacks, 2, 0);
}

/* A stack of 32 calls is as many as a CPU remembers, or has more; one of 16 is the former on old
 * ones. */
static void full_records_are_counted(void **state)
{
	static const size_t lengths[] = {3, 31, 32, 16};
	static const char *stacks[4];
	struct perf_branch_entry calls[32];
	char texts[4][512] = {"[leaf.so]", "[leaf.so]", "[leaf.so]", "[leaf.so]"};
	struct recording r;

	for (size_t i = 0; i < 32; i++)
		calls[i] = (struct perf_branch_entry){.from = ROOT + i, .to = LEAF};
	start(&r, PERF_SAMPLE_BRANCH_CALL_STACK);
	for (size_t i = 0; i < 4; i++) {
		sample(&r, false, calls, lengths[i]);
		for (size_t n = 0; n < lengths[i]; n++)
			strcat(texts[i], "[root.so]");
		stacks[i] = texts[i];
	}
	check_stacks(&r, stacks, 4, 1);
}

/* Branches of other kinds are where the program came from, not what called it. */
static void other_branches_are_no_calls(void **state)
{
	static const char *const stacks[] = {"[leaf.so][astray.so]"};
	struct recording r;

	start(&r, PERF_SAMPLE_BRANCH_ANY);
	sample(&r, false, calls_of_middle, 2);
	check_stacks(&r, stacks, 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_take_the_place_of_frame_pointers),
		cmocka_unit_test(the_same_address_has_other_callers),
		cmocka_unit_test(full_records_are_counted),
		cmocka_unit_test(other_branches_are_no_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
