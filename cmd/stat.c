#include "cmd/session.h"

#include "cmd/stat.h"

#include "base/clock.h"
#include "base/io.h"
#include "output/counts.h"
#include "perfmap/source.h"
#include "record/child.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The last ones are left out where the machine does not count them. */
#define SOFTWARE_EVENTS "task-clock,context-switches,cpu-migrations,page-faults"
#define HARDWARE_EVENTS \
	"{cycles,instructions}:W,{cache-references,cache-misses}:W,{branches,branch-misses}:W"

static struct {
	char **events;
	char *output;
	int repeat, interval_ms, by_thread, by_function, json, csv, no_metrics, quiet, verbose;
} given = {.repeat = 1};

const struct poptOption stat_options[] = {
	{"event", 'e', POPT_ARG_ARGV, &given.events, 0,
	 "events to count (default: CPU time, switches, page faults, cycles, instructions, cache "
	 "and branch misses)",
	 "EVENT[,EVENT...]"},
	{"repeat", 'r', POPT_ARG_INT, &given.repeat, 0,
	 "run the program so often, and tell how the counts vary", "N"},
	{"interval", 'I', POPT_ARG_INT, &given.interval_ms, 0, "a line every MS milliseconds",
	 "MS"},
	{"per-thread", '\0', POPT_ARG_NONE, &given.by_thread, 0, "counts of each thread", NULL},
	{"by-function", '\0', POPT_ARG_NONE, &given.by_function, 0,
	 "counts of each Python function, from samples that read the counters", NULL},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)target_options, 0, NULL, NULL},
	{"no-metrics", '\0', POPT_ARG_NONE, &given.no_metrics, 0, "the counts alone", NULL},
	{"output", 'o', POPT_ARG_STRING, &given.output, 0,
	 "write to a file instead of standard error", "FILE"},
	{"json", '\0', POPT_ARG_NONE, &given.json, 0, "write JSON", NULL},
	{"csv", '\0', POPT_ARG_NONE, &given.csv, 0, "write comma-separated values", NULL},
	{"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "the result alone, no remarks", NULL},
	{"verbose", 'v', POPT_ARG_NONE, &given.verbose, 0, "say more", NULL},
	POPT_TABLEEND,
};

/* One run of a program, or one look at what runs. */
struct run {
	struct session session;
	struct recorder *recorder;
	struct child child;
	int wake_fd, timer_fd;
	struct counts *counts;
	struct recorder_count *before; /* at the end of the last interval */
	double start, first;	       /* of this run, of all */
	bool each_thread;	       /* that was attached to has its own counts */
	FILE *out;
};

static double now(void)
{
	return 1e-9 * (double)clock_now_ns();
}

static void end_interval(struct run *run)
{
	struct counts *counts = run->counts;
	size_t events = counts->events->len;
	struct recorder_count *at = calloc(events, sizeof(*at));
	struct counts_row row, *slot;

	if (!at || !recorder_counts(run->recorder, at) || !counts_new_row(counts, &row, NULL)) {
		free(at);
		return;
	}
	row.end = now() - run->first;
	for (size_t i = 0; i < events; i++) {
		struct recorder_count since = {
			.value = at[i].value - run->before[i].value,
			.enabled_ns = at[i].enabled_ns - run->before[i].enabled_ns,
			.running_ns = at[i].running_ns - run->before[i].running_ns,
		};

		row.values[i] = counts_value(&since);
	}
	counts_measure(counts, &row);
	memcpy(run->before, at, events * sizeof(*at));
	free(at);
	slot = vec_push(&counts->intervals);
	if (slot)
		*slot = row;
	else
		counts_row_fini(&row);
	if (slot && !given.json && !given.csv)
		output_counts_interval(run->out, counts, slot, counts->intervals.len == 1);
}

static bool on_wake(void *ctx)
{
	struct run *run = ctx;
	uint64_t ticks;

	if (run->timer_fd >= 0 && read(run->timer_fd, &ticks, sizeof(ticks)) == sizeof(ticks))
		end_interval(run);
	return session_wake(&run->session);
}

