#include "record/holders.h"

#include "base/map.h"
#include "base/vec.h"
#include "perfmap/gil.h"
#include "process/memory.h"

#include <stdlib.h>

#define PROCESSES_MAX 512 /* that are followed */
#define DISCOVER_EVERY 16 /* looks: processes that are new are found then */
#define LOOKS 8		  /* at once */
#define THREADS_MAX 4096  /* of a process, that held it */

/* Of the time since the beginning, and of about the last turns. */
struct tally {
	uint64_t all;
	double recent;
};

struct watched {
	pid_t pid;
	struct py_process process;
	struct memory_process live;
	struct py_gil gil; /* address 0: not found yet */
	struct tally looks, held;
	struct map by_thread; /* tid -> index + 1 into threads */
	struct {
		VEC_OF(struct tally)
	} threads;
	struct map thread_of; /* thread state -> tid; emptied at each turn, for they are reused */
	bool met;	      /* by the turn at hand */
};

struct holders {
	const struct recorder *recorder;
	struct {
		VEC_OF(struct watched *)
	} processes;
	struct map by_pid; /* pid -> struct watched * */
	size_t next;
	unsigned int looks;
};

struct holders *holders_new(const struct recorder *recorder)
{
	struct holders *holders = calloc(1, sizeof(*holders));

	if (holders)
		holders->recorder = recorder;
	return holders;
}

static void watched_free(struct watched *watched)
{
	memory_process_fini(&watched->live);
	map_fini(&watched->by_thread);
	map_fini(&watched->thread_of);
	vec_fini(&watched->threads);
	free(watched);
}

void holders_free(struct holders *holders)
{
	if (!holders)
		return;
	for (size_t i = 0; i < holders->processes.len; i++)
		watched_free(holders->processes.items[i]);
	vec_fini(&holders->processes);
	map_fini(&holders->by_pid);
	free(holders);
}

static struct watched *find(const struct holders *holders, pid_t pid)
{
	const uint64_t *at = map_get(&holders->by_pid, (uint64_t)pid);

	return at ? (struct watched *)(uintptr_t)*at : NULL;
}

static struct watched *add(struct holders *holders, pid_t pid)
{
	struct watched *watched = calloc(1, sizeof(*watched)), **slot;
	uint64_t *at;

	if (!watched)
		return NULL;
	watched->pid = pid;
	memory_process_init(&watched->live, pid);
	at = map_put(&holders->by_pid, (uint64_t)pid, NULL);
	slot = at ? vec_push(&holders->processes) : NULL;
	if (!slot) {
		map_remove(&holders->by_pid, (uint64_t)pid);
		watched_free(watched);
		return NULL;
	}
	*at = (uint64_t)(uintptr_t)watched;
	*slot = watched;
	return watched;
}

/* One of the same pid whose runtime lies elsewhere is another. */
static bool meet(pid_t pid, const struct py_process *process, void *ctx)
{
	struct holders *holders = ctx;
	struct watched *watched = find(holders, pid);

	if (!watched && holders->processes.len < PROCESSES_MAX)
		watched = add(holders, pid);
	if (!watched)
		return holders->processes.len < PROCESSES_MAX;
	if (watched->process.runtime != process->runtime)
		watched->gil = (struct py_gil){0};
	watched->process = *process;
	watched->met = true;
	return true;
}

static pid_t thread_of(struct watched *watched, const struct memory *memory, uint64_t state)
{
	uint64_t *tid = map_put(&watched->thread_of, state, NULL);

	if (!tid)
		return 0;
	if (!*tid)
		*tid = (uint64_t)py_gil_thread(&watched->process, memory, state);
	return (pid_t)*tid;
}

static void count(struct tally *tally)
{
	tally->all++;
	tally->recent++;
}

static void count_thread(struct watched *watched, pid_t tid)
{
	uint64_t *at = tid ? map_put(&watched->by_thread, (uint64_t)tid, NULL) : NULL;

	if (!at)
		return;
	if (!*at && vec_push(&watched->threads))
		*at = watched->threads.len;
	if (*at)
		count(&watched->threads.items[*at - 1]);
}

