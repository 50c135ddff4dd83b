#include "output/counters.h"

#include "base/map.h"

#include <stdlib.h>

#define SLICES_MAX 1000
#define SLICE_MIN 1000000u /* ns */
#define SAMPLES_A_SLICE 10
#define SUMS_MAX (4u << 20) /* of all counters together */

/* The counter's place in `known`; NULL when memory ran out. */
static uint64_t *place_of(struct map *known, const struct samples_walk *walk,
			  const struct sample *sample, bool *added)
{
	uint32_t pid = profile_thread(walk->profile, sample->thread)->pid;

	return map_put(known, (uint64_t)pid << 32 | sample->event, added);
}

static int add_row(struct counters *counters, const struct samples_walk *walk,
		   const struct sample *sample, uint64_t *slot, struct err *err)
{
	struct counter *row = vec_push(&counters->rows);

	if (!row)
		return err_nomem(err);
	*slot = counters->rows.len - 1;
	row->pid = profile_thread(walk->profile, sample->thread)->pid;
	row->event = sample->event;
	row->thread = sample->thread;
	return 0;
}

/* Finds the counters and how long all of it took; the number of samples. */
static int find_rows(struct counters *counters, struct map *known, struct samples_walk *walk,
		     uint64_t *count, uint64_t *span, struct err *err)
{
	uint64_t first = UINT64_MAX, last = 0;
	const struct sample *sample;
	int rc = 0;

	*count = 0;
	samples_walk_rewind(walk);
	for (; !rc && (sample = samples_walk_next(walk)); ++*count) {
		bool added;
		uint64_t *slot = place_of(known, walk, sample, &added);

		first = sample->time < first ? sample->time : first;
		last = sample->time > last ? sample->time : last;
		if (!slot)
			rc = err_nomem(err);
		else if (added)
			rc = add_row(counters, walk, sample, slot, err);
	}
	counters->start = *count ? first : 0;
	*span = *count ? last - first : 0;
	return rc;
}

int counters_init(struct counters *counters, struct samples_walk *walk, struct err *err)
{
	uint64_t count, span, slices;
	const struct sample *sample;
	struct map known = {0};
	int rc;

	*counters = (struct counters){0};
	rc = find_rows(counters, &known, walk, &count, &span, err);
	slices = count / SAMPLES_A_SLICE < SLICES_MAX ? count / SAMPLES_A_SLICE : SLICES_MAX;
	if (counters->rows.len && slices > SUMS_MAX / counters->rows.len)
		slices = SUMS_MAX / counters->rows.len;
	counters->slice = span / (slices ? slices : 1) + 1;
	if (counters->slice < SLICE_MIN)
		counters->slice = SLICE_MIN;
	counters->slices = count ? (size_t)(span / counters->slice + 1) : 0;
	for (size_t i = 0; i < counters->rows.len && !rc; i++) {
		struct counter *row = &counters->rows.items[i];

		row->sums = calloc(counters->slices, sizeof(*row->sums));
		if (!row->sums)
			rc = err_nomem(err);
	}
	samples_walk_rewind(walk);
	while (!rc && (sample = samples_walk_next(walk))) {
		uint64_t *slot = place_of(&known, walk, sample, NULL);
		uint64_t slice = (sample->time - counters->start) / counters->slice;

		counters->rows.items[*slot].sums[slice] += sample->period;
	}
	map_fini(&known);
	return rc;
}

void counters_fini(struct counters *counters)
{
	for (size_t i = 0; i < counters->rows.len; i++)
		free(counters->rows.items[i].sums);
	vec_fini(&counters->rows);
}
