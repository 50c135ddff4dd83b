#include "cmd/session.h"

#include "base/log.h"
#include "base/text.h"
#include "perfmap/source.h"
#include "record/child.h"
#include "record/control.h"
#include "record/recorder.h"
#include "record/target.h"
#include "record/way.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct {
	char **events;
	char *frequency, *period, *output, *call_graph, *python, *pages, *control;
	int fp, zstd_level, delay_ms, no_metrics, quiet, verbose;
} given = {.zstd_level = 1};

const struct poptOption record_options[] = {
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)target_options, 0, NULL, NULL},
	{"per-thread", '\0', POPT_ARG_NONE, &target_given.alone, 0, "the same as --no-inherit",
	 NULL},
	{"event", 'e', POPT_ARG_ARGV, &given.events, 0,
	 "events to sample (default: cycles, counting instructions, cache and branch misses); "
	 "{a,b} is a group, of {a,b}:S only a is sampled",
	 "EVENT[,EVENT...]"},
	{"no-metrics", '\0', POPT_ARG_NONE, &given.no_metrics, 0,
	 "the events alone: count no instructions along with cycles", NULL},
	{"freq", 'F', POPT_ARG_STRING, &given.frequency, 0,
	 "samples per second of each event, or 'max' (default: 999)", "HZ"},
	{"count", 'c', POPT_ARG_STRING, &given.period, 0, "sample every PERIOD events instead",
	 "PERIOD"},
	{"output", 'o', POPT_ARG_STRING, &given.output, 0,
	 "recording (default: perf.data; an older one becomes FILE.old)", "FILE"},
	{NULL, 'g', POPT_ARG_NONE, &given.fp, 0, "the same as --call-graph fp", NULL},
	{"call-graph", '\0', POPT_ARG_STRING, &given.call_graph, 0,
	 "native callers: auto (default), dwarf, fp, lbr or none; dwarf,SIZE copies so many bytes",
	 "MODE"},
	{"python", '\0', POPT_ARG_STRING, &given.python, 0,
	 "Python frames: auto (default), bpf, stop, trampoline or off", "ENGINE"},
	{"mmap-pages", 'm', POPT_ARG_STRING, &given.pages, 0,
	 "ring buffer of each CPU, in pages or with K, M, G", "PAGES"},
	{"compression-level", 'z', POPT_ARG_INT, &given.zstd_level, 0,
	 "zstd level; 0 writes plain records (default: 1)", "LEVEL"},
	{"delay", 'D', POPT_ARG_INT, &given.delay_ms, 0,
	 "start sampling that long after the program, or after attaching; -1: when told", "MS"},
	{"control", '\0', POPT_ARG_STRING, &given.control, 0,
	 "take orders (enable, disable, stop, ping, begin, end, mark) from fifo:PATH or fd:N; "
	 "answers go to the second",
	 "WHERE[,WHERE]"},
	{"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "warnings and errors only", NULL},
	{"verbose", 'v', POPT_ARG_NONE, &given.verbose, 0, "say more", NULL},
	POPT_TABLEEND,
};

static const struct word call_graph_words[] = {
	{"auto", RECORDER_CHAIN_AUTO}, {"dwarf", RECORDER_CHAIN_DWARF}, {"fp", RECORDER_CHAIN_FP},
	{"lbr", RECORDER_CHAIN_LBR},   {"none", RECORDER_CHAIN_NONE},	{0},
};

/* "512" pages, or a size such as "2M"; rounded up to a power of two. */
static int parse_pages(const char *text, size_t *pages)
{
	static const char units[] = "BKMG";
	char number[24];
	size_t len = strspn(text, "0123456789");
	size_t page = (size_t)sysconf(_SC_PAGESIZE), power = 1;
	uint64_t value;

	if (!len || len >= sizeof(number))
		return -1;
	memcpy(number, text, len);
	number[len] = '\0';
	if (parse_number(number, &value) < 0 || value > 1ull << 40)
		return -1;
	if (text[len]) {
		const char *unit = strchr(units, text[len] & ~0x20);

		if (!unit || text[len + 1])
			return -1;
		value = ((value << (10 * (unit - units))) + page - 1) / page;
	}
	if (!value || value > 1u << 20)
		return -1;
	while (power < value)
		power *= 2;
	*pages = power;
	return 0;
}

