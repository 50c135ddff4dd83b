#include "perfmap/engine.h"

#include "base/text.h"
#include "event/event.h"
#include "perfmap/frames.h"
#include "perfmap/runtime.h"
#include "perfmap/walk.h"
#include "ring/record.h"
#include "ring/ring.h"

#include "live_python.h"

#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <time.h>

#include <cmocka.h>

/* The walker in the kernel: samples of a busy child carry the frames it is known to have. */

#define CPUS_MAX 256
#define RING_PAGES 256
#define STACKS_MAX 8192
#define CODES_MAX 1024

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
	"parent = os.getppid()\n"                  \
	"while os.getppid() == parent:\n"          \
	"    Outer().run(5)\n"

static const char busy[] = BUSY("");
/* The parent only waits: what is sampled is the child. */
static const char forking[] = BUSY("import signal\n"
				   "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
				   "print('waits', flush=True)\n"
				   "signal.sigwait([signal.SIGUSR1])\n"
				   "if os.fork(): os.wait()\n");

struct seen_code {
	uint64_t code;
	uint32_t fingerprint;
	char qualname[64]; /* before 3.11 there is only the name */
	uint8_t missing;
	uint32_t table_len;
};

struct session {
	struct py_engine *engine;
	struct perf_event_attr output_attr, attr;
	int cpus, output[CPUS_MAX], event[CPUS_MAX];
	bool waits; /* the target, for a signal */
	struct ring ring[CPUS_MAX];
	/* what came */
	size_t samples, with_frames, complete, expected, codes;
	struct seen_code code[CODES_MAX];
	struct py_raw_frames *stack[STACKS_MAX];
	size_t stack_count;
};

static void open_events(struct session *session, pid_t pid, uint64_t tracepoint)
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
	if (tracepoint) {
		session->attr.type = PERF_TYPE_TRACEPOINT;
		session->attr.config = tracepoint;
		session->attr.freq = 0;
		session->attr.sample_period = 1;
	}
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
		assert_int_equal(py_engine_attach(session->engine, session->event[cpu],
						  tracepoint != 0, &err),
				 0);
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
	struct strbuf text = {0};
	size_t at;

	assert_true(len >= sizeof(header));
	memcpy(&header, raw, sizeof(header));
	assert_true(session->codes < CODES_MAX);
	code = &session->code[session->codes++];
	code->code = header.code;
	code->fingerprint = header.fingerprint;
	code->missing = header.missing;
	code->table_len = header.table_len;
	at = sizeof(header) + (header.name.len * header.name.kind + 7) / 8 * 8;
	assert_true(at + header.qualname.len * header.qualname.kind <= len);
	if (header.qualname.len)
		text_from_pyunicode(&text, header.qualname.kind, raw + at, header.qualname.len);
	else
		text_from_pyunicode(&text, header.name.kind, raw + sizeof(header), header.name.len);
	snprintf(code->qualname, sizeof(code->qualname), "%s", strbuf_text(&text));
	strbuf_fini(&text);
	at += (header.qualname.len * header.qualname.kind + 7) / 8 * 8;
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

