#include "cmd/cmd.h"

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
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TERM_GRACE_MS 1000

static struct {
	char **events;
	char *pids, *tids, *cpus, *user, *cgroup, *duration;
	char *frequency, *period, *output, *call_graph, *python, *pages, *control;
	int everything, alone, fp, zstd_level, delay_ms, no_metrics, quiet, verbose;
} given = {.zstd_level = 1};

const struct poptOption record_options[] = {
	{"pid", 'p', POPT_ARG_STRING, &given.pids, 0,
	 "attach to running processes and all their threads", "PID[,PID...]"},
	{"tid", 't', POPT_ARG_STRING, &given.tids, 0, "attach to single threads", "TID[,TID...]"},
	{"all-cpus", 'a', POPT_ARG_NONE, &given.everything, 0, "everything that runs", NULL},
	{"cpu", 'C', POPT_ARG_STRING, &given.cpus, 0, "everything that runs on these CPUs", "CPUS"},
	{"uid", 'u', POPT_ARG_STRING, &given.user, 0, "attach to the processes of a user", "USER"},
	{"cgroup", 'G', POPT_ARG_STRING, &given.cgroup, 0,
	 "what belongs to a control group or a container: a path, a name or an id", "NAME"},
	{"no-inherit", 'i', POPT_ARG_NONE, &given.alone, 0,
	 "the threads that there are, not what they create", NULL},
	{"per-thread", '\0', POPT_ARG_NONE, &given.alone, 0, "the same as --no-inherit", NULL},
	{"duration", '\0', POPT_ARG_STRING, &given.duration, 0, "end after that many seconds",
	 "SEC"},
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

struct word {
	const char *name;
	int value;
};
static const struct word python_words[] = {
	{"auto", RECORDER_PYTHON_AUTO}, {"bpf", RECORDER_PYTHON_BPF},
	{"stop", RECORDER_PYTHON_STOP}, {"trampoline", RECORDER_PYTHON_TRAMPOLINE},
	{"off", RECORDER_PYTHON_OFF},	{0},
};
static const struct word call_graph_words[] = {
	{"auto", RECORDER_CHAIN_AUTO}, {"dwarf", RECORDER_CHAIN_DWARF}, {"fp", RECORDER_CHAIN_FP},
	{"lbr", RECORDER_CHAIN_LBR},   {"none", RECORDER_CHAIN_NONE},	{0},
};

static int find_word(const struct word *words, const char *name, int *value)
{
	for (; words->name; words++)
		if (strcmp(words->name, name) == 0) {
			*value = words->value;
			return 0;
		}
	return -1;
}

/* A whole positive number, all of it. */
static int parse_number(const char *text, uint64_t *value)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -1;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno || *end || !*value ? -1 : 0;
}

/* "1.5": digits with at most one point. */
static int parse_seconds(const char *text, uint64_t *us)
{
	size_t whole = strspn(text, "0123456789");
	size_t point = text[whole] == '.';
	size_t part = strspn(text + whole + point, "0123456789");
	uint64_t seconds = 0, unit = 100000, rest = 0;

	if (whole + part == 0 || text[whole + point + part] || whole > 9)
		return -1;
	for (size_t i = 0; i < whole; i++)
		seconds = 10 * seconds + (uint64_t)(text[i] - '0');
	for (size_t i = 0; i < part; i++, unit /= 10)
		rest += unit * (uint64_t)(text[whole + point + i] - '0');
	*us = 1000000 * seconds + rest;
	return *us ? 0 : -1;
}

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
	} else if (find_word(call_graph_words, mode, &value) < 0) {
		return command_usage(
			command, "--call-graph is auto, dwarf, fp, lbr or none, not '%s'", mode);
	}
	options->chain = (enum recorder_chain)value;
	options->stack_bytes = (uint32_t)(bytes + 7) & ~7u;
	return 0;
}