static int set_frequency(const struct command *command, struct recorder_options *options)
{
	uint64_t limit = event_max_sample_rate();

	options->rate_given = given.frequency || given.period;
	if (given.frequency && given.period)
		return command_usage(command, "-F and -c exclude each other");
	if (given.period)
		return parse_number(given.period, &options->period) == 0
			       ? 0
			       : command_usage(command, "-c takes a number of events, not '%s'",
					       given.period);
	options->frequency = RECORDER_DEFAULT_HZ;
	if (given.frequency && strcmp(given.frequency, "max") == 0)
		options->frequency = limit ? limit : RECORDER_DEFAULT_HZ;
	else if (given.frequency && parse_number(given.frequency, &options->frequency) < 0)
		return command_usage(command, "-F takes samples per second or 'max', not '%s'",
				     given.frequency);
	if (limit && options->frequency > limit) {
		log_warn("the kernel allows %llu samples per second, not %llu "
			 "(kernel.perf_event_max_sample_rate)",
			 (unsigned long long)limit, (unsigned long long)options->frequency);
		options->frequency = limit;
	}
	return 0;
}

/* "dwarf,SIZE" as perf has it; the kernel takes multiples of 8. */
static int set_call_graph(const struct command *command, struct recorder_options *options)
{
	const char *mode = given.call_graph ? given.call_graph : given.fp ? "fp" : "auto";
	uint64_t bytes = 0;
	int value = RECORDER_CHAIN_DWARF;

	if (strncmp(mode, "dwarf,", 6) == 0) {
		if (parse_number(mode + 6, &bytes) < 0 || bytes > RECORDER_STACK_BYTES_MAX)
			return command_usage(command,
					     "--call-graph dwarf,SIZE takes bytes of stack, at "
					     "most %u, not '%s'",
					     RECORDER_STACK_BYTES_MAX, mode + 6);
	} else if ((value = word_find(call_graph_words, mode)) < 0) {
		return command_usage(
			command, "--call-graph is auto, dwarf, fp, lbr or none, not '%s'", mode);
	}
	options->chain = (enum recorder_chain)value;
	options->stack_bytes = (uint32_t)(bytes + 7) & ~7u;
	return 0;
}

static int set_options(const struct command *command, struct recorder_options *options)
{
	int python = given.python ? word_find(python_words, given.python) : RECORDER_PYTHON_AUTO;
	int status = set_frequency(command, options);

	if (!status)
		status = set_call_graph(command, options);
	if (status)
		return status;
	options->no_inherit = target_given.alone;
	if (python < 0)
		return command_usage(command,
				     "--python is auto, bpf, stop, trampoline or off, not '%s'",
				     given.python);
	options->python = (enum recorder_python)python;
	if (given.pages && parse_pages(given.pages, &options->pages) < 0)
		return command_usage(command,
				     "-m takes pages (512) or a size (2M) of at most 4G, not '%s'",
				     given.pages);
	if (given.zstd_level < 0 || given.zstd_level > 22)
		return command_usage(command, "-z takes a level from 0 to 22");
	if (given.delay_ms < -1)
		return command_usage(command, "-D takes milliseconds, or -1");
	if (given.delay_ms < 0 && !given.control)
		return command_usage(command, "-D -1 needs --control to tell when to start");
	options->zstd_level = given.zstd_level;
	options->delay_ms = given.delay_ms;
	options->path = given.output ? given.output : "perf.data";
	if (!*options->path || strcmp(options->path, "-") == 0)
		return command_usage(command, "-o takes the name of a file");
	return 0;
}

/* A session, and the orders that are taken while it lasts. */
struct recording {
	struct session session;
	int wake_fd;		 /* an epoll set of what is looked at: signals and orders */
	struct control *control; /* NULL: none are taken */
	struct control_scope scope;
	struct phases phases;
	struct err *err;      /* of an order that failed */
	uint64_t duration_us; /* 0: as long as the program or the targets run */
};

/* While recording; true ends it. */
static bool on_order(void *ctx)
{
	struct recording *recording = ctx;
	bool stop = session_wake(&recording->session);

	if (recording->control &&
	    control_read(recording->control, &recording->scope, recording->err) < 0)
		return true;
	return stop || recording->scope.stop;
}

