/*
 * Attaching to threads that come and go.
 *
 * An open event is inherited by what its thread creates, so a thread that is found later is opened
 * only where it did not inherit. In clone() the kernel first lets the child inherit, then makes it
 * visible, and writes a FORK record at last. Hence, of what a thread creates, after its events are
 * open:
 *
 *  - the first child may have inherited or not: its clone() may have been under way;
 *  - later ones have inherited, so have all children of what inherited.
 *
 * A child without a FORK record is as uncertain as a first one. Uncertain ones are opened in doubt,
 * and samples tell those that are counted twice (doubt.h). So do side-band records: each side-band
 * event that a thread has writes its own, and since that event is opened last, a thread that
 * inherited it has inherited the others.
 *
 * /proc/PID/task is read until it shows no unknown thread; clone() calls that take longer show by
 * their FORK record.
 */
#include "record/attach.h"

#include "base/clock.h"
#include "base/log.h"
#include "record/target.h"

#include <time.h>
#include <unistd.h>

#define PASSES_MAX 64	       /* over a process that never stops creating threads */
#define CLONE_MAX_NS 250000000 /* a clone() call takes less, also where CPUs are scarce */
#define BORN_WITH_EVENTS 0

/* A task whose events are open. */
struct attached {
	uint64_t opened_ns;	/* or BORN_WITH_EVENTS */
	uint64_t first_fork_ns; /* thereafter */
	size_t place;		/* of its events, where they were opened in doubt, */
	bool in_doubt;
};

static struct attached *find(const struct attach *attach, uint32_t tid)
{
	const uint64_t *index = map_get(&attach->by_tid, tid);

	return index ? &attach->tasks.items[*index] : NULL;
}

static struct attached *add(struct attach *attach, uint32_t tid, struct err *err)
{
	struct attached *attached = vec_push(&attach->tasks);
	uint64_t *index = attached ? map_put(&attach->by_tid, tid, NULL) : NULL;

	if (!index) {
		err_nomem(err);
		return NULL;
	}
	*index = attach->tasks.len - 1;
	return attached;
}

/* One that has ended is no failure, but not *opened. */
static int open_task(struct attach *attach, pid_t pid, pid_t tid, bool in_doubt, bool *opened,
		     struct err *err)
{
	size_t place = attach->channels->open.len;
	struct attached *attached;
	int ret = channels_open_task(attach->channels, tid, in_doubt, err);

	if (ret == ERR_PERMISSION)
		return target_explain(pid, err);
	if (ret == ERR_NOT_FOUND)
		return 0;
	if (ret)
		return ret;
	attached = add(attach, (uint32_t)tid, err);
	if (!attached)
		return ERR_NOMEM;
	attached->opened_ns = clock_now_ns();
	attached->place = place;
	attached->in_doubt = in_doubt;
	*opened = true;
	return 0;
}

/* By a FORK record: does its thread have the events of its parent? */
static bool inherits(const struct attach *attach, const struct record_task *fork)
{
	struct attached *parent = find(attach, fork->ptid);

	if (!parent)
		return false;
	if (parent->opened_ns == BORN_WITH_EVENTS)
		return true;
	if (fork->time < parent->opened_ns)
		return false;
	/* Rings are read one after the other: a later fork may be seen first. */
	if (!parent->first_fork_ns || fork->time <= parent->first_fork_ns) {
		parent->first_fork_ns = fork->time;
		return false;
	}
	return true;
}

/* Whose record it is has inherited where another event than its own writes it. */
static void resolve(struct attach *attach, uint32_t tid, uint64_t id)
{
	struct attached *attached = find(attach, tid);
	const struct channels *channels = attach->channels;
	size_t own, end;

	if (!attached || !attached->in_doubt)
		return;
	own = attached->place + channels->len * channels->opened;
	end = own + channels->len;
	for (; own < end; own++)
		if (channels->open.items[own].id == id)
			return;
	attached->in_doubt = false;
	attached->opened_ns = BORN_WITH_EVENTS;
	channels_close_task(attach->channels, attached->place);
}

static int on_fork(struct attach *attach, const struct record_task *fork, uint64_t id,
		   struct err *err)
{
	struct attached *attached;
	bool opened = false;