/* Signals and the end of an interval become readable as one. */
static int open_wake(struct run *run, struct err *err)
{
	struct itimerspec every = {
		.it_interval = {.tv_sec = given.interval_ms / 1000,
				.tv_nsec = given.interval_ms % 1000 * 1000000L},
	};
	struct epoll_event event = {.events = EPOLLIN};
	int ret;

	every.it_value = every.it_interval;
	run->wake_fd = epoll_create1(EPOLL_CLOEXEC);
	ret = run->wake_fd < 0
		      ? -1
		      : epoll_ctl(run->wake_fd, EPOLL_CTL_ADD, run->session.signal_fd, &event);
	if (!ret && given.interval_ms) {
		run->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		ret = run->timer_fd < 0 || timerfd_settime(run->timer_fd, 0, &every, NULL) < 0 ||
		      epoll_ctl(run->wake_fd, EPOLL_CTL_ADD, run->timer_fd, &event) < 0;
	}
	return ret ? err_sys(err, errno, "cannot wait for signals and time") : 0;
}

/* The name is read now: of a thread that has ended only the number is left. */
static void thread_label(pid_t tid, char *label, size_t size)
{
	char path[64], comm[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)tid);
	io_read_line(path, comm, sizeof(comm), NULL);
	snprintf(label, size, "%s%s%d", comm, comm[0] ? " " : "", (int)tid);
}

static int add_threads(struct run *run, struct err *err)
{
	struct counts *counts = run->counts;
	struct recorder_count *own = calloc(counts->events->len, sizeof(*own));
	pid_t *tids = NULL;
	ssize_t count = own ? recorder_threads(run->recorder, &tids) : -1;
	int ret = count < 0 ? err_nomem(err) : 0;

	for (ssize_t i = 0; !ret && i < count; i++) {
		struct counts_row row, *slot;
		char label[64];

		thread_label(tids[i], label, sizeof(label));
		slot = counts_new_row(counts, &row, label) ? vec_push(&counts->threads) : NULL;
		if (!slot) {
			counts_row_fini(&row);
			ret = err_nomem(err);
			break;
		}
		recorder_thread_counts(run->recorder, tids[i], own);
		/* How long the counters were shared is known of all threads together. */
		for (size_t e = 0; e < counts->events->len; e++)
			row.values[e] =
				(double)own[e].value *
				counts_scale(&counts->runs.items[counts->runs.len - 1].counts[e]);
		counts_measure(counts, &row);
		*slot = row;
	}
	free(own);
	free(tids);
	return ret;
}

