#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "process/roots.h"
#include "process/safe_open.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child in a tree of its own: a folder, with a file system mounted in it that nobody else sees.
 */

static char folder[] = "/tmp/pyperf-test-roots-XXXXXX";

static bool write_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	bool written = fd >= 0 && write(fd, "inside", 6) == 6;

	return close(fd) == 0 && written;
}

static void live_elsewhere(int ready)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mkdir("tmp", 0700) < 0 || mount("tmpfs", "tmp", "tmpfs", 0, NULL) < 0 ||
	    chroot(".") < 0 || !write_file("/tmp/file"))
		_exit(1);
	if (write(ready, "", 1) == 1)
		pause();
	_exit(2);
}

static void test_outlives_process(void **state)
{
	struct roots *roots = roots_new();
	char byte, cwd[256];
	struct stat st;
	int ready[2], status, fd;
	pid_t pid;

	assert_non_null(roots);
	assert_non_null(mkdtemp(folder));
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(chdir(folder), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		live_elsewhere(ready[1]);
	assert_int_equal(chdir(cwd), 0);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		printf("no mount namespaces here\n");
		waitpid(pid, NULL, 0);
		goto out;
	}
	assert_string_equal(roots_path(roots, pid), "");
	roots_note(roots, pid);
	roots_fork(roots, pid + 1, pid);
	roots_note(roots, getpid());
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);

	/* The process, and with it its namespace, is gone; the file is not. */
	assert_string_equal(roots_path(roots, getpid()), "");
	fd = safe_open(roots_path(roots, pid + 1), "/tmp/file", SAFE_OPEN_NOFOLLOW, &st, NULL);
	assert_true(fd >= 0);
	assert_int_equal(st.st_size, 6);
	close(fd);
	fd = safe_open_written(roots_path(roots, pid), pid, 1, geteuid(), "/tmp/file", NULL);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(safe_open_written("", pid, 1, geteuid(), "/tmp/file", NULL),
			 ERR_NOT_FOUND);
	/* An exec may lead anywhere. */
	roots_exec(roots, pid);
	assert_string_equal(roots_path(roots, pid), "");
out:
	roots_free(roots);
	close(ready[0]);
	snprintf(cwd, sizeof(cwd), "%s/tmp", folder);
	rmdir(cwd);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_outlives_process)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
