#include "record/channel.h"

#include "base/log.h"
#include "record/attrs.h"
#include "record/cpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SIDEBAND_PAGES 128
#define SMALLEST_PAGES 8
#define SIDEBAND_NAME "dummy:HG"
#define PYTHON_NAME "python-frames"

static int add_id(struct data_event *event, int fd, struct err *err)
{
	uint64_t *ids = (uint64_t *)event->ids;
	uint64_t id;

	if (ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
		return err_sys(err, errno, "cannot get the id of event %s", event->name);
	ids = realloc(ids, (event->id_count + 1) * sizeof(*ids));
	if (!ids)
		return err_nomem(err);
	ids[event->id_count++] = id;
	event->ids = ids;
	return 0;
}

static int make_events(struct channels *channels, bool python, size_t pages, struct err *err)
{
	const struct event_list *list = channels->options->events;
	int leader = 0;

	channels->ring_bytes = pages * (size_t)sysconf(_SC_PAGESIZE);
	channels->sampled = list->len;
	channels->event_count = list->len + 1 + python;
	channels->events = calloc(channels->event_count, sizeof(*channels->events));
	if (!channels->events)
		return err_nomem(err);
	for (size_t i = 0; i < channels->event_count; i++) {
		struct data_event *event = &channels->events[i];

		event->leader = (int)i;
		if (i < list->len) {
			event->name = list->items[i].name;
			attr_sampled(&event->attr, &list->items[i], channels->options);
			/* The reader is woken when a quarter is full, not at each sample. */
			event->attr.watermark = 1;
			event->attr.wakeup_watermark = (uint32_t)(channels->ring_bytes / 4);
			if (list->items[i].leader)
				leader = (int)i;
			event->leader = leader;
		} else if (i == list->len) {
			event->name = SIDEBAND_NAME;
			attr_sideband(&event->attr, channels->options);
		} else {
			event->name = PYTHON_NAME;
			attr_python(&event->attr);
		}
	}
	return 0;
}

/* Kernels before 5.12 do not know attr.build_id; the file's build-ids are then read from ELF. */
static int open_sideband(struct channels *channels, struct channel *channel, pid_t target,
			 struct err *err)
{
	struct data_event *event = &channels->events[channels->sampled];

	channel->sideband_fd = event_open_fd(&event->attr, target, channel->cpu, -1);
	if (channel->sideband_fd == -EINVAL && event->attr.build_id) {
		event->attr.build_id = 0;
		channel->sideband_fd = event_open_fd(&event->attr, target, channel->cpu, -1);
	}
	if (channel->sideband_fd < 0) {
		struct event_spec spec = {.name = (char *)event->name, .attr = event->attr};

		return event_open_error(&spec, -channel->sideband_fd, err);
	}
	return add_id(event, channel->sideband_fd, err);
}

static int open_sampled(struct channels *channels, struct channel *channel, pid_t target,
			struct err *err)
{
	const struct event_list *list = channels->options->events;

	for (size_t i = 0; i < channels->sampled; i++) {
		struct data_event *event = &channels->events[i];
		int group = event->leader == (int)i ? -1 : channel->fds[event->leader];
		int ret;

		channel->fds[i] = event_open_fd(&event->attr, target, channel->cpu, group);
		if (channel->fds[i] < 0)
			return event_open_error(&list->items[i], -channel->fds[i], err);
		ret = add_id(event, channel->fds[i], err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int open_python(struct channels *channels, struct channel *channel, struct err *err)
{
	struct data_event *event = &channels->events[channels->sampled + 1];

	channel->python_fd = event_open_fd(&event->attr, -1, channel->cpu, -1);
	if (channel->python_fd < 0) {
		struct event_spec spec = {.name = (char *)event->name, .attr = event->attr};

		return event_open_error(&spec, -channel->python_fd, err);
	}
	return add_id(event, channel->python_fd, err);
}

static int redirect(int fd, int ring_fd, struct err *err)
{
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring_fd) < 0)
		return err_sys(err, errno, "cannot share a ring buffer between events");
	return 0;
}

static int open_channel(struct channels *channels, struct channel *channel, pid_t target,
			bool python, size_t pages, struct err *err)
{
	size_t sideband_pages = pages < SIDEBAND_PAGES ? pages : SIDEBAND_PAGES;
	int ret;

	channel->fds = malloc(channels->sampled * sizeof(*channel->fds));
	if (!channel->fds)
		return err_nomem(err);
	for (size_t i = 0; i < channels->sampled; i++)
		channel->fds[i] = -1;
	ret = open_sideband(channels, channel, target, err);
	if (!ret)
		ret = open_sampled(channels, channel, target, err);
	if (!ret && python)
		ret = open_python(channels, channel, err);
	if (!ret)
		ret = ring_open(&channel->samples, channel->fds[0], pages, err);
	if (!ret)
		ret = ring_open(&channel->sideband, channel->sideband_fd, sideband_pages, err);
	for (size_t i = 1; !ret && i < channels->sampled; i++)
		ret = redirect(channel->fds[i], channel->fds[0], err);
	if (!ret && python)
		ret = redirect(channel->python_fd, channel->fds[0], err);
	return ret;
}

static int open_all(struct channels *channels, pid_t target, bool python, size_t pages,
		    struct err *err)
{
	struct cpus cpus = {0};
	int ret = cpus_online(&cpus, err);

	for (size_t i = 0; !ret && i < cpus.len; i++) {
		struct channel *channel = vec_push(channels);

		if (!channel) {
			ret = err_nomem(err);
			break;
		}
		channel->cpu = cpus.items[i];
		channel->sideband_fd = channel->python_fd = -1;
		ret = open_channel(channels, channel, target, python, pages, err);
	}
	vec_fini(&cpus);
	return ret;
}

int channels_open(struct channels *channels, const struct recorder_options *options, pid_t target,
		  bool python, struct err *err)
{
	size_t pages = options->pages ? options->pages : RECORDER_DEFAULT_PAGES;
	int ret;

	*channels = (struct channels){.options = options};
	for (;;) {
		ret = make_events(channels, python, pages, err);
		if (!ret)
			ret = open_all(channels, target, python, pages, err);
		/* Ordinary users may lock little memory: take what there is, unless told a size. */
		if (ret != ERR_PERMISSION || !channels->len || channels->items[0].sideband_fd < 0 ||
		    options->pages || pages <= SMALLEST_PAGES)
			break;
		channels_close(channels);
		channels->options = options;
		pages /= 2;
	}
	if (!ret && pages < RECORDER_DEFAULT_PAGES && !options->pages)
		log_info("ring buffers of %zu pages instead of %d: the limit for locked memory "
			 "(kernel.perf_event_mlock_kb) is low",
			 pages, RECORDER_DEFAULT_PAGES);
	if (ret)
		channels_close(channels);
	return ret;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void channels_close(struct channels *channels)
{
	for (size_t i = 0; i < channels->len; i++) {
		struct channel *channel = &channels->items[i];

		ring_close(&channel->samples);
		ring_close(&channel->sideband);
		for (size_t e = 0; channel->fds && e < channels->sampled; e++)
			close_fd(channel->fds[e]);
		free(channel->fds);
		close_fd(channel->sideband_fd);
		close_fd(channel->python_fd);
	}
	vec_fini(channels);
	for (size_t i = 0; channels->events && i < channels->event_count; i++)
		free((void *)channels->events[i].ids);
	free(channels->events);
	*channels = (struct channels){0};
}

int channels_enable(struct channels *channels, bool on, struct err *err)
{
	for (size_t i = 0; i < channels->len; i++)
		for (size_t e = 0; e < channels->sampled; e++) {
			if (channels->events[e].leader != (int)e)
				continue;
			if (ioctl(channels->items[i].fds[e],
				  on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0)
				return err_sys(err, errno, "cannot %s event %s",
					       on ? "start" : "stop", channels->events[e].name);
		}
	return 0;
}