static double seconds(const struct timeval *time)
{
	return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

/* After the program's end, or when what was attached to is let go. */
static int take_counts(struct run *run, struct err *err)
{
	struct counts_run *counted = counts_add_run(run->counts);

	if (!counted)
		return err_nomem(err);
	counted->elapsed = now() - run->start;
	counted->user = run->session.ended ? seconds(&run->session.usage.ru_utime) : -1;
	counted->system = run->session.ended ? seconds(&run->session.usage.ru_stime) : -1;
	recorder_counts(run->recorder, counted->counts);
	if (given.interval_ms)
		end_interval(run);
	return run->each_thread ? add_threads(run, err) : 0;
}

static void run_fini(struct run *run)
{
	child_drop(&run->child);
	recorder_free(run->recorder);
	session_close(&run->session);
	if (run->wake_fd >= 0)
		close(run->wake_fd);
	if (run->timer_fd >= 0)
		close(run->timer_fd);
	free(run->before);
}

static int hold_child(struct run *run, const struct recorder_options *options,
		      struct recorder_target *target, struct err *err)
{
	struct recorder_task *task;
	int ret;

	if (!options->command)
		return 0;
	ret = child_hold(&run->child, options->command, recorder_environment(run->recorder), err);
	if (ret || target->kind != RECORDER_COMMAND)
		return ret;
	target->tasks.len = 0;
	task = vec_push(&target->tasks);
	if (!task)
		return err_nomem(err);
	*task = (struct recorder_task){.pid = run->child.pid, .tid = run->child.pid};
	return 0;
}

/* *status becomes the program's, or that of a program that cannot be started. */
static int run_once(const struct stat_setup *setup, struct event_list *events,
		    struct counts *counts, double first, int *status, struct err *err)
{
	const struct recorder_options *options = &setup->options;
	const char *name = options->command ? options->command[0] : NULL;
	struct run run = {.session = {.pid = -1, .signal_fd = -1},
			  .child = {.pid = -1, .go_fd = -1, .error_fd = -1},
			  .wake_fd = -1,
			  .timer_fd = -1,
			  .counts = counts,
			  .first = first,
			  .each_thread = setup->by_thread && setup->memory_fd < 0,
			  .out = setup->out};
	struct recorder_result result;
	int ret = recorder_new(&run.recorder, options, setup->target, err), closed;

	if (!ret && !counts->events)
		ret = setup->prepare(setup, run.recorder, events, counts, err);
	if (!ret)
		ret = hold_child(&run, options, setup->target, err);
	if (!ret)
		ret = session_open(&run.session, run.child.pid, err);
	run.before = ret ? NULL : calloc(events->len, sizeof(*run.before));
	if (!ret && !run.before)
		ret = err_nomem(err);
	if (!ret)
		ret = recorder_open(run.recorder, setup->target, err);
	run.start = now();
	if (!run.first)
		run.first = run.start;
	if (!ret && name) {
		ret = child_start(&run.child, name, err);
		*status = ret == ERR_NOT_FOUND ? 127 : ret ? 126 : 0;
	}
	if (!ret)
		ret = open_wake(&run, err);
	if (!ret && setup->duration_us)
		session_timer(setup->duration_us);
	if (!ret) {
		ret = recorder_run(run.recorder, run.wake_fd, on_wake, &run, err);
		if (!ret)
			ret = take_counts(&run, err);
		closed = recorder_close(run.recorder, session_status(&run.session), &result,
					ret ? NULL : err);
		ret = ret ? ret : closed;
		session_wait(&run.session);
		if (name)
			session_warn(&run.session, name);
		*status = session_status(&run.session);
	}
	run_fini(&run);
	return ret;
}

/* Counted, not sampled. */
static int prepare_counting(const struct stat_setup *setup, struct recorder *recorder,
			    struct event_list *events, struct counts *counts, struct err *err)
{
	int ret;

	for (size_t i = 0; i < events->len; i++)
		events->items[i].counted = true;
	ret = event_list_probe(events, true, err);
	if (!ret)
		counts_init(counts, events, setup->metrics);
	return ret;
}

static int list_events(struct event_list *events, struct err *err)
{
	size_t asked;
	int ret = 0;

	for (char **wanted = given.events; !ret && wanted && *wanted; wanted++)
		ret = event_parse(events, *wanted, err);
	if (ret || given.events)
		return ret;
	ret = event_parse(events, SOFTWARE_EVENTS, err);
	asked = events->len;
	if (!ret)
		ret = event_parse(events, HARDWARE_EVENTS, err);
	for (size_t i = asked; i < events->len; i++)
		events->items[i].along = true;
	return ret;
}

static int put(FILE *out, const struct counts *counts, struct err *err)
{
	if (given.json)
		return output_counts_json(out, counts, err);
	if (given.csv)
		output_counts_csv(out, counts);
	else
		output_counts_text(out, counts);
	return 0;
}

static int check(const struct command *command, const struct stat_setup *setup)
{
	bool attached = setup->target->kind != RECORDER_COMMAND;

	if (given.repeat < 1)
		return command_usage(command, "-r takes a number of runs");
	if (given.repeat > 1 && (attached || given.interval_ms || given.by_thread))
		return command_usage(command, "-r repeats a program of its own, whole: without -p, "
					      "-a, -I and --per-thread");
	if (given.interval_ms < 0 || (given.interval_ms && given.interval_ms < 10))
		return command_usage(command, "-I takes at least 10 milliseconds");
	if (given.by_thread && (given.by_function || setup->target->kind == RECORDER_CPUS))
		return command_usage(command, "--per-thread is for processes, and excludes "
					      "--by-function");
	if (given.by_function && (given.repeat > 1 || given.interval_ms))
		return command_usage(command, "--by-function excludes -r and -I");
	if (given.json && given.csv)
		return command_usage(command, "--json and --csv exclude each other");
	return 0;
}

static int stat_runs(struct stat_setup *setup, struct event_list *events, struct counts *counts,
		     int *status, struct err *err)
{
	struct strbuf title = {0};
	int ret = 0;

	if (setup->options.command)
		for (const char *const *word = setup->options.command; *word; word++)
			strbuf_printf(&title, "%s%s", title.len ? " " : "", *word);
	else
		target_describe(setup->target, &title);
	for (int i = 0; !ret && !*status && i < given.repeat; i++)
		ret = run_once(setup, events, counts, 0, status, err);
	counts->title = strbuf_text(&title);
	if (!ret)
		ret = stat_share(setup, counts, err);
	if (!ret && counts->runs.len)
		ret = put(setup->out, counts, err);
	if (!ret && (fflush(setup->out) || ferror(setup->out)))
		ret = err_sys(err, errno, "cannot write the result");
	strbuf_fini(&title);
	return ret;
}

int cmd_stat(int argc, const char **argv)
{
	const struct command *command = command_find("stat");
	struct recorder_target target = {0};
	struct stat_setup setup = {
		.target = &target, .out = stderr, .prepare = prepare_counting, .memory_fd = -1};
	struct event_list events = {0};
	struct counts counts = {0};
	struct err err = {0};
	poptContext context;
	int status = 0, ret;
	bool sampled;

	context = command_options(command, argc, argv, 1, &status);
	if (!context)
		return status;
	command_verbosity(given.quiet, given.verbose);
	setup.metrics = !given.no_metrics;
	setup.by_thread = given.by_thread;
	setup.all = given.json || given.csv;
	setup.options = (struct recorder_options){
		.events = &events,
		.counting = true,
		.no_inherit = target_given.alone,
		.python = RECORDER_PYTHON_OFF,
		.chain = RECORDER_CHAIN_NONE,
		.path = "/dev/null",
		.sources = sources_new(),
		.command = (const char *const *)poptGetArgs(context),
	};
	if (!setup.options.sources) {
		err_nomem(&err);
		status = command_fail(&err);
	}
	if (!status)
		status = session_target(command, setup.options.command, &target,
					&setup.duration_us);
	if (!status)
		status = check(command, &setup);
	/* Threads that are created later can be told by samples only. */
	sampled = given.by_function || (given.by_thread && target.kind == RECORDER_COMMAND);
	setup.options.no_inherit |= given.by_thread && !sampled;
	if (!status && setup.options.command &&
	    (ret = child_find(setup.options.command[0], NULL, &err))) {
		command_fail(&err);
		status = ret == ERR_NOT_FOUND ? 127 : 126;
	}
	if (!status && given.output && !(setup.out = fopen(given.output, "we"))) {
		err_sys(&err, errno, "cannot write to %s", given.output);
		status = command_fail(&err);
	}
	if (!status &&
	    (list_events(&events, &err) < 0 || (sampled && stat_sample(&setup, &err) < 0)))
		status = command_fail(&err);
	if (!status && stat_runs(&setup, &events, &counts, &status, &err) < 0) {
		ret = command_fail(&err);
		status = status ? status : ret;
	}
	counts_fini(&counts);
	stat_close(&setup);
	sources_free(setup.options.sources);
	if (given.output && setup.out && fclose(setup.out) && !status)
		status = 1;
	target_fini(&target);
	event_list_fini(&events);
	poptFreeContext(context);
	return status;
}