/* Signals, and orders where some are taken, become readable as one. */
static int open_wake(struct recording *recording)
{
	int fds[] = {recording->session.signal_fd, control_fd(recording->control)};

	recording->wake_fd = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < 2 && recording->wake_fd >= 0; i++) {
		struct epoll_event event = {.events = EPOLLIN};

		if (fds[i] >= 0 &&
		    epoll_ctl(recording->wake_fd, EPOLL_CTL_ADD, fds[i], &event) < 0) {
			close(recording->wake_fd);
			recording->wake_fd = -1;
		}
	}
	return recording->wake_fd;
}

static void say_what_happened(const struct session *session, const char *name,
			      const struct recorder_options *options,
			      const struct recorder_result *result)
{
	session_warn(session, name);
	if (!result->samples && !result->trace_bytes)
		log_warn("no samples: %s used too little CPU time, or its events did not "
			 "occur; a higher -F or a smaller -c takes more",
			 result->target[0] ? result->target : "the program");
	else if (!result->pythons && !result->unknown_pythons &&
		 options->python != RECORDER_PYTHON_OFF)
		log_info("no CPython was found in what ran: the recording has native functions "
			 "only");
	if (result->rate_cut >= 1.05)
		log_warn("sampled %.1f times more seldom than asked for: stopping threads more "
			 "often "
			 "would have slowed the program by more than 10%%",
			 result->rate_cut);
	if (result->not_sampled)
		log_warn("%llu threads were not sampled: too many files are open (ulimit -n)",
			 (unsigned long long)result->not_sampled);
	if (result->not_stopped)
		log_info("%llu samples have no Python frames, since their thread could not be "
			 "stopped for them",
			 (unsigned long long)result->not_stopped);
	if (result->lost)
		log_warn("%llu records were lost: a larger -m or a lower -F avoids it",
			 (unsigned long long)result->lost);
}

static void say_result(const struct recorder_options *options, const struct recorder_result *result)
{
	char size[32], samples[32], lost[32], trace[32];
	struct strbuf path = {0};

	if (given.quiet || !isatty(STDERR_FILENO))
		return;
	text_size(size, sizeof(size), result->bytes);
	text_count(samples, sizeof(samples), result->samples);
	text_count(lost, sizeof(lost), result->lost);
	text_escape(&path, options->path, strlen(options->path));
	fprintf(stderr, "[ pyperf: %s, %s, %s samples, %s lost", strbuf_text(&path), size, samples,
		lost);
	if (result->trace_bytes) {
		text_size(trace, sizeof(trace), result->trace_bytes);
		fprintf(stderr, ", %s of trace", trace);
	}
	if (result->samples && options->python != RECORDER_PYTHON_OFF)
		fprintf(stderr, ", Python on %.1f%%",
			100.0 * (double)result->python / (double)result->samples);
	fprintf(stderr, ", native stacks by %s", way_name(options->chain));
	if (result->stacks)
		fprintf(stderr, ", %.1f%% whole",
			100.0 * (double)result->whole_stacks / (double)result->stacks);
	fprintf(stderr, " ]\n");
	strbuf_fini(&path);
}

static void close_recording(struct recording *recording)
{
	if (recording->phases.refused)
		log_warn("%llu orders of --control named no phase that could be kept",
			 (unsigned long long)recording->phases.refused);
	phases_fini(&recording->phases);
	sources_free(recording->scope.sources);
	control_free(recording->control);
	if (recording->wake_fd >= 0)
		close(recording->wake_fd);
	session_close(&recording->session);
}

/* Between a held program and its end, or from attaching to detaching. Returns the status to exit
 * with. */
static int run(struct recorder *recorder, struct child *child,
	       const struct recorder_options *options, const struct recorder_target *target,
	       struct recording *recording)
{
	const char *name = options->command ? options->command[0] : NULL;
	struct session *session = &recording->session;
	struct recorder_result result = {0};
	struct err err = {0}, order_err = {0};
	int ret, status;

	ret = recorder_open(recorder, target, &err);
	if (ret)
		return command_fail(&err);
	ret = name ? child_start(child, name, &err) : 0;
	if (ret) {
		command_fail(&err);
		return ret == ERR_NOT_FOUND ? 127 : 126;
	}
	if (recording->duration_us)
		session_timer(recording->duration_us +
			      (options->delay_ms > 0 ? (uint64_t)options->delay_ms * 1000 : 0));
	recording->scope.recorder = recorder;
	recording->err = &order_err;
	ret = recorder_run(recorder, recording->wake_fd, on_order, recording, &err);
	if (ret)
		command_fail(&err);
	else if ((ret = order_err.code))
		command_fail(&order_err);
	status = recorder_close(recorder, name && session->ended ? session_status(session) : -1,
				&result, &err);
	if (status && !ret)
		command_fail(&err);
	/* A failed recording, or one whose target ended before the program. */
	session_wait(session);
	say_what_happened(session, name, options, &result);
	say_result(options, &result);
	if (session_status(session))
		return session_status(session);
	return ret || status ? 1 : 0;
}

