#include "event/internal.h"

#include "base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Tracepoints: attr.config is the number in events/SYSTEM/NAME/id of a tracefs.
 *
 * Where none is mounted (containers, small machines) and we may mount, a mount that is attached to
 * no folder serves: it is seen by nobody else and goes with its descriptor.
 */

static int mount_detached(void)
{
#if defined(SYS_fsopen) && defined(SYS_fsmount)
	int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), mount = -1;

	if (fs < 0)
		return -1;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mount = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	close(fs);
	return mount;
#else
	errno = ENOSYS;
	return -1;
#endif
}

int event_tracepoint_folder(const struct event_system *sys)
{
	const char *const places[] = {
		sys->tracing ? sys->tracing : "/sys/kernel/tracing",
		sys->tracing ? sys->tracing : "/sys/kernel/debug/tracing",
	};
	int why = -ENOENT, mount, fd;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/events", places[i]);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno != ENOENT)
			why = -errno;
	}
	mount = sys->tracing ? -1 : mount_detached();
	if (mount < 0)
		return why;
	fd = openat(mount, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(mount);
	return fd;
}

static int no_events(int why, const char *system, const char *name, struct err *err)
{
	int ret;

	if (why == -EACCES || why == -EPERM) {
		ret = err_set(
			err, ERR_PERMISSION,
			"the tracepoint %s:%s cannot be looked up: /sys/kernel/tracing is not "
			"readable",
			system, name);
		err_hint(err, "run as root, or allow it: mount -o remount,gid=GROUP,mode=750 "
			      "/sys/kernel/tracing");
		return ret;
	}
	ret = err_set(err, ERR_UNSUPPORTED,
		      "the tracepoint %s:%s cannot be looked up: no tracefs is mounted", system,
		      name);
	err_hint(err, "mount -t tracefs tracefs /sys/kernel/tracing (in a container: docker run "
		      "-v /sys/kernel/tracing:/sys/kernel/tracing:ro)");
	return ret;
}

int event_tracepoint_parse(const struct event_system *sys, const char *system, const char *name,
			   struct perf_event_attr *attr, struct err *err)
{
	char path[PATH_MAX], line[32] = "";
	int events, fd, len, why = 0;
	unsigned long long id;
	char *end;

	if (!*system || *system == '.' || strchr(system, '/') || !*name || *name == '.' ||
	    strchr(name, '/'))
		return err_set(err, ERR_NOT_FOUND, "there is no tracepoint '%s:%s'", system, name);
	events = event_tracepoint_folder(sys);
	if (events < 0)
		return no_events(events, system, name, err);
	len = snprintf(path, sizeof(path), "%s/%s/id", system, name);
	fd = (size_t)len < sizeof(path) ? openat(events, path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || io_read_full(fd, line, sizeof(line) - 1) < 0)
		why = errno;
	if (fd >= 0)
		close(fd);
	close(events);
	if (why == EACCES || why == EPERM)
		return no_events(-why, system, name, err);
	errno = 0;
	id = strtoull(line, &end, 10);
	if (why || errno || end == line)
		return err_set(err, ERR_NOT_FOUND, "this kernel has no tracepoint '%s:%s'", system,
			       name);
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = id;
	return 0;
}

static DIR *open_folder(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

void event_tracepoint_each(const struct event_system *sys, event_name_visit *visit, void *ctx)
{
	int fd = event_tracepoint_folder(sys);
	DIR *systems = fd >= 0 ? open_folder(fd, ".") : NULL;
	struct dirent *system, *event;
	bool more = true;

	while (systems && more && (system = readdir(systems))) {
		DIR *events;

		/* Files beside the folders (enable, filter) do not open as one. */
		if (system->d_name[0] == '.')
			continue;
		events = open_folder(fd, system->d_name);
		while (events && more && (event = readdir(events))) {
			char name[2 * NAME_MAX + 2];

			if (event->d_name[0] == '.' || event->d_type != DT_DIR)
				continue;
			snprintf(name, sizeof(name), "%s:%s", system->d_name, event->d_name);
			more = visit(name, ctx);
		}
		if (events)
			closedir(events);
	}
	if (systems)
		closedir(systems);
	if (fd >= 0)
		close(fd);
}
