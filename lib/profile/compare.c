#include "profile/compare.h"

#include "base/intern.h"
#include "base/map.h"
#include "base/strbuf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Exact up to so many samples of a row; the normal distribution is as good beyond. */
#define EXACT_MAX 2000

struct keys {
	struct intern intern;
	struct map rows; /* of a key: index into compare->rows */
	struct strbuf text;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* By the whole path, or by the file's own name. INTERN_NONE when memory ran out. */
static uint32_t key_of(struct keys *keys, const struct profile *profile, uint32_t function,
		       uint32_t line, bool whole)
{
	const struct profile_function *f = profile_function(profile, function);
	const char *file = profile_text(profile, f->file);
	uint32_t parts[] = {f->kind, whole, line ? line - f->line + 1 : 0};

	strbuf_reset(&keys->text);
	strbuf_add(&keys->text, parts, sizeof(parts));
	strbuf_str(&keys->text, profile_text(profile, f->qualname ? f->qualname : f->name));
	strbuf_char(&keys->text, '\0');
	strbuf_str(&keys->text, whole ? file : base_name(file));
	return strbuf_failed(&keys->text)
		       ? INTERN_NONE
		       : intern_add(&keys->intern, keys->text.buf, keys->text.len);
}

static int add_row(struct compare *compare, struct keys *keys, const struct compare_side *side,
		   int which, const struct view_row *in, bool self, struct err *err)
{
	const struct view_count *count = &in->counts[side->event];
	uint32_t key = key_of(keys, side->profile, in->function, in->line, true);
	uint64_t *slot = key == INTERN_NONE ? NULL : map_put(&keys->rows, key, NULL);
	double period = (double)(self ? count->self : count->total);
	struct compare_row *row;

	if (!slot)
		return err_nomem(err);
	if (!*slot) {
		row = vec_push(&compare->rows);
		if (!row)
			return err_nomem(err);
		row->function[0] = row->function[1] = UINT32_MAX;
		*slot = compare->rows.len;
	}
	row = &compare->rows.items[*slot - 1];
	/* Several of one key are one row, called by the largest. */
	if (row->function[which] == UINT32_MAX || period > row->period[which]) {
		row->function[which] = in->function;
		row->line[which] = in->line;
	}
	row->period[which] += period;
	row->square[which] += self ? count->self_square : count->total_square;
	row->samples[which] += self ? count->self_samples : count->total_samples;
	return 0;
}

static int add_side(struct compare *compare, struct keys *keys, const struct compare_side *side,
		    int which, bool lines, enum view_sort by, struct err *err)
{
	bool self = lines || by == VIEW_BY_SELF;
	struct view *view = NULL;
	int rc = lines ? view_lines(&view, side->profile, side->filter, UINT32_MAX, side->event,
				    err)
		       : view_functions(&view, side->profile, side->filter, by, side->event, err);

	for (size_t i = 0; !rc && i < view->count; i++) {
		const struct view_count *count = &view->rows[i].counts[side->event];

		if (self ? count->self_samples : count->total_samples)
			rc = add_row(compare, keys, side, which, &view->rows[i], self, err);
	}
	if (!rc) {
		compare->samples[which] = view->samples[side->event];
		compare->total[which] = (double)view->period_total[side->event];
		compare->square[which] = view->square_total[side->event];
	}
	view_free(view);
	return rc;
}

/* Of rows that one side has alone: who has this file name there, and how many do. */
struct candidate {
	size_t row[2], count[2];
};

static void join(struct compare_row *to, struct compare_row *from, int which)
{
	to->function[which] = from->function[which];
	to->line[which] = from->line[which];
	to->period[which] = from->period[which];
	to->square[which] = from->square[which];
	to->samples[which] = from->samples[which];
	*from = (struct compare_row){.function = {UINT32_MAX, UINT32_MAX}};
}

/* The same file in another folder. */
static int join_by_name(struct compare *compare, struct keys *keys,
			const struct compare_side sides[2], struct err *err)
{
	struct {
		VEC_OF(struct candidate)
	} list = {0};
	int rc = 0;

	for (size_t i = 0; i < compare->rows.len && !rc; i++) {
		const struct compare_row *row = &compare->rows.items[i];
		int which = row->function[0] == UINT32_MAX;
		struct candidate *candidate;
		uint64_t *slot;
		uint32_t key;

		if (row->function[!which] != UINT32_MAX)
			continue;
		key = key_of(keys, sides[which].profile, row->function[which], row->line[which],
			     false);
		slot = key == INTERN_NONE ? NULL : map_put(&keys->rows, key, NULL);
		if (slot && !*slot) {
			candidate = vec_push(&list);
			*slot = candidate ? list.len : 0;
		}
		if (!slot || !*slot) {
			rc = err_nomem(err);
			break;
		}
		candidate = &list.items[*slot - 1];
		candidate->row[which] = i;
		candidate->count[which]++;
	}
	for (size_t i = 0; i < list.len && !rc; i++) {
		const struct candidate *c = &list.items[i];

		if (c->count[0] == 1 && c->count[1] == 1)
			join(&compare->rows.items[c->row[0]], &compare->rows.items[c->row[1]], 1);
	}
	vec_fini(&list);
	return rc;
}

static double log_choose(double n, double k)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* Fisher's exact test: of all ways to spread `hits` over the samples of both sides, the share of
 * those that are not likelier than the one that is seen. */
static double exact_chance(uint64_t seen, uint64_t hits, uint64_t n0, uint64_t n1)
{
	uint64_t from = hits > n1 ? hits - n1 : 0, to = hits < n0 ? hits : n0;
	double all = log_choose((double)(n0 + n1), (double)hits), sum = 0;
	double limit = log_choose((double)n0, (double)seen) +
		       log_choose((double)n1, (double)(hits - seen)) + 1e-7;

	for (uint64_t k = from; k <= to; k++) {
		double term = log_choose((double)n0, (double)k) +
			      log_choose((double)n1, (double)(hits - k));

		if (term <= limit)
			sum += exp(term - all);
	}
	return sum < 1 ? sum : 1;
}

/* Of a share of weighted samples: those within and those without it vary. */
static double variance(const struct compare *compare, const struct compare_row *row, int which)
{
	double p = row->share[which], total = compare->total[which];

	return total > 0 ? ((1 - 2 * p) * row->square[which] + p * p * compare->square[which]) /
				   (total * total)
			 : 0;
}

/* The larger one of what the counts of samples say and what their weights say. */
static double chance_of(const struct compare *compare, const struct compare_row *row)
{
	uint64_t hits = row->samples[0] + row->samples[1];
	double spread = sqrt(variance(compare, row, 0) + variance(compare, row, 1));
	double change = fabs(row->share[1] - row->share[0]), chance = 0, exact;

	if (!compare->samples[0] || !compare->samples[1])
		return 1;
	if (spread > 0)
		chance = erfc(change / spread / M_SQRT2);
	else if (change == 0)
		chance = 1;
	if (hits > EXACT_MAX)
		return chance;
	exact = exact_chance(row->samples[0], hits, compare->samples[0], compare->samples[1]);
	return exact > chance ? exact : chance;
}

static int by_change(const void *a, const void *b)
{
	const struct compare_row *one = a, *two = b;
	double x = fabs(one->share[1] - one->share[0]), y = fabs(two->share[1] - two->share[0]);

	if (x != y)
		return x < y ? 1 : -1;
	if (one->share[0] != two->share[0])
		return one->share[0] < two->share[0] ? 1 : -1;
	/* Any order that does not change from run to run. */
	for (int i = 0; i < 2; i++) {
		if (one->function[i] != two->function[i])
			return one->function[i] < two->function[i] ? -1 : 1;
		if (one->line[i] != two->line[i])
			return one->line[i] < two->line[i] ? -1 : 1;
	}
	return 0;
}

static int by_chance(const void *a, const void *b)
{
	const struct compare_row *const *one = a, *const *two = b;

	return (*one)->chance < (*two)->chance ? -1 : (*one)->chance > (*two)->chance;
}

/* Holm: the least likely must be as unlikely as if all had been asked at once, the next as if all
 * but one, until one is not. */
static int find_sure(struct compare *compare, struct err *err)
{
	size_t count = compare->rows.len;
	struct compare_row **order = malloc((count + 1) * sizeof(*order));

	if (!order)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		order[i] = &compare->rows.items[i];
		order[i]->chance = chance_of(compare, order[i]);
	}
	qsort(order, count, sizeof(*order), by_chance);
	for (size_t i = 0; i < count && order[i]->chance <= COMPARE_SURE / (double)(count - i); i++)
		order[i]->sure = true;
	free(order);
	return 0;
}

