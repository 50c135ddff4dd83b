#include "screen/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

static const int fatal[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGBUS,
			    SIGABRT, SIGFPE,  SIGILL, SIGPIPE, SIGSYS,	SIGALRM};
#define FATALS (sizeof(fatal) / sizeof(fatal[0]))

static struct {
	volatile sig_atomic_t armed, active;
	char leave[256];
	struct termios modes;
	/* Where standard error goes, and what it is; -1: it is no terminal, or stays. */
	int stderr_kept, stderr_copy;
	bool ours[FATALS];
	bool at_exit;
	stack_t old_stack;
	/* A stack that overflowed has no room for a handler. */
	char stack[16384];
} saved = {.stderr_kept = -1, .stderr_copy = -1};

/* Async-signal-safe. */
static void restore(void)
{
	ssize_t written;

	if (!saved.active)
		return;
	saved.active = 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &saved.modes);
	written = write(STDOUT_FILENO, saved.leave, strlen(saved.leave));
	(void)written;
	if (saved.stderr_copy >= 0)
		dup2(saved.stderr_copy, STDERR_FILENO);
}

static void on_fatal(int number)
{
	restore();
	/* The default is back already, and waits until we return. */
	raise(number);
}

static void on_exit_(void)
{
	restore_disarm();
}

/* What is written to a terminal would stand in the middle of the screen. */
static void keep_stderr(void)
{
	if (!isatty(STDERR_FILENO))
		return;
	saved.stderr_kept = memfd_create("stderr", MFD_CLOEXEC);
	saved.stderr_copy = saved.stderr_kept < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	if (saved.stderr_copy >= 0)
		dup2(saved.stderr_kept, STDERR_FILENO);
}

static void show_stderr(void)
{
	char text[4096];
	ssize_t len;

	if (saved.stderr_copy >= 0) {
		fflush(stderr);
		dup2(saved.stderr_copy, STDERR_FILENO);
		close(saved.stderr_copy);
		lseek(saved.stderr_kept, 0, SEEK_SET);
		while ((len = read(saved.stderr_kept, text, sizeof(text))) > 0)
			if (write(STDERR_FILENO, text, (size_t)len) != len)
				break;
	}
	if (saved.stderr_kept >= 0)
		close(saved.stderr_kept);
	saved.stderr_kept = saved.stderr_copy = -1;
}

static void take_signals(void)
{
	struct sigaction action = {.sa_handler = on_fatal,
				   .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK)};
	const stack_t stack = {.ss_sp = saved.stack, .ss_size = sizeof(saved.stack)};
	struct sigaction old;

	sigfillset(&action.sa_mask);
	sigaltstack(&stack, &saved.old_stack);
	for (size_t i = 0; i < FATALS; i++) {
		saved.ours[i] = sigaction(fatal[i], NULL, &old) == 0 &&
				!(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL;
		if (saved.ours[i])
			sigaction(fatal[i], &action, NULL);
	}
}

static void leave_signals(void)
{
	for (size_t i = 0; i < FATALS; i++)
		if (saved.ours[i])
			signal(fatal[i], SIG_DFL);
	sigaltstack(&saved.old_stack, NULL);
}

int restore_arm(struct err *err)
{
	if (tcgetattr(STDIN_FILENO, &saved.modes))
		return err_sys(err, errno, "cannot read the terminal's modes");
	if (!saved.at_exit)
		saved.at_exit = atexit(on_exit_) == 0;
	keep_stderr();
	take_signals();
	saved.armed = 1;
	return 0;
}

void restore_set(const char *leave)
{
	snprintf(saved.leave, sizeof(saved.leave), "%s", leave);
	saved.active = 1;
}

void restore_disarm(void)
{
	if (!saved.armed)
		return;
	restore();
	saved.armed = 0;
	leave_signals();
	show_stderr();
}
