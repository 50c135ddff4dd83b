#include "profile/tally.h"

#include "profile/match.h"
#include "profile/store.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_sum(struct tally_sum *to, const struct tally_sum *sum)
{
	to->period += sum->period;
	to->samples += sum->samples;
	to->square += sum->square;
}

struct work {
	struct view_matcher *matcher;
	/* Where the caller brings none. */
	uint8_t *outermost;
	struct tally_sum *sums;
};

static int work_init(struct work *work, struct tally *tally, struct err *err)
{
	const struct profile *profile = tally->profile;
	size_t stacks = profile_stack_count(profile);
	int rc = view_matcher_new(&work->matcher, profile, tally->filter, err);

	if (!tally->sums)
		tally->sums = work->sums = calloc(stacks, sizeof(*work->sums));
	if (rc || !tally->sums)
		return -1;
	if (!tally->total_row || tally->outermost)
		return 0;
	work->outermost = tally_outermost(profile, tally->total_row, tally->rows);
	tally->outermost = work->outermost;
	return work->outermost ? 0 : -1;
}

static void work_fini(struct work *work)
{
	view_matcher_free(work->matcher);
	free(work->outermost);
	free(work->sums);
}

/* Counts, per row, the stacks of that row on the path from the root. */
uint8_t *tally_outermost(const struct profile *profile, const uint32_t *total_row, uint32_t rows)
{
	const struct profile_stack *stacks = profile->stacks.nodes.items;
	const uint32_t *ids = stacks_depth_first(&profile->stacks);
	size_t count = profile_stack_count(profile);
	uint8_t *outermost = calloc(count, sizeof(*outermost));
	uint32_t *on_path = calloc((size_t)rows + 1, sizeof(*on_path)), at = 0;

	if (!ids || !outermost || !on_path) {
		free(outermost);
		free(on_path);
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t id = ids[i], row = total_row[id];

		for (; at != stacks[id].parent; at = stacks[at].parent)
			if (total_row[at] != ROW_NONE)
				on_path[total_row[at]]--;
		if (row != ROW_NONE)
			outermost[id] = on_path[row]++ == 0;
		at = id;
	}
	free(on_path);
	return outermost;
}

static void count_cell(const struct tally *tally, const struct profile_cell *cell)
{
	uint32_t self = tally->self_row ? tally->self_row[cell->stack] : ROW_NONE;
	uint32_t split = tally->split_row ? tally->split_row[cell->stack] : ROW_NONE;
	size_t events = profile_event_count(tally->profile);
	struct view_count *counts = tally->counts + cell->event;
	enum frame_kind kind;

	if (self != ROW_NONE) {
		counts[self * events].self += cell->period;
		counts[self * events].self_samples += cell->samples;
		counts[self * events].self_square += cell->square;
	}
	if (split != ROW_NONE) {
		kind = profile_stack_kind(tally->profile, cell->stack);
		counts[split * events].split[kind] += cell->period;
		counts[split * events].split_square[kind] += cell->square;
	}
}

static void sum_cells(const struct tally *tally, struct work *work, uint32_t event)
{
	const struct profile *profile = tally->profile;
	size_t cells = profile_cell_count(profile);
	struct tally_sum all = {0}, sum;

	for (size_t i = 0; i < cells; i++) {
		const struct profile_cell *cell = profile_cell(profile, i);

		if (cell->event != event || !view_matches(work->matcher, cell->thread, cell->stack))
			continue;
		sum = (struct tally_sum){cell->period, cell->samples, cell->square};
		count_cell(tally, cell);
		if (tally->total_row)
			add_sum(&tally->sums[cell->stack], &sum);
		add_sum(&all, &sum);
	}
	if (tally->period_total)
		tally->period_total[event] = all.period;
	if (tally->samples)
		tally->samples[event] = all.samples;
	if (tally->square_total)
		tally->square_total[event] = all.square;
}

/* Children have higher numbers than their parents, so what lies below a stack is summed up when
 * its turn comes. */
static void count_totals(const struct tally *tally, uint32_t event)
{
	const struct profile_stack *stacks = tally->profile->stacks.nodes.items;
	size_t events = profile_event_count(tally->profile);

	for (uint32_t i = (uint32_t)profile_stack_count(tally->profile); i-- > 0;) {
		struct tally_sum *sum = &tally->sums[i];
		struct view_count *count = tally->counts + event;

		if (!sum->samples && !sum->period)
			continue;
		if (tally->outermost[i]) {
			count += tally->total_row[i] * events;
			count->total += sum->period;
			count->total_samples += sum->samples;
			count->total_square += sum->square;
		}
		if (i)
			add_sum(&tally->sums[stacks[i].parent], sum);
		*sum = (struct tally_sum){0};
	}
}

/* The same for the products of a pair of events, which have nothing but a sum. */
static void count_pair(const struct tally *tally, struct work *work, uint32_t pair)
{
	const struct profile *profile = tally->profile;
	const struct profile_stack *stacks = profile->stacks.nodes.items;
	size_t pairs = profile_pair_count(profile), products = profile_product_count(profile);
	struct view_product *out = tally->products + pair;

	for (size_t i = 0; i < products; i++) {
		const struct profile_product *product = profile_product(profile, i);
		uint32_t self = tally->self_row ? tally->self_row[product->stack] : ROW_NONE;

		if (product->pair != pair ||
		    !view_matches(work->matcher, product->thread, product->stack))
			continue;
		if (tally->total_row)
			tally->sums[product->stack].square += product->sum;
		if (self != ROW_NONE)
			out[self * pairs].self += product->sum;
	}
	for (uint32_t i = (uint32_t)profile_stack_count(profile); tally->total_row && i-- > 1;) {
		double sum = tally->sums[i].square;

		if (tally->outermost[i])
			out[tally->total_row[i] * pairs].total += sum;
		tally->sums[stacks[i].parent].square += sum;
		tally->sums[i].square = 0;
	}
	tally->sums[0].square = 0;
}

int tally_run(const struct tally *wanted, struct err *err)
{
	struct tally tally = *wanted;
	size_t events = profile_event_count(tally.profile);
	struct work work = {0};
	int rc = work_init(&work, &tally, err);

	for (uint32_t event = 0; rc == 0 && event < events; event++) {
		sum_cells(&tally, &work, event);
		if (tally.total_row)
			count_totals(&tally, event);
	}
	for (uint32_t i = 0; rc == 0 && tally.products && i < profile_pair_count(tally.profile);
	     i++)
		count_pair(&tally, &work, i);
	work_fini(&work);
	return rc < 0 ? err_nomem(err) : 0;
}
