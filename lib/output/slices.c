#include "output/slices.h"

#include "base/map.h"
#include "base/vec.h"

#include <stdlib.h>

#define SLICES_MAX 1024u
#define SLICE_BITS 10

/*
 * When the rows become too many slices are joined in pairs. A row's key is (slice, event, thread
 * and stack), of which the last two are numbered first so that all fit a word.
 */
struct slices {
	struct {
		VEC_OF(struct slice_row)
	} rows;
	struct map pairs; /* thread and stack -> number */
	struct map known; /* key -> index of rows */
	uint64_t start, width;
	uint32_t count;
	size_t rows_max;
};

struct slices *slices_new(uint64_t start, uint64_t end, size_t rows_max)
{
	struct slices *slices = calloc(1, sizeof(*slices));

	if (slices) {
		slices->start = start;
		slices->width = end > start ? (end - start) / SLICES_MAX + 1 : 1;
		slices->count = end > start ? SLICES_MAX : 1;
		slices->rows_max = rows_max;
	}
	return slices;
}

void slices_free(struct slices *slices)
{
	if (!slices)
		return;
	vec_fini(&slices->rows);
	map_fini(&slices->pairs);
	map_fini(&slices->known);
	free(slices);
}

static int add(struct slices *slices, const struct slice_row *row, struct err *err)
{
	bool added;
	uint64_t *pair, *slot;
	struct slice_row *place;

	pair = map_put(&slices->pairs, (uint64_t)row->thread << 32 | row->stack, &added);
	if (!pair)
		return err_nomem(err);
	if (added)
		*pair = slices->pairs.count - 1;
	/* An event's number is small: perf itself ends at a few thousand. */
	slot = map_put(&slices->known,
		       (*pair << 16 | (row->event & 0xffff)) << SLICE_BITS | row->slice, &added);
	if (!slot)
		return err_nomem(err);
	if (added) {
		*slot = slices->rows.len;
		place = vec_push(&slices->rows);
		if (!place)
			return err_nomem(err);
		*place = *row;
		return 0;
	}
	place = &slices->rows.items[*slot];
	place->samples += row->samples;
	place->period += row->period;
	return 0;
}

static int join_pairs(struct slices *slices, struct err *err)
{
	size_t count = slices->rows.len;
	int rc = 0;

	map_fini(&slices->known);
	slices->rows.len = 0;
	/* Rows only move to the front: each is read before its place is taken. */
	for (size_t i = 0; i < count && !rc; i++) {
		struct slice_row row = slices->rows.items[i];

		row.slice /= 2;
		rc = add(slices, &row, err);
	}
	slices->width *= 2;
	slices->count /= 2;
	return rc;
}

int slices_add(struct slices *slices, uint64_t time, const struct slice_row *row, struct err *err)
{
	struct slice_row sample = *row;
	uint64_t slice = time > slices->start ? (time - slices->start) / slices->width : 0;
	int rc;

	sample.slice = slice < slices->count ? (uint32_t)slice : slices->count - 1;
	rc = add(slices, &sample, err);
	while (!rc && slices->rows.len > slices->rows_max && slices->count > 1)
		rc = join_pairs(slices, err);
	return rc;
}

static int by_row(const void *a, const void *b)
{
	const struct slice_row *ra = a, *rb = b;

	if (ra->slice != rb->slice)
		return ra->slice < rb->slice ? -1 : 1;
	if (ra->event != rb->event)
		return ra->event < rb->event ? -1 : 1;
	if (ra->thread != rb->thread)
		return ra->thread < rb->thread ? -1 : 1;
	return (ra->stack > rb->stack) - (ra->stack < rb->stack);
}

const struct slice_row *slices_sorted(struct slices *slices, size_t *count)
{
	*count = slices->rows.len;
	if (*count)
		qsort(slices->rows.items, *count, sizeof(struct slice_row), by_row);
	return slices->rows.items;
}

uint64_t slices_width(const struct slices *slices)
{
	return slices->width;
}

uint32_t slices_count(const struct slices *slices)
{
	return slices->count;
}
