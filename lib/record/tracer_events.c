#include "record/tracer_internal.h"

#include "base/log.h"
#include "event/event.h"
#include "record/attrs.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/*
 * The events of one thread: not inherited, so that no thread has any unless it is traced. One that
 * is not would die of their signals.
 *
 * What a stop costs differs between machines by ten times, so it is measured: the time that threads
 * stood still, against the CPU time that their processes used meanwhile. Where that is too much of
 * it, events are opened anew with a longer period, and samples say the period that they stand for.
 */

#define SHARE_MOST 0.08	  /* of the CPU time, that stops may take: 10% are promised */
#define SHARE_LITTLE 0.05 /* below it the rate may rise again */
#define SHARE_AIM 0.07
#define RATE_LEAST 16
#define CUT_MOST 4	   /* at a time: what was measured may have been an accident */
#define FIRST_NS 30000000u /* before the rate is looked at for the first time */
#define PERIOD_NS 250000000u

static void slow_down(struct perf_event_attr *attr, uint32_t rate)
{
	if (rate == TRACER_RATE_ONE)
		return;
	if (attr->freq) {
		attr->sample_freq = attr->sample_freq * rate / TRACER_RATE_ONE;
		if (!attr->sample_freq)
			attr->sample_freq = 1;
	} else {
		attr->sample_period = attr->sample_period * TRACER_RATE_ONE / rate;
	}
}

static int open_one(struct tracer *tracer, struct task *task, const struct channel *channel,
		    uint32_t index, int group, struct err *err)
{
	const struct data_event *event = &tracer->channels->events[index];
	struct perf_event_attr attr = event->attr;
	struct tracer_event news = {.event = index};
	int *slot = vec_push(&task->events);
	int fd;

	if (!slot)
		return err_nomem(err);
	attr_stopping(&attr, TRACER_COOKIE);
	slow_down(&attr, tracer->rate);
	fd = event_open_fd(&attr, task->tid, channel->cpu, group);
	if (fd < 0) {
		struct event_spec spec = {.name = (char *)event->name, .attr = attr};

		task->events.len--;
		return event_open_error(&spec, -fd, err);
	}
	*slot = fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, channel->samples_fd) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ID, &news.id) < 0)
		return err_sys(err, errno, "cannot share a ring buffer between events");
	if (!tracer_tell(tracer, TRACER_EVENT, &news, sizeof(news), NULL, 0))
		return err_set(err, ERR_FAILED, "events are opened faster than they are read");
	return 0;
}

/* Members of a group before its leader, which would else be switched once more for each. */
static void close_all(struct fds *fds)
{
	while (fds->len)
		close(fds->items[--fds->len]);
	vec_fini(fds);
}

int tracer_open_events(struct tracer *tracer, struct task *task, struct err *err)
{
	const struct channels *channels = tracer->channels;
	int ret = 0;

	task->rate = tracer->rate;
	for (size_t c = 0; !ret && c < channels->len; c++) {
		size_t first = task->events.len;

		for (size_t i = 0; !ret && i < channels->sampled; i++) {
			size_t leader = (size_t)channels->events[i].leader;

			ret = open_one(tracer, task, &channels->items[c], (uint32_t)i,
				       leader == i ? -1 : task->events.items[first + leader], err);
		}
	}
	if (ret)
		close_all(&task->events);
	else if (tracer->enabled)
		tracer_switch_events(tracer, task, true);
	return ret;
}

void tracer_switch_events(const struct tracer *tracer, const struct task *task, bool on)
{
	const struct channels *channels = tracer->channels;

	for (size_t i = 0; i < task->events.len; i++) {
		size_t event = i % channels->sampled;

		if (channels->events[event].leader == (int)event)
			ioctl(task->events.items[i],
			      on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
	}
}

void tracer_retire_events(struct task *task)
{
	for (size_t i = 0; i < task->events.len; i++) {
		int *fd = vec_push(&task->retired);

		ioctl(task->events.items[i], PERF_EVENT_IOC_DISABLE, 0);
		if (fd)
			*fd = task->events.items[i];
	}
	task->events.len = 0;
}

void tracer_close_retired(struct task *task)
{
	close_all(&task->retired);
}

void tracer_close_events(struct task *task)
{
	close_all(&task->events);
	close_all(&task->retired);
}

uint64_t tracer_used(struct tracee *tracee)
{
	struct timespec ts;
	clockid_t clock;
	uint64_t now, before = tracee->cpu_ns;

	if (clock_getcpuclockid(tracee->pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	tracee->cpu_ns = now;
	return now > before ? now - before : 0;
}

static uint64_t used_by_all(struct tracer *tracer)
{
	uint64_t sum = 0, pid, *value;
	size_t at = 0;

	while (map_next(&tracer->tracees, &at, &pid, &value))
		sum += tracer_used((struct tracee *)(uintptr_t)*value);
	return sum;
}

static uint32_t better_rate(uint32_t rate, double share)
{
	double wanted = rate;

	if (share > SHARE_MOST)
		wanted = rate * SHARE_AIM / share;
	else if (share < SHARE_LITTLE)
		wanted = rate * (share * 1.5 > SHARE_AIM ? SHARE_AIM / share : 1.5);
	if (wanted < rate / CUT_MOST)
		wanted = rate / CUT_MOST;
	if (wanted > TRACER_RATE_ONE)
		return TRACER_RATE_ONE;
	return wanted < RATE_LEAST ? RATE_LEAST : (uint32_t)wanted;
}

void tracer_adjust_rate(struct tracer *tracer, uint64_t now)
{
	/* The first look comes early: until then the program pays what was asked for. */
	uint64_t wait = tracer->rate == TRACER_RATE_ONE && !tracer->shared->rate_count ? FIRST_NS
										       : PERIOD_NS;
	uint64_t busy, delay, lost;

	if (!tracer->since)
		tracer->since = now;
	if (now - tracer->since < wait || tracer->stops < 16)
		return;
	busy = used_by_all(tracer) + tracer->busy_ns;
	delay = tracer->shared->delay_ns;
	/* Half as long as to fall asleep and be noticed does it take to be woken. */
	lost = tracer->stall_ns + tracer->stops * delay * 3 / 2;
	tracer->shared->rate_sum += tracer->rate * (now - tracer->since) / 1000000;
	tracer->shared->rate_count += (now - tracer->since) / 1000000;
	log_debug("%llu stops in %llu ms of CPU time: %llu us until each, %llu us in it",
		  (unsigned long long)tracer->stops, (unsigned long long)busy / 1000000,
		  (unsigned long long)delay / 1000,
		  (unsigned long long)(tracer->stall_ns / tracer->stops / 1000));
	tracer->since = now;
	tracer->stall_ns = tracer->stops = tracer->busy_ns = 0;
	if (!busy)
		return;
	tracer->rate = better_rate(tracer->rate, (double)lost / (double)busy);
	tracer->shared->rate = tracer->rate;
}

void tracer_follow_rate(struct tracer *tracer, struct task *task)
{
	if (task->rate == tracer->rate || !task->events.len)
		return;
	tracer_retire_events(task);
	if (tracer_open_events(tracer, task, NULL))
		tracer->shared->not_sampled++;
}
