/*
 * The process that stops threads at their samples.
 *
 * An event with attr.sigtrap sends its thread a SIGTRAP at the overflow, before the thread runs any
 * further code of its own. The thread is traced (PTRACE_SEIZE), so it stops there and its tracer
 * learns of it; the tracer reads the frames, drops the signal and lets the thread go on. Everything
 * else that a traced thread does is passed on untouched: other signals (a SIGTRAP that is not ours
 * among them), group stops (PTRACE_LISTEN), exec.
 *
 * A thread that has such events and is no longer traced dies of its next sample. So
 *  - events are opened for traced threads only, one by one, and never inherited;
 *  - the tracer is a process of its own: whatever ends pyperf, even SIGKILL, the tracer sees its
 * socket close and leaves in order. It is in a session of its own, away from the terminal's
 * signals;
 *  - leaving (see on_leaving_stop()) lets go of a thread only when no signal of ours waits for it.
 *
 * A sample taken in the kernel stops its thread when it returns to its own code, which may be long
 * after: until then its frames stay what they are, so they may be read at any time (look_at()).
 */
#include "record/tracer_internal.h"

#include "base/clock.h"
#include "base/io.h"
#include "event/event.h"
#include "process/stopped.h"
#include "record/attrs.h"
#include "record/target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRACER_NAME "stop-tracer" /* not to be found by those who end "pyperf" by name */
#define SLICE_NS 100000		  /* the shortest that there is */

/* siginfo of TRAP_PERF (include/uapi/asm-generic/siginfo.h), which C libraries do not have yet. */
#define CODE_TRAP_PERF 6
#define TRAP_PERF_ASYNC 1u
struct perf_siginfo {
	int signo, error, code, reserved;
	uint64_t addr;
	uint64_t data;
	uint32_t type, flags;
};

union any_siginfo {
	siginfo_t any;
	struct perf_siginfo perf;
};

