#include "profile/stacks.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 1024u
#define NODES_MAX (1u << 30)

bool stacks_init(struct stacks *stacks)
{
	struct profile_stack *root;

	*stacks = (struct stacks){.slot_cap = SLOTS_MIN};
	stacks->slots = calloc(SLOTS_MIN, sizeof(*stacks->slots));
	root = vec_push(&stacks->nodes);
	if (!stacks->slots || !root)
		return false;
	root->frame = UINT32_MAX;
	return true;
}

void stacks_fini(struct stacks *stacks)
{
	free(stacks->slots);
	stacks->slots = NULL;
	vec_fini(&stacks->nodes);
	vec_fini(&stacks->path);
}

/* Of a node from its parent's: one multiplication, since this runs for each frame of a sample. */
static uint64_t step(uint64_t hash, uint32_t frame)
{
	hash = (hash + frame + 1) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* The place in the table takes the low bits, the tag the high ones. */
static uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32);
}

/* The slot of the node, or the free one where it belongs. */
static struct stack_slot *locate(const struct stacks *stacks, uint64_t hash, uint32_t frame)
{
	uint32_t mask = stacks->slot_cap - 1, tag = tag_of(hash);

	for (uint32_t at = (uint32_t)hash & mask;; at = (at + 1) & mask) {
		struct stack_slot *slot = &stacks->slots[at];

		if (!slot->id || (slot->tag == tag && stacks->nodes.items[slot->id].frame == frame))
			return slot;
	}
}

/* Twice the slots. Hashes are not kept: they are made again from the root, parents first. */
static bool grow(struct stacks *stacks)
{
	uint32_t cap = stacks->slot_cap * 2, mask = cap - 1;
	struct stack_slot *slots = calloc(cap, sizeof(*slots));
	uint64_t *hashes = malloc(stacks->nodes.len * sizeof(*hashes));

	if (!slots || !hashes) {
		free(slots);
		free(hashes);
		return false;
	}
	hashes[0] = 0;
	for (uint32_t id = 1; id < stacks->nodes.len; id++) {
		const struct profile_stack *node = &stacks->nodes.items[id];
		uint64_t hash = step(hashes[node->parent], node->frame);
		uint32_t at = (uint32_t)hash & mask;

		while (slots[at].id)
			at = (at + 1) & mask;
		slots[at] = (struct stack_slot){id, tag_of(hash)};
		hashes[id] = hash;
	}
	free(hashes);
	free(stacks->slots);
	stacks->slots = slots;
	stacks->slot_cap = cap;
	return true;
}

static uint32_t add_node(struct stacks *stacks, uint32_t parent, uint32_t frame, uint64_t hash)
{
	struct profile_stack *node;
	struct stack_slot *slot;

	if (stacks->nodes.len >= NODES_MAX ||
	    (stacks->nodes.len >= stacks->slot_cap / 4 * 3 && !grow(stacks)))
		return STACK_NONE;
	node = vec_push(&stacks->nodes);
	if (!node)
		return STACK_NONE;
	*node = (struct profile_stack){parent, frame};
	slot = locate(stacks, hash, frame);
	*slot = (struct stack_slot){(uint32_t)stacks->nodes.len - 1, tag_of(hash)};
	return slot->id;
}

uint32_t stacks_add(struct stacks *stacks, const uint32_t *frames, size_t count)
{
	uint64_t *hashes, hash = 0;
	uint32_t at = 0;
	size_t depth;

	if (!vec_reserve(&stacks->path, count + 1))
		return STACK_NONE;
	hashes = stacks->path.items;
	for (depth = 1; depth <= count; depth++)
		hashes[depth] = hash = step(hash, frames[count - depth]);
	for (depth = count; depth; depth--)
		if ((at = locate(stacks, hashes[depth], frames[count - depth])->id) != 0)
			break;
	while (depth++ < count) {
		at = add_node(stacks, at, frames[count - depth], hashes[depth]);
		if (at == STACK_NONE)
			return STACK_NONE;
	}
	return at;
}
