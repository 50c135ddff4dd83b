#ifndef PYPERF_SCREEN_RESTORE_H
#define PYPERF_SCREEN_RESTORE_H

#include "base/err.h"

/*
 * Gives the terminal back as it was, however the process ends: by exit(), by a signal that ends it,
 * by a crash. What that takes is put together beforehand, for a signal handler may do little more
 * than write it.
 *
 * A signal that somebody handles, ignores or blocks already stays theirs.
 */
int restore_arm(struct err *err);
/* `leave` is what makes the terminal leave the mode that it is in from now on. */
void restore_set(const char *leave);
void restore_disarm(void);

#endif