/* What --call-graph auto stands for here, which is told at the end, too. */
static void choose_way(struct recorder_options *options, const struct recorder_target *target,
		       const char *program)
{
	struct strbuf why = {0};

	if (options->chain != RECORDER_CHAIN_AUTO)
		return;
	options->chain = way_choose(target, options->command ? program : NULL, &why);
	log_debug("--call-graph %s: %s", way_name(options->chain), strbuf_text(&why));
	strbuf_fini(&why);
}

static int check_way(const struct recorder_options *options)
{
	struct err err = {0};

	if (options->chain == RECORDER_CHAIN_LBR && way_lbr_probe(options->events, &err) < 0)
		return command_fail(&err);
	return 0;
}

static int record(struct recorder_options *options, struct event_list *events,
		  struct recorder_target *target, uint64_t duration_us)
{
	struct recorder *recorder = NULL;
	struct child child = {.pid = -1, .go_fd = -1, .error_fd = -1};
	struct recording recording = {
		.session = {.pid = -1, .signal_fd = -1},
		.wake_fd = -1,
		.duration_us = duration_us,
	};
	struct recorder_task *task;
	struct err err = {0};
	char program[PATH_MAX];
	int status = options->command ? child_find(options->command[0], program, &err) : 0;

	if (status) {
		command_fail(&err);
		return status == ERR_NOT_FOUND ? 127 : 126;
	}
	choose_way(options, target, program);
	recording.scope.phases = &recording.phases;
	recording.scope.sources = sources_new();
	options->phases = recording.scope.phases;
	options->sources = recording.scope.sources;
	if (!options->sources) {
		err_nomem(&err);
		return command_fail(&err);
	}
	status = event_list_permitted(events, &err);
	if (!status && given.control)
		status = control_open(&recording.control, given.control, &err);
	if (!status)
		status = recorder_new(&recorder, options, target, &err);
	if (!status)
		status = event_list_probe(events, recorder_reads_groups(recorder, target), &err);
	if (!status && options->command)
		status = child_hold(&child, options->command, recorder_environment(recorder), &err);
	if (!status && target->kind == RECORDER_COMMAND) {
		task = vec_push(&target->tasks);
		if (task)
			task->pid = task->tid = child.pid;
		else
			status = err_nomem(&err);
	}
	if (!status)
		status = session_open(&recording.session, child.pid, &err);
	if (!status && open_wake(&recording) < 0)
		status = err_sys(&err, errno, "cannot watch for signals");
	if (status)
		status = command_fail(&err);
	else
		status = run(recorder, &child, options, target, &recording);
	child_drop(&child);
	recorder_free(recorder);
	close_recording(&recording);
	return status;
}

int cmd_record(int argc, const char **argv)
{
	const struct command *command = command_find("record");
	struct recorder_options options = {0};
	struct recorder_target target = {0};
	struct event_list events = {0};
	uint64_t duration_us = 0;
	const char **line = calloc((size_t)argc + 2, sizeof(*line)); /* "pyperf record ..." */
	struct err err = {0};
	poptContext context;
	int status = 0;

	if (!line) {
		err_nomem(&err);
		return command_fail(&err);
	}
	context = command_options(command, argc, argv, 1, &status);
	if (!context) {
		free(line);
		return status;
	}
	line[0] = "pyperf";
	memcpy(line + 1, argv, (size_t)argc * sizeof(*line));
	command_verbosity(given.quiet, given.verbose);
	options.events = &events;
	options.argv = line;
	options.command = (const char *const *)poptGetArgs(context);
	status = set_options(command, &options);
	if (!status)
		status = session_target(command, options.command, &target, &duration_us);
	if (!status && event_list_wanted(&events, given.events, !given.no_metrics, &err) < 0)
		status = command_fail(&err);
	if (!status)
		status = check_way(&options);
	if (!status)
		status = record(&options, &events, &target, duration_us);
	target_fini(&target);
	event_list_fini(&events);
	poptFreeContext(context);
	free(line);
	return status;
}
