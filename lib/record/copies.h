#ifndef PYPERF_COPIES_H
#define PYPERF_COPIES_H

#include "base/map.h"
#include "base/vec.h"
#include "perfmap/frames.h"
#include "record/pythons.h"
#include "ring/record.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copies of stacks that the walker makes, each just long enough: a thread's stack ends where it
 * ended when it was unwound last, and so far the walker copies. Where that was too short, which
 * happens to what is new and to threads with several stacks, the most is copied once; where even
 * that is too short, it is tried ever more seldom. A copy lies in its ring directly before the
 * sample that it belongs to.
 *
 * While a signal's handler runs on a stack of its own there are two, that of the handler and the
 * one that was interrupted. Where the latter's top is saved is the same at each signal of a thread,
 * and learnt from the first one.
 */
struct copied {
	uint64_t sp;
	struct {
		VEC_OF(unsigned char)
	} bytes;
};

struct copy {
	uint32_t tid; /* whose it is; 0: none waits for its sample */
	uint32_t thread;
	uint64_t handler_end; /* of a handler's own stack; 0: it is none */
	struct copied top;
	struct copied interrupted; /* empty where there is none */
	bool paired;		   /* `interrupted` was taken last: the next top is its handler's */
};

/* What was learnt of a thread, by its copies. */
struct copies_thread {
	struct py_stack known; /* to the walker */
	uint32_t failed;       /* how often even the longest copy was too short */
	uint32_t skip;	       /* so many samples, until that is tried again */
};

struct copies {
	VEC_OF(struct copy) /* by ring */
	struct pythons *pythons;
	const struct arch *arch;
	struct map by_thread; /* index + 1 */
	struct {
		VEC_OF(struct copies_thread)
	} threads;
	uint32_t most;
	bool made;
};

/* Has the walker copy stacks where it can: `usual` bytes of those whose base is not known, `most`
 * of others. */
void copies_init(struct copies *copies, struct pythons *pythons, uint32_t usual, uint32_t most);
void copies_fini(struct copies *copies);

/* A record of the walker. False for one that is no copy. */
bool copies_take(struct copies *copies, size_t ring, const struct record_sample *record);
/* What was taken last is the stack of `sample`; NULL where it is not this sample's. Valid until the
 * next is taken. */
const struct copy *copies_of(struct copies *copies, size_t ring,
			     const struct record_sample *sample);
/* How far the stack went that was unwound from a copy. */
void copies_learn(struct copies *copies, const struct copy *copy, const struct unwind_stack *stack);

#endif
