#include "record/recorder.h"

#include "base/log.h"
#include "base/privilege.h"
#include "base/strbuf.h"
#include "perfmap/frames.h"
#include "record/attach.h"
#include "record/channel.h"
#include "record/existing.h"
#include "record/frame_record.h"
#include "record/hits.h"
#include "record/kernel.h"
#include "record/meta.h"
#include "record/native.h"
#include "record/phases.h"
#include "record/pythons.h"
#include "record/sums.h"
#include "record/target.h"
#include "ring/record.h"
#include "symbol/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * One epoll set holds the side-band rings (which wake at each record), the sample rings (which wake
 * a quarter full), the walker's requests and the caller's fd. Side-band is always read first, so
 * that a process is known before its requests are answered. A round is one reading of all rings;
 * FINISHED_ROUND follows it in the file.
 *
 * Where an engine has yet to say which frames belong to a sample, the sample stays in its ring with
 * all that follows. The round then is not finished: what comes later may be older than what was
 * read from other rings.
 */

#define GIVE_BACK 16 /* while a ring is read, each such part of it is given back at once */
#define PRIORITY 10  /* steps of nice */
#define WAIT_MS 250
#define HELD_MS 5     /* while a sample waits for its frames */
#define STARTING_MS 5 /* while an interpreter starts */

enum source_kind {
	SOURCE_WAKE,
	SOURCE_REQUESTS,
	SOURCE_SIDEBAND,
	SOURCE_SAMPLES,
};

/* A side-band record that is not yet taken. */
struct pending {
	const struct perf_event_header *header; /* NULL: none */
	uint64_t time;
};

struct recorder {
	const struct recorder_options *options;
	const struct recorder_target *target;
	enum recorder_python engine;
	struct roots *roots; /* trees that processes see */
	struct pythons *pythons;
	struct hits *hits;
	struct native *native; /* NULL: stacks are not unwound here */
	struct channels channels;
	struct data_writer *writer;
	struct machine_facts facts;
	struct strbuf tracing; /* formats of tracepoints */
	struct attach attach;
	struct sums sums;
	struct strbuf renamed; /* a record with another id */
	struct strbuf frames;  /* a record of frames that an engine gave */
	bool held;	       /* a sample waits for its frames */
	struct recorder_result result;
	uint64_t started_ns;
	uint64_t enable_ns; /* 0: counting, or by exec */
	bool starting;	    /* an interpreter is, and cannot be walked yet */
	int epoll_fd;
	bool pid_namespace; /* pyperf's is not the initial one */
	bool kept_old;	    /* PATH.old holds what was there before */
	bool created;
	struct {
		VEC_OF(int)
	} ends; /* pidfds: readable when a target has ended */
	struct {
		VEC_OF(struct pending)
	} pending; /* by channel */
	struct {
		VEC_OF(uint32_t)
	} frames_before; /* by channel: tid whose frames lie directly before, or 0 */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int recorder_new(struct recorder **result, const struct recorder_options *options,
		 const struct recorder_target *target, struct err *err)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	struct privilege privilege;
	int ret;

	if (!recorder)
		return err_nomem(err);
	privilege_read(&privilege);
	recorder->options = options;
	recorder->engine = options->python;
	recorder->epoll_fd = -1;
	recorder->pid_namespace = privilege.pid_namespace != 0;
	if (recorder->pid_namespace && target->kind == RECORDER_CPUS)
		log_info("processes outside of this pid namespace are told by their time alone: %s",
			 privilege_remedy(PRIVILEGE_NEED_TARGET, privilege.place));
	recorder->roots = roots_new();
	recorder->hits = recorder->roots ? hits_new(recorder->roots) : NULL;
	if (recorder->hits)
		ret = pythons_new(&recorder->pythons, &recorder->engine, target, recorder->roots,
				  err);
	else
		ret = err_nomem(err);
	if (ret) {
		recorder_free(recorder);
		return ret;
	}
	*result = recorder;
	return 0;
}

const char *recorder_environment(const struct recorder *recorder)
{
	return recorder->engine == RECORDER_PYTHON_TRAMPOLINE ? "PYTHONPERFSUPPORT=1" : NULL;
}

/* Only events that are inherited need a kernel that can. */
bool recorder_reads_groups(const struct recorder *recorder, const struct recorder_target *target)
{
	return target->kind == RECORDER_CPUS || recorder->options->no_inherit ||
	       pythons_open_events(recorder->pythons) || event_reads_inherited();
}

