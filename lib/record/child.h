#ifndef PYPERF_CHILD_H
#define PYPERF_CHILD_H

#include "base/err.h"

#include <sys/types.h>

/*
 * The program to be recorded, held before its exec until the events are open.
 *
 * Its stdin, stdout, terminal, process group and signal dispositions are those that pyperf was
 * started with: hold it before changing any of them. (The word to go comes over a socket, since a
 * write to it must not raise SIGPIPE when the child was killed meanwhile.)
 */
struct child {
	pid_t pid;
	int go_fd;    /* closing it without a byte lets the child leave quietly */
	int error_fd; /* errno of a failed exec comes here */
};

/* `environment` ("NAME=VALUE" or NULL) is added to the child's. */
int child_hold(struct child *child, const char *const *argv, const char *environment,
	       struct err *err);
/* Lets it exec; returns when that happened or failed. Failure is ERR_NOT_FOUND or ERR_PERMISSION,
 * as shells tell 127 from 126; the child is reaped then. */
int child_start(struct child *child, const char *name, struct err *err);
/* Ends a child that was never started; nothing for one that was. */
void child_drop(struct child *child);

/* Before anything is opened: is there such a program, and which file is it? `path` has room for
 * PATH_MAX bytes, and may be NULL. The same codes as child_start(). */
int child_find(const char *name, char *path, struct err *err);

#endif
