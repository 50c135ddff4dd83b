#include "profile/tally.h"

#include "profile/match.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sum {
	uint64_t period, samples;
	double square;
};

struct work {
	struct view_matcher *matcher;
	uint8_t *leaf_kind; /* by stack */
	uint8_t *outermost; /* by stack: no stack above it has its row */
	struct sum *sums;   /* by stack */
};

static int work_init(struct work *work, const struct tally *tally, struct err *err)
{
	const struct profile *profile = tally->profile;
	size_t stacks = profile_stack_count(profile);
	int rc = view_matcher_new(&work->matcher, profile, tally->filter, err);

	work->leaf_kind = malloc(stacks);
	work->outermost = calloc(stacks, 1);
	work->sums = malloc(stacks * sizeof(*work->sums));
	if (rc || !work->leaf_kind || !work->outermost || !work->sums)
		return -1;
	for (uint32_t i = 0; i < stacks; i++)
		work->leaf_kind[i] = (uint8_t)profile_stack_kind(profile, i);
	return 0;
}

static void work_fini(struct work *work)
{
	view_matcher_free(work->matcher);
	free(work->leaf_kind);
	free(work->outermost);
	free(work->sums);
}

/*
 * Walks the tree of stacks depth first and counts, per row, the stacks of that row on the path. A
 * parent's id is less than its children's, so lists of siblings come from one pass.
 */
static int find_outermost(const struct tally *tally, struct work *work)
{
	const struct profile *profile = tally->profile;
	uint32_t stacks = (uint32_t)profile_stack_count(profile), at = 0;
	uint32_t *child = calloc(stacks, sizeof(*child));
	uint32_t *sibling = calloc(stacks, sizeof(*sibling));
	uint32_t *on_path = calloc((size_t)tally->rows + 1, sizeof(*on_path));
	int rc = child && sibling && on_path ? 0 : -1;

	for (uint32_t i = stacks; rc == 0 && i-- > 1;) {
		uint32_t *first = &child[profile_stack(profile, i)->parent];

		sibling[i] = *first;
		*first = i;
	}
	for (bool down = true; rc == 0;) {
		uint32_t row = tally->total_row[at];

		if (down && row != ROW_NONE)
			work->outermost[at] = on_path[row]++ == 0;
		if (down && child[at]) {
			at = child[at];
			continue;
		}
		if (row != ROW_NONE)
			on_path[row]--;
		down = sibling[at] != 0;
		if (down)
			at = sibling[at];
		else if (at == 0)
			break;
		else
			at = profile_stack(profile, at)->parent;
	}
	free(child);
	free(sibling);
	free(on_path);
	return rc;
}

static void sum_cells(const struct tally *tally, struct work *work, uint32_t event)
{
	const struct profile *profile = tally->profile;
	size_t cells = profile_cell_count(profile);
	uint64_t period = 0, samples = 0;
	double square = 0;

	memset(work->sums, 0, profile_stack_count(profile) * sizeof(*work->sums));
	for (size_t i = 0; i < cells; i++) {
		const struct profile_cell *cell = profile_cell(profile, i);

		if (cell->event != event || !view_matches(work->matcher, cell->thread, cell->stack))
			continue;
		work->sums[cell->stack].period += cell->period;
		work->sums[cell->stack].samples += cell->samples;
		work->sums[cell->stack].square += cell->square;
		period += cell->period;
		samples += cell->samples;
		square += cell->square;
	}
	if (tally->period_total)
		tally->period_total[event] = period;
	if (tally->samples)
		tally->samples[event] = samples;
	if (tally->square_total)
		tally->square_total[event] = square;
}

static void count_event(const struct tally *tally, struct work *work, uint32_t event)
{
	const struct profile *profile = tally->profile;
	size_t events = profile_event_count(profile);
	struct view_count *counts = tally->counts + event;

	for (uint32_t i = (uint32_t)profile_stack_count(profile); i-- > 0;) {
		const struct sum *sum = &work->sums[i];
		uint32_t self = tally->self_row ? tally->self_row[i] : ROW_NONE;
		uint32_t split = tally->split_row ? tally->split_row[i] : ROW_NONE;

		/* Children have gone before: without totals nothing was passed up to here. */
		if (!sum->samples)
			continue;
		if (self != ROW_NONE) {
			counts[self * events].self += sum->period;
			counts[self * events].self_samples += sum->samples;
			counts[self * events].self_square += sum->square;
		}
		if (split != ROW_NONE) {
			counts[split * events].split[work->leaf_kind[i]] += sum->period;
			counts[split * events].split_square[work->leaf_kind[i]] += sum->square;
		}
	}
	if (!tally->total_row)
		return;
	for (uint32_t i = (uint32_t)profile_stack_count(profile); i-- > 0;) {
		struct sum *up = &work->sums[profile_stack(profile, i)->parent];
		const struct sum *sum = &work->sums[i];
		uint32_t row = tally->total_row[i];

		if (row != ROW_NONE && work->outermost[i]) {
			counts[row * events].total += sum->period;
			counts[row * events].total_samples += sum->samples;
			counts[row * events].total_square += sum->square;
		}
		if (i) {
			up->period += sum->period;
			up->samples += sum->samples;
			up->square += sum->square;
		}
	}
}

/* The same for the products of a pair of events, which have nothing but a sum. */
static void count_pair(const struct tally *tally, struct work *work, uint32_t pair)
{
	const struct profile *profile = tally->profile;
	size_t pairs = profile_pair_count(profile), products = profile_product_count(profile);
	struct view_product *out = tally->products + pair;

	memset(work->sums, 0, profile_stack_count(profile) * sizeof(*work->sums));
	for (size_t i = 0; i < products; i++) {
		const struct profile_product *product = profile_product(profile, i);

		if (product->pair == pair &&
		    view_matches(work->matcher, product->thread, product->stack))
			work->sums[product->stack].square += product->sum;
	}
	for (uint32_t i = 1; tally->self_row && i < profile_stack_count(profile); i++)
		if (tally->self_row[i] != ROW_NONE)
			out[tally->self_row[i] * pairs].self += work->sums[i].square;
	for (uint32_t i = (uint32_t)profile_stack_count(profile); tally->total_row && i-- > 1;) {
		uint32_t row = tally->total_row[i];

		if (row != ROW_NONE && work->outermost[i])
			out[row * pairs].total += work->sums[i].square;
		work->sums[profile_stack(profile, i)->parent].square += work->sums[i].square;
	}
}

int tally_run(const struct tally *tally, struct err *err)
{
	size_t events = profile_event_count(tally->profile);
	struct work work = {0};
	int rc = work_init(&work, tally, err);

	if (rc == 0 && tally->total_row)
		rc = find_outermost(tally, &work);
	for (uint32_t event = 0; rc == 0 && event < events; event++) {
		sum_cells(tally, &work, event);
		count_event(tally, &work, event);
	}
	for (uint32_t i = 0; rc == 0 && tally->products && i < profile_pair_count(tally->profile);
	     i++)
		count_pair(tally, &work, i);
	work_fini(&work);
	return rc < 0 ? err_nomem(err) : 0;
}
