#include "cmd/aside.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int open_file(void)
{
	FILE *file = tmpfile();
	int fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;

	if (file)
		fclose(file);
	/* Standard output and error write to one place, each behind the other. */
	if (fd >= 0)
		fcntl(fd, F_SETFL, O_APPEND);
	return fd;
}

static int replace(struct aside *aside, int fd, int by)
{
	aside->saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return aside->saved[fd] < 0 || dup2(by, fd) < 0 ? -1 : 0;
}

int aside_begin(struct aside *aside, struct err *err)
{
	int nothing, ret = 0;

	*aside = (struct aside){.saved = {-1, -1, -1}, .file = -1};
	nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	aside->file = open_file();
	if (nothing < 0 || aside->file < 0)
		ret = -1;
	for (int fd = 0; !ret && fd < 3; fd++)
		if (isatty(fd))
			ret = replace(aside, fd, fd ? aside->file : nothing);
	if (ret) {
		err_sys(err, errno, "cannot put aside what the program writes");
		aside_end(aside);
	}
	if (nothing >= 0)
		close(nothing);
	return ret ? err->code : 0;
}

void aside_end(struct aside *aside)
{
	for (int fd = 0; fd < 3; fd++)
		if (aside->saved[fd] >= 0) {
			dup2(aside->saved[fd], fd);
			close(aside->saved[fd]);
			aside->saved[fd] = -1;
		}
}

void aside_show(struct aside *aside)
{
	char buf[65536];
	ssize_t n;

	if (aside->file < 0)
		return;
	fflush(stdout);
	for (off_t at = 0; (n = pread(aside->file, buf, sizeof(buf), at)) > 0; at += n)
		if (io_write_full(STDOUT_FILENO, buf, (size_t)n) < 0)
			break;
	close(aside->file);
	aside->file = -1;
}
