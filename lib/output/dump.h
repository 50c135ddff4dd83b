#ifndef PYPERF_OUTPUT_DUMP_H
#define PYPERF_OUTPUT_DUMP_H

#include "profile/profile.h"
#include "record/snapshot.h"

#include <stdio.h>

/* What each thread is doing now, in the style of tracebacks. The profile is that of the snapshot's
 * recording. */
struct dump {
	struct profile *profile;
	const struct snapshot *snapshot;
	bool all_frames; /* also native ones below the outermost Python frame: the interpreter's own
			    start */
};
int output_dump_text(FILE *out, const struct dump *dump, struct err *err);
int output_dump_json(FILE *out, const struct dump *dump, struct err *err);

#endif
