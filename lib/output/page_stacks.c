#include "output/page.h"

#include "profile/match.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/*
 * From the profile's tree of stacks to the page's. In both a parent's number is lower than its
 * children's, so one pass upwards sums samples up, and one downwards numbers the stacks that are
 * kept.
 */
struct builder {
	const struct profile *profile;
	size_t count;
	bool *sampled;	   /* not only in stacks below it */
	uint64_t *total;   /* samples of a stack and of all below it; by stack */
	uint64_t fewest;   /* a stack with fewer is cut */
	uint32_t *python;  /* the innermost Python stack that it lies in; 0: none */
	uint32_t *nearest; /* itself or its nearest caller that is whole */
	struct map known;
	struct page_stacks *out;
};

static void sum_up(struct builder *b, const struct view_matcher *matcher)
{
	for (size_t i = 0; i < profile_cell_count(b->profile); i++) {
		const struct profile_cell *cell = profile_cell(b->profile, i);

		if (view_matches(matcher, cell->thread, cell->stack)) {
			b->total[cell->stack] += cell->samples;
			b->sampled[cell->stack] = true;
		}
	}
	for (uint32_t i = (uint32_t)b->count; i-- > 1;) {
		uint32_t parent = profile_stack(b->profile, i)->parent;

		if (parent < i)
			b->total[parent] += b->total[i];
	}
}

/* How many samples a stack needs so that no more than `limit` have as many. */
static uint64_t fewest_for(const struct builder *b, size_t limit)
{
	for (uint64_t fewest = 1;; fewest += 1 + fewest / 4) {
		size_t kept = 0;

		for (size_t i = 1; i < b->count; i++)
			kept += b->total[i] >= fewest;
		if (kept <= limit)
			return fewest;
	}
}

/* The page's stack of this frame in `parent`; NONE when memory ran out. */
static uint32_t stack_in(struct builder *b, uint32_t parent, uint32_t stack)
{
	const struct profile_frame *frame = profile_frame(b->profile,
							  profile_stack(b->profile, stack)->frame);
	bool python = profile_function(b->profile, frame->function)->kind == FRAME_PYTHON;
	struct page_stack item = {parent, frame->function, python ? frame->line : 0,
				  profile_stack_kind(b->profile, stack)};
	uint64_t key = map_mix((uint64_t)item.function << 32 | item.line, parent) + item.kind,
		 *slot;
	struct page_stack *place;
	bool added;

	/* A hash is no proof: on a collision the next key is tried. */
	for (;; key++) {
		slot = map_put(&b->known, key, &added);
		if (!slot)
			return NONE;
		if (added)
			break;
		place = &b->out->items.items[*slot];
		if (place->parent == item.parent && place->function == item.function &&
		    place->line == item.line && place->kind == item.kind)
			return (uint32_t)*slot;
	}
	*slot = b->out->items.len;
	place = vec_push(&b->out->items);
	if (!place)
		return NONE;
	*place = item;
	return (uint32_t)*slot;
}

/* What is left of a stack that is cut: its innermost Python frame and its leaf. */
static uint32_t cut_stack(struct builder *b, uint32_t stack, uint32_t nearest)
{
	uint32_t at = b->out->of_stack[nearest], python = b->python[stack];

	if (python > nearest && python != stack)
		at = stack_in(b, at, python);
	return at == NONE ? NONE : stack_in(b, at, stack);
}

static int number(struct builder *b)
{
	const struct profile *profile = b->profile;

	for (uint32_t i = 1; i < b->count; i++) {
		const struct profile_stack *stack = profile_stack(profile, i);
		uint32_t parent = stack->parent < i ? stack->parent : 0, placed;
		uint32_t function = profile_frame(profile, stack->frame)->function;
		bool python = profile_function(profile, function)->kind == FRAME_PYTHON;

		b->python[i] = python ? i : b->python[parent];
		if (!b->total[i]) {
			b->nearest[i] = 0;
			continue;
		}
		if (b->total[i] >= b->fewest) {
			b->nearest[i] = i;
			placed = stack_in(b, b->out->of_stack[parent], i);
		} else {
			b->nearest[i] = b->nearest[parent];
			if (!b->sampled[i])
				continue;
			placed = cut_stack(b, i, b->nearest[i]);
		}
		if (placed == NONE)
			return -1;
		b->out->of_stack[i] = placed;
	}
	return 0;
}

int page_stacks_init(struct page_stacks *stacks, const struct profile *profile,
		     const struct view_matcher *matcher, size_t limit, struct err *err)
{
	struct builder b = {
		.profile = profile, .count = profile_stack_count(profile), .out = stacks};
	int rc = -1;

	*stacks = (struct page_stacks){0};
	stacks->of_stack = calloc(b.count + 1, sizeof(*stacks->of_stack));
	b.sampled = calloc(b.count + 1, sizeof(*b.sampled));
	b.total = calloc(b.count + 1, sizeof(*b.total));
	b.python = calloc(b.count + 1, sizeof(*b.python));
	b.nearest = calloc(b.count + 1, sizeof(*b.nearest));
	if (stacks->of_stack && b.sampled && b.total && b.python && b.nearest &&
	    vec_push(&stacks->items)) {
		sum_up(&b, matcher);
		b.fewest = fewest_for(&b, limit);
		rc = number(&b);
	}
	if (!rc && b.fewest > 1) {
		stacks->fewest = b.fewest;
		for (size_t i = 0; i < profile_cell_count(profile); i++) {
			const struct profile_cell *cell = profile_cell(profile, i);

			if (view_matches(matcher, cell->thread, cell->stack) &&
			    b.total[cell->stack] < b.fewest)
				stacks->cut_samples += cell->samples;
		}
	}
	free(b.sampled);
	free(b.total);
	free(b.python);
	free(b.nearest);
	map_fini(&b.known);
	if (rc) {
		page_stacks_fini(stacks);
		return err_nomem(err);
	}
	return 0;
}

void page_stacks_fini(struct page_stacks *stacks)
{
	vec_fini(&stacks->items);
	free(stacks->of_stack);
	*stacks = (struct page_stacks){0};
}
