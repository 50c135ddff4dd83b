#ifndef PYPERF_ROOTS_H
#define PYPERF_ROOTS_H

#include <sys/types.h>

/*
 * The file trees that processes see: containers and chroots, held open from when a process is
 * first seen, so that its files can still be read when it, and with it the container, has ended.
 *
 * A tree is a root folder in a mount namespace. Both are held: without its namespace a root keeps
 * its own file system, but loses what was mounted below.
 */
struct roots;

struct roots *roots_new(void);
void roots_free(struct roots *roots);

/* Looks at a live process, unless it was looked at since its exec. */
void roots_note(struct roots *roots, pid_t pid);
void roots_fork(struct roots *roots, pid_t pid, pid_t parent);
void roots_exec(struct roots *roots, pid_t pid);

/* What to put before an absolute path of the process, for safe_open(): "" where it sees our own
 * tree, or where what it saw is not known. Valid until roots_free(). */
const char *roots_path(const struct roots *roots, pid_t pid);

#endif
