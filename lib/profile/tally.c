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

/* Nodes for the stacks that have a row. */
static int take_nodes(struct tally_tree *tree, const struct profile *profile,
		      const uint32_t *total_row)
{
	const struct profile_stack *stacks = profile->stacks.nodes.items;
	size_t count = profile_stack_count(profile);
	struct tally_node *node = vec_push(&tree->nodes);

	tree->of_stack = calloc(count, sizeof(*tree->of_stack));
	if (!node || !tree->of_stack)
		return -1;
	*node = (struct tally_node){0, total_row[0]};
	for (uint32_t i = 1; i < count; i++) {
		uint32_t above = tree->of_stack[stacks[i].parent];

		tree->of_stack[i] = above;
		if (total_row[i] == ROW_NONE)
			continue;
		node = vec_push(&tree->nodes);
		if (!node)
			return -1;
		*node = (struct tally_node){above, total_row[i]};
		tree->of_stack[i] = (uint32_t)tree->nodes.len - 1;
	}
	return 0;
}

/*
 * Nodes depth first: a node's place is that of its parent, plus one, plus the nodes below its elder
 * siblings. That takes two passes over nodes, each of which finds a parent where it was a moment
 * ago.
 */
static uint32_t *depth_first(const struct tally_tree *tree)
{
	const struct tally_node *nodes = tree->nodes.items;
	size_t count = tree->nodes.len;
	uint32_t *order = malloc(count * sizeof(*order));
	uint32_t *below = calloc(count, sizeof(*below)); /* with the node; then its next place */

	for (size_t i = count; order && below && i-- > 1;)
		below[nodes[i].parent] += ++below[i];
	if (order && below)
		order[0] = 0, below[0] = 1;
	for (uint32_t i = 1; order && below && i < count; i++) {
		uint32_t *next = &below[nodes[i].parent], place = *next;

		*next += below[i];
		below[i] = place + 1;
		order[place] = i;
	}
	if (!below) {
		free(order);
		order = NULL;
	}
	free(below);
	return order;
}

/* Counts, per row, the nodes of that row on the path from the root. */
static int find_outermost(struct tally_tree *tree, uint32_t rows)
{
	const struct tally_node *nodes = tree->nodes.items;
	uint32_t *order = depth_first(tree), at = 0;
	uint32_t *on_path = calloc((size_t)rows + 1, sizeof(*on_path));

	tree->outermost = calloc(tree->nodes.len, sizeof(*tree->outermost));
	if (!order || !on_path || !tree->outermost) {
		free(order);
		free(on_path);
		return -1;
	}
	for (size_t i = 0; i < tree->nodes.len; i++) {
		const struct tally_node *node = &nodes[order[i]];

		for (; at != node->parent; at = nodes[at].parent)
			if (nodes[at].row != ROW_NONE)
				on_path[nodes[at].row]--;
		at = order[i];
		if (node->row != ROW_NONE)
			tree->outermost[at] = on_path[node->row]++ == 0;
	}
	free(order);
	free(on_path);
	return 0;
}

int tally_tree_init(struct tally_tree *tree, const struct profile *profile,
		    const uint32_t *total_row, uint32_t rows, struct err *err)
{
	int rc;

	*tree = (struct tally_tree){0};
	rc = take_nodes(tree, profile, total_row);
	if (!rc)
		rc = find_outermost(tree, rows);
	if (!rc)
		tree->sums = calloc(tree->nodes.len, sizeof(*tree->sums));
	return rc || !tree->sums ? err_nomem(err) : 0;
}

void tally_tree_fini(struct tally_tree *tree)
{
	vec_fini(&tree->nodes);
	free(tree->of_stack);
	free(tree->outermost);
	free(tree->sums);
	*tree = (struct tally_tree){0};
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

static void sum_cells(const struct tally *tally, const struct view_matcher *matcher, uint32_t event)
{
	const struct profile *profile = tally->profile;
	size_t cells = profile_cell_count(profile);
	struct tally_sum all = {0}, sum;

	for (size_t i = 0; i < cells; i++) {
		const struct profile_cell *cell = profile_cell(profile, i);

		if (cell->event != event || !view_matches(matcher, cell->thread, cell->stack))
			continue;
		sum = (struct tally_sum){cell->period, cell->samples, cell->square};
		count_cell(tally, cell);
		if (tally->tree)
			add_sum(&tally->tree->sums[tally->tree->of_stack[cell->stack]], &sum);
		add_sum(&all, &sum);
	}
	if (tally->period_total)
		tally->period_total[event] = all.period;
	if (tally->samples)
		tally->samples[event] = all.samples;
	if (tally->square_total)
		tally->square_total[event] = all.square;
}

/* Children have higher numbers than their parents, so what lies below a node is summed up when its
 * turn comes. */
static void count_totals(const struct tally *tally, uint32_t event)
{
	const struct tally_tree *tree = tally->tree;
	size_t events = profile_event_count(tally->profile);

	for (size_t i = tree->nodes.len; i-- > 0;) {
		const struct tally_node *node = &tree->nodes.items[i];
		struct tally_sum sum = tree->sums[i];
		struct view_count *count = tally->counts + event;

		if (!sum.samples && !sum.period)
			continue;
		if (tree->outermost[i]) {
			count += node->row * events;
			count->total += sum.period;
			count->total_samples += sum.samples;
			count->total_square += sum.square;
		}
		add_sum(&tree->sums[node->parent], &sum);
		tree->sums[i] = (struct tally_sum){0};
	}
}

/* The same for the products of a pair of events, which have nothing but a sum. */
static void count_pair(const struct tally *tally, const struct view_matcher *matcher, uint32_t pair)
{
	const struct profile *profile = tally->profile;
	const struct tally_tree *tree = tally->tree;
	size_t pairs = profile_pair_count(profile), products = profile_product_count(profile);
	struct view_product *out = tally->products + pair;

	for (size_t i = 0; i < products; i++) {
		const struct profile_product *product = profile_product(profile, i);
		uint32_t self = tally->self_row ? tally->self_row[product->stack] : ROW_NONE;

		if (product->pair != pair ||
		    !view_matches(matcher, product->thread, product->stack))
			continue;
		if (tree)
			tree->sums[tree->of_stack[product->stack]].square += product->sum;
		if (self != ROW_NONE)
			out[self * pairs].self += product->sum;
	}
	for (size_t i = tree ? tree->nodes.len : 0; i-- > 0;) {
		const struct tally_node *node = &tree->nodes.items[i];
		double sum = tree->sums[i].square;

		if (tree->outermost[i])
			out[node->row * pairs].total += sum;
		tree->sums[node->parent].square += sum;
		tree->sums[i].square = 0;
	}
}

int tally_run(const struct tally *wanted, struct err *err)
{
	struct tally tally = *wanted;
	const struct profile *profile = tally.profile;
	struct view_matcher *matcher;
	struct tally_tree tree = {0};
	int rc = view_matcher_new(&matcher, profile, tally.filter, err);

	if (rc == 0 && tally.total_row && !tally.tree) {
		rc = tally_tree_init(&tree, profile, tally.total_row, tally.rows, err);
		tally.tree = &tree;
	}
	for (uint32_t event = 0; rc == 0 && event < profile_event_count(profile); event++) {
		sum_cells(&tally, matcher, event);
		if (tally.tree)
			count_totals(&tally, event);
	}
	for (uint32_t i = 0; rc == 0 && tally.products && i < profile_pair_count(profile); i++)
		count_pair(&tally, matcher, i);
	tally_tree_fini(&tree);
	view_matcher_free(matcher);
	return rc;
}
