#include "browse/calltree.h"

#include "base/clock.h"
#include "profile/match.h"

#include <stdlib.h>
#include <string.h>

/* Items of any step: less than a millisecond's work. */
#define DONE_AT_ONCE 5000

static uint32_t parent_of(const struct calltree *calls, uint32_t fold)
{
	return calls->folds.tree.items[fold].parent;
}

static uint32_t outermost_function(const struct calltree *calls, uint32_t fold)
{
	return calls->outermost[fold] ? folds_function(&calls->folds, fold) : UINT32_MAX;
}

/* Lists are made in two passes over the folds but the root. The first counts, in start[k + 2]; the
 * second takes start[k + 1] for the end of what list k has so far. */
typedef uint32_t key_of_fold(const struct calltree *calls, uint32_t fold);

static int count_lists(struct calltree *calls, struct calltree_lists *lists, key_of_fold *key_of,
		       size_t keys, size_t from, size_t to)
{
	if (from == 0) {
		free(lists->start);
		free(lists->items);
		lists->start = calloc(keys + 2, sizeof(*lists->start));
		lists->items = malloc((calls->folds.tree.len + 1) * sizeof(*lists->items));
	}
	if (!lists->start || !lists->items)
		return -1;
	for (size_t i = from ? from : 1; i < to; i++) {
		uint32_t key = key_of(calls, (uint32_t)i);

		if (key != UINT32_MAX)
			lists->start[key + 2]++;
	}
	return 0;
}

static void fill_lists(struct calltree *calls, struct calltree_lists *lists, key_of_fold *key_of,
		       size_t keys, size_t from, size_t to)
{
	if (from == 0)
		for (size_t k = 1; k <= keys; k++)
			lists->start[k + 1] += lists->start[k];
	for (size_t i = from ? from : 1; i < to; i++) {
		uint32_t key = key_of(calls, (uint32_t)i);

		if (key != UINT32_MAX)
			lists->items[lists->start[key + 1]++] = (uint32_t)i;
	}
}

static size_t count_stacks(const struct calltree *calls)
{
	return profile_stack_count(calls->profile);
}

static size_t count_folds(const struct calltree *calls)
{
	return calls->folds.tree.len;
}

static size_t count_functions(const struct calltree *calls)
{
	return profile_function_count(calls->profile);
}

static size_t count_cells(const struct calltree *calls)
{
	return profile_cell_count(calls->profile);
}

/* Each fold but the root is entered once and left once. */
static size_t count_moves(const struct calltree *calls)
{
	return 2 * (calls->folds.tree.len - 1);
}

static int fold_stacks(struct calltree *calls, size_t from, size_t to)
{
	return folds_go_on(&calls->folds, (uint32_t)(to - from), NULL) < 0 ? -1 : 0;
}

static int count_children(struct calltree *calls, size_t from, size_t to)
{
	return count_lists(calls, &calls->children, parent_of, count_folds(calls), from, to);
}

static int list_children(struct calltree *calls, size_t from, size_t to)
{
	fill_lists(calls, &calls->children, parent_of, count_folds(calls), from, to);
	return 0;
}

static void end_walk(struct calltree *calls)
{
	free(calls->walk.next);
	free(calls->walk.on_path);
	calls->walk = (struct calltree_walk){0};
}

static int start_walk(struct calltree *calls)
{
	size_t folds = count_folds(calls), size = folds * sizeof(uint32_t);

	end_walk(calls);
	free(calls->outermost);
	calls->outermost = calloc(folds, sizeof(*calls->outermost));
	calls->walk.next = malloc(size);
	calls->walk.on_path = calloc(count_functions(calls) + 1, sizeof(uint32_t));
	if (!calls->outermost || !calls->walk.next || !calls->walk.on_path)
		return -1;
	memcpy(calls->walk.next, calls->children.start, size);
	return 0;
}

/* Walks the tree depth first, and counts per function how often it is on the path. */
static int mark_outermost(struct calltree *calls, size_t from, size_t to)
{
	const struct calltree_lists *children = &calls->children;
	struct calltree_walk *walk = &calls->walk;

	if (from == 0 && start_walk(calls))
		return -1;
	for (size_t i = from; i < to; i++) {
		uint32_t at = walk->at;

		if (walk->next[at] < children->start[at + 1]) {
			at = children->items[walk->next[at]++];
			calls->outermost[at] = !walk->on_path[folds_function(&calls->folds, at)]++;
		} else {
			walk->on_path[folds_function(&calls->folds, at)]--;
			at = parent_of(calls, at);
		}
		walk->at = at;
	}
	if (to == count_moves(calls))
		end_walk(calls);
	return 0;
}

static int count_outermost(struct calltree *calls, size_t from, size_t to)
{
	return count_lists(calls, &calls->of_function, outermost_function, count_functions(calls),
			   from, to);
}

static int list_outermost(struct calltree *calls, size_t from, size_t to)
{
	fill_lists(calls, &calls->of_function, outermost_function, count_functions(calls), from,
		   to);
	return 0;
}

