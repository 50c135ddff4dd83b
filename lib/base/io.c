#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

ssize_t io_read_full(int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int io_write_full(int fd, const void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(fd, (const char *)buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		done += (size_t)n;
	}
	return 0;
}

int io_read_file(const char *path, struct strbuf *out, size_t limit, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char chunk[1 << 14];
	size_t total = 0;
	int ret = 0;

	if (fd < 0)
		return err_sys(err, errno, "cannot open %s", path);
	for (;;) {
		ssize_t n = io_read_full(fd, chunk, sizeof(chunk));

		if (n < 0) {
			ret = err_sys(err, errno, "cannot read %s", path);
			break;
		}
		if (n == 0)
			break;
		total += (size_t)n;
		if (total > limit) {
			ret = err_set(err, ERR_UNSUPPORTED, "%s is larger than %zu bytes", path,
				      limit);
			break;
		}
		strbuf_add(out, chunk, (size_t)n);
	}
	close(fd);
	if (!ret && strbuf_failed(out))
		ret = err_nomem(err);
	return ret;
}

/* File systems whose regular files are the kernel speaking: reading one may wait, consume or act.
 */
static bool is_kernel_interface(int fd)
{
	static const unsigned int magics[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC,	     DEBUGFS_MAGIC,	 TRACEFS_MAGIC,
		SECURITYFS_MAGIC, BPF_FS_MAGIC,	     CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
		PSTOREFS_MAGIC,	  EFIVARFS_MAGIC,    SELINUX_MAGIC,	 SMACK_MAGIC,
		BINFMTFS_MAGIC,	  XENFS_SUPER_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if ((unsigned int)fs.f_type == magics[i])
			return true;
	return false;
}

int io_open_looked_up(int look, const char *path, struct stat *st, struct err *err)
{
	char again[64];
	int fd;

	if (fstat(look, st) < 0 || !S_ISREG(st->st_mode) || is_kernel_interface(look)) {
		close(look);
		return err_set(err, ERR_PERMISSION, "%s is not a regular file", path);
	}
	snprintf(again, sizeof(again), "/proc/self/fd/%d", look);
	fd = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		fd = err_sys(err, errno, "cannot read %s", path);
	close(look);
	return fd;
}

/* O_PATH looks the file up without opening it, so what it is can be seen before anything happens.
 */
int io_open_regular(const char *path, struct stat *st, struct err *err)
{
	int look = open(path, O_PATH | O_CLOEXEC);

	if (look < 0)
		return err_sys(err, errno, "cannot open %s", path);
	return io_open_looked_up(look, path, st, err);
}

int io_read_line(const char *path, char *buf, size_t size, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n;
	int saved;

	if (fd < 0)
		return err_sys(err, errno, "cannot open %s", path);
	n = io_read_full(fd, buf, size - 1);
	saved = errno;
	close(fd);
	if (n < 0)
		return err_sys(err, saved, "cannot read %s", path);
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return (int)strlen(buf);
}
