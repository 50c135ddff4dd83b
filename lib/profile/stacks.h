#ifndef PYPERF_STACKS_H
#define PYPERF_STACKS_H

#include "base/vec.h"
#include "profile/profile.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The tree of all stacks: a node is a frame below its caller's node, so what stacks share near
 * their roots is there once.
 *
 * A node is found by a hash of its whole path, not of (parent, frame): a stack whose upper part is
 * known is looked up from the leaf, and the first node found is where it joins the tree. So a
 * sample costs one or two look-ups however deep it is. The path itself is not compared: slots keep
 * 32 bits of the hash beside the place that others choose, and the frame must be the same; that is
 * as good as trusting a hash of 64 bits.
 */
struct stack_slot {
	uint32_t id; /* 0: free, since the root needs no slot */
	uint32_t tag;
};

struct stacks {
	struct {
		VEC_OF(struct profile_stack)
	} nodes; /* 0 is the empty stack */
	struct stack_slot *slots;
	uint32_t slot_cap;
	struct {
		VEC_OF(uint64_t)
	} path; /* hashes of the stack at hand, by depth */
};

#define STACK_NONE UINT32_MAX

/* False when memory ran out. */
bool stacks_init(struct stacks *stacks);
void stacks_fini(struct stacks *stacks);
/* The stack with these frames, leaf first; STACK_NONE when memory ran out. A parent's id is always
 * less than its children's. */
uint32_t stacks_add(struct stacks *stacks, const uint32_t *frames, size_t count);

#endif
