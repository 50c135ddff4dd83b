#include "profile/numbering.h"

#include <stdlib.h>
#include <string.h>

int numbering_init(struct numbering *n, const struct profile *profile)
{
	size_t size = profile_stack_count(profile) * sizeof(uint32_t);

	*n = (struct numbering){.profile = profile};
	n->total = malloc(size);
	n->self = malloc(size);
	n->split = malloc(size);
	if (!n->total || !n->self || !n->split)
		return -1;
	memset(n->total, 0xff, size);
	memset(n->self, 0xff, size);
	memset(n->split, 0xff, size);
	return 0;
}

void numbering_fini(struct numbering *n)
{
	free(n->total);
	free(n->self);
	free(n->split);
	if (n->tree)
		tally_tree_fini(n->tree);
	free(n->tree);
	vec_fini(&n->ids);
	map_fini(&n->by_key);
}

uint32_t numbering_row(struct numbering *n, uint64_t key, struct row_id id)
{
	bool added;
	uint64_t *row = map_put(&n->by_key, key, &added);
	struct row_id *place;

	if (!row)
		return ROW_NONE;
	if (added) {
		*row = n->ids.len;
		place = vec_push(&n->ids);
		if (!place)
			return ROW_NONE;
		*place = id;
	}
	return (uint32_t)*row;
}

struct view_count *numbering_tally(const struct numbering *n, const struct view_filter *filter,
				   struct view *view, struct err *err)
{
	size_t events = profile_event_count(n->profile);
	struct view_count *counts = calloc(n->ids.len * events + 1, sizeof(*counts));
	struct tally t = {
		.profile = n->profile,
		.filter = filter,
		.total_row = n->total,
		.self_row = n->self,
		.split_row = n->split,
		.tree = n->tree,
		.rows = (uint32_t)n->ids.len,
		.counts = counts,
		.period_total = view ? view->period_total : NULL,
		.samples = view ? view->samples : NULL,
		.square_total = view ? view->square_total : NULL,
		.products = view ? view->products : NULL,
	};

	if (!counts) {
		err_nomem(err);
		return NULL;
	}
	if (tally_run(&t, err) < 0) {
		free(counts);
		return NULL;
	}
	return counts;
}

bool numbering_any(const struct view_count *counts, size_t events)
{
	for (size_t i = 0; i < events; i++)
		if (counts[i].self_samples || counts[i].total_samples)
			return true;
	return false;
}

void *numbering_table(const struct numbering *n, const struct view_count *counts, size_t row_size,
		      size_t *count, struct view_count **kept)
{
	size_t events = profile_event_count(n->profile), head;
	char *table;

	*count = 0;
	for (size_t i = 0; i < n->ids.len; i++)
		*count += numbering_any(counts + i * events, events);
	head = (*count * row_size + 15) & ~(size_t)15;
	table = calloc(1, head + *count * events * sizeof(*counts) + 1);
	*kept = (struct view_count *)(void *)(table + head);
	return table;
}
