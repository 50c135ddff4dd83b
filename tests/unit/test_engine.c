#include "perfmap/engine.h"

#include "event/event.h"
#include "perfmap/frames.h"
#include "perfmap/runtime.h"
#include "ring/record.h"
#include "ring/ring.h"

#include "live_python.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <time.h>

#include <cmocka.h>

/* The walker in the kernel: samples of a busy child carry the frames it is known to have. */

#define CPUS_MAX 256
#define RING_PAGES 256
#define STACKS_MAX 8192

#define BUSY(BEFORE)                               \
	"import os, sys, time\n"                   \
	"def leaf(n):\n"                           \
	"    t = 0\n"                              \
	"    for i in range(n):\n"                 \
	"        t += i * i\n"                     \
	"    return t\n"                           \
	"class Outer:\n"                           \
	"    def run(self, depth):\n"              \
	"        if depth:\n"                      \
	"            return self.run(depth - 1)\n" \
	"        return leaf(2000)\n"              \
	"print('ready', flush=True)\n" BEFORE "\n" \
	"while True:\n"                            \
	"    Outer().run(5)\n"

static const char busy[] = BUSY("");
/* The parent only waits: what is sampled is the child. */
static const char forking[] = BUSY("time.sleep(.2)\n"
				   "if os.fork(): os.wait()\n");

struct seen_code {
	uint64_t code;
	uint32_t fingerprint;
	char qualname[64];
	uint8_t missing;
};

struct session {
	struct py_engine *engine;
	struct perf_event_attr output_attr, attr;
	int cpus, output[CPUS_MAX], event[CPUS_MAX];
	struct ring ring[CPUS_MAX];
	/* what came */
	size_t samples, with_frames, complete, expected, codes;
	struct seen_code code[256];
	struct py_raw_frames *stack[STACKS_MAX];
	size_t stack_count;
};

static void open_events(struct session *session, pid_t pid)
{
	struct err err = {0};

	session->output_attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER5,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_RAW,
		.sample_period = 1,
	};
	session->attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER5,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_IP,
		.sample_freq = 2000,
		.freq = 1,
		.inherit = 1,
		.disabled = 1,
		.exclude_hv = 1,
	};
	for (int cpu = 0; cpu < session->cpus; cpu++) {
		session->output[cpu] = event_open_fd(&session->output_attr, -1, cpu, -1);
		assert_true(session->output[cpu] >= 0);
		assert_int_equal(
			ring_open(&session->ring[cpu], session->output[cpu], RING_PAGES, &err), 0);
		assert_int_equal(
			py_engine_set_output(session->engine, cpu, session->output[cpu], &err), 0);
		session->event[cpu] = event_open_fd(&session->attr, pid, cpu, -1);
		assert_true(session->event[cpu] >= 0);
		assert_int_equal(
			ioctl(session->event[cpu], PERF_EVENT_IOC_SET_OUTPUT, session->output[cpu]),
			0);
		assert_int_equal(
			py_engine_attach(session->engine, session->event[cpu], false, &err), 0);
		assert_int_equal(ioctl(session->event[cpu], PERF_EVENT_IOC_ENABLE, 0), 0);
	}
}

static void close_events(struct session *session)
{
	for (int cpu = 0; cpu < session->cpus; cpu++) {
		ring_close(&session->ring[cpu]);
		close(session->event[cpu]);
		close(session->output[cpu]);
	}
}

static void take_code(struct session *session, const unsigned char *raw, size_t len)
{
	struct py_raw_code header;
	struct seen_code *code;
	size_t at;

	assert_true(len >= sizeof(header));
	memcpy(&header, raw, sizeof(header));
	assert_true(session->codes < 256);
	code = &session->code[session->codes++];
	code->code = header.code;
	code->fingerprint = header.fingerprint;
	code->missing = header.missing;
	at = sizeof(header) + (header.name.len * header.name.kind + 7) / 8 * 8;
	assert_true(at + header.qualname.len <= len);
	assert_int_equal(header.qualname.kind, 1);
	snprintf(code->qualname, sizeof(code->qualname), "%.*s", (int)header.qualname.len,
		 (const char *)raw + at);
	at += (header.qualname.len + 7) / 8 * 8;
	at += (header.filename.len * header.filename.kind + 7) / 8 * 8;
	at += (header.table_len + 7) / 8 * 8;
	assert_true(at <= len);
}

static const char *name_of(const struct session *session, const struct py_raw_frame *frame)
{
	for (size_t i = session->codes; i-- > 0;)
		if (session->code[i].code == frame->code &&
		    session->code[i].fingerprint == frame->fingerprint)
			return session->code[i].qualname;
	return "?";
}

/* leaf (or not yet), Outer.run six times at most, <module>. */
static bool is_expected(const struct session *session, const struct py_raw_frame *frames,
			size_t count)
{
	size_t i = 0;

	if (count == 0 || count > 8)
		return false;
	if (strcmp(name_of(session, &frames[0]), "leaf") == 0)
		i++;
	for (; i + 1 < count; i++)
		if (strcmp(name_of(session, &frames[i]), "Outer.run") != 0)
			return false;
	return strcmp(name_of(session, &frames[i]), "<module>") == 0 &&
	       frames[i].instr & PY_FRAME_ENTRY;
}

/* For whoever looks into a failure. */
static void print_stack(const struct session *session, const struct py_raw_frames *frames)
{
	print_message("  unexpected (status %d):", frames->status);
	for (size_t i = 0; i < frames->count; i++)
		print_message(" %s%s", name_of(session, &frames->frames[i]),
			      frames->frames[i].instr & PY_FRAME_ENTRY ? "|" : "");
	print_message("\n");
}

