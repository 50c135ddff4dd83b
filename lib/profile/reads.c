#include "profile/reads.h"

/* Counters have at most 48 bits of hardware, and samples come before they are full. */
#define COUNT_MAX (1ull << 48)
#define SCALE_MAX 65536 /* a group that ran less of the time did as good as not run */

struct stream {
	uint64_t id;
	uint64_t tid; /* 0 where all threads share the counter */
	uint64_t value, life;
	uint64_t enabled, running;
};

void reads_init(struct reads *reads)
{
	*reads = (struct reads){0};
	keyed_init(&reads->streams, sizeof(struct stream), 2 * sizeof(uint64_t));
}

void reads_fini(struct reads *reads)
{
	keyed_fini(&reads->streams);
	map_fini(&reads->lives);
}

bool reads_exit(struct reads *reads, uint32_t tid)
{
	uint64_t *life;

	if (!reads->streams.count)
		return true;
	life = map_put(&reads->lives, tid, NULL);
	if (!life)
		return false;
	++*life;
	return true;
}

static struct stream *find_stream(struct reads *reads, uint64_t id, uint32_t tid, bool by_thread)
{
	const uint64_t key[] = {id, by_thread ? tid : 0};
	const uint64_t *life = by_thread ? map_get(&reads->lives, tid) : NULL;
	uint32_t at = keyed_add(&reads->streams, key, NULL);
	struct stream *stream;

	if (at == KEYED_NONE)
		return NULL;
	stream = keyed_at(&reads->streams, at);
	if (life && stream->life != *life)
		*stream = (struct stream){.id = key[0], .tid = key[1], .life = *life};
	return stream;
}

static bool goes_forward(uint64_t now, uint64_t before)
{
	return now >= before && now - before < COUNT_MAX;
}

/* Scales up by enabled / running, where the group had to share its counters. */
static uint64_t scale(uint64_t count, const struct read_counts *out)
{
	if (out->enabled == out->running)
		return count;
	return (uint64_t)((double)count * ((double)out->enabled / (double)out->running) + 0.5);
}

enum read_fate reads_take(struct reads *reads, const struct record_sample *sample,
			  const struct perf_event_attr *attr, struct read_counts *out)
{
	bool by_thread = attr->inherit && !reads->by_cpu;
	enum read_fate fate = READ_GOOD;
	struct record_read read;
	uint64_t value, id;

	out->count = 0;
	out->enabled = out->running = out->ran = 0;
	if (!record_decode_read(sample, attr, &read))
		return READ_NONE;
	while (read.count && record_next_value(&read, &value, &id)) {
		struct stream *stream = find_stream(reads, id ? id : sample->id.id, sample->id.tid,
						    by_thread);

		if (!stream)
			return READ_NOMEM;
		if (!goes_forward(value, stream->value) || read.time_enabled < stream->enabled ||
		    read.time_running < stream->running)
			fate = READ_BACKWARDS;
		/* All events of a group have the times of the leader, which comes first. */
		if (!out->count) {
			out->enabled = read.time_enabled - stream->enabled;
			out->running = read.time_running - stream->running;
		}
		if (out->count < READ_VALUES_MAX) {
			out->values[out->count].id = stream->id;
			out->values[out->count++].count = value - stream->value;
		}
		stream->value = value;
		stream->enabled = read.time_enabled;
		stream->running = read.time_running;
	}
	if (read.rest.bad || read.count || !out->count)
		return READ_NONE;
	if (fate != READ_GOOD)
		return fate;
	out->ran = out->running;
	if (by_thread || reads->unscaled || !(attr->read_format & PERF_FORMAT_TOTAL_TIME_RUNNING) ||
	    !(attr->read_format & PERF_FORMAT_TOTAL_TIME_ENABLED))
		out->enabled = out->running = 0;
	else if (out->enabled / SCALE_MAX >= out->running && out->enabled)
		return READ_IDLE;
	for (unsigned int i = 0; i < out->count; i++)
		out->values[i].count = scale(out->values[i].count, out);
	return READ_GOOD;
}
