#include "record/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOUNTS "/proc/self/mounts"
#define ID_LEN_MIN 8 /* of the part of a container's id that is taken for one */

/* Where the controller is; false where it is nowhere. */
static bool find_hierarchy(char *top, size_t size)
{
	FILE *mounts = setmntent(MOUNTS, "re");
	char buf[2 * PATH_MAX];
	struct mntent mount;
	bool found = false, legacy = false;

	while (mounts && !legacy && getmntent_r(mounts, &mount, buf, sizeof(buf))) {
		legacy = strcmp(mount.mnt_type, "cgroup") == 0 && hasmntopt(&mount, "perf_event");
		if (!legacy && (found || strcmp(mount.mnt_type, "cgroup2") != 0))
			continue;
		found = true;
		snprintf(top, size, "%s", mount.mnt_dir);
	}
	if (mounts)
		endmntent(mounts);
	return found;
}

/* How container engines name the group of a container whose id follows. */
static const char *const prefixes[] = {"docker-", "libpod-", "cri-containerd-", "crio-", ""};

static bool names_group(const char *name, const char *group)
{
	size_t len = strlen(name);

	if (strcmp(name, group) == 0)
		return true;
	for (size_t i = 0; len >= ID_LEN_MIN && i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t skip = strlen(prefixes[i]);

		if (strncmp(group, prefixes[i], skip) == 0 && strncmp(group + skip, name, len) == 0)
			return true;
	}
	return false;
}

/* The group in the tree that is named so; two are one too many. */
static int search(const char *top, const char *name, struct strbuf *path, struct err *err)
{
	char *roots[] = {(char *)top, NULL};
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOSTAT, NULL);
	const FTSENT *entry;
	int ret = tree ? 0 : err_sys(err, errno, "cannot read %s", top);

	while (!ret && (entry = fts_read(tree))) {
		if (entry->fts_info != FTS_D || entry->fts_level == 0 ||
		    !names_group(name, entry->fts_name))
			continue;
		if (path->len) {
			err_set(err, ERR_USAGE, "'%s' names several control groups: %s and %s",
				name, strbuf_text(path), entry->fts_path);
			err_hint(err, "give the path of one");
			ret = ERR_USAGE;
		} else {
			strbuf_str(path, entry->fts_path);
		}
	}
	if (tree)
		fts_close(tree);
	return ret;
}

int cgroup_open_below(const char *top, const char *name, struct strbuf *path, struct err *err)
{
	bool full = strncmp(name, top, strlen(top)) == 0 && name[strlen(top)] == '/';
	int ret, fd;

	strbuf_reset(path);
	strbuf_printf(path, "%s%s%s", full ? "" : top, name[0] == '/' ? "" : "/", name);
	fd = *name && !strstr(name, "..")
		     ? open(strbuf_text(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
		     : -1;
	if (fd >= 0)
		return fd;
	strbuf_reset(path);
	ret = *name && !strchr(name, '/') ? search(top, name, path, err) : 0;
	if (ret)
		return ret;
	if (strbuf_failed(path))
		return err_nomem(err);
	if (!path->len) {
		err_set(err, ERR_NOT_FOUND, "there is no control group '%s' below %s", name, top);
		err_hint(err, "/proc/PID/cgroup tells that of a process, `systemd-cgls` lists all");
		return ERR_NOT_FOUND;
	}
	fd = open(strbuf_text(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd
		       : err_sys(err, errno, "cannot open the control group %s", strbuf_text(path));
}

int cgroup_open(const char *name, struct strbuf *path, struct err *err)
{
	char top[PATH_MAX];

	if (!find_hierarchy(top, sizeof(top))) {
		err_set(err, ERR_NOT_FOUND, "no control groups are mounted here");
		err_hint(err, "mount -t cgroup2 none /sys/fs/cgroup, or in a container record with "
			      "-a or -p");
		return ERR_NOT_FOUND;
	}
	return cgroup_open_below(top, name, path, err);
}
