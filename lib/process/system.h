#ifndef PYPERF_SYSTEM_H
#define PYPERF_SYSTEM_H

#include "base/err.h"
#include "base/strbuf.h"

/*
 * What /proc and /sys tell of the machine, beside base/privilege.h.
 *
 * `root` stands in front of every path: "" on a live machine, a folder in tests. Nothing there is
 * trusted: what is missing is ERR_NOT_FOUND, what may not be read ERR_PERMISSION, and what does not
 * say what it should ERR_CORRUPT.
 */

/* A file that holds one decimal number: most of /proc/sys. */
int system_number(const char *root, const char *path, long long *value, struct err *err);

/* Does /proc/kallsyms show addresses? 1, 0 where all of them are hidden, or a negative code. */
int system_kernel_addresses(const char *root, struct err *err);

/* Appends the names in a folder, sorted, with blanks between; the count or a negative code. */
int system_list(const char *root, const char *path, struct strbuf *out, struct err *err);

#endif
