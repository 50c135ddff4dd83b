#include "record/channel.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the events of a recording counted, and in which part of their time. */

#define GROUP_MAX 64

/* CPU time that an exec may take: its task runs, and the events that it turns on do not yet. Events
 * that share a counter take turns of 4 ms (perf_event_mux_interval_ms). */
#define EXEC_NS 2000000u

/* What read(2) gives of a group, and of an event alone, by attrs.c. */
struct group_read {
	uint64_t count, enabled_ns, running_ns;
	struct {
		uint64_t value, id;
	} events[GROUP_MAX];
};

static size_t read_group(int fd, struct group_read *group)
{
	ssize_t got = read(fd, group, sizeof(*group));

	return got < (ssize_t)offsetof(struct group_read, events[1]) ? 0 : group->count;
}

/* The counts of an event and of the members that follow it. */
static void add_totals(const struct channels *channels, const struct channel_event *open,
		       struct recorder_count *counts)
{
	struct group_read group;
	size_t count = read_group(open->fd, &group);

	for (size_t i = 0; i < count && open->event + i < channels->sampled; i++) {
		struct recorder_count *total = &counts[open->event + i];

		total->value += group.events[i].value;
		total->enabled_ns += group.enabled_ns;
		total->running_ns += group.running_ns;
	}
}

/* The side-band events take no counter, so they run whenever their tasks do. (Their own time
 * enabled goes on while the task is on another CPU.) Adds by channel what they ran there. */
static void add_times_of_tasks(const struct channels *channels, uint64_t *times)
{
	struct group_read group;

	for (size_t i = 0; i < channels->open.len; i++) {
		const struct channel_event *open = &channels->open.items[i];

		if (open->event == channels->sampled && read_group(open->fd, &group))
			times[open->channel] += group.running_ns;
	}
}

/* What could have been counted: all that ran on the event's CPUs since counting began. */
static uint64_t time_of_event(const struct channels *channels, const uint64_t *times, size_t event)
{
	uint64_t sum = 0;

	for (size_t c = 0; c < channels->len; c++)
		if (channels_reach(channels, c, event))
			sum += times[c] - channels->items[c].before_ns;
	return sum;
}

bool channels_counts(const struct channels *channels, struct recorder_count *counts)
{
	uint64_t *times = calloc(channels->len, sizeof(*times));

	memset(counts, 0, channels->sampled * sizeof(*counts));
	for (size_t i = 0; i < channels->open.len; i++)
		if (channels_lead(channels, &channels->open.items[i]))
			add_totals(channels, &channels->open.items[i], counts);
	if (times && channels->target->kind != RECORDER_CPUS) {
		add_times_of_tasks(channels, times);
		for (size_t i = 0; i < channels->sampled; i++) {
			uint64_t had = time_of_event(channels, times, i);

			if (had > counts[i].enabled_ns)
				had = counts[i].enabled_ns;
			/* Also, a moment passes between reading the two. */
			if (had < counts[i].running_ns + EXEC_NS)
				had = counts[i].running_ns;
			counts[i].enabled_ns = had;
		}
	}
	free(times);
	return channels->opened > 0;
}

void channels_task_counts(const struct channels *channels, pid_t tid, struct recorder_count *counts)
{
	memset(counts, 0, channels->sampled * sizeof(*counts));
	for (size_t i = 0; i < channels->open.len; i++)
		if (channels->open.items[i].tid == tid &&
		    channels_lead(channels, &channels->open.items[i]))
			add_totals(channels, &channels->open.items[i], counts);
	for (size_t i = 0; i < channels->sampled; i++)
		counts[i].enabled_ns = counts[i].running_ns;
}

ssize_t channels_tasks(const struct channels *channels, pid_t **tids)
{
	struct map seen = {0};
	ssize_t count = 0;

	*tids = calloc(channels->open.len + 1, sizeof(**tids));
	for (size_t i = 0; *tids && i < channels->open.len; i++) {
		pid_t tid = channels->open.items[i].tid;
		bool added = false;

		if (tid > 0 && !map_put(&seen, (uint64_t)tid, &added)) {
			free(*tids);
			*tids = NULL;
		} else if (added) {
			(*tids)[count++] = tid;
		}
	}
	map_fini(&seen);
	return *tids ? count : -1;
}

int channels_note_times(struct channels *channels, struct err *err)
{
	uint64_t *times = calloc(channels->len, sizeof(*times));

	if (!times)
		return err_nomem(err);
	add_times_of_tasks(channels, times);
	for (size_t c = 0; c < channels->len; c++)
		channels->items[c].before_ns = times[c];
	free(times);
	return 0;
}