/* Stacks are looked at in the end: the code objects of one may come through another CPU's ring. */
static void keep_stack(struct session *session, const struct py_raw_frames *frames)
{
	size_t size = sizeof(*frames) + frames->count * sizeof(frames->frames[0]);

	assert_true(session->stack_count < STACKS_MAX);
	session->stack[session->stack_count] = malloc(size);
	assert_non_null(session->stack[session->stack_count]);
	memcpy(session->stack[session->stack_count++], frames, size);
}

static void check_stacks(struct session *session)
{
	for (size_t i = 0; i < session->stack_count; i++) {
		struct py_raw_frames *frames = session->stack[i];

		if (is_expected(session, frames->frames, frames->count))
			session->expected++;
		else if (i - session->expected < 4)
			print_stack(session, frames);
		free(frames);
	}
	session->stack_count = 0;
}

static void read_rings(struct session *session)
{
	for (int cpu = 0; cpu < session->cpus; cpu++) {
		const struct perf_event_header *record;
		const struct py_raw_frames *frames = NULL;
		unsigned char kept[sizeof(struct py_raw_frames) +
				   PY_FRAMES_MAX * sizeof(struct py_raw_frame)];
		int corrupt = 0;

		ring_begin(&session->ring[cpu]);
		while ((record = ring_next(&session->ring[cpu], &corrupt))) {
			struct record_sample sample;
			uint32_t magic;

			if (record->type != PERF_RECORD_SAMPLE)
				continue;
			/* Only walker records have more than the fixed words. */
			if (record->size == 8 + 8 + 8 + 8 + 8) {
				assert_true(record_decode_sample(record, &session->attr, &sample));
				session->samples++;
				if (frames) {
					session->with_frames++;
					session->complete += frames->status == PY_WALK_OK;
					keep_stack(session, frames);
				}
				frames = NULL;
				continue;
			}
			assert_true(record_decode_sample(record, &session->output_attr, &sample));
			assert_true(sample.raw_len >= sizeof(magic));
			memcpy(&magic, sample.raw, sizeof(magic));
			if (magic == PY_RAW_CODE) {
				take_code(session, sample.raw, sample.raw_len);
			} else {
				assert_int_equal(magic, PY_RAW_FRAMES);
				assert_true(sample.raw_len <= sizeof(kept));
				memcpy(kept, sample.raw, sample.raw_len);
				frames = (const struct py_raw_frames *)kept;
			}
		}
		assert_int_equal(corrupt, 0);
		ring_end(&session->ring[cpu]);
	}
}

static bool open_engine(struct session *session)
{
	struct err err = {0};
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	if (py_engine_open(&session->engine, &err) < 0) {
		print_message("skipped: %s\n", err.text);
		return false;
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	print_message("  engine opened in %.1f ms\n",
		      (b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6);
	session->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	assert_true(session->cpus <= CPUS_MAX);
	return true;
}

/* Does the walker's word for a child that runs `busy` agree with what it runs? */
static void check_python(const char *python, bool forks)
{
	static struct session session;
	struct runtime_cache *cache = runtime_cache_new();
	struct py_process process;
	struct py_engine_stats stats;
	struct runtime_info info;
	struct live_child child = {0};
	struct err err = {0};
	char line[64];
	int found;

	memset(&session, 0, sizeof(session));
	assert_non_null(cache);
	if (!open_engine(&session))
		skip();
	assert_true(live_child_start(&child, python, forks ? forking : busy));
	assert_true(live_child_line(&child, line, sizeof(line)));
	assert_string_equal(line, "ready");
	found = runtime_find(cache, child.pid, &process, &info, &err);
	if (found == RUNTIME_PARTIAL && !info.supported) {
		print_message("%s: %s\n", python, err.text);
		goto out;
	}
	assert_int_equal(found, RUNTIME_READY);
	process.lineage = 7;
	assert_int_equal(py_engine_add_process(session.engine, child.pid, &process, &err), 0);
	open_events(&session, child.pid);
	poll(NULL, 0, forks ? 500 : 200);
	for (int cpu = 0; cpu < session.cpus; cpu++)
		ioctl(session.event[cpu], PERF_EVENT_IOC_DISABLE, 0);
	read_rings(&session);
	check_stacks(&session);
	py_engine_stats(session.engine, &stats);
	close_events(&session);
	print_message("%s: %zu samples, %zu with frames, %zu complete, %zu as expected, %zu code "
		      "objects, %llu faults\n",
		      python, session.samples, session.with_frames, session.complete,
		      session.expected, session.codes, (unsigned long long)stats.faults);
	assert_true(session.samples >= 20);
	assert_true(session.with_frames >= session.samples * 99 / 100);
	assert_true(session.complete >= session.samples * 99 / 100);
	assert_true(session.expected >= session.samples * 98 / 100);
	assert_int_equal(stats.processes, forks ? 2 : 1);
	assert_int_equal(stats.output_lost, 0);
out:
	live_child_stop(&child);
	runtime_cache_free(cache);
	py_engine_close(session.engine);
}

static void check_all(bool forks)
{
	struct live_pythons list;

	live_pythons_find(&list);
	if (list.count == 0) {
		print_message("skipped: no python3.N was found\n");
		skip();
	}
	for (size_t i = 0; i < list.count; i++)
		check_python(list.path[i], forks);
	live_pythons_free(&list);
}

static void test_samples_carry_frames(void **state)
{
	check_all(false);
}

static void test_forked_children_are_walked(void **state)
{
	check_all(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_carry_frames),
		cmocka_unit_test(test_forked_children_are_walked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
