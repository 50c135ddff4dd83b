#ifndef PYPERF_CMD_ASIDE_H
#define PYPERF_CMD_ASIDE_H

#include "base/err.h"

/*
 * A program that is started while the terminal shows something else: what it writes is put aside in
 * a file without a name and comes when the terminal is free again, and it reads nothing, since keys
 * are not for it. What is no terminal stays as it is.
 */
struct aside {
	int saved[3]; /* our own descriptors meanwhile; -1: they were not changed */
	int file;     /* -1: nothing is put aside */
};

/* Around the fork. */
int aside_begin(struct aside *aside, struct err *err);
void aside_end(struct aside *aside);
/* Writes what was put aside, to standard output. */
void aside_show(struct aside *aside);

#endif
