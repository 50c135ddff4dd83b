#include "perfmap/safe_open.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
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

int safe_read(int fd, const char *path, size_t limit, struct strbuf *out, struct err *err)
{
	const size_t step = 1 << 16;
	char *chunk = malloc(step);
	size_t total = 0;
	int ret = chunk ? 0 : err_nomem(err);

	while (!ret) {
		ssize_t n = io_read_full(fd, chunk, step);

		if (n < 0)
			ret = err_sys(err, errno, "cannot read %s", path);
		if (n <= 0)
			break;
		total += (size_t)n;
		if (total > limit)
			ret = err_set(err, ERR_UNSUPPORTED, "%s is larger than %zu bytes", path,
				      limit);
		else
			strbuf_add(out, chunk, (size_t)n);
	}
	free(chunk);
	if (!ret && strbuf_failed(out))
		ret = err_nomem(err);
	return ret;
}
