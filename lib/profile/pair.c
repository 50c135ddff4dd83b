#include "profile/pair.h"

void pairing_fini(struct pairing *pairing)
{
	vec_fini(pairing);
}

static void give_up(struct pairing *pairing, struct pair_frames *waiting)
{
	if (waiting->payload)
		pairing->unpaired++;
	waiting->payload = NULL;
}

static struct pair_frames *slot_of(struct pairing *pairing, uint32_t cpu)
{
	cpu %= PAIR_CPUS_MAX;
	return cpu < pairing->len ? &pairing->items[cpu] : NULL;
}

bool pairing_frames(struct pairing *pairing, const struct pair_frames *frames)
{
	struct pair_frames *slot;

	while (pairing->len <= frames->cpu % PAIR_CPUS_MAX)
		if (!vec_push(pairing))
			return false;
	slot = slot_of(pairing, frames->cpu);
	give_up(pairing, slot);
	*slot = *frames;
	return true;
}

static bool near_in_time(uint64_t a, uint64_t b)
{
	return !a || !b || (a > b ? a - b : b - a) < PAIR_WINDOW_NS;
}

struct pair_frames pairing_sample(struct pairing *pairing, uint32_t cpu, uint32_t tid,
				  uint64_t time)
{
	struct pair_frames *slot = slot_of(pairing, cpu);
	struct pair_frames found = {0};

	if (!slot || !slot->payload)
		return found;
	if (slot->cpu == cpu && slot->tid == tid && near_in_time(slot->time, time)) {
		found = *slot;
		slot->payload = NULL;
	}
	give_up(pairing, slot);
	return found;
}

void pairing_lost(struct pairing *pairing, uint32_t cpu)
{
	struct pair_frames *slot = slot_of(pairing, cpu);

	if (cpu != UINT32_MAX) {
		if (slot)
			give_up(pairing, slot);
		return;
	}
	for (size_t i = 0; i < pairing->len; i++)
		give_up(pairing, &pairing->items[i]);
}

uint64_t pairing_expire(struct pairing *pairing, uint64_t time)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < pairing->len; i++) {
		struct pair_frames *slot = &pairing->items[i];

		if (slot->payload && slot->time < time && !near_in_time(slot->time, time))
			give_up(pairing, slot);
		if (slot->payload && slot->position < least)
			least = slot->position;
	}
	return least;
}
