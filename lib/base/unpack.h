#ifndef PYPERF_UNPACK_H
#define PYPERF_UNPACK_H

#include "base/err.h"

#include <stdio.h>

/*
 * A file to be read from front to back, unpacked where its content is gzip's or zstd's; the name
 * does not matter. "-" is standard input. Damaged or cut data is a read error with errno EBADMSG.
 */
int unpack_open(FILE **file, const char *path, struct err *err);
/* ERR_CORRUPT or ERR_SYSTEM with its sentence after a failed read, by errno; 0 where none failed.
 */
int unpack_failed(FILE *file, const char *path, struct err *err);

#endif
