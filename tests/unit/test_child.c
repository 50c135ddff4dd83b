#include "record/child.h"

#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int exit_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void runs_when_told(void **state)
{
	static const char *const argv[] = {"sh", "-c", "exit 7", NULL};
	struct child child;

	(void)state;
	assert_int_equal(child_hold(&child, argv, NULL, NULL), 0);
	/* Held: it has not ended, however long one waits. */
	usleep(20000);
	assert_int_equal(waitpid(child.pid, NULL, WNOHANG), 0);
	assert_int_equal(child_start(&child, "sh", NULL), 0);
	assert_int_equal(exit_status(child.pid), 7);
	child_drop(&child);
}

static void gets_the_environment(void **state)
{
	static const char *const argv[] = {"sh", "-c", "test \"$PYPERF_TEST_WORD\" = 'a b'", NULL};
	struct child child;

	(void)state;
	assert_int_equal(child_hold(&child, argv, "PYPERF_TEST_WORD=a b", NULL), 0);
	assert_int_equal(child_start(&child, "sh", NULL), 0);
	assert_int_equal(exit_status(child.pid), 0);
}

static void tells_a_failed_exec(void **state)
{
	static const char *const none[] = {"/nonexistent/program", NULL};
	static const char *const folder[] = {"/", NULL};
	struct child child;
	struct err err = {0};

	(void)state;
	assert_int_equal(child_hold(&child, none, NULL, NULL), 0);
	assert_int_equal(child_start(&child, none[0], &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "/nonexistent/program"));
	assert_int_equal(child.pid, -1);
	assert_int_equal(child_hold(&child, folder, NULL, NULL), 0);
	assert_int_equal(child_start(&child, folder[0], &err), ERR_PERMISSION);
}

static void leaves_quietly_when_dropped(void **state)
{
	static const char *const argv[] = {"sh", "-c", "exit 7", NULL};
	struct child child;
	pid_t pid;

	(void)state;
	assert_int_equal(child_hold(&child, argv, NULL, NULL), 0);
	pid = child.pid;
	child_drop(&child);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
}

static void survives_a_child_that_was_killed(void **state)
{
	static const char *const argv[] = {"true", NULL};
	struct child child;
	siginfo_t info;

	(void)state;
	assert_int_equal(child_hold(&child, argv, NULL, NULL), 0);
	kill(child.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(child_start(&child, "true", NULL) < 0);
}

static void checks_names_before_anything_runs(void **state)
{
	struct err err = {0};
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(child_find("sh", NULL, &err), 0);
	assert_int_equal(child_find("/bin/sh", path, &err), 0);
	assert_string_equal(path, "/bin/sh");
	assert_int_equal(child_find("sh", path, &err), 0);
	assert_string_equal(path + strlen(path) - 3, "/sh");
	assert_int_equal(child_find("no-such-program-here", NULL, &err), ERR_NOT_FOUND);
	assert_true(err.hint[0]);
	assert_int_equal(child_find("/dev/null", NULL, &err), ERR_PERMISSION);
	assert_int_equal(child_find("", NULL, &err), ERR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_when_told),
		cmocka_unit_test(gets_the_environment),
		cmocka_unit_test(tells_a_failed_exec),
		cmocka_unit_test(leaves_quietly_when_dropped),
		cmocka_unit_test(survives_a_child_that_was_killed),
		cmocka_unit_test(checks_names_before_anything_runs),
	};

	return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