static void end_weighing(struct calltree *calls)
{
	view_matcher_free(calls->matcher);
	calls->matcher = NULL;
}

static int clear_weights(struct calltree *calls, size_t from, size_t to)
{
	size_t size = calls->events * sizeof(*calls->weights);

	if (!calls->weights)
		calls->weights = malloc(count_folds(calls) * size + 1);
	if (!calls->weights)
		return -1;
	memset(calls->weights + from * calls->events, 0, (to - from) * size);
	return 0;
}

static int weigh_cells(struct calltree *calls, size_t from, size_t to)
{
	if (!calls->matcher &&
	    view_matcher_new(&calls->matcher, calls->profile, calls->filter, NULL))
		return -1;
	for (size_t i = from; i < to; i++) {
		const struct profile_cell *cell = profile_cell(calls->profile, i);
		uint32_t fold = calls->folds.of_stack[cell->stack];
		struct calltree_weight *weight =
			&calls->weights[fold * calls->events + cell->event];

		if (!view_matches(calls->matcher, cell->thread, cell->stack))
			continue;
		weight->self += cell->period;
		weight->self_samples += cell->samples;
	}
	if (to == count_cells(calls))
		end_weighing(calls);
	return 0;
}

/* From the last fold to the first: parents have lower numbers than their children. */
static int weigh_callers(struct calltree *calls, size_t from, size_t to)
{
	size_t folds = count_folds(calls), events = calls->events;

	for (size_t fold = folds - from; fold-- > folds - to;) {
		size_t parent = parent_of(calls, (uint32_t)fold);

		for (size_t e = 0; e < events; e++) {
			struct calltree_weight *weight = &calls->weights[fold * events + e];
			struct calltree_weight *up = &calls->weights[parent * events + e];

			weight->total += weight->self;
			weight->total_samples += weight->self_samples;
			if (fold) {
				up->total += weight->total;
				up->total_samples += weight->total_samples;
			}
		}
	}
	return 0;
}

/* The first of those that a filter makes necessary again. */
#define WEIGHING 6

/* One after the other: `run` does its items from one number up to another, at least once, and fails
 * by lack of memory alone. */
