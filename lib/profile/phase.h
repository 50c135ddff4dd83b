#ifndef PYPERF_PHASE_H
#define PYPERF_PHASE_H

#include "base/bytes.h"
#include "profile/store.h"

struct spans;

/* The section of phases (FORMAT.md) into profile->phases, by their beginning. ERR_CORRUPT keeps
 * what was read until then. */
int phases_read(struct profile *profile, struct bytes section, struct err *err);
/* When phases of that name were. ERR_NOT_FOUND lists the names that there are. */
int phases_select(const struct profile *profile, const char *name, struct spans *spans,
		  struct err *err);

#endif
