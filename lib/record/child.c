#include "record/child.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int exec_error(struct err *err, const char *name, int saved)
{
	int code = err_sys(err, saved, "cannot run %s", name);
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;

	if (saved == ENOENT)
		err_hint(err, "Check the name, or give a path: pyperf record -- ./%s", base);
	else if (saved == EACCES)
		err_hint(err,
			 "It is no executable file. A script is run as: pyperf record -- "
			 "python3 %s",
			 name);
	return code;
}

static int runnable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

int child_find(const char *name, char *path, struct err *err)
{
	const char *search = getenv("PATH");
	int found = ENOENT;
	char buf[PATH_MAX];

	if (!path)
		path = buf;
	if (!*name)
		return exec_error(err, "''", ENOENT);
	if (strchr(name, '/')) {
		found = snprintf(path, PATH_MAX, "%s", name) < PATH_MAX ? runnable(name)
									: ENAMETOOLONG;
		return found ? exec_error(err, name, found) : 0;
	}
	if (!search)
		search = "/bin:/usr/bin";
	while (*search) {
		size_t len = strcspn(search, ":");

		if (snprintf(path, PATH_MAX, "%.*s/%s", (int)(len ? len : 1), len ? search : ".",
			     name) < PATH_MAX) {
			int state = runnable(path);

			if (!state)
				return 0;
			if (state == EACCES)
				found = EACCES;
		}
		search += len + (search[len] == ':');
	}
	return exec_error(err, name, found);
}

/* In the child: waits for the word, then becomes the program. */
static void __attribute__((noreturn))
become(const char *const *argv, const char *environment, int go_fd, int error_fd)
{
	char word;
	int saved;

	/* Where Yama lets parents trace only, a process that our parent starts may trace us, too:
	 * until we are what the user started. */
	prctl(PR_SET_PTRACER, getppid(), 0, 0, 0);
	if (io_read_full(go_fd, &word, 1) != 1)
		_exit(0);
	prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	if (environment)
		putenv((char *)environment);
	execvp(argv[0], (char *const *)argv);
	saved = errno;
	io_write_full(error_fd, &saved, sizeof(saved));
	_exit(127);
}

int child_hold(struct child *child, const char *const *argv, const char *environment,
	       struct err *err)
{
	int go[2] = {-1, -1}, error[2] = {-1, -1};
	int code;

	*child = (struct child){.pid = -1, .go_fd = -1, .error_fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) < 0 ||
	    pipe2(error, O_CLOEXEC) < 0)
		goto failed;
	child->pid = fork();
	if (child->pid < 0)
		goto failed;
	if (child->pid == 0) {
		close(go[1]);
		close(error[0]);
		become(argv, environment, go[0], error[1]);
	}
	close(go[0]);
	close(error[1]);
	child->go_fd = go[1];
	child->error_fd = error[0];
	return 0;
failed:
	code = err_sys(err, errno, "cannot start a process");
	close_fd(&go[0]);
	close_fd(&go[1]);
	close_fd(&error[0]);
	close_fd(&error[1]);
	return code;
}

int child_start(struct child *child, const char *name, struct err *err)
{
	int saved = 0;
	ssize_t n;

	if (send(child->go_fd, "g", 1, MSG_NOSIGNAL) != 1)
		saved = errno;
	close_fd(&child->go_fd);
	n = saved ? 0 : io_read_full(child->error_fd, &saved, sizeof(saved));
	close_fd(&child->error_fd);
	if (n <= 0 && !saved)
		return 0;
	waitpid(child->pid, NULL, 0);
	child->pid = -1;
	return exec_error(err, name, saved ? saved : EIO);
}

void child_drop(struct child *child)
{
	bool held = child->go_fd >= 0;

	close_fd(&child->go_fd);
	close_fd(&child->error_fd);
	if (held && child->pid > 0)
		waitpid(child->pid, NULL, 0);
}
