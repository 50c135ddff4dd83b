#include "event/internal.h"

#include "base/io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int event_open_fd(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int event_open_cgroup_fd(const struct perf_event_attr *attr, int cgroup_fd, int cpu, int group_fd)
{
	long fd = syscall(SYS_perf_event_open, attr, cgroup_fd, cpu, group_fd,
			  PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP);

	return fd < 0 ? -errno : (int)fd;
}

static bool read_number(const char *path, long long *value)
{
	char line[32], *end;

	if (io_read_line(path, line, sizeof(line), NULL) <= 0)
		return false;
	*value = strtoll(line, &end, 10);
	return end != line;
}

uint64_t event_max_sample_rate(void)
{
	long long rate;

	return read_number("/proc/sys/kernel/perf_event_max_sample_rate", &rate) && rate > 0
		       ? (uint64_t)rate
		       : 0;
}

int event_paranoid(const struct privilege *privilege)
{
	return privilege->paranoid == PRIVILEGE_UNKNOWN ? 2 : privilege->paranoid;
}

/*
 * Several things say EACCES or EPERM: the paranoid level, a container's seccomp filter, which may
 * also say ENOSYS, a user namespace, and the rule that a process of another user is not to be
 * watched.
 */
static int permission_error(const struct event_system *sys, const struct event_spec *spec,
			    int saved_errno, struct err *err)
{
	struct privilege privilege;
	enum privilege_need need;
	const char *why = strerror(saved_errno);
	bool allowed, capable;
	int level;

	sys->privilege(&privilege);
	level = event_paranoid(&privilege);
	/* From 1 on it forbids whole CPUs. */
	allowed = saved_errno == EACCES ? level < 1
					: level < 2 || (level == 2 && spec->attr.exclude_kernel);
	capable = privilege_perf(&privilege) && !privilege.user_namespace;
	need = privilege_explain(&privilege, PRIVILEGE_NEED_PERF);
	if (privilege.seccomp && (allowed || capable || saved_errno == ENOSYS)) {
		need = PRIVILEGE_NEED_SECCOMP;
		err_set(err, ERR_PERMISSION,
			"the kernel does not allow the event '%s' (%s), though %s: a seccomp "
			"filter blocks perf_event_open",
			spec->name, why,
			capable ? "CAP_PERFMON or CAP_SYS_ADMIN is in force"
				: "no capability is missing for it");
	} else if (privilege.user_namespace && !allowed) {
		err_set(err, ERR_PERMISSION,
			"the kernel does not allow the event '%s' (%s): pyperf runs in a user "
			"namespace, whose capabilities do not count for perf events, and "
			"kernel.perf_event_paranoid is %d",
			spec->name, why, level);
	} else if (capable || allowed) {
		err_set(err, ERR_PERMISSION,
			"the kernel does not allow the event '%s' (%s), though %s: a security "
			"module or another owner of the process forbids it; "
			"kernel.perf_event_paranoid is %d",
			spec->name, why,
			capable ? "CAP_PERFMON or CAP_SYS_ADMIN is in force"
				: "kernel.perf_event_paranoid would",
			level);
	} else {
		err_set(err, ERR_PERMISSION,
			"the kernel does not allow the event '%s' (%s): "
			"kernel.perf_event_paranoid is %d and CAP_PERFMON is missing, which it "
			"takes for the kernel's part, for whole CPUs and for processes of others",
			spec->name, why, level);
	}
	err_hint(err, "%s", privilege_remedy(need, privilege.place));
	return ERR_PERMISSION;
}

static bool is_filtered(const struct event_system *sys)
{
	struct privilege privilege;

	sys->privilege(&privilege);
	return privilege.seccomp;
}

static const struct {
	int sys;
	enum err_code code;
	const char *why;
	const char *hint;
} reasons[] = {
	{ENOENT, ERR_UNSUPPORTED, "this machine does not have it",
	 "use cpu-clock, which every machine has"},
	{ENODEV, ERR_UNSUPPORTED, "this machine does not have it",
	 "use cpu-clock, which every machine has"},
	{ENXIO, ERR_UNSUPPORTED, "this machine does not have it",
	 "use cpu-clock, which every machine has"},
	{EOPNOTSUPP, ERR_UNSUPPORTED, "this machine cannot sample it in that way",
	 "leave precise modifiers (:p) out, or use cpu-clock"},
	{EINVAL, ERR_UNSUPPORTED, "the kernel calls it invalid",
	 "check its terms and modifiers, and whether all events of its group fit on the counters"},
	{EBUSY, ERR_SYSTEM, "another user has its counter for itself",
	 "end other profilers; the NMI watchdog holds one: sysctl kernel.nmi_watchdog=0"},
	{ENOSPC, ERR_SYSTEM, "no counter is left for it", "use fewer events of its kind"},
	{EMFILE, ERR_SYSTEM, "too many files are open in this process",
	 "raise the limit (ulimit -n), or use fewer events, threads or CPUs"},
	{ENFILE, ERR_SYSTEM, "too many files are open on this machine",
	 "raise it: sysctl fs.file-max"},
	{E2BIG, ERR_UNSUPPORTED, "this kernel is too old for what is asked of it",
	 "use a kernel from 5.8 on"},
	{ENOSYS, ERR_UNSUPPORTED, "this kernel is built without perf events (CONFIG_PERF_EVENTS)",
	 ""},
	{ESRCH, ERR_NOT_FOUND, "the process has ended", ""},
	{ENOMEM, ERR_NOMEM, "out of memory", ""},
};

int event_open_error_on(const struct event_system *sys, const struct event_spec *spec,
			int saved_errno, struct err *err)
{
	saved_errno = saved_errno < 0 ? -saved_errno : saved_errno;
	if (saved_errno == EACCES || saved_errno == EPERM ||
	    (saved_errno == ENOSYS && is_filtered(sys)))
		return permission_error(sys, spec, saved_errno, err);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].sys != saved_errno)
			continue;
		err_set(err, reasons[i].code, "cannot open the event '%s': %s", spec->name,
			reasons[i].why);
		err_hint(err, "%s", reasons[i].hint);
		return reasons[i].code;
	}
	return err_sys(err, saved_errno, "cannot open the event '%s'", spec->name);
}

int event_open_error(const struct event_spec *spec, int saved_errno, struct err *err)
{
	return event_open_error_on(&event_system_host, spec, saved_errno, err);
}

/* One that counts nothing, for the name of the first. */
int event_list_permitted(const struct event_list *list, struct err *err)
{
	struct event_spec spec = {
		.name = list->len ? list->items[0].name : (char *)"dummy",
		.attr = {.type = PERF_TYPE_SOFTWARE,
			 .size = PERF_ATTR_SIZE_VER5,
			 .config = PERF_COUNT_SW_DUMMY,
			 .disabled = 1,
			 .exclude_kernel = 1,
			 .exclude_hv = 1},
	};
	int fd = event_open_fd(&spec.attr, 0, -1, -1);

	if (fd < 0)
		return event_open_error(&spec, -fd, err);
	close(fd);
	return 0;
}

const struct event_system event_system_host = {
	.open = event_open_fd,
	.runs = event_runs,
	.privilege = privilege_read,
	.watchdog = "/proc/sys/kernel/nmi_watchdog",
	.devices = "/sys/bus/event_source/devices",
};
