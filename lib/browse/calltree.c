#include "browse/calltree.h"

#include "base/clock.h"
#include "profile/match.h"

#include <stdlib.h>
#include <string.h>

/* Stacks: less than a millisecond's work. */
#define FOLDED_AT_ONCE 5000

/* Lists by key in one array: those of key k are items[start[k]] up to items[start[k + 1]]. */
static int make_lists(uint32_t **items, uint32_t **start, size_t keys, size_t count,
		      uint32_t (*key_of)(const struct calltree *calls, uint32_t fold),
		      const struct calltree *calls)
{
	uint32_t *next;

	free(*start);
	free(*items);
	*start = calloc(keys + 2, sizeof(**start));
	*items = calloc(count + 1, sizeof(**items));
	if (!*start || !*items)
		return -1;
	next = *start + 1;
	for (uint32_t i = 1; i < count; i++)
		if (key_of(calls, i) != UINT32_MAX)
			next[key_of(calls, i) + 1]++;
	for (size_t k = 0; k < keys; k++)
		next[k + 1] += next[k];
	for (uint32_t i = 1; i < count; i++)
		if (key_of(calls, i) != UINT32_MAX)
			(*items)[next[key_of(calls, i)]++] = i;
	return 0;
}

static uint32_t parent_of(const struct calltree *calls, uint32_t fold)
{
	return calls->folds.tree.items[fold].parent;
}

static uint32_t outermost_function(const struct calltree *calls, uint32_t fold)
{
	return calls->outermost[fold] ? folds_function(&calls->folds, fold) : UINT32_MAX;
}

/* Walks the tree depth first, and counts per function how often it is on the path. */
static int find_outermost(struct calltree *calls)
{
	size_t count = calls->folds.tree.len;
	uint32_t *on_path = calloc(profile_function_count(calls->profile) + 1, sizeof(*on_path));
	uint32_t *next = malloc((count + 1) * sizeof(*next));
	uint32_t at = 0;

	free(calls->outermost);
	calls->outermost = calloc(count + 1, sizeof(*calls->outermost));
	if (!on_path || !next || !calls->outermost) {
		free(on_path);
		free(next);
		return -1;
	}
	memcpy(next, calls->child_start, (count + 1) * sizeof(*next));
	for (;;) {
		if (next[at] < calls->child_start[at + 1]) {
			at = calls->children[next[at]++];
			calls->outermost[at] = !on_path[folds_function(&calls->folds, at)]++;
		} else if (at) {
			on_path[folds_function(&calls->folds, at)]--;
			at = parent_of(calls, at);
		} else {
			break;
		}
	}
	free(on_path);
	free(next);
	return 0;
}

static int fold_some(struct calltree *calls)
{
	return folds_go_on(&calls->folds, FOLDED_AT_ONCE, NULL);
}

static int take_weights(struct calltree *calls)
{
	calls->weights = calloc(calls->folds.tree.len * calls->events + 1, sizeof(*calls->weights));
	return calls->weights ? 1 : -1;
}

static int list_children(struct calltree *calls)
{
	size_t count = calls->folds.tree.len;

	return make_lists(&calls->children, &calls->child_start, count, count, parent_of, calls)
		       ? -1
		       : 1;
}

static int mark_outermost(struct calltree *calls)
{
	return find_outermost(calls) ? -1 : 1;
}

static int list_functions(struct calltree *calls)
{
	return make_lists(&calls->of_function, &calls->function_start,
			  profile_function_count(calls->profile), calls->folds.tree.len,
			  outermost_function, calls)
		       ? -1
		       : 1;
}

/* Each is done when it returns 1, is called again after 0, and fails by lack of memory alone. */
static int (*const steps[])(struct calltree *calls) = {
	fold_some, take_weights, list_children, mark_outermost, list_functions,
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

int calltree_init(struct calltree *calls, const struct profile *profile, struct err *err)
{
	*calls = (struct calltree){.profile = profile, .events = profile_event_count(profile)};
	return folds_begin(&calls->folds, profile, false, err);
}

int calltree_prepare(struct calltree *calls, uint64_t until_ns, struct err *err)
{
	while (calls->step < STEPS) {
		int rc = steps[calls->step](calls);

		if (rc < 0)
			return err_nomem(err);
		calls->step += rc == 1;
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

void calltree_fini(struct calltree *calls)
{
	forget_branches(calls);
	vec_fini(&calls->branches);
	vec_fini(&calls->places);
	free(calls->weights);
	free(calls->outermost);
	free(calls->children);
	free(calls->child_start);
	free(calls->of_function);
	free(calls->function_start);
	folds_fini(&calls->folds);
}

int calltree_weigh(struct calltree *calls, const struct view_filter *filter, struct err *err)
{
	size_t folds = calls->folds.tree.len, cells = profile_cell_count(calls->profile);
	struct view_matcher *matcher;
	int rc = view_matcher_new(&matcher, calls->profile, filter, err);

	if (rc)
		return rc;
	forget_branches(calls);
	memset(calls->weights, 0, folds * calls->events * sizeof(*calls->weights));
	for (size_t i = 0; i < cells; i++) {
		const struct profile_cell *cell = profile_cell(calls->profile, i);
		uint32_t fold = calls->folds.of_stack[cell->stack];
		struct calltree_weight *weight =
			&calls->weights[fold * calls->events + cell->event];

		if (!view_matches(matcher, cell->thread, cell->stack))
			continue;
		weight->self += cell->period;
		weight->self_samples += cell->samples;
	}
	view_matcher_free(matcher);
	/* Parents have lower numbers than their children. */
	for (size_t fold = folds; fold-- > 0;) {
		size_t parent = parent_of(calls, (uint32_t)fold);

		for (size_t e = 0; e < calls->events; e++) {
			struct calltree_weight *weight = &calls->weights[fold * calls->events + e];
			struct calltree_weight *up = &calls->weights[parent * calls->events + e];

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
	for (uint32_t i = calls->function_start[function];
	     !rc && i < calls->function_start[function + 1]; i++) {
		uint32_t fold = calls->of_function[i];

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
		for (uint32_t c = calls->child_start[place->at];
		     !rc && c < calls->child_start[place->at + 1]; c++)
			rc = add_neighbour(calls, list, calls->children[c], calls->children[c],
					   err);
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
