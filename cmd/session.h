#ifndef PYPERF_CMD_SESSION_H
#define PYPERF_CMD_SESSION_H

#include "cmd/cmd.h"
#include "record/recorder.h"

#include <signal.h>
#include <sys/resource.h>

/* What `record`, `stat` and `top` share: what they look at, and what ends that. */

/* To be included in an option table; what it parses goes to `target_given`. */
extern const struct poptOption target_options[];
/* Engines, as --python names them: enum recorder_python. */
extern const struct word python_words[];
struct target_given {
	char *pids, *tids, *cpus, *user, *cgroup, *duration;
	int everything, alone;
};
extern struct target_given target_given;

/* What -p, -t, -u, -a, -C and --cgroup name; a command otherwise, which must be `given` then.
 * *duration_us: of --duration, 0 without it. 0, or the status to exit with, after a message. */
int session_target(const struct command *command, bool given, struct recorder_target *target,
		   uint64_t *duration_us);

/* A program, if there is one, signals, or time. */
struct session {
	pid_t pid; /* -1: attached, without a program */
	int signal_fd;
	bool ended, told; /* reaped; a signal asked it to end */
	bool stopped;	  /* without a program: by a signal or by time */
	bool timed_out;	  /* --duration is over */
	int wait_status;
	struct rusage usage; /* of the program and what it waited for, when it has ended */
	unsigned int interrupts;
	uint64_t give_up_ns; /* after SIGTERM: when the session ends without it */
	sigset_t old_mask;
};

/* Takes signals from now on, until session_close(): a child that is to have them as they were is
 * held already. */
int session_open(struct session *session, pid_t pid, struct err *err);
void session_close(struct session *session);
/* After so much time the session ends: the program by SIGTERM, what was attached to untouched. */
void session_timer(uint64_t duration_us);
/* The same at once, since the user wants no more of it. */
void session_end(struct session *session);
/* Looks at what happened; true when the program or what was attached to is done with. */
bool session_wake(struct session *session);
/* When the session had to end first: the program is not to suffer for it. */
void session_wait(struct session *session);
/* The program's as the shell has it; 0 without one. */
int session_status(const struct session *session);
/* Warns of a program that did not end or was killed. */
void session_warn(const struct session *session, const char *name);

/* "1.5": microseconds, more than none; -1 where the text is no time. */
int parse_seconds(const char *text, uint64_t *us);
/* A whole positive number, all of it; -1 where the text is none. */
int parse_number(const char *text, uint64_t *value);

#endif
