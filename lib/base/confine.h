#ifndef PYPERF_CONFINE_H
#define PYPERF_CONFINE_H

#include "base/err.h"

#include <stdbool.h>

/*
 * For a pyperf that is installed set-user-id, set-group-id or with file capabilities: from here on
 * it is the user who runs it, by every id, and of all capabilities it has no more than those that
 * recording takes (CAP_PERFMON, CAP_BPF), or none. So every file that it opens or makes is opened
 * and made with that user's rights and ownership, and a program that it starts has none but that
 * user's: capabilities of this kind end with exec.
 *
 * To be called first of all. What the user has anyway, root's capabilities say, stays untouched.
 */
int confine(bool recording, struct err *err);

#endif