static int set_options(const struct command *command, struct recorder_options *options)
{
	int value = RECORDER_PYTHON_AUTO, status = set_frequency(command, options);

	if (!status)
		status = set_call_graph(command, options);
	if (status)
		return status;
	options->no_inherit = given.alone;
	if (given.python && find_word(python_words, given.python, &value) < 0)
		return command_usage(command,
				     "--python is auto, bpf, stop, trampoline or off, not '%s'",
				     given.python);
	options->python = (enum recorder_python)value;
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

/* What ends a recording: our program, if there is one, signals, or time. */
struct session {
	pid_t pid; /* -1: attached, without a program */
	int signal_fd;
	int wake_fd;		 /* an epoll set of what is looked at: signals and orders */
	struct control *control; /* NULL: none are taken */
	struct control_scope scope;
	struct phases phases;
	struct err *err;  /* of an order that failed */
	bool ended, told; /* reaped; a signal asked it to end */
	bool stopped;	  /* without a program: by a signal or by time */
	bool timed_out;	  /* --duration is over */
	int wait_status;
	unsigned int interrupts;
	uint64_t duration_us; /* 0: as long as the program or the targets run */
	uint64_t give_up_ns;  /* after SIGTERM: when the recording ends without it */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int open_signals(void)
{
	sigset_t set, unread;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* A file that grew to its limit is a failed write, not our end. */
	sigemptyset(&unread);
	sigaddset(&unread, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &unread, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * A signal from the terminal's keys reached the program as well (it shares our process group), one
 * that was sent to us alone is passed on. The first Ctrl-C leaves it to the program how it ends and
 * records that, too; a second and a third insist. What runs without us is never signalled: the
 * recording ends, and it goes on.
 */
static void on_signal(struct session *session, const struct signalfd_siginfo *info)
{
	static const int insist[] = {SIGTERM, SIGKILL};
	int sig = (int)info->ssi_signo;

	if (sig == SIGCHLD)
		return;
	if (sig == SIGALRM)
		session->timed_out = true;
	if (session->pid < 0) {
		session->stopped = true;
		return;
	}
	session->told = true;
	if (sig == SIGTERM || sig == SIGHUP || sig == SIGALRM) {
		session->give_up_ns = now_ns() + TERM_GRACE_MS * 1000000ull;
		kill(session->pid, sig == SIGALRM ? SIGTERM : sig);
		return;
	}
	if (session->interrupts == 0) {
		if (info->ssi_code != SI_KERNEL)
			kill(session->pid, sig);
	} else {
		kill(session->pid, insist[session->interrupts > 1]);
	}
	session->interrupts++;
}

/* True when the program or what was attached to is done with. */
static bool on_wake(struct session *session)
{
	struct signalfd_siginfo info;

	while (read(session->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (!session->ended)
			on_signal(session, &info);
	if (session->pid < 0)
		return session->stopped;
	if (!session->ended &&
	    waitpid(session->pid, &session->wait_status, WNOHANG) == session->pid)
		session->ended = true;
	return session->ended || (session->give_up_ns && now_ns() >= session->give_up_ns);
}

/* While recording; true ends it. */
static bool on_order(void *ctx)
{
	struct session *session = ctx;
	bool stop = on_wake(session);

	if (session->control && control_read(session->control, &session->scope, session->err) < 0)
		return true;
	return stop || session->scope.stop;
}

/* Signals, and orders where some are taken, become readable as one. */
static int open_wake(struct session *session)
{
	int fds[] = {session->signal_fd, control_fd(session->control)};

	session->wake_fd = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < 2 && session->wake_fd >= 0; i++) {
		struct epoll_event event = {.events = EPOLLIN};

		if (fds[i] >= 0 && epoll_ctl(session->wake_fd, EPOLL_CTL_ADD, fds[i], &event) < 0) {
			close(session->wake_fd);
			session->wake_fd = -1;
		}
	}
	return session->wake_fd;
}

/* When the recording had to end first: the program is not to suffer for it. */
static void wait_for(struct session *session)
{
	struct pollfd fd = {.fd = session->signal_fd, .events = POLLIN};

	while (session->pid > 0 && !on_wake(session))
		poll(&fd, 1, 250);
}

/* --duration comes as a signal, too. */
static void start_timer(uint64_t duration_us)
{
	struct itimerval timer = {
		.it_value = {.tv_sec = (time_t)(duration_us / 1000000),
			     .tv_usec = (suseconds_t)(duration_us % 1000000)},
	};

	setitimer(ITIMER_REAL, &timer, NULL);
}

static int shell_status(const struct session *session)
{
	if (session->pid < 0)
		return 0;
	if (!session->ended)
		return session->timed_out ? 0 : 128 + SIGTERM;
	/* It ended because we were told to end it then. */
	if (session->timed_out && WIFSIGNALED(session->wait_status) &&
	    WTERMSIG(session->wait_status) == SIGTERM)
		return 0;
	if (WIFSIGNALED(session->wait_status))
		return 128 + WTERMSIG(session->wait_status);
	return WEXITSTATUS(session->wait_status);
}

static void say_what_happened(const struct session *session, const char *name,
			      const struct recorder_options *options,
			      const struct recorder_result *result)
{
	if (session->pid > 0 && !session->ended)
		log_warn("%s did not end within %d ms of SIGTERM; the recording ends here", name,
			 TERM_GRACE_MS);
	else if (session->pid > 0 && WIFSIGNALED(session->wait_status) && !session->told)
		log_warn("%s was killed by signal %d (%s)", name, WTERMSIG(session->wait_status),
			 strsignal(WTERMSIG(session->wait_status)));
	if (!result->samples)
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
	char size[32], samples[32], lost[32];
	struct strbuf path = {0};

	if (given.quiet || !isatty(STDERR_FILENO))
		return;
	text_size(size, sizeof(size), result->bytes);
	text_count(samples, sizeof(samples), result->samples);
	text_count(lost, sizeof(lost), result->lost);
	text_escape(&path, options->path, strlen(options->path));
	fprintf(stderr, "[ pyperf: %s, %s, %s samples, %s lost", strbuf_text(&path), size, samples,
		lost);
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

static void close_session(struct session *session)
{
	if (session->phases.refused)
		log_warn("%llu orders of --control named no phase that could be kept",
			 (unsigned long long)session->phases.refused);
	phases_fini(&session->phases);
	sources_free(session->scope.sources);
	control_free(session->control);
	if (session->wake_fd >= 0)
		close(session->wake_fd);
	if (session->signal_fd >= 0)
		close(session->signal_fd);
}

/* Between a held program and its end, or from attaching to detaching. Returns the status to exit
 * with. */
static int run(struct recorder *recorder, struct child *child,
	       const struct recorder_options *options, const struct recorder_target *target,
	       struct session *session)
{
	const char *name = options->command ? options->command[0] : NULL;
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
	if (session->duration_us)
		start_timer(session->duration_us + (uint64_t)options->delay_ms * 1000);
	session->scope.recorder = recorder;
	session->err = &order_err;
	ret = recorder_run(recorder, session->wake_fd, on_order, session, &err);
	if (ret)
		command_fail(&err);
	else if ((ret = order_err.code))
		command_fail(&order_err);
	status = recorder_close(recorder, name && session->ended ? shell_status(session) : -1,
				&result, &err);
	if (status && !ret)
		command_fail(&err);
	/* A failed recording, or one whose target ended before the program. */
	wait_for(session);
	say_what_happened(session, name, options, &result);
	say_result(options, &result);
	if (shell_status(session))
		return shell_status(session);
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
	struct session session = {
		.pid = -1, .signal_fd = -1, .wake_fd = -1, .duration_us = duration_us};
	struct recorder_task *task;
	struct err err = {0};
	char program[PATH_MAX];
	int status = options->command ? child_find(options->command[0], program, &err) : 0;

	if (status) {
		command_fail(&err);
		return status == ERR_NOT_FOUND ? 127 : 126;
	}
	choose_way(options, target, program);
	session.scope.phases = &session.phases;
	session.scope.sources = sources_new();
	options->phases = session.scope.phases;
	options->sources = session.scope.sources;
	if (!options->sources) {
		err_nomem(&err);
		return command_fail(&err);
	}
	status = given.control ? control_open(&session.control, given.control, &err) : 0;
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
	session.pid = child.pid;
	if (!status) {
		session.signal_fd = open_signals();
		if (open_wake(&session) < 0)
			status = err_sys(&err, errno, "cannot watch for signals");
	}
	if (status)
		status = command_fail(&err);
	else
		status = run(recorder, &child, options, target, &session);
	child_drop(&child);
	recorder_free(recorder);
	close_session(&session);
	return status;
}

/* What -p, -t, -u, -a and -C name; a command otherwise. */
static int set_target(const struct command *command, const struct recorder_options *options,
		      struct recorder_target *target)
{
	bool cpus = given.everything || given.cpus || given.cgroup;
	int ways = !!given.pids + !!given.tids + !!given.user + cpus, ret = 0;
	struct err err = {0};

	if (!ways && !options->command)
		return command_usage(command, "what is to be recorded? For example: pyperf record "
					      "-- python3 train.py, or pyperf record -p PID");
	if (ways > 1)
		return command_usage(command,
				     "-p, -t, -u and -a (or -C, --cgroup) exclude each other");
	if (target_check(&err) < 0)
		return command_fail(&err);
	if (!ways)
		return 0;
	target->kind = cpus ? RECORDER_CPUS : given.tids ? RECORDER_THREADS : RECORDER_PROCESSES;
	if (given.pids)
		ret = target_add_ids(target, given.pids, &err);
	else if (given.tids)
		ret = target_add_ids(target, given.tids, &err);
	else if (given.user)
		ret = target_add_user(target, given.user, &err);
	else if (given.cpus)
		ret = target_add_cpus(target, given.cpus, &err);
	if (!ret && given.cgroup)
		ret = target_set_cgroup(target, given.cgroup, &err);
	return ret ? command_fail(&err) : 0;
}

static int list_events(struct event_list *events, struct err *err)
{
	int ret = 0;

	for (char **wanted = given.events; !ret && wanted && *wanted; wanted++)
		ret = event_parse(events, *wanted, err);
	if (!ret && !given.events)
		ret = given.no_metrics ? event_parse(events, "cycles", err)
				       : event_list_default(events, err);
	else if (!ret && !given.no_metrics)
		ret = event_list_count_instructions(events, err);
	return ret;
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
	if (!status && given.duration && parse_seconds(given.duration, &duration_us) < 0)
		status = command_usage(command, "--duration takes seconds, not '%s'",
				       given.duration);
	if (!status)
		status = set_target(command, &options, &target);
	if (!status && list_events(&events, &err) < 0)
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
