/*
 * How the tracer comes to its threads: those that run are seized one by one, until a look at
 * /proc/PID/task shows no other; what they make from then on is traced from its first instruction.
 */
#include "record/tracer_internal.h"

#include "base/io.h"
#include "base/privilege.h"
#include "event/event.h"
#include "record/attrs.h"
#include "record/target.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS \
	(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC)
#define PASSES_MAX 64  /* over a process that never stops creating threads */
#define SCOPE_NOBODY 3 /* kernel.yama.ptrace_scope: until the next boot */

static uint64_t field(const char *text, const char *name, int base)
{
	const char *line = strstr(text, name);

	return line ? strtoull(line + strlen(name), NULL, base) : 0;
}

bool tracer_read_status(pid_t tid, struct tracer_status *status)
{
	struct strbuf text = {0};
	char path[32];
	bool there;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	there = io_read_file(path, &text, 1 << 16, NULL) == 0 && text.buf;
	*status = (struct tracer_status){0};
	if (there)
		*status = (struct tracer_status){
			.pid = (pid_t)field(text.buf, "\nTgid:", 10),
			.parent = (pid_t)field(text.buf, "\nPPid:", 10),
			.ended = strstr(text.buf, "\nState:\tZ") || strstr(text.buf, "\nState:\tX"),
			.tracer = (pid_t)field(text.buf, "\nTracerPid:", 10),
			.pending = field(text.buf, "\nSigPnd:", 16),
			.blocked = field(text.buf, "\nSigBlk:", 16),
		};
	strbuf_fini(&text);
	return there;
}

/* Why a thread may not be traced. */
static int explain_seize(pid_t tid, int saved_errno, struct err *err)
{
	struct tracer_status status;
	struct privilege privilege;
	enum privilege_need need = PRIVILEGE_NEED_PTRACE;
	bool known = tracer_read_status(tid, &status);

	if (saved_errno != EPERM)
		return err_sys(err, saved_errno, "cannot trace process %d", (int)tid);
	if (known && status.tracer) {
		err_set(err, ERR_PERMISSION,
			"process %d is traced by process %d already (a debugger?), and can have "
			"one tracer only",
			(int)status.pid, (int)status.tracer);
		err_hint(err, "end that one, or use --python=bpf, which traces nothing");
		return ERR_PERMISSION;
	}
	privilege_read(&privilege);
	if (privilege.ptrace_scope > 0) {
		need = PRIVILEGE_NEED_PTRACE_SCOPE;
		err_set(err, ERR_PERMISSION,
			"the kernel does not allow to trace process %d: kernel.yama.ptrace_scope "
			"is %d",
			(int)tid, privilege.ptrace_scope);
	} else {
		/* Of children of one's own nothing else is left. */
		if (known && status.parent == getpid() && privilege.seccomp)
			need = PRIVILEGE_NEED_SECCOMP;
		err_set(err, ERR_PERMISSION, "the kernel does not allow to trace process %d%s",
			(int)tid,
			need == PRIVILEGE_NEED_SECCOMP ? ": a seccomp filter blocks ptrace" : "");
	}
	if (privilege.ptrace_scope == SCOPE_NOBODY)
		err_hint(err, "that can be undone by a boot only; --python=bpf traces nothing");
	else
		err_hint(err, "%s", privilege_remedy(need, privilege.place));
	return ERR_PERMISSION;
}

/* 1 when it is traced now, 0 when it is gone or was traced before. */
static int seize(struct tracer *tracer, pid_t tid, struct err *err)
{
	struct tracer_status status;
	int saved;

	if (tracer_find_task(tracer, tid))
		return 0;
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)OPTIONS) < 0) {
		saved = errno;
		/* One that has ended and is not waited for yet is refused with EPERM. */
		if (saved == ESRCH || !tracer_read_status(tid, &status) || status.ended)
			return 0;
		/* Made by a thread that is traced, so it is, too. */
		if (status.tracer != getpid())
			return explain_seize(tid, saved, err);
	}
	return tracer_add_task(tracer, tid) ? 1 : 0;
}

static int attach_thread(struct tracer *tracer, pid_t tid, size_t *count, struct err *err)
{
	int ret = seize(tracer, tid, err);

	if (ret != 1)
		return ret;
	++*count;
	ret = tracer_open_events(tracer, tracer_find_task(tracer, tid), err);
	return ret == ERR_NOT_FOUND ? 0 : ret;
}

static int attach_process(struct tracer *tracer, pid_t pid, struct err *err)
{
	struct tasks tids = {0};
	int ret = 0;

	for (int pass = 0; !ret && pass < PASSES_MAX; pass++) {
		size_t count = 0;

		tids.len = 0;
		ret = target_threads(pid, &tids, err);
		for (size_t i = 0; !ret && i < tids.len; i++)
			ret = attach_thread(tracer, tids.items[i], &count, err);
		if (!count)
			break;
	}
	vec_fini(&tids);
	return ret;
}

int tracer_attach(struct tracer *tracer, struct err *err)
{
	const struct recorder_target *target = tracer->channels->target;
	size_t count = 0;
	int ret = 0;

	for (size_t i = 0; ret >= 0 && i < target->tasks.len; i++) {
		const struct recorder_task *task = &target->tasks.items[i];

		if (target->kind == RECORDER_COMMAND)
			ret = seize(tracer, task->tid, err); /* its exec opens its events */
		else if (target->kind == RECORDER_THREADS)
			ret = attach_thread(tracer, task->tid, &count, err);
		else
			ret = attach_process(tracer, task->pid, err);
	}
	return ret < 0 ? ret : 0;
}

/* Whether a child of ours can be traced at all. */
static int probe_ptrace(struct err *err)
{
	pid_t pid = fork();
	int ret = 0;

	if (pid < 0)
		return err_sys(err, errno, "cannot start a process");
	if (pid == 0)
		for (;;)
			pause();
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		ret = explain_seize(pid, errno, err);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	return ret;
}

int tracer_probe(pid_t tid, struct err *err)
{
	struct perf_event_attr attr;
	struct event_spec spec = {.name = (char *)"dummy"};
	struct tracer_status status;
	int fd;

	attr_anchor(&attr, 1);
	attr.disabled = 1;
	attr_stopping(&attr, TRACER_COOKIE);
	fd = event_open_fd(&attr, tid, -1, -1);
	if (fd == -EINVAL || fd == -E2BIG) {
		err_set(err, ERR_UNSUPPORTED, "this kernel does not stop threads at their samples");
		err_hint(err, "it takes Linux 5.13; use --python=bpf or --python=trampoline");
		return ERR_UNSUPPORTED;
	}
	if (tid && ((fd == -EACCES || fd == -EPERM) ||
		    (tracer_read_status(tid, &status) && status.tracer))) {
		if (fd >= 0)
			close(fd);
		return explain_seize(tid, EPERM, err);
	}
	if (fd < 0) {
		spec.attr = attr;
		return event_open_error(&spec, -fd, err);
	}
	close(fd);
	return tid ? 0 : probe_ptrace(err);
}
