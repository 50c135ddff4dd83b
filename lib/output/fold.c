#include "output/fold.h"

#include <stdlib.h>

static uint32_t place_of(struct folds *folds, const struct profile_frame *frame)
{
	uint32_t line = folds->lines ? frame->line : 0;
	struct fold_place *place;
	bool added;
	uint64_t *slot = map_put(&folds->known_places, (uint64_t)frame->function << 32 | line,
				 &added);

	if (slot && added) {
		*slot = folds->places.len;
		place = vec_push(&folds->places);
		if (!place)
			return UINT32_MAX;
		*place = (struct fold_place){frame->function, line};
	}
	return slot ? (uint32_t)*slot : UINT32_MAX;
}

/* The slot of the fold, or the free one where it belongs. */
static uint32_t *locate(const struct folds *folds, struct fold wanted)
{
	uint64_t key = (uint64_t)wanted.parent << 32 | wanted.place;
	size_t at = key * 0x9e3779b97f4a7c15u >> (64 - folds->slot_bits);

	for (;; at = (at + 1) & (((size_t)1 << folds->slot_bits) - 1)) {
		const struct fold *fold = &folds->tree.items[folds->slots[at]];

		if (!folds->slots[at] ||
		    (fold->parent == wanted.parent && fold->place == wanted.place))
			return &folds->slots[at];
	}
}

static int fold_stack(struct folds *folds, uint32_t stack, struct err *err)
{
	const struct profile_stack *s = profile_stack(folds->profile, stack);
	struct fold wanted = {
		.parent = s->parent < stack ? folds->of_stack[s->parent] : 0,
		.place = place_of(folds, profile_frame(folds->profile, s->frame)),
	};
	uint32_t *slot;
	struct fold *fold;

	if (wanted.place == UINT32_MAX)
		return err_nomem(err);
	slot = locate(folds, wanted);
	if (!*slot) {
		fold = vec_push(&folds->tree);
		if (!fold)
			return err_nomem(err);
		*fold = wanted;
		*slot = (uint32_t)folds->tree.len - 1;
	}
	folds->of_stack[stack] = *slot;
	return 0;
}

int folds_begin(struct folds *folds, const struct profile *profile, bool lines, struct err *err)
{
	size_t stacks = profile_stack_count(profile);

	*folds = (struct folds){.profile = profile, .lines = lines, .next = 1, .slot_bits = 4};
	while (stacks > ((size_t)1 << folds->slot_bits) / 4 * 3)
		folds->slot_bits++;
	folds->of_stack = calloc(stacks + 1, sizeof(*folds->of_stack));
	folds->slots = calloc((size_t)1 << folds->slot_bits, sizeof(*folds->slots));
	return folds->of_stack && folds->slots && vec_push(&folds->tree) ? 0 : err_nomem(err);
}

int folds_go_on(struct folds *folds, uint32_t most, struct err *err)
{
	uint32_t count = (uint32_t)profile_stack_count(folds->profile);
	int rc = 0;

	for (; folds->next < count && most-- && !rc; folds->next += !rc)
		rc = fold_stack(folds, folds->next, err);
	return rc ? rc : folds->next >= count;
}

int folds_init(struct folds *folds, const struct profile *profile, bool lines, struct err *err)
{
	int rc = folds_begin(folds, profile, lines, err);

	rc = rc ? rc : folds_go_on(folds, UINT32_MAX, err);
	return rc < 0 ? rc : 0;
}

void folds_fini(struct folds *folds)
{
	vec_fini(&folds->tree);
	vec_fini(&folds->places);
	map_fini(&folds->known_places);
	free(folds->slots);
	free(folds->of_stack);
	folds->slots = folds->of_stack = NULL;
}

bool folds_path(const struct folds *folds, uint32_t fold, struct fold_path *path)
{
	path->len = 0;
	for (; fold; fold = folds->tree.items[fold].parent) {
		uint32_t *at = vec_push(path);

		if (!at)
			return false;
		*at = fold;
	}
	for (size_t i = 0; i < path->len / 2; i++) {
		uint32_t other = path->items[path->len - 1 - i];

		path->items[path->len - 1 - i] = path->items[i];
		path->items[i] = other;
	}
	return true;
}
