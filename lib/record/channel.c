#include "record/channel.h"

#include "base/cpus.h"
#include "base/log.h"
#include "record/attrs.h"
#include "record/traces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define SIDEBAND_PAGES 128
#define WATERMARK_MAX (512u << 10)
#define SMALLEST_PAGES 8
#define SIDEBAND_NAME "dummy:HG"
#define PYTHON_NAME "python-frames"
#define ANCHOR_NAME "dummy"
#define LATE_ID (UINT64_C(1) << 32)

/* The limit on open files, as far up as it goes; false where it is there already. */
static bool raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int open_fd(const struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	int fd = event_open_fd(attr, pid, cpu, group);

	return fd == -EMFILE && raise_limit() ? event_open_fd(attr, pid, cpu, group) : fd;
}

/* Whatever runs on the CPU and belongs to the group. */
static int open_cgroup_fd(const struct perf_event_attr *attr, int cgroup_fd, int cpu, int group)
{
	int fd = event_open_cgroup_fd(attr, cgroup_fd, cpu, group);

	return fd == -EMFILE && raise_limit() ? event_open_cgroup_fd(attr, cgroup_fd, cpu, group)
					      : fd;
}

static int open_error(const char *name, const struct perf_event_attr *attr, int fd, struct err *err)
{
	struct event_spec spec = {.name = (char *)name, .attr = *attr};
	struct rlimit limit;

	if (fd == -EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		err_set(err, ERR_SYSTEM,
			"every thread takes open files on every CPU, and a process may have %llu "
			"(RLIMIT_NOFILE): they are too few",
			(unsigned long long)limit.rlim_max);
		err_hint(err, "raise the limit (ulimit -Hn), attach to fewer processes or threads, "
			      "or record with -a");
		return ERR_SYSTEM;
	}
	return event_open_error(&spec, -fd, err);
}

static int redirect(int fd, int ring_fd, struct err *err)
{
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring_fd) < 0)
		return err_sys(err, errno, "cannot share a ring buffer between events");
	return 0;
}