bool tracer_tell(struct tracer *tracer, uint32_t kind, const void *head, size_t head_len,
		 const void *body, size_t body_len)
{
	const struct mailbox_part parts[] = {{head, head_len}, {body, body_len}};
	bool room = mailbox_put(tracer->news, kind, parts, 2);

	if (!room)
		tracer->shared->news_lost++;
	if (mailbox_pending(tracer->news) > mailbox_size(tracer->news) / 2 &&
	    !atomic_exchange(&tracer->shared->knocked, true))
		(void)send(tracer->socket, "k", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	return room;
}

static void tell_stop(struct tracer *tracer, uint32_t kind, pid_t tid)
{
	struct tracer_stop stop = {.time = clock_now_ns(), .tid = (uint32_t)tid};

	tracer_tell(tracer, kind, &stop, sizeof(stop), NULL, 0);
}

#define SIGTRAP_BIT (1ull << (SIGTRAP - 1))

/* Threads and processes */

struct task *tracer_find_task(const struct tracer *tracer, pid_t tid)
{
	const uint64_t *task = map_get(&tracer->tasks, (uint64_t)tid);

	return task ? (struct task *)(uintptr_t)*task : NULL;
}

static struct tracee *find_tracee(const struct tracer *tracer, pid_t pid)
{
	const uint64_t *tracee = map_get(&tracer->tracees, (uint64_t)pid);

	return tracee ? (struct tracee *)(uintptr_t)*tracee : NULL;
}

static struct tracee *add_tracee(struct tracer *tracer, pid_t pid, pid_t parent)
{
	struct tracee *tracee = calloc(1, sizeof(*tracee));
	const struct tracee *from = find_tracee(tracer, parent);
	uint64_t *slot = tracee ? map_put(&tracer->tracees, (uint64_t)pid, NULL) : NULL;

	if (!slot) {
		free(tracee);
		return NULL;
	}
	*slot = (uintptr_t)tracee;
	tracee->pid = pid;
	memory_process_init(&tracee->live, pid);
	if (!from) /* it may have run for long */
		tracer_used(tracee);
	/* A fork is what its parent is, until it becomes another program. */
	if (from && from->python) {
		tracee->python = true;
		tracee->process = from->process;
	}
	return tracee;
}

struct task *tracer_add_task(struct tracer *tracer, pid_t tid)
{
	struct task *task = calloc(1, sizeof(*task));
	uint64_t *slot = task ? map_put(&tracer->tasks, (uint64_t)tid, NULL) : NULL;
	struct tracer_status status;

	if (slot && tracer_read_status(tid, &status)) {
		task->tid = tid;
		task->tracee = find_tracee(tracer, status.pid);
		if (!task->tracee)
			task->tracee = add_tracee(tracer, status.pid, status.parent);
	}
	if (!task || !task->tracee) {
		map_remove(&tracer->tasks, (uint64_t)tid);
		free(task);
		return NULL;
	}
	*slot = (uintptr_t)task;
	task->tracee->threads++;
	return task;
}

static void drop_task(struct tracer *tracer, struct task *task)
{
	struct tracee *tracee = task->tracee;

	if (tracee->threads == 1)
		tracer->busy_ns += tracer_used(tracee);
	tell_stop(tracer, TRACER_ENDED, task->tid);
	tracer_close_events(task);
	foresight_fini(&task->foresight);
	map_remove(&tracer->tasks, (uint64_t)task->tid);
	free(task);
	if (--tracee->threads)
		return;
	map_remove(&tracer->tracees, (uint64_t)tracee->pid);
	memory_process_fini(&tracee->live);
	free(tracee);
}

/* The task that `tid` stands for in a walk over all, or the next one. */
static struct task *next_task(const struct tracer *tracer, size_t *at)
{
	uint64_t tid, *task;

	return map_next(&tracer->tasks, at, &tid, &task) ? (struct task *)(uintptr_t)*task : NULL;
}

static void open_events(struct tracer *tracer, struct task *task)
{
	struct err err = {0};

	if (!tracer->leaving && tracer_open_events(tracer, task, &err) && err.code != ERR_NOT_FOUND)
		tracer->shared->not_sampled++;
}

/* Stops */

static void let_go_on(const struct task *task, int signal)
{
	ptrace(PTRACE_CONT, task->tid, NULL, (void *)(uintptr_t)signal);
}

static bool is_ours(const union any_siginfo *info)
{
	return info->any.si_signo == SIGTRAP && info->any.si_code == CODE_TRAP_PERF &&
	       info->perf.data == (unsigned long)TRACER_COOKIE;
}

static void on_sample(struct tracer *tracer, struct task *task, const union any_siginfo *info)
{
	uint64_t now;

	stopped_thread_pointer(task->tid, &task->pointer);
	/* From here on it is off its CPU: every sample that it had is older. */
	now = clock_now_ns();
	tracer_close_retired(task);
	if (info->perf.flags & TRAP_PERF_ASYNC) {
		/* It had SIGTRAP blocked, and ran on. */
		task->stopped = now;
		tell_stop(tracer, TRACER_CANNOT, task->tid);
	} else {
		tracer_walk(tracer, task, now);
	}
	tracer->shared->stops++;
	tracer->stops++;
	tracer_follow_rate(tracer, task);
	let_go_on(task, 0);
	tracer->stall_ns += clock_now_ns() - now;
	tracer_adjust_rate(tracer, now);
}

static void on_signal(struct tracer *tracer, struct task *task, int signal)
{
	union any_siginfo info = {0};

	if (signal == SIGTRAP && ptrace(PTRACE_GETSIGINFO, task->tid, NULL, &info) == 0 &&
	    is_ours(&info)) {
		on_sample(tracer, task, &info);
		return;
	}
	let_go_on(task, signal);
}

/* Events of threads that exec ended, or that are now another's: closed when that is safe. */
static void hand_over(struct task *from, struct task *to)
{
	tracer_retire_events(from);
	for (size_t i = 0; i < from->retired.len; i++) {
		int *fd = vec_push(&to->retired);

		if (fd)
			*fd = from->retired.items[i];
	}
	from->retired.len = 0;
}

/* The thread that called exec is now the first of its process, under that one's id; the others are
 * gone, and of some of them nothing else tells. */
static void on_exec(struct tracer *tracer, struct task *task)
{
	struct tracee *tracee = task->tracee;
	struct fds gone = {0};
	struct task *other;
	size_t at = 0;

	while ((other = next_task(tracer, &at))) {
		int *tid = other != task && other->tracee == tracee ? vec_push(&gone) : NULL;

		if (!tid)
			continue;
		*tid = other->tid;
		hand_over(other, task);
	}
	for (size_t i = 0; i < gone.len; i++)
		drop_task(tracer, tracer_find_task(tracer, gone.items[i]));
	vec_fini(&gone);
	tracee->python = false;
	memory_process_fini(&tracee->live);
	task->pointer = 0;
	tracer_retire_events(task);
	open_events(tracer, task);
	let_go_on(task, 0);
}

static bool is_group_stop(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static void on_stop(struct tracer *tracer, struct task *task, int status)
{
	int signal = WSTOPSIG(status);

	switch (status >> 16) {
	case 0:
		on_signal(tracer, task, signal);
		break;
	case PTRACE_EVENT_EXEC:
		on_exec(tracer, task);
		break;
	case PTRACE_EVENT_STOP:
		if (is_group_stop(signal))
			ptrace(PTRACE_LISTEN, task->tid, NULL, NULL);
		else
			let_go_on(task, 0);
		break;
	default:
		let_go_on(task, 0);
	}
}

/* Leaving */

static bool has_signal_of_ours(const struct task *task)
{
	struct __ptrace_peeksiginfo_args args = {.nr = 1};
	union any_siginfo info;

	while (ptrace(PTRACE_PEEKSIGINFO, task->tid, &args, &info) == 1) {
		if (is_ours(&info))
			return true;
		args.off++;
	}
	return false;
}

/* A thread that has SIGTRAP blocked would die of ours when it unblocks it: it gets it now. */
static void unblock(struct task *task)
{
	uint64_t mask;

	if (task->unblocked || ptrace(PTRACE_GETSIGMASK, task->tid, sizeof(mask), &mask) ||
	    !(mask & SIGTRAP_BIT))
		return;
	task->mask = mask;
	task->unblocked = true;
	mask &= ~SIGTRAP_BIT;
	ptrace(PTRACE_SETSIGMASK, task->tid, sizeof(mask), &mask);
}

static void block_again(struct task *task)
{
	if (task->unblocked)
		ptrace(PTRACE_SETSIGMASK, task->tid, sizeof(task->mask), &task->mask);
	task->unblocked = false;
}

static void ask_to_stop(const struct task *task)
{
	ptrace(PTRACE_INTERRUPT, task->tid, NULL, NULL);
}

static void detach(struct tracer *tracer, struct task *task)
{
	block_again(task);
	tracer_close_events(task);
	ptrace(PTRACE_DETACH, task->tid, NULL, NULL);
	drop_task(tracer, task);
}

/*
 * Events are off. A sample that was taken before may still have its signal to send, which a thread
 * does on its way to a stop that was asked for (get_signal() in kernel/signal.c runs what is left
 * to do first): so the second such stop is behind all of them. What was sent then waits in the
 * queue, and is fetched by letting the thread go on without asking it to stop.
 */
static void on_leaving_stop(struct tracer *tracer, struct task *task, int status)
{
	int event = status >> 16, signal = WSTOPSIG(status);
	bool group_stop = event == PTRACE_EVENT_STOP && is_group_stop(signal);
	union any_siginfo info = {0};

	if (event == 0) {
		if (signal == SIGTRAP && ptrace(PTRACE_GETSIGINFO, task->tid, NULL, &info) == 0 &&
		    is_ours(&info)) {
			block_again(task);
			signal = 0;
		}
		ask_to_stop(task);
		let_go_on(task, signal);
		return;
	}
	if (event != PTRACE_EVENT_STOP) {
		ask_to_stop(task);
		let_go_on(task, 0);
		return;
	}
	task->passes++;
	if (has_signal_of_ours(task) && !group_stop) {
		unblock(task);
		let_go_on(task, 0);
	} else if (task->passes >= 2 || group_stop || !task->events.len) {
		detach(tracer, task);
	} else {
		ask_to_stop(task);
		let_go_on(task, 0);
	}
}

static void begin_leaving(struct tracer *tracer)
{
	const struct task *task;
	size_t at = 0;

	if (tracer->leaving)
		return;
	tracer->leaving = true;
	while ((task = next_task(tracer, &at)))
		tracer_switch_events(tracer, task, false);
	at = 0;
	while ((task = next_task(tracer, &at)))
		ask_to_stop(task);
}

/* Orders */

/*
 * A sample whose thread was not stopped since. As long as its signal is not in the queue either,
 * the thread has been in the kernel all the time (waiting, as a rule), and has the frames that it
 * had.
 */
static void look_at(struct tracer *tracer, pid_t tid, uint64_t time)
{
	struct task *task = tracer_find_task(tracer, tid);
	uint64_t now = clock_now_ns();
	struct tracer_status status;

	if (!task) {
		tell_stop(tracer, TRACER_ENDED, tid);
		return;
	}
	if (task->stopped >= time)
		return; /* the news is on its way */
	if (!tracer_read_status(tid, &status) || (status.pending & SIGTRAP_BIT)) {
		if (status.blocked & SIGTRAP_BIT)
			tell_stop(tracer, TRACER_CANNOT, tid);
		return;
	}
	tracer_walk(tracer, task, now);
}

static void obey(struct tracer *tracer, const struct tracer_order *order)
{
	struct tracee *tracee;
	const struct task *task;
	size_t at = 0;

	switch (order->kind) {
	case TRACER_ADD_PROCESS:
		tracee = find_tracee(tracer, order->pid);
		if (!tracee)
			break;
		tracee->python = true;
		tracee->process = order->process;
		break;
	case TRACER_DROP_PROCESS:
		tracee = find_tracee(tracer, order->pid);
		if (tracee)
			tracee->python = false;
		break;
	case TRACER_ENABLE:
	case TRACER_DISABLE:
		tracer->enabled = order->kind == TRACER_ENABLE;
		while ((task = next_task(tracer, &at)))
			tracer_switch_events(tracer, task, tracer->enabled);
		break;
	case TRACER_LOOK:
		look_at(tracer, order->pid, order->time);
		break;
	case TRACER_LEAVE:
		begin_leaving(tracer);
		break;
	}
}

static void read_orders(struct tracer *tracer)
{
	struct tracer_order order;
	ssize_t len;

	while ((len = recv(tracer->socket, &order, sizeof(order), MSG_DONTWAIT)) > 0)
		if (len == sizeof(order))
			obey(tracer, &order);
	if (len == 0)
		begin_leaving(tracer);
}

/* The loop */

static void take(struct tracer *tracer, pid_t tid, int status)
{
	struct task *task = tracer_find_task(tracer, tid);

	if (!WIFSTOPPED(status)) {
		if (task)
			drop_task(tracer, task);
		return;
	}
	if (!task) {
		task = tracer_add_task(tracer, tid);
		if (!task) {
			ptrace(PTRACE_DETACH, tid, NULL, NULL);
			return;
		}
		open_events(tracer, task);
	}
	if (tracer->leaving)
		on_leaving_stop(tracer, task, status);
	else
		on_stop(tracer, task, status);
}

/* Leaves when nothing is left to trace. */
static void serve(struct tracer *tracer, const sigset_t *wanted)
{
	for (;;) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

		if (tid > 0) {
			take(tracer, tid, status);
			continue;
		}
		if (tracer->leaving && !tracer->tasks.count)
			break;
		if (sigwaitinfo(wanted, NULL) == SIGIO)
			read_orders(tracer);
	}
}

/* A thread stands still until its tracer has a CPU: whoever wants a short slice of it has it
 * sooner, from Linux 6.12 on (kernel/sched/syscalls.c, __setparam_fair()). */
static void ask_for_short_slices(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {.size = sizeof(attr), .runtime = SLICE_NS};

	syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* Nothing that is meant for pyperf or its terminal is to end it. */
static void set_apart(sigset_t *wanted)
{
	struct rlimit limit;
	sigset_t all;

	setsid();
	ask_for_short_slices();
	prctl(PR_SET_NAME, TRACER_NAME);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(wanted);
	sigaddset(wanted, SIGCHLD);
	sigaddset(wanted, SIGIO);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

void tracer_run(const struct tracer_setup *setup)
{
	struct tracer *tracer = calloc(1, sizeof(*tracer));
	struct tracer_answer answer = {0};
	sigset_t wanted;

	if (!tracer)
		_exit(1);
	set_apart(&wanted);
	tracer->channels = setup->channels;
	tracer->news = setup->news;
	tracer->shared = setup->shared;
	tracer->socket = setup->socket;
	tracer->rate = TRACER_RATE_ONE;
	tracer->enabled = setup->enabled;
	fcntl(tracer->socket, F_SETOWN, getpid());
	fcntl(tracer->socket, F_SETFL, fcntl(tracer->socket, F_GETFL) | O_ASYNC);
	answer.code = tracer_attach(tracer, &answer.err);
	(void)send(tracer->socket, &answer, sizeof(answer), MSG_NOSIGNAL);
	if (answer.code)
		begin_leaving(tracer);
	serve(tracer, &wanted);
	(void)send(tracer->socket, "l", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	_exit(0);
}