/* leaf (or not yet), run() six times at most, <module>. */
static bool is_expected(const struct session *session, const struct py_raw_frame *frames,
			size_t count)
{
	size_t i = 0;

	if (count == 0 || count > 8)
		return false;
	if (strcmp(name_of(session, &frames[0]), "leaf") == 0)
		i++;
	for (; i + 1 < count; i++)
		if (strcmp(name_of(session, &frames[i]), "Outer.run") != 0 &&
		    strcmp(name_of(session, &frames[i]), "run") != 0)
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

/* A Python that runs a script, known to the engine from its first line ("ready") on. */
struct target {
	struct live_child child;
	struct runtime_cache *cache;
	struct py_process process;
};

static void target_stop(struct target *target)
{
	live_child_stop(&target->child);
	runtime_cache_free(target->cache);
}

/* False for an interpreter that the walker does not know. */
static bool target_start(struct target *target, struct session *session, const char *python,
			 const char *script)
{
	struct runtime_info info;
	struct err err = {0};
	char line[64] = "";
	int found;

	*target = (struct target){.cache = runtime_cache_new()};
	assert_non_null(target->cache);
	assert_true(live_child_start(&target->child, python, script));
	assert_true(live_child_line(&target->child, line, sizeof(line)));
	assert_string_equal(line, "ready");
	found = runtime_find(target->cache, target->child.pid, &target->process, &info, &err);
	if (found == RUNTIME_PARTIAL && !info.supported) {
		print_message("%s: %s\n", python, err.text);
		target_stop(target);
		return false;
	}
	assert_int_equal(found, RUNTIME_READY);
	target->process.lineage = 7;
	assert_int_equal(
		py_engine_add_process(session->engine, target->child.pid, &target->process, &err),
		0);
	return true;
}

/* For so long, and on a busy machine until there is something to judge. */
#define SAMPLES_LEAST 20
static void sample(struct session *session, pid_t pid, uint64_t tracepoint, int ms)
{
	open_events(session, pid, tracepoint);
	if (session->waits)
		kill(pid, SIGUSR1);
	for (int tries = 0; tries < 100 && session->samples < SAMPLES_LEAST; tries++) {
		poll(NULL, 0, ms);
		read_rings(session);
	}
	for (int cpu = 0; cpu < session->cpus; cpu++)
		ioctl(session->event[cpu], PERF_EVENT_IOC_DISABLE, 0);
	read_rings(session);
	close_events(session);
}

/* Does the walker's word for a child that runs `busy` agree with what it runs? */
static void check_busy(const char *python, bool forks)
{
	static struct session session;
	struct py_engine_stats stats;
	struct target target;
	char line[64] = "";

	memset(&session, 0, sizeof(session));
	if (!open_engine(&session))
		skip();
	session.waits = forks;
	if (target_start(&target, &session, python, forks ? forking : busy)) {
		if (forks) {
			assert_true(live_child_line(&target.child, line, sizeof(line)));
			assert_string_equal(line, "waits");
		}
		sample(&session, target.child.pid, 0, forks ? 500 : 200);
		check_stacks(&session);
		py_engine_stats(session.engine, &stats);
		print_message("%s: %zu samples, %zu with frames, %zu complete, %zu as expected, "
			      "%zu code objects, %llu faults\n",
			      python, session.samples, session.with_frames, session.complete,
			      session.expected, session.codes, (unsigned long long)stats.faults);
		assert_true(session.samples >= SAMPLES_LEAST);
		assert_true(session.with_frames >= session.samples * 99 / 100);
		assert_true(session.complete >= session.samples * 99 / 100);
		assert_true(session.expected >= session.samples * 98 / 100);
		assert_int_equal(stats.processes, forks ? 2 : 1);
		assert_int_equal(stats.output_lost, 0);
		target_stop(&target);
	}
	py_engine_close(session.engine);
}

/* Calls back for every Python of the machine, or for the first. */
static void each_python(void (*check)(const char *python), bool all)
{
	static struct live_pythons list; /* of a test that was skipped, and so left by longjmp() */
	bool any = false;

	live_pythons_free(&list);
	live_pythons_find(&list);
	for (size_t i = 0; i < list.count && (all || !any); i++) {
		any = true;
		check(list.path[i]);
	}
	live_pythons_free(&list);
	list.count = 0;
	if (!any) {
		print_message("skipped: no python3.N was found\n");
		skip();
	}
}

static void check_plain(const char *python)
{
	check_busy(python, false);
}

static void check_forking(const char *python)
{
	check_busy(python, true);
}

static void test_samples_carry_frames(void **state)
{
	each_python(check_plain, true);
}

static void test_forked_children_are_walked(void **state)
{
	each_python(check_forking, true);
}

/* The way of kernels without bpf_loop(). */
static void test_plain_loops(void **state)
{
	setenv("PYPERF_TEST_PLAIN_LOOPS", "1", 1);
	each_python(check_plain, false);
	unsetenv("PYPERF_TEST_PLAIN_LOOPS");
}

static uint64_t processes(const struct session *session)
{
	struct py_engine_stats stats;

	py_engine_stats(session->engine, &stats);
	return stats.processes;
}

/* Entries come with fork and go with exec and the last exit, whoever of the threads is last. */
static void check_hooks(const char *python)
{
	static const char script[] = "import os, sys, time, threading\n"
				     "print('ready', flush=True)\n"
				     "time.sleep(.2)\n"
				     "t = threading.Thread(target=time.sleep, args=(0,))\n"
				     "t.start(); t.join()\n"
				     "print('thread', flush=True)\n"
				     "time.sleep(.1)\n"
				     "if not os.fork():\n"
				     "    time.sleep(.2)\n"
				     "    os._exit(0)\n"
				     "print('forked', flush=True)\n"
				     "os.wait()\n"
				     "print('gone', flush=True)\n"
				     "time.sleep(.1)\n"
				     "os.execv('/bin/sh', ['sh', '-c', 'echo exec; sleep 9'])\n";
	static struct session session;
	struct target target;
	char line[64];

	memset(&session, 0, sizeof(session));
	if (!open_engine(&session))
		skip();
	assert_true(target_start(&target, &session, python, script));
	assert_int_equal(processes(&session), 1);
	while (live_child_line(&target.child, line, sizeof(line))) {
		assert_int_equal(processes(&session), strcmp(line, "forked") == 0 ? 2
						      : strcmp(line, "exec") == 0 ? 0
										  : 1);
		if (strcmp(line, "exec") == 0)
			break;
	}
	assert_string_equal(line, "exec");
	target_stop(&target);

	assert_true(target_start(&target, &session, python, busy));
	assert_int_equal(processes(&session), 1);
	target_stop(&target);
	assert_int_equal(processes(&session), 0);
	py_engine_close(session.engine);
}

static void test_hooks(void **state)
{
	each_python(check_hooks, false);
}

/* A chain of 300 functions, all new at once, one name that is not Latin-1, and a line table that
 * is too long to be sent. What the walker could not send it asks for. */
static const char many[] =
	"for i in range(300):\n"
	"    exec(f'def f{i}(): f{i + 1}()')\n"
	"exec('def f300():\\n' + '    x = 1\\n' * 30000 + '    \u0444\u0443\u043d\u043a()\\n')\n"
	"def \u0444\u0443\u043d\u043a():\n"
	"    while True:\n"
	"        pass\n"
	"print('ready', flush=True)\n"
	"import time; time.sleep(.2)\n"
	"f0()\n";

struct requests {
	const struct target *target;
	struct memory memory;
	uint64_t code[CODES_MAX];
	size_t count;
};

static void take_request(const struct py_code_request *request, void *ctx)
{
	struct requests *requests = ctx;

	assert_true(requests->count < CODES_MAX);
	assert_int_equal(request->pid, requests->target->child.pid);
	assert_int_equal(request->lineage, 7);
	assert_true(py_code_is(&requests->target->process.layout, &requests->memory, request->code,
			       request->fingerprint));
	requests->code[requests->count++] = request->code;
}

static bool is_known(const struct session *session, const struct requests *requests,
		     const struct py_raw_frame *frame)
{
	for (size_t i = 0; i < session->codes; i++)
		if (session->code[i].code == frame->code && !session->code[i].missing)
			return true;
	for (size_t i = 0; i < requests->count; i++)
		if (requests->code[i] == frame->code)
			return true;
	return false;
}

static void check_requests(const char *python)
{
	static struct session session;
	static struct requests requests;
	struct memory_process memory;
	struct pollfd poll_fd;
	struct target target;
	size_t deep = 0, named = 0;

	memset(&session, 0, sizeof(session));
	memset(&requests, 0, sizeof(requests));
	if (!open_engine(&session))
		skip();
	assert_true(target_start(&target, &session, python, many));
	memory_process_init(&memory, target.child.pid);
	requests.target = &target;
	requests.memory = memory_of_process(&memory);
	sample(&session, target.child.pid, 0, 500);
	poll_fd = (struct pollfd){.fd = py_engine_request_fd(session.engine), .events = POLLIN};
	assert_int_equal(poll(&poll_fd, 1, 0), 1);
	assert_true(py_engine_requests(session.engine, take_request, &requests) > 100);
	for (size_t i = 0; i < session.stack_count; i++) {
		struct py_raw_frames *frames = session.stack[i];

		for (size_t f = 0; f < frames->count; f++)
			assert_true(is_known(&session, &requests, &frames->frames[f]));
		deep += frames->count == 303;
		free(frames);
	}
	for (size_t i = 0; i < session.codes; i++) {
		named += strcmp(session.code[i].qualname, "\u0444\u0443\u043d\u043a") == 0;
		if (strcmp(session.code[i].qualname, "f300") == 0)
			assert_int_equal(session.code[i].missing, PY_CODE_MISSING_TABLE);
	}
	print_message("%s: %zu code objects sent, %zu asked for, %zu of %zu stacks 303 deep\n",
		      python, session.codes, requests.count, deep, session.stack_count);
	assert_true(deep > session.stack_count / 2);
	assert_int_equal(named, 1);
	memory_process_fini(&memory);
	target_stop(&target);
	py_engine_close(session.engine);
}

static void test_what_cannot_be_sent_is_asked_for(void **state)
{
	each_python(check_requests, true);
}

/* Every sched_switch of a thread that naps carries the frame that naps. */
static void check_tracepoint(const char *python)
{
	static const char script[] = "import time\n"
				     "def nap():\n"
				     "    while True:\n"
				     "        time.sleep(.001)\n"
				     "print('ready', flush=True)\n"
				     "nap()\n";
	static struct session session;
	struct target target;
	size_t naps = 0;
	struct event_list events = {0};
	struct err err = {0};
	uint64_t id;

	if (event_parse(&events, "sched:sched_switch", &err)) {
		print_message("skipped: %s\n", err.text);
		skip();
	}
	id = events.items[0].attr.config;
	event_list_fini(&events);
	memset(&session, 0, sizeof(session));
	if (!open_engine(&session))
		skip();
	assert_true(target_start(&target, &session, python, script));
	sample(&session, target.child.pid, id, 200);
	for (size_t i = 0; i < session.stack_count; i++) {
		struct py_raw_frames *frames = session.stack[i];

		naps += frames->count == 2 &&
			strcmp(name_of(&session, &frames->frames[0]), "nap") == 0;
		free(frames);
	}
	print_message("%s: %zu switches, %zu of them in nap()\n", python, session.samples, naps);
	assert_true(session.samples > 20);
	assert_int_equal(session.with_frames, session.samples);
	assert_true(naps + 1 >= session.samples);
	target_stop(&target);
	py_engine_close(session.engine);
}

static void test_tracepoint(void **state)
{
	each_python(check_tracepoint, false);
}

/* In a pid namespace of its own pyperf knows processes by other numbers than the kernel does. */
static void test_pid_namespace(void **state)
{
	pid_t outer = fork();
	int status;

	if (outer == 0) {
		pid_t inner;

		if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
			_exit(77);
		inner = fork();
		if (inner == 0) {
			if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
			    mount("proc", "/proc", "proc", 0, NULL) != 0)
				_exit(77);
			execl("/proc/self/exe", "test_engine", "busy", (char *)NULL);
			_exit(1);
		}
		waitpid(inner, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	waitpid(outer, &status, 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: no pid namespace can be made\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_one_python(void **state)
{
	each_python(check_plain, false);
}

static void test_one_forking_python(void **state)
{
	each_python(check_forking, false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_carry_frames),
		cmocka_unit_test(test_forked_children_are_walked),
		cmocka_unit_test(test_plain_loops),
		cmocka_unit_test(test_hooks),
		cmocka_unit_test(test_what_cannot_be_sent_is_asked_for),
		cmocka_unit_test(test_tracepoint),
		cmocka_unit_test(test_pid_namespace),
	};
	const struct CMUnitTest inner[] = {
		cmocka_unit_test(test_one_python),
		cmocka_unit_test(test_one_forking_python),
		cmocka_unit_test(test_hooks),
	};

	if (argc > 1) /* by test_pid_namespace() */
		return cmocka_run_group_tests(inner, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
