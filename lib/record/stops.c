#include "record/stops.h"

void stops_fini(struct stops *stops)
{
	vec_fini(&stops->all);
	strbuf_fini(&stops->payloads);
	map_fini(&stops->of_thread);
	map_fini(&stops->last);
	*stops = (struct stops){0};
}

static bool append(struct stops *stops, uint32_t tid, uint64_t time, size_t offset, size_t len)
{
	uint64_t *first = map_put(&stops->of_thread, tid, NULL);
	uint64_t *last = map_put(&stops->last, tid, NULL);
	struct stop_of_thread *stop = first && last ? vec_push(&stops->all) : NULL;

	if (!stop)
		return false;
	*stop = (struct stop_of_thread){.time = time, .offset = offset, .len = len, .tid = tid};
	if (*last)
		stops->all.items[*last - 1].next = stops->all.len;
	else
		*first = stops->all.len;
	*last = stops->all.len;
	return true;
}

bool stops_add(struct stops *stops, uint32_t tid, uint64_t time, struct bytes payload)
{
	size_t offset = stops->payloads.len;

	strbuf_add(&stops->payloads, payload.at, bytes_left(&payload));
	return !strbuf_failed(&stops->payloads) &&
	       append(stops, tid, time, offset, bytes_left(&payload));
}

const struct stop_of_thread *stops_find(const struct stops *stops, uint32_t tid, uint64_t time)
{
	const uint64_t *first = map_get(&stops->of_thread, tid);
	size_t index = first ? *first : 0;

	while (index && stops->all.items[index - 1].time < time)
		index = stops->all.items[index - 1].next;
	return index ? &stops->all.items[index - 1] : NULL;
}

struct bytes stops_payload(const struct stops *stops, const struct stop_of_thread *stop)
{
	return bytes_of(strbuf_text(&stops->payloads) + stop->offset, stop->len);
}

void stops_forget(struct stops *stops, size_t count)
{
	struct stops kept = {0};

	for (size_t i = count; i < stops->all.len; i++) {
		const struct stop_of_thread *stop = &stops->all.items[i];
		/* Out of memory: its samples are taken for some that were not stopped. */
		if (!stops_add(&kept, stop->tid, stop->time, stops_payload(stops, stop)))
			break;
	}
	stops_fini(stops);
	*stops = kept;
}
