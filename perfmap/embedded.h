#ifndef PYPERF_EMBEDDED_H
#define PYPERF_EMBEDDED_H

#include "base/map.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Files that hold an interpreter, though their name does not say so: a program that was linked
 * with a static libpython, a plug-in that was. Each file is opened once; what was found is
 * remembered, so a process that maps files which others mapped before costs a look into a table.
 *
 * A zeroed struct is ready.
 */
struct embedded {
	struct map seen;  /* identity -> 1: nothing there, 2: an interpreter */
	struct map paths; /* of the files that hold one, hashed */
};

void embedded_fini(struct embedded *embedded);

/* Does the file hold an interpreter? `identity` stands for its content and does not change while
 * it is mapped (build-id, or device and inode); the file is opened as the process sees it. */
bool embedded_look(struct embedded *embedded, pid_t pid, const char *path, uint64_t identity);

/* What embedded_look() said of a file of that name, without opening any. */
bool embedded_knows(const struct embedded *embedded, const char *path);

#endif
