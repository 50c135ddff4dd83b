#ifndef PYPERF_DRAFT_H
#define PYPERF_DRAFT_H

#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * A file that is whole or not there: it gets its name when it is done, in place of what had the
 * name before, and however the process ends earlier, nothing is left of it.
 *
 * It has no name until then where the file system knows such files (O_TMPFILE). Elsewhere (NFS,
 * some of FUSE) it lies beside its place, and signals that end the process remove it; what cannot
 * be caught then leaves it behind.
 */
struct draft {
	int fd; /* to write to; the draft's */
	struct strbuf path;
	struct strbuf aside; /* its name meanwhile, empty without one */
	struct draft *next;  /* of those that have one */
};

/* The file will have the mode, less the umask. The draft must stay where it is until its end. */
int draft_open(struct draft *draft, const char *path, mode_t mode, struct err *err);
/* The second way, whatever the file system knows. */
int draft_open_aside(struct draft *draft, const char *path, mode_t mode, struct err *err);
/* A path by which the file can be opened once more, as long as the draft lasts; false when memory
 * ran out. */
bool draft_reach(const struct draft *draft, struct strbuf *out);
/* Ends the draft: gives it its name where `rc`, which is how the writing went, is not negative.
 * Returns `rc`, or what went wrong here. */
int draft_close(struct draft *draft, int rc, struct err *err);

#endif