	resolve(attach, fork->ptid, id);
	if (find(attach, fork->tid))
		return 0;
	if (!inherits(attach, fork))
		return open_task(attach, (pid_t)fork->pid, (pid_t)fork->tid, true, &opened, err);
	attached = add(attach, fork->tid, err);
	if (!attached)
		return ERR_NOMEM;
	attached->opened_ns = BORN_WITH_EVENTS;
	return 0;
}

int attach_record(struct attach *attach, const struct perf_event_header *header, uint64_t id,
		  struct err *err)
{
	struct record_task task;

	if (!attach->settled_ns ||
	    (header->type != PERF_RECORD_FORK && header->type != PERF_RECORD_EXIT) ||
	    !record_decode_task(header, &task))
		return 0;
	if (task.time > attach->settled_ns) {
		attach_fini(attach);
		return 0;
	}
	if (header->type == PERF_RECORD_FORK)
		return on_fork(attach, &task, id, err);
	resolve(attach, task.tid, id);
	map_remove(&attach->by_tid, task.tid); /* the number may be another thread's soon */
	return 0;
}

/* The FORK records that wait in the rings; they stay there. */
static int peek_forks(struct attach *attach, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; i < attach->channels->len; i++) {
		struct ring *ring = &attach->channels->items[i].sideband;
		const struct perf_event_header *header;
		struct record_task task;
		int corrupt = 0;
		uint64_t id;

		ring_begin(ring);
		while (!ret && (header = ring_next(ring, &corrupt)))
			if (header->type == PERF_RECORD_FORK && record_decode_task(header, &task) &&
			    record_identifier(header, PERF_SAMPLE_IDENTIFIER, &id))
				ret = on_fork(attach, &task, id, err);
	}
	return ret;
}

static int open_process(struct attach *attach, pid_t pid, bool *opened, struct err *err)
{
	bool unknown = true, alone = attach->channels->options->no_inherit;
	struct tasks tids = {0};
	int ret = 0;

	for (int pass = 0; !ret && unknown && pass < (alone ? 1 : PASSES_MAX); pass++) {
		tids.len = 0;
		ret = target_threads(pid, &tids, err);
		if (!ret && pass)
			ret = peek_forks(attach, err);
		unknown = false;
		for (size_t i = 0; !ret && i < tids.len; i++) {
			if (find(attach, (uint32_t)tids.items[i]))
				continue;
			unknown = true;
			ret = open_task(attach, pid, tids.items[i], pass > 0, opened, err);
		}
	}
	vec_fini(&tids);
	return ret;
}

static int open_running(struct attach *attach, struct err *err)
{
	const struct recorder_target *target = attach->target;
	bool any = false;
	int ret = 0;

	for (size_t i = 0; !ret && i < target->tasks.len; i++) {
		const struct recorder_task *task = &target->tasks.items[i];
		bool opened = find(attach, (uint32_t)task->tid);

		if (target->kind == RECORDER_PROCESSES)
			ret = open_process(attach, task->pid, &opened, err);
		else if (!opened)
			ret = open_task(attach, task->pid, task->tid, false, &opened, err);
		if (!ret && !opened)
			log_info("%s %d has ended",
				 target->kind == RECORDER_THREADS ? "thread" : "process",
				 (int)task->tid);
		any |= opened;
	}
	if (!attach->channels->options->no_inherit)
		attach->settled_ns = clock_now_ns() + CLONE_MAX_NS;
	return ret || any ? ret : err_set(err, ERR_NOT_FOUND, "what was to be recorded has ended");
}

int attach_open(struct attach *attach, struct channels *channels,
		const struct recorder_target *target, struct err *err)
{
	*attach = (struct attach){.channels = channels, .target = target};
	switch (target->kind) {
	case RECORDER_COMMAND:
		return channels_open_task(channels, target->tasks.items[0].pid, false, err);
	case RECORDER_CPUS:
		return channels_open_task(channels, -1, false, err);
	default:
		return open_running(attach, err);
	}
}

void attach_fini(struct attach *attach)
{
	vec_fini(&attach->tasks);
	map_fini(&attach->by_tid);
	attach->settled_ns = 0;
}
