/*
 * Opening events.
 *
 * Threads of a running process come and go while it is attached to. An open event is inherited by
 * what its thread creates, so a thread that is found later must only be opened where it did not
 * inherit: the side-band event is opened first, and its FORK record tells. /proc/PID/task is read
 * until it shows no other thread.
 */
#include "record/channel.h"

#include "base/log.h"
#include "base/map.h"
#include "record/attrs.h"
#include "record/cpus.h"
#include "record/target.h"
#include "ring/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define SIDEBAND_PAGES 128
#define SMALLEST_PAGES 8
#define SIDEBAND_NAME "dummy:HG"
#define PYTHON_NAME "python-frames"
#define ANCHOR_NAME "dummy"
#define PASSES_MAX 64	   /* over a process that never stops creating threads */
#define FORK_GRACE_US 1000 /* a thread is in /proc a little before its FORK record is written */

/* As event_open_fd(); a limit on open files that may be raised is. */
static int open_fd(const struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	int fd = event_open_fd(attr, pid, cpu, group);
	struct rlimit limit;

	if (fd != -EMFILE || getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    limit.rlim_cur >= limit.rlim_max)
		return fd;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? fd : event_open_fd(attr, pid, cpu, group);
}

static int open_error(const char *name, const struct perf_event_attr *attr, int fd, struct err *err)
{
	struct event_spec spec = {.name = (char *)name, .attr = *attr};

	return event_open_error(&spec, -fd, err);
}

static int redirect(int fd, int ring_fd, struct err *err)
{
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring_fd) < 0)
		return err_sys(err, errno, "cannot share a ring buffer between events");
	return 0;
}

