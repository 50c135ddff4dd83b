#include "record/recorder_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "perfmap/frames.h"
#include "process/roots.h"
#include "record/frame_record.h"
#include "record/hits.h"
#include "record/native.h"
#include "record/pythons.h"
#include "record/traces.h"
#include "ring/record.h"

#include <string.h>
#include <sys/mman.h>

/*
 * What becomes of the records in the rings. A round is one reading of all rings; FINISHED_ROUND
 * follows it in the file.
 *
 * Where an engine has yet to say which frames belong to a sample, the sample stays in its ring with
 * all that follows. The round then is not finished: what comes later may be older than what was
 * read from other rings.
 */

#define GIVE_BACK 16 /* while a ring is read, each such part of it is given back at once */

static uint64_t mapped_identity(const struct record_mmap *mmap)
{
	uint64_t identity = map_mix((uint64_t)mmap->maj << 32 | mmap->min, mmap->ino);

	for (uint32_t i = 0; i < mmap->build_id_len; i++)
		identity = map_mix(identity, mmap->build_id[i]);
	return identity;
}

static int on_mmap(struct recorder *recorder, const struct perf_event_header *header,
		   struct err *err)
{
	struct record_mmap mmap;

	if (!record_decode_mmap(header, &mmap) || !(mmap.prot & PROT_EXEC))
		return 0;
	roots_note(recorder->roots, (pid_t)mmap.pid);
	hits_mmap(recorder->hits, &mmap);
	pythons_mmap(recorder->pythons, (pid_t)mmap.pid, mmap.filename,
		     strncmp(mmap.filename, "//anon", 6) == 0, mapped_identity(&mmap));
	if (mmap.build_id_len && mmap.filename[0] == '/' && recorder->out.build_id)
		return recorder->out.build_id(&recorder->out, mmap.filename, mmap.build_id,
					      mmap.build_id_len, err);
	return 0;
}

static int on_sideband(struct recorder *recorder, const struct perf_event_header *header,
		       struct err *err)
{
	struct record_comm comm;
	struct record_task task;

	switch (header->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return on_mmap(recorder, header, err);
	case PERF_RECORD_COMM:
		if (!record_decode_comm(header, &comm) || !comm.exec)
			return 0;
		roots_exec(recorder->roots, (pid_t)comm.pid);
		pythons_exec(recorder->pythons, (pid_t)comm.pid);
		return 0;
	case PERF_RECORD_FORK:
		if (!record_decode_task(header, &task))
			return 0;
		if (recorder->writer)
			sums_fork(&recorder->sums, task.tid, task.time);
		if (task.pid == task.ppid)
			return 0;
		roots_fork(recorder->roots, (pid_t)task.pid, (pid_t)task.ppid);
		pythons_fork(recorder->pythons, (pid_t)task.pid, (pid_t)task.ppid, task.time);
		return 0;
	case PERF_RECORD_EXIT:
		if (record_decode_task(header, &task) && task.pid == task.tid)
			pythons_exit(recorder->pythons, (pid_t)task.pid);
		return 0;
	}
	return 0;
}

/* What the walker sent: frames for the sample that follows, or a code object. */
static void on_walk(struct recorder *recorder, struct frames_before *before,
		    const struct record_sample *sample)
{
	struct py_raw_frames frames;

	if (sample->raw_len < sizeof(frames))
		return;
	memcpy(&frames, sample->raw, sizeof(frames));
	if (frames.magic == PY_RAW_CODE)
		pythons_code(recorder->pythons, bytes_of(sample->raw, sample->raw_len));
	if (frames.magic != PY_RAW_FRAMES || !frames.count)
		return;
	before->tid = sample->id.tid;
	if (recorder->writer)
		return;
	strbuf_reset(&before->payload);
	strbuf_add(&before->payload, sample->raw, sample->raw_len);
}

/* What becomes of a sample. */
enum fate {
	WRITTEN,  /* where there is a file */
	LEFT_OUT, /* it is one too many, or was for us */
	WAITS,	  /* in the ring, for its frames */
};

/* The Python frames of a sample. */
struct sample_frames {
	bool any;
	struct bytes payload; /* where a listener wants it, or an engine gave it */
};

/* False where the frames are not known yet. */
static bool ask_for_frames(struct recorder *recorder, const struct record_sample *sample,
			   bool urgent, struct sample_frames *frames)
{
	struct bytes payload = {0};
	enum engine_frames answer = pythons_frames(recorder->pythons, sample->id.tid,
						   sample->id.time, urgent, &payload);

	if (answer == ENGINE_WAIT) {
		pythons_requests(recorder->pythons);
		answer = pythons_frames(recorder->pythons, sample->id.tid, sample->id.time, urgent,
					&payload);
	}
	if (answer == ENGINE_FRAMES) {
		struct py_raw_frames head;

		memcpy(&head, payload.at, sizeof(head));
		frame_record(&recorder->frames,
			     recorder->channels.events[recorder->channels.sampled + 1].ids[0],
			     &sample->id, payload);
		*frames = (struct sample_frames){head.count > 0, payload};
	}
	return answer != ENGINE_WAIT;
}

