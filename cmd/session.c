#include "cmd/session.h"

#include "base/clock.h"
#include "base/log.h"
#include "record/target.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TERM_GRACE_MS 1000

struct target_given target_given;

const struct poptOption target_options[] = {
	{"pid", 'p', POPT_ARG_STRING, &target_given.pids, 0,
	 "attach to running processes and all their threads", "PID[,PID...]"},
	{"tid", 't', POPT_ARG_STRING, &target_given.tids, 0, "attach to single threads",
	 "TID[,TID...]"},
	{"all-cpus", 'a', POPT_ARG_NONE, &target_given.everything, 0, "everything that runs", NULL},
	{"cpu", 'C', POPT_ARG_STRING, &target_given.cpus, 0, "everything that runs on these CPUs",
	 "CPUS"},
	{"uid", 'u', POPT_ARG_STRING, &target_given.user, 0, "attach to the processes of a user",
	 "USER"},
	{"cgroup", 'G', POPT_ARG_STRING, &target_given.cgroup, 0,
	 "what belongs to a control group or a container: a path, a name or an id", "NAME"},
	{"no-inherit", 'i', POPT_ARG_NONE, &target_given.alone, 0,
	 "the threads that there are, not what they create", NULL},
	{"duration", '\0', POPT_ARG_STRING, &target_given.duration, 0,
	 "end after that many seconds", "SEC"},
	POPT_TABLEEND,
};

const struct word python_words[] = {
	{"auto", RECORDER_PYTHON_AUTO}, {"bpf", RECORDER_PYTHON_BPF},
	{"stop", RECORDER_PYTHON_STOP}, {"trampoline", RECORDER_PYTHON_TRAMPOLINE},
	{"off", RECORDER_PYTHON_OFF},	{0},
};
int parse_number(const char *text, uint64_t *value)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -1;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno || *end || !*value ? -1 : 0;
}

/* Digits with at most one point. */
int parse_seconds(const char *text, uint64_t *us)
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

int session_target(const struct command *command, bool is_given, struct recorder_target *target,
		   uint64_t *duration_us)
{
	bool cpus = target_given.everything || target_given.cpus || target_given.cgroup;
	int ways = !!target_given.pids + !!target_given.tids + !!target_given.user + cpus, ret = 0;
	struct err err = {0};

	*duration_us = 0;
	if (target_given.duration && parse_seconds(target_given.duration, duration_us) < 0)
		return command_usage(command, "--duration takes seconds, not '%s'",
				     target_given.duration);
	if (!ways && !is_given)
		return command_usage(command,
				     "what is to be looked at? For example: pyperf %s -- python3 "
				     "train.py, or pyperf %s -p PID",
				     command->name, command->name);
	if (ways > 1)
		return command_usage(command,
				     "-p, -t, -u and -a (or -C, --cgroup) exclude each other");
	if (target_check(&err) < 0)
		return command_fail(&err);
	if (!ways)
		return 0;
	target->kind = cpus		   ? RECORDER_CPUS
		       : target_given.tids ? RECORDER_THREADS
					   : RECORDER_PROCESSES;
	if (target_given.pids)
		ret = target_add_ids(target, target_given.pids, &err);
	else if (target_given.tids)
		ret = target_add_ids(target, target_given.tids, &err);
	else if (target_given.user)
		ret = target_add_user(target, target_given.user, &err);
	else if (target_given.cpus)
		ret = target_add_cpus(target, target_given.cpus, &err);
	if (!ret && target_given.cgroup)
		ret = target_set_cgroup(target, target_given.cgroup, &err);
	return ret ? command_fail(&err) : 0;
}

int session_open(struct session *session, pid_t pid, struct err *err)
{
	static const int taken[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGALRM};
	sigset_t set, blocked;

	*session = (struct session){.pid = pid, .signal_fd = -1};
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		sigaddset(&set, taken[i]);
	command_spare_hangup(&set);
	blocked = set;
	/* A file that grew to its limit is a failed write, not our end. */
	sigaddset(&blocked, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &blocked, &session->old_mask);
	session->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return session->signal_fd < 0 ? err_sys(err, errno, "cannot watch for signals") : 0;
}

void session_close(struct session *session)
{
	const struct timespec now = {0};
	struct signalfd_siginfo info;
	sigset_t unread;

	if (session->signal_fd < 0)
		return;
	/* What came too late to matter, and failed writes, are not to end us. */
	while (read(session->signal_fd, &info, sizeof(info)) == sizeof(info))
		;
	sigemptyset(&unread);
	sigaddset(&unread, SIGXFSZ);
	while (sigtimedwait(&unread, NULL, &now) > 0)
		;
	close(session->signal_fd);
	session->signal_fd = -1;
	sigprocmask(SIG_SETMASK, &session->old_mask, NULL);
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
		session->give_up_ns = clock_now_ns() + TERM_GRACE_MS * 1000000ull;
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

void session_end(struct session *session)
{
	session->timed_out = session->told = session->stopped = true;
	if (session->pid > 0 && !session->ended) {
		session->give_up_ns = clock_now_ns() + TERM_GRACE_MS * 1000000ull;
		kill(session->pid, SIGTERM);
	}
}

bool session_wake(struct session *session)
{
	struct signalfd_siginfo info;

	while (read(session->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (!session->ended)
			on_signal(session, &info);
	if (session->pid < 0)
		return session->stopped;
	if (!session->ended &&
	    wait4(session->pid, &session->wait_status, WNOHANG, &session->usage) == session->pid)
		session->ended = true;
	return session->ended || (session->give_up_ns && clock_now_ns() >= session->give_up_ns);
}

void session_wait(struct session *session)
{
	struct pollfd fd = {.fd = session->signal_fd, .events = POLLIN};

	while (session->pid > 0 && !session_wake(session))
		poll(&fd, 1, 250);
}

/* --duration comes as a signal, too. */
void session_timer(uint64_t duration_us)
{
	struct itimerval timer = {
		.it_value = {.tv_sec = (time_t)(duration_us / 1000000),
			     .tv_usec = (suseconds_t)(duration_us % 1000000)},
	};

	setitimer(ITIMER_REAL, &timer, NULL);
}

int session_status(const struct session *session)
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

void session_warn(const struct session *session, const char *name)
{
	if (session->pid > 0 && !session->ended)
		log_warn("%s did not end within %d ms of SIGTERM; it is left alone here", name,
			 TERM_GRACE_MS);
	else if (session->pid > 0 && WIFSIGNALED(session->wait_status) && !session->told)
		log_warn("%s was killed by signal %d (%s)", name, WTERMSIG(session->wait_status),
			 strsignal(WTERMSIG(session->wait_status)));
}
