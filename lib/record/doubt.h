#ifndef PYPERF_DOUBT_H
#define PYPERF_DOUBT_H

#include "base/map.h"

#include <stddef.h>

/*
 * Which samples are counted twice.
 *
 * A thread that is created while its parent's events are being opened may have inherited them or
 * not, and nothing tells which: so it is opened, in doubt. Samples carry the id of the event that
 * was opened, also those of threads that inherited it. A thread that has samples of two ids of one
 * event on one CPU is hence counted twice, and the later opened of the two is one too many: what
 * it is inherited by has the earlier one, too.
 */
struct doubt {
	struct map opened; /* id of an event that was opened in doubt -> its place + 1 */
	struct map seen;   /* thread, event and CPU -> the id of its latest sample */
};

#define DOUBT_NONE SIZE_MAX

void doubt_fini(struct doubt *doubt);
/* `place` is the caller's name for it; later opened ones have larger ones. False when memory runs
 * out. */
bool doubt_add(struct doubt *doubt, uint64_t id, size_t place);
/* Is the sample to be kept? *redundant is the place of an event to be closed, or DOUBT_NONE; from
 * then on its samples are not kept. `counter` stands for the event and the CPU. */
bool doubt_keeps(struct doubt *doubt, uint32_t tid, uint32_t counter, uint64_t id,
		 size_t *redundant);
/* The event at the place of that id is closed for another reason. */
void doubt_close(struct doubt *doubt, uint64_t id);

#endif