static enum fate tell_sample(struct recorder *recorder, const struct perf_event_header *record,
			     int event, const struct sample_frames *frames, int *ret,
			     struct err *err)
{
	const struct recorder_listener *listener = recorder->options->listener;
	const struct recorder_sample sample = {
		.record = record,
		.event = (uint32_t)event,
		.frames = frames->any ? frames->payload.at : NULL,
		.frames_len = bytes_left(&frames->payload),
	};

	*ret = listener->sample(listener->ctx, &sample, err);
	return LEFT_OUT;
}

/* Where a record is from. */
struct origin {
	struct recorder *recorder;
	size_t channel;
};

static uint64_t file_id(uint64_t id, void *ctx)
{
	const struct origin *origin = ctx;
	bool late;
	int event = channels_event(&origin->recorder->channels, id, &late);

	return event < 0 || !late ? id
				  : channels_file_id(&origin->recorder->channels, origin->channel,
						     (size_t)event);
}

/* The record becomes what goes into the file. */
static enum fate on_sample(struct recorder *recorder, size_t channel,
			   const struct perf_event_header **record, int event, uint64_t id,
			   int *ret, struct err *err)
{
	struct frames_before *before = &recorder->frames_before.items[channel];
	struct origin origin = {recorder, channel};
	const struct ring *ring = &recorder->channels.items[channel].samples;
	const struct perf_event_attr *attr;
	struct record_sample sample;
	struct sample_frames frames = {0};

	if (event < 0)
		return WRITTEN;
	attr = &recorder->channels.events[event].attr;
	if (!record_decode_sample(*record, attr, &sample))
		return WRITTEN;
	if ((size_t)event > recorder->channels.sampled) {
		if (recorder->native && native_copy(recorder->native, channel, &sample))
			return LEFT_OUT;
		on_walk(recorder, before, &sample);
		return WRITTEN;
	}
	if (before->tid && before->tid == sample.id.tid)
		frames = (struct sample_frames){true,
						bytes_of(before->payload.buf, before->payload.len)};
	before->tid = 0;
	if (!channels_keep(&recorder->channels, channel, (size_t)event, sample.id.tid, id))
		return LEFT_OUT;
	if (attr->type != PERF_TYPE_TRACEPOINT &&
	    !ask_for_frames(recorder, &sample, ring->head - ring->tail > ring->size / 2, &frames))
		return WAITS;
	recorder->result.samples++;
	recorder->result.python += frames.any;
	if (recorder->native)
		*record = native_sample(recorder->native, channel, *record, attr, &sample);
	if (!recorder->writer)
		return tell_sample(recorder, *record, event, &frames, ret, err);
	data_writer_time(recorder->writer, sample.id.time);
	hits_sample(recorder->hits, &sample);
	*record = sums_of_sample(&recorder->sums, *record, attr, &sample, file_id, &origin);
	return WRITTEN;
}

/* Events that were opened late are in the file under another of their event's ids. */
static const struct perf_event_header *rename_event(struct recorder *recorder, size_t channel,
						    const struct perf_event_header *header,
						    int event)
{
	uint64_t id = channels_file_id(&recorder->channels, channel, (size_t)event);
	bool sample = header->type == PERF_RECORD_SAMPLE;
	struct strbuf *renamed = &recorder->renamed;

	strbuf_reset(renamed);
	strbuf_add(renamed, header, header->size);
	if (strbuf_failed(renamed))
		return header;
	memcpy(renamed->buf + (sample ? sizeof(*header) : header->size - sizeof(id)), &id,
	       sizeof(id));
	return (const struct perf_event_header *)renamed->buf;
}

/* Processes that pyperf's pid namespace does not show are all number 0 in it: what the records say
 * of each would be said of all. */
static bool is_of_nobody(const struct recorder *recorder, const struct perf_event_header *header)
{
	uint32_t pid;

	switch (header->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		memcpy(&pid, header + 1, sizeof(pid));
		return recorder->pid_namespace && !pid;
	}
	return false;
}

bool recorder_counts(const struct recorder *recorder, struct recorder_count *counts)
{
	return channels_counts(&recorder->channels, counts);
}

void recorder_thread_counts(const struct recorder *recorder, pid_t tid,
			    struct recorder_count *counts)
{
	channels_task_counts(&recorder->channels, tid, counts);
}

ssize_t recorder_threads(const struct recorder *recorder, pid_t **tids)
{
	return channels_tasks(&recorder->channels, tids);
}