static int watch(struct recorder *recorder, int fd, enum source_kind kind, size_t channel,
		 struct err *err)
{
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.u64 = (uint64_t)channel << 8 | kind,
	};

	if (fd >= 0 && epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return err_sys(err, errno, "cannot watch the ring buffers");
	return 0;
}

static int watch_all(struct recorder *recorder, struct err *err)
{
	int ret;

	recorder->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (recorder->epoll_fd < 0)
		return err_sys(err, errno, "cannot watch the ring buffers");
	ret = watch(recorder, pythons_request_fd(recorder->pythons), SOURCE_REQUESTS, 0, err);
	for (size_t i = 0; !ret && i < recorder->channels.len; i++) {
		const struct channel *channel = &recorder->channels.items[i];

		if (!vec_push(&recorder->frames_before) || !vec_push(&recorder->pending))
			return err_nomem(err);
		ret = watch(recorder, channel->sideband_fd, SOURCE_SIDEBAND, i, err);
		if (!ret)
			ret = watch(recorder, channel->samples_fd, SOURCE_SAMPLES, i, err);
	}
	return ret;
}

/* So that the end of a target is seen at once. Without pidfds (before Linux 5.3) it is seen when
 * the recorder next looks. */
static void watch_ends(struct recorder *recorder)
{
	const struct recorder_target *target = recorder->target;

	for (size_t i = 0; target->kind == RECORDER_PROCESSES && i < target->tasks.len; i++) {
		struct epoll_event event = {
			.events = EPOLLIN | EPOLLONESHOT,
			.data.u64 = SOURCE_WAKE,
		};
		int *fd = vec_push(&recorder->ends);

		if (!fd)
			return;
		*fd = (int)syscall(SYS_pidfd_open, target->tasks.items[i].pid, 0);
		if (*fd >= 0)
			epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, *fd, &event);
	}
}