static void drop_joined(struct compare *compare)
{
	size_t kept = 0;

	for (size_t i = 0; i < compare->rows.len; i++) {
		const struct compare_row *row = &compare->rows.items[i];

		if (row->samples[0] || row->samples[1])
			compare->rows.items[kept++] = *row;
	}
	compare->rows.len = kept;
}

int compare_init(struct compare *compare, const struct compare_side sides[2], bool lines,
		 enum view_sort by, struct err *err)
{
	struct keys keys = {0};
	int rc = 0;

	*compare = (struct compare){0};
	intern_init(&keys.intern);
	for (int i = 0; i < 2 && !rc; i++)
		rc = add_side(compare, &keys, &sides[i], i, lines, by, err);
	if (!rc)
		rc = join_by_name(compare, &keys, sides, err);
	drop_joined(compare);
	for (size_t r = 0; r < compare->rows.len; r++) {
		struct compare_row *row = &compare->rows.items[r];

		for (int i = 0; i < 2; i++)
			if (compare->total[i] > 0)
				row->share[i] = row->period[i] / compare->total[i];
	}
	if (!rc)
		rc = find_sure(compare, err);
	if (compare->rows.len)
		qsort(compare->rows.items, compare->rows.len, sizeof(*compare->rows.items),
		      by_change);
	intern_fini(&keys.intern);
	map_fini(&keys.rows);
	strbuf_fini(&keys.text);
	return rc;
}

void compare_fini(struct compare *compare)
{
	vec_fini(&compare->rows);
}
