#include "profile/group.h"

#include "base/intern.h"
#include "base/vec.h"
#include "profile/match.h"
#include "profile/origin.h"

#include <stdlib.h>
#include <string.h>

/*
 * A group's keys are those of the thread and those of the function. Each thread and each function
 * is given the number of its part first, so that a stack is walked with array look-ups alone; only
 * the pair of parts is hashed, once per distinct part of a stack.
 */

static const struct {
	const char *name;
	bool of_thread;
} keys_known[] = {
	[VIEW_COMM] = {"comm", true},	   [VIEW_PID] = {"pid", true},
	[VIEW_TID] = {"tid", true},	   [VIEW_DSO] = {"dso", false},
	[VIEW_FILE] = {"file", false},	   [VIEW_KIND] = {"kind", false},
	[VIEW_ORIGIN] = {"origin", false}, [VIEW_FUNCTION] = {"function", false},
};

const char *view_key_name(enum view_key key)
{
	return keys_known[key].name;
}

int view_key_find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(keys_known) / sizeof(keys_known[0]); i++)
		if (strlen(keys_known[i].name) == len && memcmp(keys_known[i].name, name, len) == 0)
			return (int)i;
	return -1;
}

struct grouping {
	const struct profile *profile;
	struct view_groups *groups;
	struct intern parts; /* tuples of values */
	struct intern pairs; /* of a thread's part and a function's part; id - 1 is the row */
	uint32_t *of_thread, *of_function, no_function;
	uint64_t *seen; /* per part: the last cell, plus 1, whose stack it was on */
	struct {
		VEC_OF(struct view_count)
	} counts;   /* row after row, one per event */
	bool walks; /* some key is of the function: totals differ from self */
};

static uint32_t thread_value(const struct profile_thread *thread, enum view_key key)
{
	return key == VIEW_COMM ? thread->comm : key == VIEW_PID ? thread->pid : thread->tid;
}

static uint32_t function_value(const struct profile *profile, uint32_t id, enum view_key key)
{
	const struct profile_function *function;

	if (id == VIEW_GROUP_NONE)
		return VIEW_GROUP_NONE;
	function = profile_function(profile, id);
	if (key == VIEW_KIND)
		return function->kind;
	if (key == VIEW_ORIGIN)
		return code_origin(profile, id);
	if (key == VIEW_FUNCTION)
		return id;
	if (key == VIEW_DSO && function->kind == FRAME_PYTHON)
		return VIEW_GROUP_PYTHON;
	return function->file;
}

/* The part of a thread, or of a function where `thread` is NULL: values of the other's keys are 0.
 */
static uint32_t part_of(struct grouping *g, const struct profile_thread *thread, uint32_t function)
{
	uint32_t values[VIEW_KEYS_MAX] = {0};

	for (size_t k = 0; k < g->groups->key_count; k++) {
		enum view_key key = g->groups->keys[k];

		if (keys_known[key].of_thread != !!thread)
			continue;
		values[k] = thread ? thread_value(thread, key)
				   : function_value(g->profile, function, key);
	}
	return intern_add(&g->parts, values, sizeof(values));
}

static int make_parts(struct grouping *g, struct err *err)
{
	uint32_t threads = (uint32_t)profile_thread_count(g->profile);
	uint32_t functions = (uint32_t)profile_function_count(g->profile);
	bool failed = false;

	g->of_thread = calloc(threads + 1u, sizeof(*g->of_thread));
	g->of_function = calloc(functions + 1u, sizeof(*g->of_function));
	if (!g->of_thread || !g->of_function)
		return err_nomem(err);
	for (uint32_t i = 0; i < threads; i++) {
		g->of_thread[i] = part_of(g, profile_thread(g->profile, i), 0);
		failed |= g->of_thread[i] == INTERN_NONE;
	}
	for (uint32_t i = 0; i < functions; i++) {
		g->of_function[i] = part_of(g, NULL, i);
		failed |= g->of_function[i] == INTERN_NONE;
	}
	g->no_function = part_of(g, NULL, VIEW_GROUP_NONE);
	failed |= g->no_function == INTERN_NONE;
	g->seen = failed ? NULL : calloc(g->parts.count + 1u, sizeof(*g->seen));
	return g->seen ? 0 : err_nomem(err);
}

/* The counts of a row; NULL when memory ran out. */
static struct view_count *counts_of(struct grouping *g, uint32_t thread_part,
				    uint32_t function_part, uint32_t event)
{
	uint32_t pair[2] = {thread_part, function_part};
	size_t events = g->groups->view.events;
	uint32_t id = intern_add(&g->pairs, pair, sizeof(pair));

	if (id == INTERN_NONE)
		return NULL;
	while (g->counts.len < (size_t)id * events)
		if (!vec_push(&g->counts))
			return NULL;
	return &g->counts.items[(size_t)(id - 1) * events + event];
}

static int add_total(struct grouping *g, const struct profile_cell *cell, uint32_t part)
{
	struct view_count *count = counts_of(g, g->of_thread[cell->thread], part, cell->event);

	if (!count)
		return -1;
	count->total += cell->period;
	count->total_samples += cell->samples;
	count->total_square += cell->square;
	return 0;
}

static uint32_t part_of_stack(const struct grouping *g, uint32_t stack)
{
	if (!stack)
		return g->no_function;
	return g->of_function[profile_frame(g->profile, profile_stack(g->profile, stack)->frame)
				      ->function];
}

