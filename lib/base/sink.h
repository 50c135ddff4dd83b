#ifndef PYPERF_SINK_H
#define PYPERF_SINK_H

#include "base/err.h"

#include <stdio.h>

/*
 * A file that is whole or not there: written aside, given its name when it is done. It is
 * compressed where the name ends in .gz or .zst. What is no plain file (a pipe, a device) is
 * written in place.
 */
struct sink;

int sink_open(struct sink **sink, const char *path, struct err *err);
FILE *sink_file(struct sink *sink);
/* `rc` is how the writing went: a negative one leaves no file behind. Returns it, or a failed
 * write's code. The sink is freed whatever happens; NULL is allowed. */
int sink_close(struct sink *sink, int rc, struct err *err);

#endif
