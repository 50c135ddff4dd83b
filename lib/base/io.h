#ifndef PYPERF_IO_H
#define PYPERF_IO_H

#include "base/err.h"
#include "base/strbuf.h"

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Whole reads and writes over EINTR and short counts. */

/* Reads until len bytes or end of file; the count, or -1 with errno. */
ssize_t io_read_full(int fd, void *buf, size_t len);
/* 0, or -1 with errno (ENOSPC for a full disk). */
int io_write_full(int fd, const void *buf, size_t len);

/* Appends at most `limit` bytes of a file. More than that is ERR_UNSUPPORTED. Also for /proc, whose
 * files have no size. */
int io_read_file(const char *path, struct strbuf *out, size_t limit, struct err *err);

/*
 * Opens for reading a file whose name comes from a recording or a profiled process. Only a regular
 * file of a real file system is ever opened: a FIFO does not block, a device, /proc/kmsg or a
 * mappable register of /sys has no side effect. The fd, or a negative code: ERR_NOT_FOUND,
 * ERR_PERMISSION (also for what is no such file).
 */
int io_open_regular(const char *path, struct stat *st, struct err *err);
/* The same for a file that was looked up with O_PATH; closes `look`. `path` is for messages. */
int io_open_looked_up(int look, const char *path, struct stat *st, struct err *err);

/* The first line of a small file such as those of sysfs, without its newline; the length or a
 * negative code. Truncates to size - 1. */
int io_read_line(const char *path, char *buf, size_t size, struct err *err);

#endif
