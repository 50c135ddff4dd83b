#include "record/target.h"

#include "base/io.h"
#include "base/privilege.h"
#include "base/text.h"
#include "process/proc.h"
#include "record/cgroup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_MAX (1u << 22) /* PID_MAX_LIMIT, linux/threads.h */
#define NAMED_MAX 3	  /* targets that a description lists */

/* The numbers among the names of a folder of /proc. */
static int read_numbers(const char *path, struct tasks *numbers, struct err *err)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	if (!folder)
		return errno == ENOENT || errno == ESRCH
			       ? 0
			       : err_sys(err, errno, "cannot read %s", path);
	while ((entry = readdir(folder))) {
		pid_t *number;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		number = vec_push(numbers);
		if (!number) {
			closedir(folder);
			return err_nomem(err);
		}
		*number = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	closedir(folder);
	return 0;
}

int target_check(struct err *err)
{
	struct privilege privilege;

	privilege_read(&privilege);
	if (privilege.known && !privilege.foreign_proc)
		return 0;
	err_set(err, ERR_UNSUPPORTED,
		privilege.known ? "/proc shows another pid namespace than the one that pyperf runs "
				  "in: its numbers name other processes"
				: "/proc does not show the processes that pyperf sees");
	err_hint(err, "%s", privilege_remedy(PRIVILEGE_NEED_PROC, privilege.place));
	return ERR_UNSUPPORTED;
}

int target_threads(pid_t pid, struct tasks *tasks, struct err *err)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return read_numbers(path, tasks, err);
}

int target_processes(struct tasks *pids, struct err *err)
{
	return read_numbers("/proc", pids, err);
}

/* Fields of /proc/PID/task/TID/stat: the state and the time of the start. The name before them may
 * hold anything, so they are counted from the last parenthesis. */
static bool read_stat(const struct recorder_task *task, char *state, uint64_t *start)
{
	struct strbuf text = {0};
	char path[64], *at = NULL;
	unsigned long long value;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)task->pid, (int)task->tid);
	if (io_read_file(path, &text, 1 << 16, NULL) == 0 && text.buf)
		at = strrchr(text.buf, ')');
	if (at && sscanf(at,
			 ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			 "%*s %*s %llu",
			 state, &value) == 2) {
		*start = value;
		found = true;
	}
	strbuf_fini(&text);
	return found;
}

/* A process whose first thread ended lives on as long as another runs. */
static bool has_other_threads(pid_t pid)
{
	struct tasks threads = {0};
	bool others = target_threads(pid, &threads, NULL) == 0 && threads.len > 1;

	vec_fini(&threads);
	return others;
}

static bool runs(const struct recorder_task *task, uint64_t *start)
{
	char state;

	if (!read_stat(task, &state, start))
		return false;
	if (state != 'Z' && state != 'X')
		return true;
	return task->pid == task->tid && has_other_threads(task->pid);
}

static pid_t process_of(pid_t tid)
{
	struct strbuf text = {0};
	char path[32], *line = NULL;
	pid_t pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	if (io_read_file(path, &text, 1 << 16, NULL) == 0 && text.buf)
		line = strstr(text.buf, "\nTgid:");
	if (line)
		pid = (pid_t)strtol(line + strlen("\nTgid:"), NULL, 10);
	strbuf_fini(&text);
	return pid;
}

static int add_task(struct recorder_target *target, pid_t pid, pid_t tid, struct err *err)
{
	struct recorder_task task = {.pid = pid, .tid = tid}, *slot;

	for (size_t i = 0; i < target->tasks.len; i++)
		if (target->tasks.items[i].tid == tid)
			return 0;
	if (!pid || !runs(&task, &task.start)) {
		const char *what = target->kind == RECORDER_THREADS ? "thread" : "process";
		struct privilege privilege;

		err_set(err, ERR_NOT_FOUND, "%s %d %s", what, (int)tid,
			pid ? "has ended (a zombie)" : "does not exist");
		privilege_read(&privilege);
		if (privilege.pid_namespace)
			err_hint(err,
				 "pyperf sees the processes of its own pid namespace only, by "
				 "their numbers in it; for others: %s",
				 privilege_remedy(PRIVILEGE_NEED_TARGET, privilege.place));
		else
			err_hint(err, "`pgrep -a python` lists Pythons and their processes");
		return ERR_NOT_FOUND;
	}
	slot = vec_push(&target->tasks);
	if (!slot)
		return err_nomem(err);
	*slot = task;
	return 0;
}

static int malformed(const struct recorder_target *target, const char *text, struct err *err)
{
	bool threads = target->kind == RECORDER_THREADS;

	err_set(err, ERR_USAGE, "'%s' is no list of %s", text,
		threads ? "thread ids" : "process ids");
	err_hint(err, "it looks like %s", threads ? "-t 4711,4712" : "-p 4711,4712");
	return ERR_USAGE;
}

int target_add_ids(struct recorder_target *target, const char *text, struct err *err)
{
	const char *at = text;

	for (;;) {
		unsigned long id;
		char *end;
		pid_t pid;
		int ret;

		if (!isdigit((unsigned char)*at))
			return malformed(target, text, err);
		id = strtoul(at, &end, 10);
		if (!id || id > ID_MAX || (*end && *end != ','))
			return malformed(target, text, err);
		pid = process_of((pid_t)id);
		ret = add_task(target, pid,
			       target->kind == RECORDER_THREADS || !pid ? (pid_t)id : pid, err);
		if (ret)
			return ret;
		if (!*end)
			return 0;
		at = end + 1;
	}
}