static int read_record(struct recorder *recorder, size_t channel,
		       const struct perf_event_header *header, enum fate *fate, struct err *err)
{
	uint64_t id = 0;
	bool late = false;
	int event = -1, ret = 0;

	*fate = WRITTEN;
	strbuf_reset(&recorder->frames);
	if (is_of_nobody(recorder, header))
		return 0;
	if (record_identifier(header, PERF_SAMPLE_IDENTIFIER, &id))
		event = channels_event(&recorder->channels, id, &late);
	if (header->type == PERF_RECORD_SAMPLE) {
		*fate = on_sample(recorder, channel, &header, event, id, &ret, err);
		if (*fate != WRITTEN || !recorder->writer)
			return ret;
	} else {
		ret = on_sideband(recorder, header, err);
		if (!ret && recorder->native)
			ret = native_sideband(recorder->native, header, err);
		if (!ret)
			ret = attach_record(&recorder->attach, header, id, err);
	}
	recorder->result.lost += record_lost(header);
	if (ret)
		return ret;
	if (late && event >= 0)
		header = rename_event(recorder, channel, header, event);
	if (recorder->frames.len && !strbuf_failed(&recorder->frames))
		ret = data_write(recorder->writer, recorder->frames.buf, recorder->frames.len, err);
	return ret ? ret : recorder->out.record(&recorder->out, header, err);
}

static int read_ring(struct recorder *recorder, size_t channel, struct ring *ring, struct err *err)
{
	const struct perf_event_header *header;
	enum fate fate = WRITTEN;
	int ret = 0, corrupt = 0;
	uint64_t given;

	ring_begin(ring);
	given = ring->tail;
	while (!ret && fate != WAITS && (header = ring_next(ring, &corrupt))) {
		ret = read_record(recorder, channel, header, &fate, err);
		if (fate == WAITS)
			ring_put_back(ring, header);
		else if (ring->tail - given > ring->size / GIVE_BACK) {
			ring_end(ring);
			given = ring->tail;
		}
	}
	recorder->held |= fate == WAITS;
	ring_end(ring);
	if (corrupt)
		log_warn("a ring buffer held a broken record; what followed it is lost");
	return ret;
}

/* The next side-band record of a channel, and its time. */
static void next_pending(struct recorder *recorder, size_t channel)
{
	const struct perf_event_attr *attr =
		&recorder->channels.events[recorder->channels.sampled].attr;
	struct pending *pending = &recorder->pending.items[channel];
	struct record_id id = {0};
	int corrupt = 0;

	pending->header = ring_next(&recorder->channels.items[channel].sideband, &corrupt);
	if (corrupt)
		log_warn("a ring buffer held a broken record; what followed it is lost");
	if (pending->header && record_decode_id(pending->header, attr, &id))
		pending->time = id.time;
}

static struct pending *earliest(const struct recorder *recorder)
{
	struct pending *first = NULL;

	for (size_t i = 0; i < recorder->pending.len; i++) {
		struct pending *pending = &recorder->pending.items[i];

		if (pending->header && (!first || pending->time < first->time))
			first = pending;
	}
	return first;
}

/* A child may be forked on one CPU and exec on another, so side-band records are taken in the order
 * of their time. What was written after the first look waits for the next: an earlier record may
 * be in a ring that was looked at before. *more says that there is some. */
static int read_sideband_batch(struct recorder *recorder, bool *more, struct err *err)
{
	enum fate fate = WRITTEN; /* only samples have another */
	uint64_t now = clock_now_ns();
	struct pending *first;
	int ret = 0;

	for (size_t i = 0; i < recorder->pending.len; i++) {
		ring_begin(&recorder->channels.items[i].sideband);
		next_pending(recorder, i);
	}
	while (!ret && (first = earliest(recorder)) && first->time < now) {
		size_t channel = (size_t)(first - recorder->pending.items);

		ret = read_record(recorder, channel, first->header, &fate, err);
		next_pending(recorder, channel);
	}
	*more = false;
	for (size_t i = 0; i < recorder->pending.len; i++) {
		struct ring *ring = &recorder->channels.items[i].sideband;

		if (recorder->pending.items[i].header) {
			ring_put_back(ring, recorder->pending.items[i].header);
			*more = true;
		}
		ring_end(ring);
	}
	return ret;
}

int recorder_read_sideband(struct recorder *recorder, struct err *err)
{
	bool more = true;
	int ret = 0;

	while (!ret && more)
		ret = read_sideband_batch(recorder, &more, err);
	pythons_requests(recorder->pythons);
	recorder->starting = pythons_look_again(recorder->pythons);
	return ret;
}

static uint32_t first_task(const struct recorder *recorder)
{
	const struct recorder_target *target = recorder->target;

	return target->tasks.len ? (uint32_t)target->tasks.items[0].pid : UINT32_MAX;
}

int recorder_read_round(struct recorder *recorder, struct err *err)
{
	int ret = recorder_read_sideband(recorder, err);

	recorder->round_ns = clock_now_ns();
	recorder->held = false;
	for (size_t i = 0; !ret && i < recorder->channels.len; i++)
		ret = read_ring(recorder, i, &recorder->channels.items[i].samples, err);
	for (size_t i = 0; !ret && recorder->channels.traced && i < recorder->channels.len; i++)
		ret = traces_take(&recorder->channels, i, first_task(recorder), recorder->writer,
				  &recorder->result.trace_bytes, err);
	if (ret || recorder->held)
		return ret;
	pythons_round(recorder->pythons);
	return recorder->writer ? data_write_round(recorder->writer, err) : 0;
}
