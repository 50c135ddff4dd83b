#include "record/threads.h"

#include "process/proc.h"
#include "record/target.h"

#include <string.h>

#define THREADS_MAX 4096
#define PROCESSES_MAX 512
#define ACTIVE 0.01

struct listing {
	struct tasks pids;
	struct map seen;
	bool failed;
};

void thread_table_fini(struct thread_table *table)
{
	vec_fini(&table->rows);
	map_fini(&table->by_tid);
}

static bool add_process(pid_t pid, const struct py_process *process, void *ctx)
{
	struct listing *listing = ctx;
	bool added;
	pid_t *slot;

	if (!map_put(&listing->seen, (uint64_t)pid, &added)) {
		listing->failed = true;
		return false;
	}
	if (!added)
		return true;
	slot = vec_push(&listing->pids);
	listing->failed |= !slot;
	if (slot)
		*slot = pid;
	return slot && listing->pids.len < PROCESSES_MAX;
}

static bool is_wanted(const struct recorder_target *target, pid_t tid)
{
	if (target->kind != RECORDER_THREADS)
		return true;
	for (size_t i = 0; i < target->tasks.len; i++)
		if (target->tasks.items[i].tid == tid)
			return true;
	return false;
}

/* Takes over from the row of the last turn what is to be known of the time between. */
static void measure(const struct thread_table *table, struct thread_row *row, uint64_t now)
{
	const uint64_t *at = map_get(&table->by_tid, (uint64_t)row->tid);
	const struct thread_row *before = at ? &table->rows.items[*at - 1] : NULL;
	double elapsed = (double)(now - table->turn_ns);

	if (before && before->pid == row->pid && before->ran_ns <= row->ran_ns && elapsed > 0)
		row->cpu = (double)(row->ran_ns - before->ran_ns) / elapsed;
}

static bool add_thread(struct thread_table *to, const struct thread_table *from, pid_t pid,
		       pid_t tid, uint64_t now)
{
	struct thread_row row = {.pid = pid, .tid = tid}, *slot;
	struct proc_thread thread;
	uint64_t *index;

	if (proc_thread(pid, tid, &thread) < 0)
		return true; /* it has ended */
	memcpy(row.comm, thread.comm, sizeof(row.comm));
	row.state = thread.state;
	row.ran_ns = thread.ran_ns;
	measure(from, &row, now);
	slot = vec_push(&to->rows);
	index = slot ? map_put(&to->by_tid, (uint64_t)tid, NULL) : NULL;
	if (!index)
		return false;
	*slot = row;
	*index = to->rows.len;
	to->cpu += row.cpu;
	to->active += row.cpu >= ACTIVE;
	return true;
}

bool thread_table_turn(struct thread_table *table, const struct recorder *recorder,
		       const struct recorder_target *target, uint64_t now)
{
	struct thread_table next = {.turn_ns = now};
	struct listing listing = {0};
	struct tasks tids = {0};

	for (size_t i = 0; i < target->tasks.len; i++)
		if (!add_process(target->tasks.items[i].pid, NULL, &listing))
			break;
	recorder_each_python(recorder, add_process, &listing);
	for (size_t p = 0; !listing.failed && p < listing.pids.len; p++) {
		size_t before = next.rows.len;

		tids.len = 0;
		if (target_threads(listing.pids.items[p], &tids, NULL) < 0)
			continue;
		for (size_t i = 0; !listing.failed && i < tids.len; i++) {
			next.cut |= next.rows.len >= THREADS_MAX;
			if (!next.cut && is_wanted(target, tids.items[i]))
				listing.failed = !add_thread(&next, table, listing.pids.items[p],
							     tids.items[i], now);
		}
		next.processes += next.rows.len > before;
	}
	vec_fini(&tids);
	vec_fini(&listing.pids);
	map_fini(&listing.seen);
	thread_table_fini(table);
	*table = next;
	return !listing.failed;
}
