#ifndef PYPERF_IMPORT_H
#define PYPERF_IMPORT_H

#include "profile/profile.h"

/*
 * Profiles that other tools wrote, as far as they map: folded stacks, speedscope's JSON and that of
 * the Firefox Profiler, plain or compressed.
 */

/* Does the file begin as one of them? What cannot be read does not. */
bool profile_is_import(const char *path);
int profile_import(struct profile **profile, const char *path,
		   const struct profile_options *options, struct err *err);

#endif