static void look(struct watched *watched)
{
	struct memory memory = memory_of_process(&watched->live);
	__u64 state;

	if (!watched->gil.address || !py_gil_look(&watched->gil, &memory, &state))
		return;
	count(&watched->looks);
	if (!state)
		return;
	count(&watched->held);
	count_thread(watched, thread_of(watched, &memory, state));
}

/* Processes that are new, and locks that were not to be found before. */
static void discover(struct holders *holders)
{
	recorder_each_python(holders->recorder, meet, holders);
	for (size_t i = 0; i < holders->processes.len; i++) {
		struct watched *watched = holders->processes.items[i];
		struct memory memory = memory_of_process(&watched->live);

		if (watched->met && !watched->gil.address)
			py_gil_find(&watched->process, &memory, &watched->gil);
	}
}

void holders_look(struct holders *holders)
{
	size_t many;

	if (holders->looks++ % DISCOVER_EVERY == 0)
		discover(holders);
	many = holders->processes.len;
	for (size_t i = 0; i < many && i < LOOKS; i++) {
		holders->next = (holders->next + 1) % many;
		look(holders->processes.items[holders->next]);
	}
}

static void age(struct watched *watched, double keep)
{
	watched->looks.recent *= keep;
	watched->held.recent *= keep;
	for (size_t i = 0; i < watched->threads.len; i++)
		watched->threads.items[i].recent *= keep;
	map_fini(&watched->thread_of);
	/* Threads come and go: now and then all are forgotten together. */
	if (watched->threads.len < THREADS_MAX)
		return;
	map_fini(&watched->by_thread);
	watched->threads.len = 0;
}

void holders_turn(struct holders *holders, double keep)
{
	size_t kept = 0;

	for (size_t i = 0; i < holders->processes.len; i++)
		holders->processes.items[i]->met = false;
	discover(holders);
	for (size_t i = 0; i < holders->processes.len; i++) {
		struct watched *watched = holders->processes.items[i];

		if (!watched->met) {
			map_remove(&holders->by_pid, (uint64_t)watched->pid);
			watched_free(watched);
			continue;
		}
		age(watched, keep);
		holders->processes.items[kept++] = watched;
	}
	holders->processes.len = kept;
}

void holders_reset(struct holders *holders)
{
	for (size_t i = 0; i < holders->processes.len; i++) {
		struct watched *watched = holders->processes.items[i];

		watched->looks = watched->held = (struct tally){0};
		watched->threads.len = 0;
		map_fini(&watched->by_thread);
	}
}

static struct holder_share share_of(const struct watched *watched, const struct tally *held)
{
	struct holder_share share = {
		.known = watched->looks.all > 0,
		.lockless = watched->process.layout.free_threaded,
	};

	if (held && watched->looks.all)
		share.all = (double)held->all / (double)watched->looks.all;
	if (held && watched->looks.recent > 0)
		share.recent = held->recent / watched->looks.recent;
	return share;
}

struct holder_share holders_process(const struct holders *holders, pid_t pid)
{
	const struct watched *watched = find(holders, pid);

	return watched ? share_of(watched, &watched->held) : (struct holder_share){0};
}

struct holder_share holders_thread(const struct holders *holders, pid_t pid, pid_t tid)
{
	const struct watched *watched = find(holders, pid);
	const uint64_t *at = watched ? map_get(&watched->by_thread, (uint64_t)tid) : NULL;

	if (!watched)
		return (struct holder_share){0};
	return share_of(watched, at ? &watched->threads.items[*at - 1] : NULL);
}

pid_t holders_busiest(const struct holders *holders, size_t *many)
{
	const struct watched *busiest = NULL;

	*many = holders->processes.len;
	for (size_t i = 0; i < holders->processes.len; i++) {
		const struct watched *watched = holders->processes.items[i];

		if (!busiest || share_of(watched, &watched->held).recent >
					share_of(busiest, &busiest->held).recent)
			busiest = watched;
	}
	return busiest ? busiest->pid : 0;
}
