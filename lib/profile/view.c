#include "profile/view.h"

#include "base/partition.h"
#include "profile/numbering.h"

#include <stdlib.h>
#include <string.h>

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

static int make_view(struct view **out, const struct numbering *n, const struct view_filter *filter,
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
		counts = numbering_tally(n, filter, view, err);
	if (counts)
		view->rows = numbering_table(n, counts, sizeof(*view->rows), &view->count, &kept);
	if (!view->rows) {
		free(counts);
		view_free(view);
		return err_nomem(err);
	}
	for (size_t i = 0; i < n->ids.len; i++) {
		if (!numbering_any(counts + i * events, events))
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

struct view_basis {
	struct numbering n; /* a row's number is its function's */
};

static int number_functions(struct numbering *n)
{
	const struct profile *profile = n->profile;
	size_t functions = profile_function_count(profile);

	if (!vec_reserve(&n->ids, functions + 1))
		return -1;
	for (uint32_t i = 0; i < functions; i++)
		n->ids.items[n->ids.len++] = (struct row_id){.function = i};
	for (uint32_t i = 1; i < profile_stack_count(profile); i++) {
		uint32_t function = numbering_leaf(profile, i)->function;

		n->self[i] = n->total[i] = function;
		n->split[i] = numbering_python(profile, function)
				      ? function
				      : n->split[profile_stack(profile, i)->parent];
	}
	n->tree = calloc(1, sizeof(*n->tree));
	return n->tree ? tally_tree_init(n->tree, profile, n->total, (uint32_t)functions, NULL)
		       : -1;
}

int view_basis_new(struct view_basis **out, const struct profile *profile, struct err *err)
{
	struct view_basis *basis = calloc(1, sizeof(*basis));

	*out = NULL;
	if (!basis)
		return err_nomem(err);
	if (numbering_init(&basis->n, profile) || number_functions(&basis->n)) {
		view_basis_free(basis);
		return err_nomem(err);
	}
	*out = basis;
	return 0;
}

void view_basis_free(struct view_basis *basis)
{
	if (!basis)
		return;
	numbering_fini(&basis->n);
	free(basis);
}

int view_functions_of(struct view **view, const struct view_basis *basis,
		      const struct view_filter *filter, enum view_sort sort, uint32_t sort_event,
		      struct err *err)
{
	return make_view(view, &basis->n, filter, sort == VIEW_BY_SELF ? by_self : by_total,
			 sort_event, err);
}

int view_functions(struct view **view, const struct profile *profile,
		   const struct view_filter *filter, enum view_sort sort, uint32_t sort_event,
		   struct err *err)
{
	struct view_basis *basis;
	int rc = view_basis_new(&basis, profile, err);

	if (!rc)
		rc = view_functions_of(view, basis, filter, sort, sort_event, err);
	view_basis_free(basis);
	return rc;
}

int view_lines(struct view **view, const struct profile *profile, const struct view_filter *filter,
	       uint32_t function, uint32_t sort_event, struct err *err)
{
	struct numbering n;
	int rc = numbering_init(&n, profile);

	for (uint32_t i = 1; rc == 0 && i < profile_stack_count(profile); i++) {
		const struct profile_frame *frame = numbering_leaf(profile, i);

		if (!numbering_python(profile, frame->function)) {
			n.self[i] = n.split[i] = n.self[profile_stack(profile, i)->parent];
			continue;
		}
		if (function != UINT32_MAX && frame->function != function)
			continue;
		n.total[i] = numbering_row(
			&n, numbering_key(frame->function, frame->line),
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

const struct view_row *view_line(const struct view *lines, uint32_t line)
{
	size_t at = partition_point(lines->rows, lines->count, row, row->line < line);

	return at < lines->count && lines->rows[at].line == line ? &lines->rows[at] : NULL;
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
		const struct profile_frame *frame = numbering_leaf(profile, i);

		if (frame->function != function)
			continue;
		n.self[i] = numbering_row(
			&n, frame->addr,
			(struct row_id){.frame = profile_stack(profile, i)->frame});
		rc = n.self[i] == ROW_NONE ? -1 : 0;
	}
	if (rc == 0)
		counts = numbering_tally(&n, filter, NULL, err);
	if (counts)
		*rows = numbering_table(&n, counts, sizeof(**rows), count, &kept);
	for (size_t i = 0; *rows && i < n.ids.len; i++) {
		if (!numbering_any(counts + i * events, events))
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