/* An older recording becomes PATH.old; what is no regular file is written to as it is. */
static int keep_old(struct recorder *recorder, struct err *err)
{
	char old[PATH_MAX];
	struct stat st;

	if (lstat(recorder->options->path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if ((size_t)snprintf(old, sizeof(old), "%s.old", recorder->options->path) >= sizeof(old))
		return err_set(err, ERR_USAGE, "the name %s is too long", recorder->options->path);
	if (rename(recorder->options->path, old) < 0)
		return err_sys(err, errno, "cannot rename %s to %s", recorder->options->path, old);
	recorder->kept_old = true;
	return 0;
}

static void put_old_back(struct recorder *recorder)
{
	char old[PATH_MAX];

	if (recorder->created)
		unlink(recorder->options->path);
	if (!recorder->kept_old)
		return;
	snprintf(old, sizeof(old), "%s.old", recorder->options->path);
	rename(old, recorder->options->path);
}

/* The events as the file has them: see sums.h. */
static int create_file(struct recorder *recorder, struct err *err)
{
	const struct channels *channels = &recorder->channels;
	struct data_writer_options options = {
		.zstd_level = recorder->options->zstd_level,
		.mmap_len = channels->ring_bytes,
	};
	struct data_event *events = malloc(channels->event_count * sizeof(*events));
	int ret;

	if (!events)
		return err_nomem(err);
	memcpy(events, channels->events, channels->event_count * sizeof(*events));
	for (size_t i = 0; i < channels->event_count; i++)
		if (events[i].attr.sample_type & PERF_SAMPLE_READ)
			events[i].attr.inherit = 0;
	ret = data_writer_open(&recorder->writer, recorder->options->path, events,
			       channels->event_count, &options, err);
	free(events);
	return ret;
}

static int open_file(struct recorder *recorder, struct err *err)
{
	struct stat st;
	int ret = keep_old(recorder, err);

	if (!ret)
		ret = create_file(recorder, err);
	if (ret)
		return ret;
	recorder->channels.ids_filed = true;
	recorder->created = lstat(recorder->options->path, &st) == 0 && S_ISREG(st.st_mode);
	return 0;
}

static bool samples_kernel(const struct event_list *events)
{
	for (size_t i = 0; i < events->len; i++)
		if (!events->items[i].attr.exclude_kernel)
			return true;
	return false;
}

static int store_state(struct recorder *recorder, struct err *err)
{
	const struct data_event *sideband = &recorder->channels.events[recorder->channels.sampled];
	struct synth synth = {
		.writer = recorder->writer,
		.id = sideband->ids[0],
		.native = recorder->native,
	};
	int ret;

	if (recorder->options->counting)
		return 0;
	ret = kernel_store_maps(&synth, samples_kernel(recorder->options->events), err);

	if (!ret && recorder->pid_namespace && recorder->target->kind == RECORDER_CPUS)
		ret = synth_comm(&synth, 0, 0, "[other pid namespaces]", err);
	/* What a held child has now, its exec drops. */
	if (!ret && recorder->target->kind != RECORDER_COMMAND)
		ret = existing_store(&synth, recorder->target, recorder->roots, recorder->pythons,
				     recorder->hits, err);
	return ret;
}

static int note_target(struct recorder *recorder, const struct recorder_target *target,
		       struct err *err)
{
	char *words = recorder->result.target;
	struct strbuf text = {0};

	recorder->target = target;
	recorder->sums.of_tasks = target->kind != RECORDER_CPUS;
	if (target->kind == RECORDER_COMMAND)
		return 0;
	target_describe(target, &text);
	if (strbuf_failed(&text)) {
		strbuf_fini(&text);
		return err_nomem(err);
	}
	snprintf(words, sizeof(recorder->result.target), "%.*s",
		 (int)sizeof(recorder->result.target) - 1, strbuf_text(&text));
	strbuf_fini(&text);
	return 0;
}

int recorder_open(struct recorder *recorder, const struct recorder_target *target, struct err *err)
{
	int ret = note_target(recorder, target, err);

	if (!ret && recorder->options->chain == RECORDER_CHAIN_DWARF)
		ret = native_new(&recorder->native, recorder->hits, recorder->pythons,
				 recorder->options->stack_bytes, err);
	if (!ret)
		ret = channels_open(&recorder->channels, recorder->options, target,
				    recorder->pythons, recorder->native, err);
	if (!ret)
		ret = attach_open(&recorder->attach, &recorder->channels, target, err);
	if (!ret)
		ret = pythons_start(recorder->pythons, &recorder->channels, err);
	if (!ret)
		ret = watch_all(recorder, err);
	if (!ret)
		ret = open_file(recorder, err);
	if (!ret)
		ret = store_state(recorder, err);
	if (!ret)
		watch_ends(recorder);
	if (!ret)
		meta_machine(&recorder->facts, recorder->options->argv);
	if (!ret)
		ret = event_tracing_data(recorder->options->events, &recorder->tracing, err);
	recorder->facts.info.tracing_data = recorder->tracing.buf;
	recorder->facts.info.tracing_data_len = recorder->tracing.len;
	recorder->started_ns = now_ns();
	return ret;
}

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
	if (mmap.build_id_len && mmap.filename[0] == '/')
		return data_writer_build_id(recorder->writer, -1, PERF_RECORD_MISC_USER,
					    mmap.filename, mmap.build_id, mmap.build_id_len, err);
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
static void on_walk(struct recorder *recorder, uint32_t *frames_before,
		    const struct record_sample *sample)
{
	struct py_raw_frames frames;

	if (sample->raw_len < sizeof(frames))
		return;
	memcpy(&frames, sample->raw, sizeof(frames));
	if (frames.magic == PY_RAW_CODE)
		pythons_code(recorder->pythons, bytes_of(sample->raw, sample->raw_len));
	else if (frames.magic == PY_RAW_FRAMES && frames.count)
		*frames_before = sample->id.tid;
}

/* What becomes of a sample. */
enum fate {
	WRITTEN,
	LEFT_OUT, /* it is one too many, or was for us */
	WAITS,	  /* in the ring, for its frames */
};

/* False where the frames are not known yet. */
static bool ask_for_frames(struct recorder *recorder, const struct record_sample *sample,
			   bool urgent, bool *has_frames)
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
		struct py_raw_frames frames;

		memcpy(&frames, payload.at, sizeof(frames));
		frame_record(&recorder->frames,
			     recorder->channels.events[recorder->channels.sampled + 1].ids[0],
			     &sample->id, payload);
		*has_frames = frames.count;
	}
	return answer != ENGINE_WAIT;
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
			   const struct perf_event_header **record, int event, uint64_t id)
{
	uint32_t *frames_before = &recorder->frames_before.items[channel];
	struct origin origin = {recorder, channel};
	const struct ring *ring = &recorder->channels.items[channel].samples;
	const struct perf_event_attr *attr;
	struct record_sample sample;
	bool has_frames;

	if (event < 0)
		return WRITTEN;
	attr = &recorder->channels.events[event].attr;
	if (!record_decode_sample(*record, attr, &sample))
		return WRITTEN;
	if ((size_t)event > recorder->channels.sampled) {
		if (recorder->native && native_copy(recorder->native, channel, &sample))
			return LEFT_OUT;
		on_walk(recorder, frames_before, &sample);
		return WRITTEN;
	}
	has_frames = *frames_before && *frames_before == sample.id.tid;
	*frames_before = 0;
	if (!channels_keep(&recorder->channels, channel, (size_t)event, sample.id.tid, id))
		return LEFT_OUT;
	if (attr->type != PERF_TYPE_TRACEPOINT &&
	    !ask_for_frames(recorder, &sample, ring->head - ring->tail > ring->size / 2,
			    &has_frames))
		return WAITS;
	recorder->result.samples++;
	recorder->result.python += has_frames;
	data_writer_time(recorder->writer, sample.id.time);
	if (recorder->native)
		*record = native_sample(recorder->native, channel, *record, attr, &sample);
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
		*fate = on_sample(recorder, channel, &header, event, id);
		if (*fate != WRITTEN)
			return 0;
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
	if (ret)
		return ret;
	return data_write(recorder->writer, header, header->size, err);
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
	uint64_t now = now_ns();
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

static int read_sideband(struct recorder *recorder, struct err *err)
{
	bool more = true;
	int ret = 0;

	while (!ret && more)
		ret = read_sideband_batch(recorder, &more, err);
	pythons_requests(recorder->pythons);
	recorder->starting = pythons_look_again(recorder->pythons);
	return ret;
}

static int read_round(struct recorder *recorder, struct err *err)
{
	int ret = read_sideband(recorder, err);

	recorder->held = false;
	for (size_t i = 0; !ret && i < recorder->channels.len; i++)
		ret = read_ring(recorder, i, &recorder->channels.items[i].samples, err);
	if (ret || recorder->held)
		return ret;
	pythons_round(recorder->pythons);
	return data_write_round(recorder->writer, err);
}

/* A command's exec starts its events; -D and running targets are started here. */
static int start_counting(struct recorder *recorder, struct err *err)
{
	int delay_ms = recorder->options->delay_ms;

	recorder->enable_ns = delay_ms > 0 ? now_ns() + (uint64_t)delay_ms * 1000000 : 0;
	if (delay_ms || recorder->target->kind == RECORDER_COMMAND)
		return 0;
	return channels_enable(&recorder->channels, true, err);
}

int recorder_enable(struct recorder *recorder, bool on, struct err *err)
{
	recorder->enable_ns = 0;
	return channels_enable(&recorder->channels, on, err);
}

/* -D: counting starts when the delay is over. */
static int enable_when_due(struct recorder *recorder, struct err *err)
{
	if (!recorder->enable_ns || now_ns() < recorder->enable_ns)
		return 0;
	return recorder_enable(recorder, true, err);
}

static int wait_ms(const struct recorder *recorder)
{
	int most = recorder->held ? HELD_MS : WAIT_MS;
	uint64_t now = now_ns();

	if (recorder->starting)
		return STARTING_MS;
	if (!recorder->enable_ns)
		return most;
	if (recorder->enable_ns <= now)
		return 0;
	now = (recorder->enable_ns - now) / 1000000 + 1;
	return now < (uint64_t)most ? (int)now : most;
}

static bool ended(const struct recorder *recorder)
{
	return recorder->target->kind != RECORDER_COMMAND && target_ended(recorder->target);
}

/* What is not read in time is lost, so the reader goes before what it reads of, where it may. Its
 * children, which were forked before, do not. */
static void go_first(void)
{
	if (setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - PRIORITY) < 0)
		log_debug("recording at the usual priority: raising it needs CAP_SYS_NICE");
}