static const struct {
	size_t (*count)(const struct calltree *calls);
	int (*run)(struct calltree *calls, size_t from, size_t to);
} steps[] = {
	{count_stacks, fold_stacks},
	{count_folds, count_children},
	{count_folds, list_children},
	{count_moves, mark_outermost},
	{count_folds, count_outermost},
	{count_folds, list_outermost},
	[WEIGHING] = {count_folds, clear_weights},
	{count_cells, weigh_cells},
	{count_folds, weigh_callers},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

int calltree_prepare(struct calltree *calls, const struct view_filter *filter, uint64_t until_ns,
		     struct err *err)
{
	calls->filter = filter;
	while (calls->step < STEPS) {
		size_t count = steps[calls->step].count(calls), to = calls->done + DONE_AT_ONCE;

		if (to > count)
			to = count;
		if (steps[calls->step].run(calls, calls->done, to))
			return err_nomem(err);
		calls->done = to < count ? to : 0;
		calls->step += to == count;
		if (calls->step < STEPS && clock_now_ns() >= until_ns)
			return 0;
	}
	return 1;
}

static void forget_branches(struct calltree *calls)
{
	for (size_t i = 0; i < calls->branches.len; i++)
		free(calls->branches.items[i].counts);
	calls->branches.len = calls->places.len = 0;
}

void calltree_refilter(struct calltree *calls)
{
	forget_branches(calls);
	end_weighing(calls);
	if (calls->step < WEIGHING)
		return;
	calls->step = WEIGHING;
	calls->done = 0;
}

static void free_lists(struct calltree_lists *lists)
{
	free(lists->items);
	free(lists->start);
}

void calltree_fini(struct calltree *calls)
{
	forget_branches(calls);
	end_weighing(calls);
	end_walk(calls);
	vec_fini(&calls->branches);
	vec_fini(&calls->places);
	free(calls->weights);
	free(calls->outermost);
	free_lists(&calls->children);
	free_lists(&calls->of_function);
	folds_fini(&calls->folds);
}

int calltree_init(struct calltree *calls, const struct profile *profile, struct err *err)
{
	int rc;

	*calls = (struct calltree){.profile = profile, .events = profile_event_count(profile)};
	rc = folds_begin(&calls->folds, profile, false, err);
	if (rc)
		calltree_fini(calls);
	return rc;
}

/* Of callers what the function took for them, of callees what they took. */
static void add_counts(const struct calltree *calls, struct calltree_branch *branch,
		       const struct calltree_place *place)
{
	const struct calltree_weight *self = calltree_weight(calls, place->at);
	const struct calltree_weight *total = calltree_weight(calls, place->origin);

	for (size_t e = 0; e < calls->events; e++) {
		if (branch->side == CALLTREE_CALLEES) {
			branch->counts[e].self += self[e].self;
			branch->counts[e].self_samples += self[e].self_samples;
		}
		branch->counts[e].total += total[e].total;
		branch->counts[e].total_samples += total[e].total_samples;
	}
}

static bool has_samples(const struct calltree *calls, uint32_t fold)
{
	for (size_t e = 0; e < calls->events; e++)
		if (calltree_weight(calls, fold)[e].total_samples)
			return true;
	return false;
}

static struct calltree_branch *add_branch(struct calltree *calls, uint32_t function,
					  enum calltree_side side)
{
	struct calltree_branch *branch = vec_push(&calls->branches);

	if (!branch)
		return NULL;
	branch->function = function;
	branch->side = side;
	branch->first = calls->places.len;
	branch->counts = calloc(calls->events + 1, sizeof(*branch->counts));
	return branch->counts ? branch : NULL;
}

static int add_place(struct calltree *calls, struct calltree_branch *branch,
		     struct calltree_place place, struct err *err)
{
	struct calltree_place *p = vec_push(&calls->places);

	if (!p)
		return err_nomem(err);
	*p = place;
	branch->count++;
	add_counts(calls, branch, &place);
	return 0;
}

int calltree_of(struct calltree *calls, uint32_t function, enum calltree_side side, size_t *index,
		struct err *err)
{
	struct calltree_branch *branch = add_branch(calls, function, side);
	int rc = branch ? 0 : err_nomem(err);

	*index = calls->branches.len - 1;
	for (uint32_t i = calls->of_function.start[function];
	     !rc && i < calls->of_function.start[function + 1]; i++) {
		uint32_t fold = calls->of_function.items[i];

		if (has_samples(calls, fold))
			rc = add_place(calls, branch, (struct calltree_place){fold, fold}, err);
	}
	return rc;
}

struct neighbour {
	uint32_t function;
	struct calltree_place place;
};

struct neighbours {
	VEC_OF(struct neighbour)
};

static int add_neighbour(const struct calltree *calls, struct neighbours *list, uint32_t at,
			 uint32_t origin, struct err *err)
{
	struct neighbour *n;

	if (!has_samples(calls, origin))
		return 0;
	n = vec_push(list);
	if (!n)
		return err_nomem(err);
	*n = (struct neighbour){folds_function(&calls->folds, at), {at, origin}};
	return 0;
}

static int find_neighbours(const struct calltree *calls, const struct calltree_branch *branch,
			   struct neighbours *list, struct err *err)
{
	int rc = 0;

	for (size_t i = branch->first; !rc && i < branch->first + branch->count; i++) {
		const struct calltree_place *place = &calls->places.items[i];
		uint32_t parent = parent_of(calls, place->at);

		if (branch->side == CALLTREE_CALLERS) {
			if (parent)
				rc = add_neighbour(calls, list, parent, place->origin, err);
			continue;
		}
		for (uint32_t c = calls->children.start[place->at];
		     !rc && c < calls->children.start[place->at + 1]; c++)
			rc = add_neighbour(calls, list, calls->children.items[c],
					   calls->children.items[c], err);
	}
	return rc;
}

static int by_function(const void *a, const void *b)
{
	uint32_t fa = ((const struct neighbour *)a)->function;
	uint32_t fb = ((const struct neighbour *)b)->function;

	return fa < fb ? -1 : fa > fb;
}

static int by_total(const void *a, const void *b, void *event)
{
	const struct calltree_branch *ba = a, *bb = b;
	uint64_t ta = ba->counts[*(uint32_t *)event].total;
	uint64_t tb = bb->counts[*(uint32_t *)event].total;

	if (ta != tb)
		return ta < tb ? 1 : -1;
	return ba->function < bb->function ? -1 : ba->function > bb->function;
}

/* Neighbours of one function, which lie side by side, are one branch. */
static int add_children(struct calltree *calls, const struct neighbours *list,
			enum calltree_side side, struct err *err)
{
	struct calltree_branch *child = NULL;
	int rc = 0;

	for (size_t i = 0; !rc && i < list->len; i++) {
		const struct neighbour *n = &list->items[i];

		if (!child || child->function != n->function)
			child = add_branch(calls, n->function, side);
		rc = child ? add_place(calls, child, n->place, err) : err_nomem(err);
	}
	return rc;
}

int calltree_open(struct calltree *calls, size_t index, uint32_t event, struct err *err)
{
	struct calltree_branch *branch = &calls->branches.items[index];
	size_t first = calls->branches.len, count;
	struct neighbours list = {0};
	int rc;

	if (branch->opened)
		return 0;
	rc = find_neighbours(calls, branch, &list, err);
	if (!rc && list.len)
		qsort(list.items, list.len, sizeof(*list.items), by_function);
	if (!rc)
		rc = add_children(calls, &list, branch->side, err);
	vec_fini(&list);
	if (rc)
		return rc;
	count = calls->branches.len - first;
	if (count)
		qsort_r(calls->branches.items + first, count, sizeof(*calls->branches.items),
			by_total, &event);
	branch = &calls->branches.items[index];
	branch->children = first;
	branch->children_count = count;
	branch->opened = true;
	return 0;
}
