#include "record/sums.h"

#include <string.h>

#define GROUP_MAX 64

enum { ENABLED, RUNNING, TIMES }; /* before the counts */

void sums_fini(struct sums *sums)
{
	map_fini(&sums->streams);
	map_fini(&sums->by_file_id);
	map_fini(&sums->forked);
	vec_fini(&sums->all);
	vec_fini(&sums->values);
	strbuf_fini(&sums->record);
}

void sums_fork(struct sums *sums, uint32_t tid, uint64_t time)
{
	uint64_t *value = map_put(&sums->forked, tid, NULL);

	if (value)
		*value = time;
}

/* The stream with its values, all 0 at first; NULL when memory ran out. */
static struct sums_stream *find(struct sums *sums, struct map *map, uint64_t key, size_t count)
{
	uint64_t *index = map_put(map, key, NULL);
	struct sums_stream *stream;

	if (index && *index)
		return &sums->all.items[*index - 1];
	stream = index ? vec_push(&sums->all) : NULL;
	if (!stream)
		return NULL;
	*stream = (struct sums_stream){.place = sums->values.len, .count = count};
	for (size_t i = 0; i < TIMES + count; i++)
		if (!vec_push(&sums->values))
			return NULL;
	*index = sums->all.len;
	return stream;
}

/* Counters have 48 bits: more than half of that in one step is none. */
static bool makes_sense(const uint64_t *last, const uint64_t *now, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (now[i] < last[i] || now[i] - last[i] >= UINT64_C(1) << 47)
			return false;
	return true;
}

/* Adds what was counted since the thread's last sample to the sum of all, and returns that. */
static const uint64_t *add_up(struct sums *sums, const struct sums_stream *sum_of,
			      struct sums_stream *stream, const struct record_sample *sample,
			      const uint64_t *now)
{
	uint64_t *sum = &sums->values.items[sum_of->place];
	uint64_t *last = &sums->values.items[stream->place];
	const uint64_t *forked = map_get(&sums->forked, sample->id.tid);
	size_t count = TIMES + stream->count;

	/* Another thread has the number now: it counts from 0. */
	if (forked && *forked > stream->time && *forked <= sample->id.time)
		memset(last, 0, count * sizeof(*last));
	stream->time = sample->id.time;
	if (!makes_sense(last, now, count))
		sums->dropped++;
	else
		for (size_t i = 0; i < count; i++)
			sum[i] += now[i] - last[i];
	memcpy(last, now, count * sizeof(*last));
	return sum;
}

/* The words of a group's part, as the kernel has them: count, two times, and pairs. */
static uint64_t *place_in(struct strbuf *record, const struct perf_event_header *header,
			  const struct record_sample *sample)
{
	const unsigned char *start = (const unsigned char *)header;
	size_t offset = (size_t)(sample->read.at - start);

	if (sample->read.at < start || sample->read.at > start + header->size)
		return NULL; /* the sample was decoded from another record */
	strbuf_reset(record);
	strbuf_add(record, header, header->size);
	return strbuf_failed(record) ? NULL : (uint64_t *)(void *)(record->buf + offset);
}

const struct perf_event_header *
sums_of_sample(struct sums *sums, const struct perf_event_header *header,
	       const struct perf_event_attr *attr, const struct record_sample *sample,
	       uint64_t (*file_id)(uint64_t id, void *ctx), void *ctx)
{
	uint64_t now[TIMES + GROUP_MAX], ids[GROUP_MAX], key;
	struct sums_stream *stream, *sum_of;
	struct record_read read;
	const uint64_t *sum;
	size_t count = 0;
	uint64_t *words;

	if (!(attr->read_format & PERF_FORMAT_GROUP) || !record_decode_read(sample, attr, &read) ||
	    !read.count || read.count > GROUP_MAX)
		return header;
	now[ENABLED] = sums->of_tasks ? read.time_running : read.time_enabled;
	now[RUNNING] = read.time_running;
	while (record_next_value(&read, &now[TIMES + count], &ids[count]))
		count++;
	words = place_in(&sums->record, header, sample);
	if (!words || !count)
		return header;
	/* Ids are numbers that the kernel counts up: they stay small. */
	key = ids[0] << 32 | (attr->inherit ? sample->id.tid : 0);
	stream = find(sums, &sums->streams, key, count);
	sum_of = stream ? find(sums, &sums->by_file_id, file_id(ids[0], ctx), count) : NULL;
	/* The first may have moved. */
	stream = sum_of ? find(sums, &sums->streams, key, count) : NULL;
	if (!stream || stream->count != count || sum_of->count != count)
		return header;
	sum = add_up(sums, sum_of, stream, sample, now);
	words[1] = sum[ENABLED];
	words[2] = sum[RUNNING];
	for (size_t i = 0; i < count; i++) {
		words[3 + 2 * i] = sum[TIMES + i];
		words[4 + 2 * i] = file_id(ids[i], ctx);
	}
	return (const struct perf_event_header *)sums->record.buf;
}
