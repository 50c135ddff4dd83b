#ifndef PYPERF_SHOWN_H
#define PYPERF_SHOWN_H

#include "profile/profile.h"

/*
 * Takes the frames out of all stacks that are not to be shown: those whose file is none of `files`,
 * whose module is none of `modules`, or whose file or module is one of `exclude` (lists of globs
 * with commas between them; NULL: all, all, none).
 *
 * A stack whose innermost frame is left out becomes that of its nearest caller which is shown, so
 * in every view and export what code costs that is not shown is its caller's; nothing is lost. What
 * no shown function called is that of a function named PROFILE_UNSHOWN_NAME.
 */
int profile_show(struct profile *profile, const struct profile_shown *shown, struct err *err);

/* Does the glob name the file: all of its path, or its last components? */
bool shown_is_file(const char *path, const char *pattern);

#endif