int recorder_run(struct recorder *recorder, int wake_fd, bool (*on_wake)(void *ctx), void *ctx,
		 struct err *err)
{
	int ret = watch(recorder, wake_fd, SOURCE_WAKE, 0, err);

	go_first();
	if (!ret)
		ret = start_counting(recorder, err);
	while (!ret) {
		struct epoll_event events[64];
		int n = epoll_wait(recorder->epoll_fd, events, 64, wait_ms(recorder));
		bool woken = n == 0, full = n == 0 || recorder->held;

		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "cannot wait for the ring buffers");
		for (int i = 0; i < n; i++) {
			woken |= (events[i].data.u64 & 0xff) == SOURCE_WAKE;
			full |= (events[i].data.u64 & 0xff) == SOURCE_SAMPLES ||
				((events[i].data.u64 & 0xff) == SOURCE_REQUESTS &&
				 pythons_open_events(recorder->pythons));
		}
		ret = enable_when_due(recorder, err);
		if (ret)
			break;
		ret = full ? read_round(recorder, err) : read_sideband(recorder, err);
		if (woken && (on_wake(ctx) || ended(recorder)))
			break;
	}
	return ret;
}

/* Build-ids of files whose maps came without one (kernels before 5.12) are not known here; perf
 * and our reader then take the file's. */
