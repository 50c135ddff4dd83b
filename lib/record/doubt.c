#include "record/doubt.h"

/* Of an event that is closed, whose last samples may still be on their way. */
#define CLOSED UINT64_MAX
/* Threads that came and went: to forget them costs at most one sample that counts twice. */
#define SEEN_MAX 65536

void doubt_fini(struct doubt *doubt)
{
	map_fini(&doubt->opened);
	map_fini(&doubt->seen);
}

bool doubt_add(struct doubt *doubt, uint64_t id, size_t place)
{
	uint64_t *value = map_put(&doubt->opened, id, NULL);

	if (value)
		*value = place + 1;
	return value != NULL;
}

void doubt_close(struct doubt *doubt, uint64_t id)
{
	uint64_t *place = map_get(&doubt->opened, id);

	if (place)
		*place = CLOSED;
}

/* 0 for what was opened without a doubt, which is before everything else. */
static uint64_t place_of(const struct doubt *doubt, uint64_t id)
{
	const uint64_t *place = map_get(&doubt->opened, id);

	return place ? *place : 0;
}

bool doubt_keeps(struct doubt *doubt, uint32_t tid, uint32_t counter, uint64_t id,
		 size_t *redundant)
{
	uint64_t *seen, before, place, place_before;

	*redundant = DOUBT_NONE;
	if (!doubt->opened.count)
		return true;
	place = place_of(doubt, id);
	if (place == CLOSED)
		return false;
	if (doubt->seen.count >= SEEN_MAX)
		map_fini(&doubt->seen);
	seen = map_put(&doubt->seen, map_mix((uint64_t)counter << 32 | tid, 0), NULL);
	if (!seen)
		return true;
	before = *seen;
	*seen = id;
	if (!before || before == id)
		return true;
	place_before = place_of(doubt, before);
	/* Closed meanwhile, or the thread's id is another thread's by now. */
	if (place_before == CLOSED || place == place_before)
		return true;
	if (place < place_before) {
		doubt_close(doubt, before);
		*redundant = (size_t)place_before - 1;
	} else {
		doubt_close(doubt, id);
		*seen = before;
		*redundant = (size_t)place - 1;
	}
	return false;
}