static int find_user(const char *user, uid_t *uid, struct err *err)
{
	const struct passwd *known;
	unsigned long number;
	char *end;

	errno = 0;
	known = getpwnam(user);
	if (known) {
		*uid = known->pw_uid;
		return 0;
	}
	number = strtoul(user, &end, 10);
	if (!isdigit((unsigned char)*user) || *end || number >= (uid_t)-1)
		return err_set(err, ERR_USAGE, "there is no user '%s'", user);
	*uid = (uid_t)number;
	return 0;
}

int target_add_user(struct recorder_target *target, const char *user, struct err *err)
{
	struct tasks pids = {0};
	uid_t uid = 0;
	int ret = find_user(user, &uid, err);

	if (!ret)
		ret = target_processes(&pids, err);
	for (size_t i = 0; !ret && i < pids.len; i++) {
		char path[32];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d", (int)pids.items[i]);
		if (pids.items[i] == getpid() || stat(path, &st) < 0 || st.st_uid != uid)
			continue;
		ret = add_task(target, pids.items[i], pids.items[i], err);
		if (ret == ERR_NOT_FOUND) /* it ended meanwhile */
			ret = 0;
	}
	vec_fini(&pids);
	if (!ret && !target->tasks.len)
		ret = err_set(err, ERR_NOT_FOUND, "user %s runs no process", user);
	return ret;
}

int target_add_cpus(struct recorder_target *target, const char *text, struct err *err)
{
	struct cpus given = {0}, online = {0};
	int ret = cpus_parse(&given, text, err);

	if (!ret)
		ret = cpus_online(&online, err);
	for (size_t i = 0; !ret && i < given.len; i++) {
		int cpu = given.items[i], *slot;

		if (!cpus_contain(&online, cpu)) {
			err_set(err, ERR_NOT_FOUND, "CPU %d is not online", cpu);
			err_hint(err, "/sys/devices/system/cpu/online lists those that are");
			ret = ERR_NOT_FOUND;
		} else if (!cpus_contain(&target->cpus, cpu)) {
			slot = vec_push(&target->cpus);
			if (slot)
				*slot = cpu;
			else
				ret = err_nomem(err);
		}
	}
	vec_fini(&given);
	vec_fini(&online);
	return ret;
}

int target_set_cgroup(struct recorder_target *target, const char *name, struct err *err)
{
	struct strbuf path = {0};
	int fd = cgroup_open(name, &path, err);

	if (fd < 0) {
		strbuf_fini(&path);
		return fd;
	}
	target->cgroup.fd = fd;
	target->cgroup.path = path.buf;
	return 0;
}

void target_fini(struct recorder_target *target)
{
	if (target->cgroup.path)
		close(target->cgroup.fd);
	free(target->cgroup.path);
	target->cgroup.path = NULL;
	vec_fini(&target->tasks);
	vec_fini(&target->cpus);
}

static void describe_tasks(const struct recorder_target *target, struct strbuf *out)
{
	size_t len = target->tasks.len;
	const char *plural = len == 1 ? "" : target->kind == RECORDER_THREADS ? "s" : "es";

	strbuf_printf(out, "%s%s ", target->kind == RECORDER_THREADS ? "thread" : "process",
		      plural);
	for (size_t i = 0; i < len && i < NAMED_MAX; i++) {
		const struct recorder_task *task = &target->tasks.items[i];
		char comm[64];
		int comm_len = proc_comm(task->pid, task->tid, comm, sizeof(comm));

		strbuf_printf(out, "%s%d", i ? ", " : "", (int)task->tid);
		if (comm_len <= 0)
			continue;
		strbuf_str(out, " (");
		text_escape(out, comm, (size_t)comm_len);
		strbuf_char(out, ')');
	}
	if (len > NAMED_MAX)
		strbuf_printf(out, " and %zu more", len - NAMED_MAX);
}

void target_describe(const struct recorder_target *target, struct strbuf *out)
{
	if (target->kind != RECORDER_CPUS) {
		describe_tasks(target, out);
		return;
	}
	if (target->cgroup.path) {
		strbuf_str(out, "control group ");
		text_escape(out, target->cgroup.path, strlen(target->cgroup.path));
		strbuf_str(out, " on ");
	}
	if (!target->cpus.len) {
		strbuf_str(out, "all CPUs");
		return;
	}
	strbuf_printf(out, "CPU%s ", target->cpus.len == 1 ? "" : "s");
	for (size_t i = 0; i < target->cpus.len; i++)
		strbuf_printf(out, "%s%d", i ? "," : "", target->cpus.items[i]);
}

bool target_ended(const struct recorder_target *target)
{
	if (target->kind == RECORDER_CPUS)
		return target->cgroup.path && access(target->cgroup.path, F_OK) < 0;
	for (size_t i = 0; i < target->tasks.len; i++) {
		uint64_t start;

		if (runs(&target->tasks.items[i], &start) && start == target->tasks.items[i].start)
			return false;
	}
	return true;
}

int target_explain(pid_t pid, struct err *err)
{
	struct privilege privilege;
	struct passwd *owner;
	char path[32], name[64];
	struct stat st;

	privilege_read(&privilege);
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st) < 0 || st.st_uid == geteuid() || privilege_perf(&privilege))
		return err_wrap(err, "process %d", (int)pid);
	owner = getpwuid(st.st_uid);
	snprintf(name, sizeof(name), "%s", owner ? owner->pw_name : "another user");
	err_set(err, ERR_PERMISSION,
		"process %d belongs to %s (user id %u): attaching to it takes CAP_PERFMON",
		(int)pid, name, (unsigned int)st.st_uid);
	if (privilege.place == PRIVILEGE_HOST && !privilege.user_namespace)
		err_hint(err, "run pyperf as root or as %s", name);
	else
		err_hint(err, "%s",
			 privilege_remedy(privilege_explain(&privilege, PRIVILEGE_NEED_PERF),
					  privilege.place));
	return ERR_PERMISSION;
}
