#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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
