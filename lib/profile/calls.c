#include "profile/calls.h"

#include "profile/numbering.h"

#include <stdlib.h>
#include <string.h>

/*
 * A stack stands for the call that made its leaf's frame: for callees by the line of the frame
 * below it, for callers by its own line and that of the next Python frame below.
 */

struct sort_context {
	const struct profile *profile;
	uint32_t event;
};

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_name(const struct profile *profile, uint32_t a, uint32_t b)
{
	const struct profile_function *fa = profile_function(profile, a);
	const struct profile_function *fb = profile_function(profile, b);
	int rc = strcmp(profile_text(profile, fa->qualname), profile_text(profile, fb->qualname));

	if (rc == 0)
		rc = strcmp(profile_text(profile, fa->file), profile_text(profile, fb->file));
	return rc ? rc : order(a, b);
}

static int by_call(const void *a, const void *b, void *ctx)
{
	const struct view_call *ra = a, *rb = b;
	const struct sort_context *sort = ctx;
	int rc = order(ra->line, rb->line);

	if (rc == 0)
		rc = order(rb->counts[sort->event].total, ra->counts[sort->event].total);
	if (rc == 0 && ra->function != UINT32_MAX && rb->function != UINT32_MAX)
		rc = by_name(sort->profile, ra->function, rb->function);
	if (rc == 0)
		rc = order(ra->function, rb->function);
	return rc ? rc : order(ra->other_line, rb->other_line);
}

static int make_calls(struct view_call **rows, size_t *count, struct numbering *n,
		      const struct view_filter *filter, uint32_t sort_event, struct err *err)
{
	size_t events = profile_event_count(n->profile), at = 0;
	struct sort_context sort = {n->profile, sort_event};
	struct view_count *counts = numbering_tally(n, filter, NULL, err), *kept;

	*rows = NULL;
	if (!counts)
		return ERR_NOMEM;
	*rows = numbering_table(n, counts, sizeof(**rows), count, &kept);
	for (size_t i = 0; *rows && i < n->ids.len; i++) {
		const struct row_id *id = &n->ids.items[i];

		if (!numbering_any(counts + i * events, events))
			continue;
		memcpy(kept + at * events, counts + i * events, events * sizeof(*counts));
		(*rows)[at] = (struct view_call){
			.line = id->line,
			.function = id->function,
			.other_line = id->other,
			.counts = kept + at * events,
		};
		at++;
	}
	free(counts);
	if (!*rows)
		return err_nomem(err);
	if (sort_event < events)
		qsort_r(*rows, *count, sizeof(**rows), by_call, &sort);
	return 0;
}

int view_callees(struct view_call **rows, size_t *count, const struct profile *profile,
		 const struct view_filter *filter, uint32_t function, uint32_t sort_event,
		 struct err *err)
{
	struct numbering n;
	int rc = numbering_init(&n, profile);

	for (uint32_t i = 1; rc == 0 && i < profile_stack_count(profile); i++) {
		uint32_t parent = profile_stack(profile, i)->parent;
		uint32_t line, callee;

		if (!parent || numbering_leaf(profile, parent)->function != function)
			continue;
		line = numbering_leaf(profile, parent)->line;
		callee = numbering_leaf(profile, i)->function;
		n.total[i] = numbering_row(&n, numbering_key(line, callee),
					   (struct row_id){.function = callee, .line = line});
		rc = n.total[i] == ROW_NONE ? -1 : 0;
	}
	rc = rc ? err_nomem(err) : make_calls(rows, count, &n, filter, sort_event, err);
	numbering_fini(&n);
	return rc;
}

/* Numbers of the lines that call. */
struct sites {
	struct map numbers;
	uint32_t *python; /* by stack: the one that ends with the next Python frame; 0: none */
};

/* The number of the line that calls, by the frame; -1 when memory ran out. */
static int64_t site_number(struct sites *sites, uint32_t function, uint32_t line)
{
	bool added;
	uint64_t *number = map_put(&sites->numbers, numbering_key(function, line), &added);

	if (!number)
		return -1;
	if (added)
		*number = sites->numbers.count;
	return (int64_t)*number;
}

static int number_callers(struct numbering *n, struct sites *sites, uint32_t function)
{
	const struct profile *profile = n->profile;

	for (uint32_t i = 1; i < profile_stack_count(profile); i++) {
		const struct profile_frame *frame = numbering_leaf(profile, i);
		uint32_t below = sites->python[profile_stack(profile, i)->parent];
		struct row_id id = {.function = UINT32_MAX, .line = frame->line};
		int64_t site;

		sites->python[i] = numbering_python(profile, frame->function) ? i : below;
		if (frame->function != function)
			continue;
		if (below) {
			id.function = numbering_leaf(profile, below)->function;
			id.other = numbering_leaf(profile, below)->line;
		}
		site = site_number(sites, id.function, id.other);
		if (site < 0)
			return -1;
		n->total[i] = numbering_row(n, numbering_key(id.line, (uint32_t)site), id);
		if (n->total[i] == ROW_NONE)
			return -1;
	}
	return 0;
}

int view_callers(struct view_call **rows, size_t *count, const struct profile *profile,
		 const struct view_filter *filter, uint32_t function, uint32_t sort_event,
		 struct err *err)
{
	struct sites sites = {0};
	struct numbering n;
	int rc = numbering_init(&n, profile);

	sites.python = calloc(profile_stack_count(profile), sizeof(*sites.python));
	if (rc == 0 && sites.python)
		rc = number_callers(&n, &sites, function);
	rc = rc || !sites.python ? err_nomem(err)
				 : make_calls(rows, count, &n, filter, sort_event, err);
	free(sites.python);
	map_fini(&sites.numbers);
	numbering_fini(&n);
	return rc;
}

void view_calls_free(struct view_call *rows)
{
	free(rows);
}
