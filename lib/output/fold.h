#ifndef PYPERF_FOLD_H
#define PYPERF_FOLD_H

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

/*
 * Stacks of the profile tell addresses apart; other tools care for functions, or for functions and
 * lines. So the profile's tree of stacks is mapped onto a smaller tree of such places, where, as
 * there, parents have lower numbers than their children and 0 is the empty stack.
 */
struct fold_place {
	uint32_t function;
	uint32_t line; /* 0 where lines do not matter, or where it is not known */
};

struct fold {
	uint32_t parent;
	uint32_t place;
};

struct folds {
	const struct profile *profile;
	struct {
		VEC_OF(struct fold)
	} tree;
	struct {
		VEC_OF(struct fold_place)
	} places;	    /* each once */
	uint32_t *of_stack; /* stack of the profile -> index of tree */
	/* The tree by (parent, place): open addressing; 0 is free, since the root needs no slot. */
	uint32_t *slots;
	unsigned int slot_bits; /* 1 << slot_bits of them: enough for as many folds as stacks */
	struct map known_places;
	bool lines;
	uint32_t next; /* stack: those before it are mapped */
};

/* Maps nothing yet. */
int folds_begin(struct folds *folds, const struct profile *profile, bool lines, struct err *err);
/* Maps the next stacks, `most` at most; 1 when that were the last ones. */
int folds_go_on(struct folds *folds, uint32_t most, struct err *err);
/* Both, to the end. */
int folds_init(struct folds *folds, const struct profile *profile, bool lines, struct err *err);
void folds_fini(struct folds *folds);

static inline uint32_t folds_function(const struct folds *folds, uint32_t fold)
{
	return folds->places.items[folds->tree.items[fold].place].function;
}

/* A stack as a path from the root; its memory is used again and again. */
struct fold_path {
	VEC_OF(uint32_t) /* indices of tree */
};
/* False when memory ran out. */
bool folds_path(const struct folds *folds, uint32_t fold, struct fold_path *path);

#endif
