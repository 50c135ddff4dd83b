#ifndef PYPERF_NUMBERING_H
#define PYPERF_NUMBERING_H

#include "base/map.h"
#include "base/vec.h"
#include "profile/store.h"
#include "profile/tally.h"

#include <stdbool.h>

/*
 * How a view is made: what each stack of the profile stands for in it (rows by stack, given in one
 * pass from the root), what a row is, and the sums. For the files of views only.
 */
struct row_id {
	uint32_t function, line;
	uint32_t frame;
	uint32_t other; /* a second line, of who calls */
};
struct numbering {
	const struct profile *profile;
	uint32_t *total, *self, *split; /* by stack; ROW_NONE at first */
	struct tally_tree *tree;	/* of `total`, where it is kept; may be NULL */
	struct {
		VEC_OF(struct row_id)
	} ids;
	struct map by_key;
};

int numbering_init(struct numbering *n, const struct profile *profile);
void numbering_fini(struct numbering *n);

static inline uint64_t numbering_key(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}
/* The row of a key, made with `id` when it is new; ROW_NONE when memory ran out. */
uint32_t numbering_row(struct numbering *n, uint64_t key, struct row_id id);

static inline const struct profile_frame *numbering_leaf(const struct profile *profile,
							 uint32_t stack)
{
	return &profile_frame_item(profile, profile->stacks.nodes.items[stack].frame)->frame;
}
static inline bool numbering_python(const struct profile *profile, uint32_t function)
{
	const struct function_item *item = keyed_at(&profile->functions, function);

	return item->function.kind == FRAME_PYTHON;
}

/* Sums up and returns counts of all rows and events in one block, or NULL. `view` (may be NULL)
 * gets the totals. */
struct view_count *numbering_tally(const struct numbering *n, const struct view_filter *filter,
				   struct view *view, struct err *err);
/* Has the row any samples? */
bool numbering_any(const struct view_count *counts, size_t events);
/*
 * A table and its counts are one block, so that sorting moves rows only and one free() ends both:
 * `row_size` bytes for each row that has samples, then their counts. NULL when memory ran out.
 */
void *numbering_table(const struct numbering *n, const struct view_count *counts, size_t row_size,
		      size_t *count, struct view_count **kept);

#endif