static int store_all(struct recorder *recorder, int exit_status, struct err *err)
{
	struct meta meta = {
		.options = recorder->options,
		.result = &recorder->result,
		.pythons = recorder->pythons,
		.engine = recorder->engine,
		.native = recorder->native,
		.exit_status = exit_status,
	};
	struct recorder_count *totals = calloc(recorder->channels.sampled, sizeof(*totals));
	int ret = kernel_store_build_id(recorder->writer, err);

	if (totals && channels_counts(&recorder->channels, totals))
		meta.totals = totals;
	if (!ret)
		ret = pythons_store(recorder->pythons, recorder->options->sources, recorder->writer,
				    err);
	if (!ret)
		ret = hits_store(recorder->hits, recorder->writer, err);
	if (!ret)
		ret = meta_store(recorder->writer, &meta, err);
	free(totals);
	if (!ret)
		ret = phases_store(recorder->options->phases, recorder->writer, err);
	return ret;
}

int recorder_close(struct recorder *recorder, int exit_status, struct recorder_result *result,
		   struct err *err)
{
	struct pythons_stats stats;
	struct stat st;
	int ret, closed;

	channels_enable(&recorder->channels, false, NULL);
	recorder->result.duration_ns = now_ns() - recorder->started_ns;
	pythons_finish(recorder->pythons);
	ret = read_round(recorder, err);
	recorder->result.reads_dropped = recorder->sums.dropped;
	if (!ret)
		ret = store_all(recorder, exit_status, err);
	closed = data_writer_close(recorder->writer, &recorder->facts.info, ret ? NULL : err);
	recorder->writer = NULL;
	recorder->created = recorder->kept_old = false;
	pythons_stats(recorder->pythons, &stats);
	if (recorder->native)
		native_counts(recorder->native, &recorder->result.stacks,
			      &recorder->result.whole_stacks);
	recorder->result.pythons = stats.found;
	recorder->result.unknown_pythons = stats.unknown;
	recorder->result.not_stopped = stats.engine.not_stopped;
	recorder->result.not_sampled = stats.engine.not_sampled;
	recorder->result.rate_cut = stats.engine.rate_cut;
	if (stat(recorder->options->path, &st) == 0)
		recorder->result.bytes = (uint64_t)st.st_size;
	*result = recorder->result;
	return ret ? ret : closed;
}

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	if (recorder->writer)
		data_writer_close(recorder->writer, &recorder->facts.info, NULL);
	put_old_back(recorder);
	channels_close(&recorder->channels);
	pythons_free(recorder->pythons);
	hits_free(recorder->hits);
	roots_free(recorder->roots);
	native_free(recorder->native);
	attach_fini(&recorder->attach);
	sums_fini(&recorder->sums);
	strbuf_fini(&recorder->renamed);
	strbuf_fini(&recorder->frames);
	vec_fini(&recorder->frames_before);
	vec_fini(&recorder->pending);
	strbuf_fini(&recorder->tracing);
	for (size_t i = 0; i < recorder->ends.len; i++)
		if (recorder->ends.items[i] >= 0)
			close(recorder->ends.items[i]);
	vec_fini(&recorder->ends);
	if (recorder->epoll_fd >= 0)
		close(recorder->epoll_fd);
	free(recorder);
}
