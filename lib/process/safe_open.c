#include "process/safe_open.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* O_PATH looks the file up without opening it, so what it is can be seen before anything happens.
 */
static int look_up(const char *root, const char *path, enum safe_open_flag flag)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (flag == SAFE_OPEN_NOFOLLOW ? O_NOFOLLOW : 0),
		.resolve = RESOLVE_IN_ROOT,
	};
	int root_fd, fd, saved;

	if (!*root)
		return open(path, (int)how.flags);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	saved = errno;
	close(root_fd);
	errno = saved;
	return fd;
}

int safe_open(const char *root, const char *path, enum safe_open_flag flag, struct stat *st,
	      struct err *err)
{
	int look = look_up(root, path, flag);
	char whole[PATH_MAX];

	if (look < 0) {
		if (errno == ELOOP)
			return err_set(err, ERR_PERMISSION, "%s%s is a symbolic link", root, path);
		if (errno == ENOTDIR)
			errno = ENOENT;
		return err_sys(err, errno, "cannot open %s%s", root, path);
	}
	snprintf(whole, sizeof(whole), "%s%s", root, path);
	return io_open_looked_up(look, whole, st, err);
}

static int refuse(struct err *err, const char *root, const char *path, const char *why)
{
	return err_set(err, ERR_PERMISSION, "%s%s is not to be trusted: %s", root, path, why);
}

int safe_open_written(const char *held, pid_t pid, pid_t ns_pid, uid_t uid, const char *path,
		      struct err *err)
{
	char root[32];
	struct stat st;
	int fd, ret = 0;

	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	/* A process that has ended has no root any more. */
	if (stat(root, &st) < 0) {
		if (errno != ENOENT && errno != ESRCH)
			return err_sys(err, errno, "cannot look into %s", root);
		if (!*held && pid != ns_pid)
			return err_set(err, ERR_NOT_FOUND, "process %d has ended with its files",
				       (int)pid);
		snprintf(root, sizeof(root), "%s", held);
	}
	fd = safe_open(root, path, SAFE_OPEN_NOFOLLOW, &st, err);
	if (fd < 0)
		return fd;
	if (st.st_uid != uid && st.st_uid != 0)
		ret = refuse(err, root, path, "it belongs to neither the process's user nor root");
	else if (st.st_nlink > 1)
		ret = refuse(err, root, path, "it is a hard link");
	if (ret)
		close(fd);
	return ret ? ret : fd;
}

int safe_read_start(int fd, const char *path, size_t limit, struct strbuf *out, uint64_t *rest,
		    struct err *err)
{
	size_t start = out->len;
	struct stat st;

	*rest = 0;
	while (out->len - start < limit && !strbuf_failed(out)) {
		size_t left = limit - (out->len - start), step = left < 1 << 16 ? left : 1 << 16;
		size_t before = out->len;
		void *place = strbuf_extend(out, step);
		ssize_t n = place ? io_read_full(fd, place, step) : 0;

		if (!place)
			break;
		out->len = before + (n > 0 ? (size_t)n : 0);
		out->buf[out->len] = '\0';
		if (n < 0)
			return err_sys(err, errno, "cannot read %s", path);
		if ((size_t)n < step)
			return 0;
	}
	if (strbuf_failed(out))
		return err_nomem(err);
	if (fstat(fd, &st) == 0 && (uint64_t)st.st_size > limit)
		*rest = (uint64_t)st.st_size - limit;
	return 0;
}

int safe_read(int fd, const char *path, size_t limit, struct strbuf *out, struct err *err)
{
	uint64_t rest;
	int ret = safe_read_start(fd, path, limit, out, &rest, err);

	if (!ret && rest)
		return err_set(err, ERR_UNSUPPORTED, "%s is larger than %zu bytes", path, limit);
	return ret;
}