/* Space doubles, so that thousands of threads cost no thousand copies. */
static int add_file_id(struct data_event *event, uint64_t id, struct err *err)
{
	uint64_t *ids = (uint64_t *)event->ids;

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

static int add_id(struct channels *channels, size_t channel, size_t index, int fd, uint64_t *id,
		  struct err *err)
{
	uint64_t *file_id = &channels->file_ids[channel * channels->event_count + index];
	struct data_event *event = &channels->events[index];
	uint64_t *value;

	if (ioctl(fd, PERF_EVENT_IOC_ID, id) < 0)
		return err_sys(err, errno, "cannot get the id of event %s", event->name);
	value = map_put(&channels->event_by_id, *id, NULL);
	if (!value)
		return err_nomem(err);
	*value = index | (channels->ids_filed ? LATE_ID : 0);
	if (channels->ids_filed)
		return 0;
	if (!*file_id)
		*file_id = *id;
	return add_file_id(event, *id, err);
}

uint64_t channels_file_id(const struct channels *channels, size_t channel, size_t event)
{
	uint64_t id = channels->file_ids[channel * channels->event_count + event];

	return id ? id : channels->events[event].ids[0];
}

int channels_event(const struct channels *channels, uint64_t id, bool *late)
{
	const uint64_t *value = map_get(&channels->event_by_id, id);

	if (!value) {
		*late = true;
		return pythons_event(channels->pythons, id);
	}
	*late = *value & LATE_ID;
	return (int)(*value & ~LATE_ID);
}

/* Waking at each sample would cost more than sampling; waking late makes a burst of work, and what
 * a sample needs of its process may be gone by then. */
static size_t watermark(const struct channels *channels)
{
	size_t quarter = channels->ring_bytes / 4;

	return quarter < WATERMARK_MAX ? quarter : WATERMARK_MAX;
}

bool channels_reach(const struct channels *channels, size_t channel, size_t event)
{
	return !channels->elsewhere[channel * channels->sampled + event];
}

/* On a hybrid CPU each core PMU counts on its own CPUs alone. */
static int find_elsewhere(struct channels *channels, struct err *err)
{
	const struct event_list *list = channels->options->events;
	size_t leader = 0;

	channels->elsewhere = calloc(channels->len * list->len, sizeof(*channels->elsewhere));
	if (!channels->elsewhere)
		return err_nomem(err);
	for (size_t i = 0; i < list->len; i++) {
		struct cpus cpus = {0};
		int ret = list->items[i].cpus ? cpus_parse(&cpus, list->items[i].cpus, err) : 0;

		if (list->items[i].leader)
			leader = i;
		/* Members are where their leader is. */
		for (size_t c = 0; !ret && c < channels->len; c++)
			channels->elsewhere[c * list->len + i] =
				channels->elsewhere[c * list->len + leader] ||
				(list->items[i].cpus &&
				 !cpus_contain(&cpus, channels->items[c].cpu));
		vec_fini(&cpus);
		if (ret)
			return ret;
	}
	return 0;
}

static int make_events(struct channels *channels, struct err *err)
{
	const struct event_list *list = channels->options->events;
	enum recorder_target_kind kind = channels->target->kind;
	int leader = 0, ret;

	channels->sampled = list->len;
	channels->opened = pythons_open_events(channels->pythons) ? 0 : list->len;
	channels->event_count = list->len + 1 + pythons_walk(channels->pythons);
	channels->events = calloc(channels->event_count, sizeof(*channels->events));
	channels->file_ids = calloc(channels->len * channels->event_count,
				    sizeof(*channels->file_ids));
	if (!channels->events || !channels->file_ids)
		return err_nomem(err);
	ret = find_elsewhere(channels, err);
	if (ret)
		return ret;
	for (size_t i = 0; i < channels->event_count; i++) {
		struct data_event *event = &channels->events[i];

		event->leader = (int)i;
		if (i < list->len) {
			event->name = list->items[i].name;
			attr_sampled(&event->attr, &list->items[i], channels->options, kind,
				     channels->native);
			/* The reader is woken when a quarter is full, not at each sample. */
			event->attr.watermark = 1;
			event->attr.wakeup_watermark = (uint32_t)watermark(channels);
			if (list->items[i].leader)
				leader = (int)i;
			event->leader = leader;
			if (list->items[i].counted && !channels->options->counting) {
				attr_counted(&event->attr);
				attr_reads_group(&channels->events[leader].attr);
			}
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

static bool is_tracepoint(const struct data_event *event)
{
	return event->attr.type == PERF_TYPE_TRACEPOINT;
}

static bool traces(const struct channels *channels, size_t index)
{
	return index < channels->sampled && channels->options->events->items[index].traces;
}

/* Members that a leader's samples read have none. */
static bool writes_samples(const struct channels *channels, size_t index)
{
	const struct perf_event_attr *attr = &channels->events[index].attr;

	return attr->sample_period > 0 && !traces(channels, index); /* or sample_freq */
}

/* Opens one event, sends its records to a ring of the channel, keeps its fd and id. ERR_NOT_FOUND
 * where the task has ended. *fd stays the channels'. */
static int open_event(struct channels *channels, struct channel *channel, size_t index, pid_t tid,
		      int group, int *fd, struct err *err)
{
	struct data_event *event = &channels->events[index];
	bool sampled = index < channels->sampled;
	struct channel_event *slot = vec_push(&channels->open);
	int ret;

	if (!slot)
		return err_nomem(err);
	*fd = sampled && channels->target->cgroup.path
		      ? open_cgroup_fd(&event->attr, channels->target->cgroup.fd, channel->cpu,
				       group)
		      : open_fd(&event->attr, tid, channel->cpu, group);
	/* Kernels before 5.12 do not know attr.build_id; build-ids are then read from ELF. */
	if (*fd == -EINVAL && event->attr.build_id) {
		event->attr.build_id = 0;
		*fd = open_fd(&event->attr, tid, channel->cpu, group);
	}
	if (*fd < 0) {
		channels->open.len--;
		return open_error(event->name, &event->attr, *fd, err);
	}
	*slot = (struct channel_event){
		.fd = *fd,
		.event = (uint32_t)index,
		.channel = (uint32_t)(channel - channels->items),
		.tid = tid,
	};
	ret = redirect(*fd, sampled ? channel->samples_fd : channel->sideband_fd, err);
	if (!ret && traces(channels, index) && !channel->aux.data)
		ret = aux_open(&channel->aux, *fd, &channel->samples, TRACES_PAGES, err);
	if (!ret && sampled && writes_samples(channels, index) && !is_tracepoint(event))
		ret = pythons_attach(channels->pythons, *fd, false, err);
	return ret ? ret
		   : add_id(channels, (size_t)(channel - channels->items), index, *fd, &slot->id,
			    err);
}

bool channels_lead(const struct channels *channels, const struct channel_event *open)
{
	return open->fd >= 0 && open->event < channels->sampled &&
	       channels->events[open->event].leader == (int)open->event;
}

static int switch_events(struct channels *channels, size_t from, bool on, struct err *err)
{
	for (size_t i = from; i < channels->open.len; i++) {
		const struct channel_event *open = &channels->open.items[i];

		if (channels_lead(channels, open) &&
		    ioctl(open->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0)
			return err_sys(err, errno, "cannot %s event %s", on ? "start" : "stop",
				       channels->events[open->event].name);
	}
	return 0;
}

/* Keeps the place of an event that another PMU's CPUs count. */
static int leave_out(struct channels *channels, size_t channel, size_t index, pid_t tid, int *fd,
		     struct err *err)
{
	struct channel_event *slot = vec_push(&channels->open);

	if (!slot)
		return err_nomem(err);
	*fd = -1;
	*slot = (struct channel_event){
		.fd = -1, .event = (uint32_t)index, .channel = (uint32_t)channel, .tid = tid};
	return 0;
}

static int open_sampled(struct channels *channels, pid_t tid, struct err *err)
{
	int *fds = malloc(channels->sampled * sizeof(*fds));
	int ret = fds ? 0 : err_nomem(err);

	for (size_t c = 0; !ret && c < channels->len; c++)
		for (size_t i = 0; !ret && i < channels->opened; i++) {
			int leader = channels->events[i].leader;

			ret = channels_reach(channels, c, i)
				      ? open_event(channels, &channels->items[c], i, tid,
						   leader == (int)i ? -1 : fds[leader], &fds[i],
						   err)
				      : leave_out(channels, c, i, tid, &fds[i], err);
		}
	free(fds);
	return ret;
}

int channels_open_task(struct channels *channels, pid_t tid, bool in_doubt, struct err *err)
{
	size_t first = channels->open.len;
	int ret = open_sampled(channels, tid, err), fd;

	/* Also where the task ended meanwhile: what it created before that has inherited. */
	for (size_t i = first; in_doubt && i < channels->open.len; i++)
		if (channels->open.items[i].fd >= 0 &&
		    !doubt_add(&channels->doubt, channels->open.items[i].id, i))
			ret = err_nomem(err);
	for (size_t c = 0; !ret && c < channels->len; c++)
		ret = open_event(channels, &channels->items[c], channels->sampled, tid, -1, &fd,
				 err);
	return !ret && channels->counting ? switch_events(channels, first, true, err) : ret;
}

static void close_event(struct channels *channels, struct channel_event *open)
{
	doubt_close(&channels->doubt, open->id);
	close(open->fd);
	open->fd = -1;
}

/* With its group, members before the leader. */
static void close_group(struct channels *channels, size_t place)
{
	struct channel_event *open = channels->open.items;
	int leader = channels->events[open[place].event].leader;
	size_t end;

	while ((int)open[place].event > leader)
		place--;
	for (end = place + 1; end < channels->open.len && open[end].event > open[place].event &&
			      open[end].event < channels->sampled &&
			      channels->events[open[end].event].leader == leader;)
		end++;
	while (end-- > place)
		if (open[end].fd >= 0)
			close_event(channels, &open[end]);
}

void channels_close_task(struct channels *channels, size_t place)
{
	size_t count = channels->len * channels->opened;

	for (size_t i = count; i-- > 0;)
		if (place + i < channels->open.len && channels->open.items[place + i].fd >= 0)
			close_event(channels, &channels->open.items[place + i]);
}

bool channels_keep(struct channels *channels, size_t channel, size_t event, uint32_t tid,
		   uint64_t id)
{
	size_t redundant;
	bool keep = doubt_keeps(&channels->doubt, tid,
				(uint32_t)(channel * channels->sampled + event), id, &redundant);

	if (redundant != DOUBT_NONE)
		close_group(channels, redundant);
	return keep;
}

static int open_python(struct channels *channels, struct channel *channel, struct err *err)
{
	struct data_event *event = &channels->events[channels->sampled + 1];
	uint64_t id;
	int ret;

	channel->python_fd = open_fd(&event->attr, -1, channel->cpu, -1);
	if (channel->python_fd < 0)
		return open_error(event->name, &event->attr, channel->python_fd, err);
	ret = redirect(channel->python_fd, channel->samples_fd, err);
	if (!ret)
		ret = pythons_output(channels->pythons, channel->cpu, channel->python_fd, err);
	return ret ? ret
		   : add_id(channels, (size_t)(channel - channels->items), channels->sampled + 1,
			    channel->python_fd, &id, err);
}

/* A walker belongs to a tracepoint as a whole and ends with the event that it was attached through.
 * Since Linux 6.9 that is also any event that inherited it, so the first thread to end would end it
 * for all: hence an event that nothing inherits and that counts nothing. */
static int open_tracepoints(struct channels *channels, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < channels->sampled; i++) {
		struct data_event *event = &channels->events[i];
		struct perf_event_attr attr = event->attr;
		int *fd;

		if (!is_tracepoint(event))
			continue;
		fd = vec_push(&channels->walkers);
		if (!fd)
			return err_nomem(err);
		attr.inherit = attr.enable_on_exec = 0;
		attr.disabled = 1;
		*fd = open_fd(&attr, 0, -1, -1);
		ret = *fd < 0 ? open_error(event->name, &attr, *fd, err)
			      : pythons_attach(channels->pythons, *fd, true, err);
	}
	return ret;
}

/* An id under which an event is in the file that others open, or that nobody does: the kernel gives
 * no id twice. */
static int file_id(struct channels *channels, size_t channel, size_t index, struct err *err)
{
	struct data_event *event = &channels->events[index];
	struct perf_event_attr attr = event->attr;
	uint64_t id;
	int fd, ret;

	attr_apart(&attr);
	fd = open_fd(&attr, 0, -1, -1);
	if (fd < 0)
		return open_error(event->name, &attr, fd, err);
	ret = add_id(channels, channel, index, fd, &id, err);
	close(fd);
	return ret;
}

/* None of the CPUs has the event's PMU. */
static bool is_nowhere(const struct channels *channels, size_t event)
{
	for (size_t c = 0; c < channels->len; c++)
		if (channels_reach(channels, c, event))
			return false;
	return true;
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
				  watermark(channels), err);
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

		aux_close(&channel->aux);
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
	size_t wanted = channels->options->pages, pages = wanted, usual;
	int ret;

	usual = channels->options->chain == RECORDER_CHAIN_DWARF ? RECORDER_DWARF_PAGES
								 : RECORDER_DEFAULT_PAGES;
	if (!wanted)
		pages = usual;
	for (;;) {
		ret = open_rings(channels, cpus, pages, err);
		if (ret != ERR_PERMISSION || wanted || pages <= SMALLEST_PAGES)
			break;
		close_rings(channels);
		pages /= 2;
	}
	if (!ret && pages < usual && !wanted)
		log_info("ring buffers of %zu pages instead of %zu: the limit for locked memory "
			 "(kernel.perf_event_mlock_kb) is low",
			 pages, usual);
	return ret;
}

int channels_open(struct channels *channels, const struct recorder_options *options,
		  const struct recorder_target *target, struct pythons *pythons,
		  const struct native *native, struct err *err)
{
	struct cpus online = {0};
	int ret = 0;

	*channels = (struct channels){
		.options = options, .target = target, .pythons = pythons, .native = native};
	ret = traces_find(&channels->traced, options, pythons, err);
	if (!ret && !target->cpus.len)
		ret = cpus_online(&online, err);
	if (!ret)
		ret = fit_rings(channels, target->cpus.len ? &target->cpus : &online, err);
	vec_fini(&online);
	if (!ret)
		ret = make_events(channels, err);
	for (size_t i = 0; !ret && pythons_need_output(pythons) && i < channels->len; i++)
		ret = open_python(channels, &channels->items[i], err);
	if (!ret && pythons_walk(pythons) && !pythons_open_events(pythons))
		ret = open_tracepoints(channels, err);
	for (size_t i = 0; !ret && pythons_open_events(pythons) && i < channels->event_count; i++)
		for (size_t c = 0; !ret && i != channels->sampled && c < channels->len; c++)
			ret = file_id(channels, c, i, err);
	for (size_t i = 0; !ret && !pythons_open_events(pythons) && i < channels->sampled; i++)
		if (is_nowhere(channels, i))
			ret = file_id(channels, 0, i, err);
	if (ret)
		channels_close(channels);
	return ret;
}

void channels_close(struct channels *channels)
{
	/* Members of a group before its leader, which would else be switched once more for each. */
	while (channels->open.len)
		close_fd(channels->open.items[--channels->open.len].fd);
	vec_fini(&channels->open);
	for (size_t i = 0; i < channels->walkers.len; i++)
		close_fd(channels->walkers.items[i]);
	vec_fini(&channels->walkers);
	doubt_fini(&channels->doubt);
	map_fini(&channels->event_by_id);
	close_rings(channels);
	vec_fini(channels);
	for (size_t i = 0; channels->events && i < channels->event_count; i++)
		free((void *)channels->events[i].ids);
	free(channels->events);
	free(channels->elsewhere);
	free(channels->file_ids);
	*channels = (struct channels){0};
}

/* A thread that is created by one that inherited takes on its parent's state, and may be linked to
 * the event only when the event's family was switched already (inherit_event(),
 * kernel/events/core.c): hence not once. */
#define SWITCHES 3

int channels_enable(struct channels *channels, bool on, struct err *err)
{
	bool inherited = channels->target->kind != RECORDER_CPUS;
	int ret = 0;

	channels->counting = on;
	if (on && inherited)
		ret = channels_note_times(channels, err);
	for (int i = 0; !ret && i < (inherited && on ? SWITCHES : 1); i++)
		ret = switch_events(channels, 0, on, err);
	pythons_enable(channels->pythons, on);
	return ret;
}
