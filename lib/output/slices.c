#include "output/slices.h"

#include "base/map.h"
#include "base/vec.h"

#include <stdlib.h>

#define WIDTH_MIN (1u << 20) /* ns: about a millisecond */
#define SLICE_BITS 10	     /* at most 1,024 slices */
#define ROWS_MAX 500000	     /* from here on slices become wider, while that makes fewer rows */

/*
 * When time passes the last slice, or the rows become too many, slices are joined in pairs. A row's
 * key is (slice, event, thread and stack), of which the last two are numbered first so that all fit
 * a word.
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

struct slices *slices_new(void)
{
	struct slices *slices = calloc(1, sizeof(*slices));

	if (slices) {
		slices->width = WIDTH_MIN;
		slices->rows_max = ROWS_MAX;
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
	slices->count = (slices->count + 1) / 2;
	return rc;
}

int slices_keep(const struct profile_sample *sample, void *ctx, struct err *err)
{
	struct slices *slices = ctx;
	struct slice_row row = {.thread = sample->thread,
				.stack = sample->stack,
				.event = sample->event,
				.samples = 1,
				.period = sample->period};
	uint64_t since;
	int rc = 0;

	if (!slices->count)
		slices->start = sample->time;
	since = sample->time > slices->start ? sample->time - slices->start : 0;
	while (since / slices->width >> SLICE_BITS && !rc)
		rc = join_pairs(slices, err);
	row.slice = (uint32_t)(since / slices->width);
	if (row.slice >= slices->count)
		slices->count = row.slice + 1;
	if (!rc)
		rc = add(slices, &row, err);
	if (!rc && slices->rows.len > slices->rows_max && slices->count > 1) {
		size_t before = slices->rows.len;

		rc = join_pairs(slices, err);
		if (slices->rows.len > before / 4 * 3)
			slices->rows_max *= 2;
	}
	return rc;
}

size_t slices_row_count(const struct slices *slices)
{
	return slices->rows.len;
}

const struct slice_row *slices_row(const struct slices *slices, size_t row)
{
	return &slices->rows.items[row];
}

uint64_t slices_start(const struct slices *slices)
{
	return slices->start;
}

uint64_t slices_width(const struct slices *slices)
{
	return slices->width;
}

uint32_t slices_count(const struct slices *slices)
{
	return slices->count;
}
