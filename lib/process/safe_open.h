#ifndef PYPERF_SAFE_OPEN_H
#define PYPERF_SAFE_OPEN_H

#include "base/err.h"
#include "base/strbuf.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Opening files whose names a profiled process chose, perhaps as root and in a container's tree.
 *
 * `root` is "" or a folder such as /proc/PID/root; no symbolic link leads out of it. Nothing but a
 * regular file is ever opened for reading: a FIFO does not block, a device has no side effect.
 */

enum safe_open_flag {
	SAFE_OPEN_FOLLOW = 0,	/* symbolic links are followed within root */
	SAFE_OPEN_NOFOLLOW = 1, /* the file itself must not be a link */
};

/* `path` is absolute. The fd, or a negative code: ERR_NOT_FOUND, ERR_PERMISSION (also for what is
 * no regular file). */
int safe_open(const char *root, const char *path, enum safe_open_flag flag, struct stat *st,
	      struct err *err);

/*
 * A file that a process wrote under a name that others can foresee: in its own tree. Where it
 * has ended that is `held` (roots_path()) or, where that is "" and it had the same number in its
 * namespace as in ours, our tree. Trusted only when it
 * belongs to `uid` or root and has no second name, since a link to what the process could not read
 * would leak that into a recording.
 */
int safe_open_written(const char *held, pid_t pid, pid_t ns_pid, uid_t uid, const char *path,
		      struct err *err);

/* Appends what comes first of a file, and says in *rest how many bytes lie behind `limit`. */
int safe_read_start(int fd, const char *path, size_t limit, struct strbuf *out, uint64_t *rest,
		    struct err *err);

/* Appends the whole file; ERR_UNSUPPORTED where it is larger than `limit`. */
int safe_read(int fd, const char *path, size_t limit, struct strbuf *out, struct err *err);

#endif
