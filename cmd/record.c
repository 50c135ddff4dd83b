#include "cmd/cmd.h"

#include "base/log.h"
#include "base/text.h"
#include "record/child.h"
#include "record/recorder.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_HZ 999
#define DEFAULT_EVENT "cycles"
#define TERM_GRACE_MS 1000

static struct {
	char **events;
	char *frequency, *period, *output, *call_graph, *python, *pages;
	int fp, zstd_level, delay_ms, quiet, verbose;
} given = {.zstd_level = 1};

const struct poptOption record_options[] = {
	{"event", 'e', POPT_ARG_ARGV, &given.events, 0,
	 "events to sample (default: cycles); {a,b} is a group", "EVENT[,EVENT...]"},
	{"freq", 'F', POPT_ARG_STRING, &given.frequency, 0,
	 "samples per second of each event, or 'max' (default: 999)", "HZ"},
	{"count", 'c', POPT_ARG_STRING, &given.period, 0, "sample every PERIOD events instead",
	 "PERIOD"},
	{"output", 'o', POPT_ARG_STRING, &given.output, 0,
	 "recording (default: perf.data; an older one becomes FILE.old)", "FILE"},
	{NULL, 'g', POPT_ARG_NONE, &given.fp, 0, "the same as --call-graph fp", NULL},
	{"call-graph", '\0', POPT_ARG_STRING, &given.call_graph, 0,
	 "native and kernel callers: fp (default) or none", "MODE"},
	{"python", '\0', POPT_ARG_STRING, &given.python, 0,
	 "Python frames: auto (default), bpf, trampoline or off", "ENGINE"},
	{"mmap-pages", 'm', POPT_ARG_STRING, &given.pages, 0,
	 "ring buffer of each CPU, in pages or with K, M, G (default: 512)", "PAGES"},
	{"compression-level", 'z', POPT_ARG_INT, &given.zstd_level, 0,
	 "zstd level; 0 writes plain records (default: 1)", "LEVEL"},
	{"delay", 'D', POPT_ARG_INT, &given.delay_ms, 0,
	 "start sampling that long after the program", "MS"},
	{"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "warnings and errors only", NULL},
	{"verbose", 'v', POPT_ARG_NONE, &given.verbose, 0, "say more", NULL},
	POPT_TABLEEND,
};

struct word {
	const char *name;
	int value;
};
static const struct word python_words[] = {
	{"auto", RECORDER_PYTHON_AUTO},
	{"bpf", RECORDER_PYTHON_BPF},
	{"trampoline", RECORDER_PYTHON_TRAMPOLINE},
	{"off", RECORDER_PYTHON_OFF},
	{0},
};
static const struct word call_graph_words[] = {{"fp", 1}, {"none", 0}, {0}};

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
	options->frequency = DEFAULT_HZ;
	if (given.frequency && strcmp(given.frequency, "max") == 0)
		options->frequency = limit ? limit : DEFAULT_HZ;
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

static int set_options(const struct command *command, struct recorder_options *options)
{
	int value = 1, status = set_frequency(command, options);

	if (status)
		return status;
	if (given.call_graph && find_word(call_graph_words, given.call_graph, &value) < 0)
		return command_usage(command, "--call-graph is fp or none, not '%s'",
				     given.call_graph);
	options->callchain = given.fp || value;
	value = RECORDER_PYTHON_AUTO;
	if (given.python && find_word(python_words, given.python, &value) < 0)
		return command_usage(command, "--python is auto, bpf, trampoline or off, not '%s'",
				     given.python);
	options->python = (enum recorder_python)value;
	if (given.pages && parse_pages(given.pages, &options->pages) < 0)
		return command_usage(command,
				     "-m takes pages (512) or a size (2M) of at most 4G, not '%s'",
				     given.pages);
	if (given.zstd_level < 0 || given.zstd_level > 22)
		return command_usage(command, "-z takes a level from 0 to 22");
	if (given.delay_ms < 0)
		return command_usage(command, "-D takes milliseconds");
	options->zstd_level = given.zstd_level;
	options->delay_ms = given.delay_ms;
	options->path = given.output ? given.output : "perf.data";
	if (!*options->path || strcmp(options->path, "-") == 0)
		return command_usage(command, "-o takes the name of a file");
	return 0;
}

/* The program that is recorded, seen from the signals that come. */
struct target {
	pid_t pid;
	int signal_fd;
	bool ended, told; /* reaped; a signal asked it to end */
	int wait_status;
	unsigned int interrupts;
	uint64_t give_up_ns; /* after SIGTERM: when the recording ends without it */
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
 * records that, too; a second and a third insist.
 */
static void on_signal(struct target *target, const struct signalfd_siginfo *info)
{
	static const int insist[] = {SIGTERM, SIGKILL};
	int sig = (int)info->ssi_signo;

	if (sig == SIGCHLD)
		return;
	target->told = true;
	if (sig == SIGTERM || sig == SIGHUP) {
		target->give_up_ns = now_ns() + TERM_GRACE_MS * 1000000ull;
		kill(target->pid, sig);
		return;
	}
	if (target->interrupts == 0) {
		if (info->ssi_code != SI_KERNEL)
			kill(target->pid, sig);
	} else {
		kill(target->pid, insist[target->interrupts > 1]);
	}
	target->interrupts++;
}

static bool on_wake(void *ctx)
{
	struct target *target = ctx;
	struct signalfd_siginfo info;

	while (read(target->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (!target->ended)
			on_signal(target, &info);
	if (!target->ended && waitpid(target->pid, &target->wait_status, WNOHANG) == target->pid)
		target->ended = true;
	return target->ended || (target->give_up_ns && now_ns() >= target->give_up_ns);
}

/* When the recording had to end first: the program is not to suffer for it. */
static void wait_for(struct target *target)
{
	struct pollfd fd = {.fd = target->signal_fd, .events = POLLIN};

	while (!on_wake(target))
		poll(&fd, 1, 250);
}

static int shell_status(const struct target *target)
{
	if (!target->ended)
		return 128 + SIGTERM;
	if (WIFSIGNALED(target->wait_status))
		return 128 + WTERMSIG(target->wait_status);
	return WEXITSTATUS(target->wait_status);
}

static void say_what_happened(const struct target *target, const char *name,
			      const struct recorder_options *options,
			      const struct recorder_result *result)
{
	if (!target->ended)
		log_warn("%s did not end within %d ms of SIGTERM; the recording ends here", name,
			 TERM_GRACE_MS);
	else if (WIFSIGNALED(target->wait_status) && !target->told)
		log_warn("%s was killed by signal %d (%s)", name, WTERMSIG(target->wait_status),
			 strsignal(WTERMSIG(target->wait_status)));
	if (!result->samples)
		log_warn("no samples: the program used too little CPU time, or its events did not "
			 "occur; a higher -F or a smaller -c takes more");
	else if (!result->pythons && !result->unknown_pythons &&
		 options->python != RECORDER_PYTHON_OFF)
		log_info("no CPython was found in what ran: the recording has native functions "
			 "only");
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
	fprintf(stderr, " ]\n");
	strbuf_fini(&path);
}

/* Between a held program and its end. Returns the status to exit with. */
static int run(struct recorder *recorder, struct child *child,
	       const struct recorder_options *options, struct target *target)
{
	const char *name = options->command[0];
	struct recorder_result result = {0};
	struct err err = {0};
	int ret, status;

	ret = recorder_open(recorder, child->pid, &err);
	if (ret)
		return command_fail(&err);
	ret = child_start(child, name, &err);
	if (ret) {
		command_fail(&err);
		return ret == ERR_NOT_FOUND ? 127 : 126;
	}
	ret = recorder_run(recorder, target->signal_fd, on_wake, target, &err);
	if (ret)
		command_fail(&err);
	status = recorder_close(recorder, target->ended ? shell_status(target) : -1, &result, &err);
	if (status && !ret)
		command_fail(&err);
	if (ret)
		wait_for(target);
	say_what_happened(target, name, options, &result);
	say_result(options, &result);
	if (shell_status(target))
		return shell_status(target);
	return ret || status ? 1 : 0;
}

static int record(const struct recorder_options *options)
{
	struct recorder *recorder = NULL;
	struct child child = {.pid = -1, .go_fd = -1, .error_fd = -1};
	struct target target = {.pid = -1, .signal_fd = -1};
	struct err err = {0};
	int status = child_check(options->command[0], &err);

	if (status) {
		command_fail(&err);
		return status == ERR_NOT_FOUND ? 127 : 126;
	}
	if (recorder_new(&recorder, options, &err) < 0 ||
	    child_hold(&child, options->command, recorder_environment(recorder), &err) < 0) {
		recorder_free(recorder);
		return command_fail(&err);
	}
	target.pid = child.pid;
	target.signal_fd = open_signals();
	status = run(recorder, &child, options, &target);
	child_drop(&child);
	recorder_free(recorder);
	close(target.signal_fd);
	return status;
}

int cmd_record(int argc, const char **argv)
{
	const struct command *command = command_find("record");
	struct recorder_options options = {0};
	struct event_list events = {0};
	static const char *const default_events[] = {DEFAULT_EVENT, NULL};
	const char **line = calloc((size_t)argc + 2, sizeof(*line)); /* "pyperf record ..." */
	const char *const *wanted;
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
	if (!options.command)
		status = command_usage(command,
				       "what is to be recorded? For example: pyperf record "
				       "-- python3 train.py");
	else
		status = set_options(command, &options);
	wanted = given.events ? (const char *const *)given.events : default_events;
	for (; !status && *wanted; wanted++)
		if (event_parse(&events, *wanted, &err) < 0)
			status = command_fail(&err);
	if (!status && event_list_probe(&events, &err) < 0)
		status = command_fail(&err);
	if (!status)
		status = record(&options);
	event_list_fini(&events);
	poptFreeContext(context);
	free(line);
	return status;
}