static int add_cell(struct grouping *g, size_t index, struct err *err)
{
	const struct profile_cell *cell = profile_cell(g->profile, index);
	uint32_t stack = cell->stack, part = part_of_stack(g, stack);
	struct view_count *count = counts_of(g, g->of_thread[cell->thread], part, cell->event);

	if (!count)
		return err_nomem(err);
	count->self += cell->period;
	count->self_samples += cell->samples;
	count->self_square += cell->square;
	do {
		part = part_of_stack(g, stack);
		if (g->seen[part] != index + 1 && add_total(g, cell, part))
			return err_nomem(err);
		g->seen[part] = index + 1;
		stack = stack ? profile_stack(g->profile, stack)->parent : 0;
	} while (stack && g->walks);
	g->groups->view.period_total[cell->event] += cell->period;
	g->groups->view.samples[cell->event] += cell->samples;
	g->groups->view.square_total[cell->event] += cell->square;
	return 0;
}

struct order {
	const struct view_groups *groups;
	enum view_sort sort;
	uint32_t event;
};

/* Under origins the rows of each lie together, the user's own first. */
static int by_origin(const struct view_row *a, const struct view_row *b, const struct order *order)
{
	uint32_t x, y;

	if (order->groups->keys[0] != VIEW_ORIGIN || order->groups->key_count == 1)
		return 0;
	x = view_group_value(order->groups, a, 0);
	y = view_group_value(order->groups, b, 0);
	return (x > y) - (x < y);
}

static int by_count(const void *a, const void *b, void *ctx)
{
	const struct view_row *x = a, *y = b;
	const struct order *order = ctx;
	const struct view_count *cx = &x->counts[order->event], *cy = &y->counts[order->event];
	uint64_t kx = order->sort == VIEW_BY_SELF ? cx->self : cx->total;
	uint64_t ky = order->sort == VIEW_BY_SELF ? cy->self : cy->total;
	int rc = by_origin(x, y, order);

	if (rc)
		return rc;
	if (kx != ky)
		return kx < ky ? 1 : -1;
	if (cx->total != cy->total)
		return cx->total < cy->total ? 1 : -1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* Turns the pairs into rows, their values and counts. */
static int make_rows(struct grouping *g, struct order order, struct err *err)
{
	struct view_groups *groups = g->groups;
	struct view *view = &groups->view;
	size_t n = g->counts.len / view->events;

	view->rows = calloc(n + 1, sizeof(*view->rows));
	groups->values = calloc(n * groups->key_count + 1, sizeof(*groups->values));
	if (!view->rows || !groups->values)
		return err_nomem(err);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t *pair = (const void *)intern_text(&g->pairs, i + 1, NULL);
		const uint32_t *thread = (const void *)intern_text(&g->parts, pair[0], NULL);
		const uint32_t *function = (const void *)intern_text(&g->parts, pair[1], NULL);

		for (size_t k = 0; k < groups->key_count; k++)
			groups->values[i * groups->key_count + k] =
				keys_known[groups->keys[k]].of_thread ? thread[k] : function[k];
		view->rows[i].function = i;
		view->rows[i].counts = &g->counts.items[i * view->events];
	}
	view->count = n;
	qsort_r(view->rows, n, sizeof(*view->rows), by_count, &order);
	groups->counts = g->counts.items;
	memset(&g->counts, 0, sizeof(g->counts));
	return 0;
}

static int group_cells(struct grouping *g, const struct view_filter *filter, struct err *err)
{
	struct view_matcher *matcher;
	int rc = view_matcher_new(&matcher, g->profile, filter, err);

	for (size_t i = 0; i < profile_cell_count(g->profile) && !rc; i++) {
		const struct profile_cell *cell = profile_cell(g->profile, i);

		if (profile_event(g->profile, cell->event)->sampled &&
		    view_matches(matcher, cell->thread, cell->stack))
			rc = add_cell(g, i, err);
	}
	view_matcher_free(matcher);
	return rc;
}

int view_groups(struct view_groups **out, const struct profile *profile,
		const struct view_filter *filter, const enum view_key *keys, size_t key_count,
		enum view_sort sort, uint32_t sort_event, struct err *err)
{
	struct grouping g = {.profile = profile};
	struct view_groups *groups = calloc(1, sizeof(*groups));
	size_t events = profile_event_count(profile);
	int rc = 0;

	*out = NULL;
	if (!groups)
		return err_nomem(err);
	g.groups = groups;
	intern_init(&g.parts);
	intern_init(&g.pairs);
	groups->key_count = key_count < VIEW_KEYS_MAX ? key_count : VIEW_KEYS_MAX;
	for (size_t k = 0; k < groups->key_count; k++) {
		groups->keys[k] = keys[k];
		g.walks |= !keys_known[keys[k]].of_thread;
	}
	groups->view.events = events;
	groups->view.period_total = calloc(events + 1, sizeof(uint64_t));
	groups->view.samples = calloc(events + 1, sizeof(uint64_t));
	groups->view.square_total = calloc(events + 1, sizeof(double));
	if (!groups->view.period_total || !groups->view.samples || !groups->view.square_total)
		rc = err_nomem(err);
	if (!rc)
		rc = make_parts(&g, err);
	if (!rc)
		rc = group_cells(&g, filter, err);
	if (!rc && events)
		rc = make_rows(&g, (struct order){groups, sort, sort_event}, err);
	vec_fini(&g.counts);
	intern_fini(&g.parts);
	intern_fini(&g.pairs);
	free(g.of_thread);
	free(g.of_function);
	free(g.seen);
	if (rc)
		view_groups_free(groups);
	else
		*out = groups;
	return rc;
}

void view_groups_free(struct view_groups *groups)
{
	if (!groups)
		return;
	free(groups->view.rows);
	free(groups->view.period_total);
	free(groups->view.samples);
	free(groups->view.square_total);
	free(groups->values);
	free(groups->counts);
	free(groups);
}

uint32_t view_group_value(const struct view_groups *groups, const struct view_row *row, size_t key)
{
	return groups->values[row->function * groups->key_count + key];
}
