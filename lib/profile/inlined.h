#ifndef PYPERF_INLINED_H
#define PYPERF_INLINED_H

#include "base/map.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The frames of functions that the compiler put into their callers: those of each native frame
 * are looked up once, when it is first sampled.
 */
struct profile;

struct inlined_list {
	uint32_t first, count; /* in inlined.frames, innermost first */
};

struct inlined {
	struct map by_frame; /* native frame -> index + 1 */
	struct {
		VEC_OF(struct inlined_list)
	} lists;
	struct {
		VEC_OF(uint32_t)
	} frames;
};

void inlined_fini(struct inlined *inlined);
/* What is inlined at the address of a native frame. False when memory ran out. */
bool inlined_find(struct inlined *inlined, struct profile *profile, uint32_t frame, uint64_t vaddr,
		  struct inlined_list *list);

#endif