/* Space doubles, so that thousands of threads cost no thousand copies. */
static int add_id(struct data_event *event, int fd, struct err *err)
{
	uint64_t *ids = (uint64_t *)event->ids;
	uint64_t id;

	if (ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
		return err_sys(err, errno, "cannot get the id of event %s", event->name);
	if (!(event->id_count & (event->id_count - 1))) {
		size_t room = event->id_count ? 2 * event->id_count : 1;

		ids = realloc(ids, room * sizeof(*ids));
		if (!ids)
			return err_nomem(err);
	}
	ids[event->id_count++] = id;
	event->ids = ids;
	return 0;
}

static int make_events(struct channels *channels, struct err *err)
{
	const struct event_list *list = channels->options->events;
	enum recorder_target_kind kind = channels->target->kind;
	int leader = 0;

	channels->sampled = list->len;
	channels->event_count = list->len + 1 + pythons_walk(channels->pythons);
	channels->events = calloc(channels->event_count, sizeof(*channels->events));
	if (!channels->events)
		return err_nomem(err);
	for (size_t i = 0; i < channels->event_count; i++) {
		struct data_event *event = &channels->events[i];

		event->leader = (int)i;
		if (i < list->len) {
			event->name = list->items[i].name;
			attr_sampled(&event->attr, &list->items[i], channels->options, kind);
			/* The reader is woken when a quarter is full, not at each sample. */
			event->attr.watermark = 1;
			event->attr.wakeup_watermark = (uint32_t)(channels->ring_bytes / 4);
			if (list->items[i].leader)
				leader = (int)i;
			event->leader = leader;
		} else if (i == list->len) {
			event->name = SIDEBAND_NAME;
			attr_sideband(&event->attr, kind);
		} else {
			event->name = PYTHON_NAME;
			attr_python(&event->attr);
		}
	}
	return 0;
}

/* Opens one event, sends its records to a ring of the channel, keeps its fd and id. ERR_NOT_FOUND
 * where the task has ended. *fd stays the channels'. */
static int open_event(struct channels *channels, const struct channel *channel, size_t index,
		      pid_t tid, int group, int *fd, struct err *err)
{
	struct data_event *event = &channels->events[index];
	bool sampled = index < channels->sampled;
	struct channel_event *slot = vec_push(&channels->open);
	int ret;

	if (!slot)
		return err_nomem(err);
	*fd = open_fd(&event->attr, tid, channel->cpu, group);
	/* Kernels before 5.12 do not know attr.build_id; build-ids are then read from ELF. */
	if (*fd == -EINVAL && event->attr.build_id) {
		event->attr.build_id = 0;
		*fd = open_fd(&event->attr, tid, channel->cpu, group);
	}
	if (*fd < 0) {
		channels->open.len--;
		return open_error(event->name, &event->attr, *fd, err);
	}
	*slot = (struct channel_event){.fd = *fd, .event = (uint32_t)index};
	ret = redirect(*fd, sampled ? channel->samples_fd : channel->sideband_fd, err);
	if (!ret && sampled)
		ret = pythons_attach(channels->pythons, *fd,
				     event->attr.type == PERF_TYPE_TRACEPOINT, err);
	return ret ? ret : add_id(event, *fd, err);
}

/* All events of a task on all CPUs; -1 is whatever runs. */
static int open_task(struct channels *channels, pid_t tid, struct err *err)
{
	int *fds = malloc(channels->sampled * sizeof(*fds));
	int ret = fds ? 0 : err_nomem(err), fd;

	for (size_t c = 0; !ret && c < channels->len; c++)
		ret = open_event(channels, &channels->items[c], channels->sampled, tid, -1, &fd,
				 err);
	for (size_t c = 0; !ret && c < channels->len; c++)
		for (size_t i = 0; !ret && i < channels->sampled; i++) {
			int leader = channels->events[i].leader;

			ret = open_event(channels, &channels->items[c], i, tid,
					 leader == (int)i ? -1 : fds[leader], &fds[i], err);
		}
	free(fds);
	return ret;
}

/* Which tasks inherited, by the FORK records that wait in the rings; they stay there. */
static int note_forks(struct channels *channels, struct map *known, struct err *err)
{
	for (size_t i = 0; i < channels->len; i++) {
		struct ring *ring = &channels->items[i].sideband;
		const struct perf_event_header *header;
		struct record_task task;
		int corrupt = 0;

		ring_begin(ring);
		while ((header = ring_next(ring, &corrupt)))
			if (header->type == PERF_RECORD_FORK && record_decode_task(header, &task) &&
			    !map_put(known, task.tid, NULL))
				return err_nomem(err);
	}
	return 0;
}

/* Opens what is not known yet; *opened counts. A thread that ends meanwhile is left out. */
static int open_tasks(struct channels *channels, pid_t pid, const struct tasks *tids,
		      struct map *known, size_t *opened, struct err *err)
{
	for (size_t i = 0; i < tids->len; i++) {
		bool added;
		int ret;

		if (!map_put(known, (uint64_t)tids->items[i], &added))
			return err_nomem(err);
		if (!added)
			continue;
		ret = open_task(channels, tids->items[i], err);
		if (ret == ERR_PERMISSION)
			return target_explain(pid, err);
		if (ret && ret != ERR_NOT_FOUND)
			return ret;
		*opened += !ret;
	}
	return 0;
}

static bool any_unknown(const struct tasks *tids, const struct map *known)
{
	for (size_t i = 0; i < tids->len; i++)
		if (!map_get(known, (uint64_t)tids->items[i]))
			return true;
	return false;
}

static int open_process(struct channels *channels, pid_t pid, struct map *known, size_t *opened,
			struct err *err)
{
	struct tasks tids = {0};
	int ret = 0;

	for (int pass = 0; !ret && pass < PASSES_MAX; pass++) {
		tids.len = 0;
		ret = target_threads(pid, &tids, err);
		if (ret || !any_unknown(&tids, known))
			break;
		if (pass) {
			usleep(FORK_GRACE_US);
			ret = note_forks(channels, known, err);
		}
		if (!ret)
			ret = open_tasks(channels, pid, &tids, known, opened, err);
	}
	vec_fini(&tids);
	return ret;
}

static int open_thread(struct channels *channels, const struct recorder_task *task,
		       struct map *known, size_t *opened, struct err *err)
{
	struct tasks one = {0};
	pid_t *tid = vec_push(&one);
	int ret;

	if (!tid)
		return err_nomem(err);
	*tid = task->tid;
	ret = open_tasks(channels, task->pid, &one, known, opened, err);
	vec_fini(&one);
	return ret;
}

static int open_running(struct channels *channels, struct err *err)
{
	const struct recorder_target *target = channels->target;
	size_t all = 0;
	struct map known = {0};
	int ret = 0;

	for (size_t i = 0; !ret && i < target->tasks.len; i++) {
		const struct recorder_task *task = &target->tasks.items[i];
		size_t opened = 0;

		ret = target->kind == RECORDER_THREADS
			      ? open_thread(channels, task, &known, &opened, err)
			      : open_process(channels, task->pid, &known, &opened, err);
		if (!ret && !opened && !map_get(&known, (uint64_t)task->tid))
			log_info("%s %d has ended",
				 target->kind == RECORDER_THREADS ? "thread" : "process",
				 (int)task->tid);
		all += opened;
	}
	map_fini(&known);
	if (!ret && !all)
		ret = err_set(err, ERR_NOT_FOUND, "what was to be recorded has ended");
	return ret;
}

static int open_target(struct channels *channels, struct err *err)
{
	switch (channels->target->kind) {
	case RECORDER_COMMAND:
		return open_task(channels, channels->target->tasks.items[0].pid, err);
	case RECORDER_CPUS:
		return open_task(channels, -1, err);
	default:
		return open_running(channels, err);
	}
}

static int open_python(struct channels *channels, struct channel *channel, struct err *err)
{
	struct data_event *event = &channels->events[channels->sampled + 1];
	int ret;

	channel->python_fd = open_fd(&event->attr, -1, channel->cpu, -1);
	if (channel->python_fd < 0)
		return open_error(event->name, &event->attr, channel->python_fd, err);
	ret = redirect(channel->python_fd, channel->samples_fd, err);
	if (!ret)
		ret = pythons_output(channels->pythons, channel->cpu, channel->python_fd, err);
	return ret ? ret : add_id(event, channel->python_fd, err);
}

static int open_anchor(int *fd, struct ring *ring, int cpu, size_t pages, size_t watermark,
		       struct err *err)
{
	struct perf_event_attr attr;

	attr_anchor(&attr, watermark);
	*fd = open_fd(&attr, 0, cpu, -1);
	if (*fd < 0) {
		open_error(ANCHOR_NAME, &attr, *fd, err);
		return ERR_FAILED; /* what a smaller ring would not mend */
	}
	return ring_open(ring, *fd, pages, err);
}

static int open_rings(struct channels *channels, const struct cpus *cpus, size_t pages,
		      struct err *err)
{
	size_t sideband_pages = pages < SIDEBAND_PAGES ? pages : SIDEBAND_PAGES;
	int ret = 0;

	channels->ring_bytes = pages * (size_t)sysconf(_SC_PAGESIZE);
	for (size_t i = 0; !ret && i < cpus->len; i++) {
		struct channel *channel = vec_push(channels);

		if (!channel)
			return err_nomem(err);
		*channel = (struct channel){.cpu = cpus->items[i],
					    .samples_fd = -1,
					    .sideband_fd = -1,
					    .python_fd = -1};
		ret = open_anchor(&channel->samples_fd, &channel->samples, channel->cpu, pages,
				  channels->ring_bytes / 4, err);
		if (!ret)
			ret = open_anchor(&channel->sideband_fd, &channel->sideband, channel->cpu,
					  sideband_pages, 1, err);
	}
	return ret;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void close_rings(struct channels *channels)
{
	for (size_t i = 0; i < channels->len; i++) {
		struct channel *channel = &channels->items[i];

		ring_close(&channel->samples);
		ring_close(&channel->sideband);
		close_fd(channel->samples_fd);
		close_fd(channel->sideband_fd);
		close_fd(channel->python_fd);
	}
	channels->len = 0;
}

/* Ordinary users may lock little memory: takes what there is, unless told a size. */
static int fit_rings(struct channels *channels, const struct cpus *cpus, struct err *err)
{
	size_t wanted = channels->options->pages;
	size_t pages = wanted ? wanted : RECORDER_DEFAULT_PAGES;
	int ret;

	for (;;) {
		ret = open_rings(channels, cpus, pages, err);
		if (ret != ERR_PERMISSION || wanted || pages <= SMALLEST_PAGES)
			break;
		close_rings(channels);
		pages /= 2;
	}
	if (!ret && pages < RECORDER_DEFAULT_PAGES && !wanted)
		log_info("ring buffers of %zu pages instead of %d: the limit for locked memory "
			 "(kernel.perf_event_mlock_kb) is low",
			 pages, RECORDER_DEFAULT_PAGES);
	return ret;
}

int channels_open(struct channels *channels, const struct recorder_options *options,
		  const struct recorder_target *target, struct pythons *pythons, struct err *err)
{
	struct cpus online = {0};
	int ret = 0;

	*channels = (struct channels){.options = options, .target = target, .pythons = pythons};
	if (!target->cpus.len)
		ret = cpus_online(&online, err);
	if (!ret)
		ret = fit_rings(channels, target->cpus.len ? &target->cpus : &online, err);
	vec_fini(&online);
	if (!ret)
		ret = make_events(channels, err);
	for (size_t i = 0; !ret && pythons_walk(pythons) && i < channels->len; i++)
		ret = open_python(channels, &channels->items[i], err);
	if (!ret)
		ret = open_target(channels, err);
	if (ret)
		channels_close(channels);
	return ret;
}

void channels_close(struct channels *channels)
{
	/* Members of a group before its leader, which would else be switched once more for each. */
	while (channels->open.len)
		close(channels->open.items[--channels->open.len].fd);
	vec_fini(&channels->open);
	close_rings(channels);
	vec_fini(channels);
	for (size_t i = 0; channels->events && i < channels->event_count; i++)
		free((void *)channels->events[i].ids);
	free(channels->events);
	*channels = (struct channels){0};
}

int channels_enable(struct channels *channels, bool on, struct err *err)
{
	for (size_t i = 0; i < channels->open.len; i++) {
		const struct channel_event *open = &channels->open.items[i];

		if (open->event >= channels->sampled ||
		    channels->events[open->event].leader != (int)open->event)
			continue;
		if (ioctl(open->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0)
			return err_sys(err, errno, "cannot %s event %s", on ? "start" : "stop",
				       channels->events[open->event].name);
	}
	return 0;
}
