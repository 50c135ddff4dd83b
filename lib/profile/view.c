#include "profile/view.h"

#include "base/map.h"
#include "base/vec.h"
#include "profile/tally.h"

#include <stdlib.h>
#include <string.h>

/* What a stack of the profile stands for in a view: rows by stack, made in one pass from the
 * root, and what a row is. */
struct row_id {
	uint32_t function, line;
	uint32_t frame;
};
struct numbering {
	const struct profile *profile;
	uint32_t *total, *self, *split; /* by stack */
	struct {
		VEC_OF(struct row_id)
	} ids;
	struct map by_key;
};

static int numbering_init(struct numbering *n, const struct profile *profile)
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

static void numbering_fini(struct numbering *n)
{
	free(n->total);
	free(n->self);
	free(n->split);
	vec_fini(&n->ids);
	map_fini(&n->by_key);
}

/* The row of (a, b), made with `id` when it is new; ROW_NONE when memory ran out. */
static uint32_t row_of(struct numbering *n, uint64_t key, struct row_id id)
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

static uint64_t key_of(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

static const struct profile_frame *leaf_of(const struct profile *profile, uint32_t stack)
{
	return profile_frame(profile, profile_stack(profile, stack)->frame);
}

static bool is_python(const struct profile *profile, uint32_t function)
{
	return profile_function(profile, function)->kind == FRAME_PYTHON;
}

/* Sums up and returns counts of all rows and events in one block, or NULL. */
static struct view_count *tally(struct numbering *n, const struct view_filter *filter,
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

static bool any_samples(const struct view_count *counts, size_t events)
{
	for (size_t i = 0; i < events; i++)
		if (counts[i].self_samples || counts[i].total_samples)
			return true;
	return false;
}

/*
 * A table and its counts are one block, so that sorting moves rows only and one free() ends both:
 * `row_size` bytes per row, then the counts of the rows that were kept.
 */
static void *table_new(const struct numbering *n, const struct view_count *counts, size_t row_size,
		       size_t *count, struct view_count **kept)
{
	size_t events = profile_event_count(n->profile), head;
	char *table;

	*count = 0;
	for (size_t i = 0; i < n->ids.len; i++)
		*count += any_samples(counts + i * events, events);
	head = (*count * row_size + 15) & ~(size_t)15;
	table = calloc(1, head + *count * events * sizeof(*counts) + 1);
	*kept = (struct view_count *)(void *)(table + head);
	return table;
}

struct sort_context {
	const struct profile *profile;
	uint32_t event;
};

static int order_by(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0; /* descending */
}

static int by_function_name(const struct profile *profile, uint32_t a, uint32_t b)
{
	const struct profile_function *fa = profile_function(profile, a);
	const struct profile_function *fb = profile_function(profile, b);
	int rc = strcmp(profile_text(profile, fa->qualname), profile_text(profile, fb->qualname));

	if (rc == 0)
		rc = strcmp(profile_text(profile, fa->file), profile_text(profile, fb->file));
	return rc ? rc : order_by(b, a);
}

static int by_name(const struct view_row *a, const struct view_row *b,
		   const struct profile *profile)
{
	int rc = by_function_name(profile, a->function, b->function);

	return rc ? rc : order_by(b->line, a->line);
}

static int by_self(const void *a, const void *b, void *ctx)
{
	const struct view_row *ra = a, *rb = b;
	const struct sort_context *sort = ctx;
	const struct view_count *ca = &ra->counts[sort->event], *cb = &rb->counts[sort->event];
	int rc = order_by(ca->self, cb->self);

	if (rc == 0)
		rc = order_by(ca->total, cb->total);
	return rc ? rc : by_name(ra, rb, sort->profile);
}

static int by_total(const void *a, const void *b, void *ctx)
{
	const struct view_row *ra = a, *rb = b;
	const struct sort_context *sort = ctx;
	const struct view_count *ca = &ra->counts[sort->event], *cb = &rb->counts[sort->event];
	int rc = order_by(ca->total, cb->total);

	if (rc == 0)
		rc = order_by(ca->self, cb->self);
	return rc ? rc : by_name(ra, rb, sort->profile);
}

static int by_line(const void *a, const void *b, void *ctx)
{
	const struct view_row *ra = a, *rb = b;

	return order_by(rb->line, ra->line);
}

static int make_view(struct view **out, struct numbering *n, const struct view_filter *filter,
		     int (*compare)(const void *, const void *, void *), uint32_t sort_event,
		     struct err *err)
{
	size_t events = profile_event_count(n->profile);
	struct sort_context sort = {n->profile, sort_event};
	struct view *view = calloc(1, sizeof(*view));
	struct view_count *counts = NULL, *kept;
	size_t at = 0, pairs = profile_pair_count(n->profile);

	if (!view)
		return err_nomem(err);
	view->events = events;
	view->period_total = calloc(events + 1, sizeof(uint64_t));
	view->samples = calloc(events + 1, sizeof(uint64_t));
	view->square_total = calloc(events + 1, sizeof(double));
	view->products = calloc(n->ids.len * pairs + 1, sizeof(*view->products));
	if (view->period_total && view->samples && view->square_total && view->products)
		counts = tally(n, filter, view, err);
	if (counts)
		view->rows = table_new(n, counts, sizeof(*view->rows), &view->count, &kept);
	if (!view->rows) {
		free(counts);
		view_free(view);
		return err_nomem(err);
	}
	for (size_t i = 0; i < n->ids.len; i++) {
		if (!any_samples(counts + i * events, events))
			continue;
		memcpy(kept + at * events, counts + i * events, events * sizeof(*counts));
		view->rows[at] = (struct view_row){
			.function = n->ids.items[i].function,
			.line = n->ids.items[i].line,
			.counts = kept + at * events,
			.products = view->products + i * pairs,
		};
		at++;
	}
	free(counts);
	if (sort_event < events)
		qsort_r(view->rows, view->count, sizeof(*view->rows), compare, &sort);
	*out = view;
	return 0;
}

void view_free(struct view *view)
{
	if (!view)
		return;
	free(view->rows);
	free(view->period_total);
	free(view->samples);
	free(view->square_total);
	free(view->products);
	free(view);
}

int view_functions(struct view **view, const struct profile *profile,
		   const struct view_filter *filter, enum view_sort sort, uint32_t sort_event,
		   struct err *err)
{
	struct numbering n;
	int rc = numbering_init(&n, profile);

	for (uint32_t i = 1; rc == 0 && i < profile_stack_count(profile); i++) {
		uint32_t function = leaf_of(profile, i)->function;
		uint32_t row = row_of(&n, function, (struct row_id){.function = function});

		n.self[i] = n.total[i] = row;
		n.split[i] = is_python(profile, function)
				     ? row
				     : n.split[profile_stack(profile, i)->parent];
		rc = row == ROW_NONE ? -1 : 0;
	}
	rc = rc < 0 ? err_nomem(err)
		    : make_view(view, &n, filter, sort == VIEW_BY_SELF ? by_self : by_total,
				sort_event, err);
	numbering_fini(&n);
	return rc;
}

int view_lines(struct view **view, const struct profile *profile, const struct view_filter *filter,
	       uint32_t function, uint32_t sort_event, struct err *err)
{
	struct numbering n;
	int rc = numbering_init(&n, profile);

	for (uint32_t i = 1; rc == 0 && i < profile_stack_count(profile); i++) {
		const struct profile_frame *frame = leaf_of(profile, i);

		if (!is_python(profile, frame->function)) {
			n.self[i] = n.split[i] = n.self[profile_stack(profile, i)->parent];
			continue;
		}
		if (function != UINT32_MAX && frame->function != function)
			continue;
		n.total[i] = row_of(
			&n, key_of(frame->function, frame->line),
			(struct row_id){.function = frame->function, .line = frame->line});
		n.self[i] = n.split[i] = n.total[i];
		rc = n.total[i] == ROW_NONE ? -1 : 0;
	}
	rc = rc < 0 ? err_nomem(err)
		    : make_view(view, &n, filter, function == UINT32_MAX ? by_self : by_line,
				sort_event, err);
	numbering_fini(&n);
	return rc;
}

static int by_address(const void *a, const void *b)
{
	const struct view_address *ra = a, *rb = b;

	return order_by(rb->addr, ra->addr);
}

int view_addresses(struct view_address **rows, size_t *count, const struct profile *profile,
		   const struct view_filter *filter, uint32_t function, struct err *err)
{
	size_t events = profile_event_count(profile), at = 0;
	struct view_count *counts = NULL, *kept;
	struct numbering n;
	int rc = numbering_init(&n, profile);

	*rows = NULL;
	for (uint32_t i = 1; rc == 0 && i < profile_stack_count(profile); i++) {
		const struct profile_frame *frame = leaf_of(profile, i);

		if (frame->function != function)
			continue;
		n.self[i] = row_of(&n, frame->addr,
				   (struct row_id){.frame = profile_stack(profile, i)->frame});
		rc = n.self[i] == ROW_NONE ? -1 : 0;
	}
	if (rc == 0)
		counts = tally(&n, filter, NULL, err);
	if (counts)
		*rows = table_new(&n, counts, sizeof(**rows), count, &kept);
	for (size_t i = 0; *rows && i < n.ids.len; i++) {
		if (!any_samples(counts + i * events, events))
			continue;
		memcpy(kept + at * events, counts + i * events, events * sizeof(*counts));
		(*rows)[at] = (struct view_address){
			.addr = profile_frame(profile, n.ids.items[i].frame)->addr,
			.frame = n.ids.items[i].frame,
			.counts = kept + at * events,
		};
		at++;
	}
	free(counts);
	numbering_fini(&n);
	if (!*rows)
		return err_nomem(err);
	qsort(*rows, *count, sizeof(**rows), by_address);
	return 0;
}

void view_addresses_free(struct view_address *rows, size_t count)
{
	free(rows);
}

static int by_callee(const void *a, const void *b, void *ctx)
{
	const struct view_callee *ra = a, *rb = b;
	const struct sort_context *sort = ctx;
	int rc = order_by(rb->line, ra->line);

	if (rc == 0)
		rc = order_by(ra->counts[sort->event].total, rb->counts[sort->event].total);
	return rc ? rc : by_function_name(sort->profile, ra->function, rb->function);
}

int view_callees(struct view_callee **rows, size_t *count, const struct profile *profile,
		 const struct view_filter *filter, uint32_t function, uint32_t sort_event,
		 struct err *err)
{
	size_t events = profile_event_count(profile), at = 0;
	struct sort_context sort = {profile, sort_event};
	struct view_count *counts = NULL, *kept;
	struct numbering n;
	int rc = numbering_init(&n, profile);

	*rows = NULL;
	for (uint32_t i = 1; rc == 0 && i < profile_stack_count(profile); i++) {
		uint32_t parent = profile_stack(profile, i)->parent;
		uint32_t line, callee;

		if (!parent || leaf_of(profile, parent)->function != function)
			continue;
		line = leaf_of(profile, parent)->line;
		callee = leaf_of(profile, i)->function;
		n.total[i] = row_of(&n, key_of(line, callee),
				    (struct row_id){.function = callee, .line = line});
		rc = n.total[i] == ROW_NONE ? -1 : 0;
	}
	if (rc == 0)
		counts = tally(&n, filter, NULL, err);
	if (counts)
		*rows = table_new(&n, counts, sizeof(**rows), count, &kept);
	for (size_t i = 0; *rows && i < n.ids.len; i++) {
		if (!any_samples(counts + i * events, events))
			continue;
		memcpy(kept + at * events, counts + i * events, events * sizeof(*counts));
		(*rows)[at] = (struct view_callee){
			.line = n.ids.items[i].line,
			.function = n.ids.items[i].function,
			.counts = kept + at * events,
		};
		at++;
	}
	free(counts);
	numbering_fini(&n);
	if (!*rows)
		return err_nomem(err);
	if (sort_event < events)
		qsort_r(*rows, *count, sizeof(**rows), by_callee, &sort);
	return 0;
}

void view_callees_free(struct view_callee *rows, size_t count)
{
	free(rows);
}
