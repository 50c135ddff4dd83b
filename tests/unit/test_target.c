#include "record/target.h"

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

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void end_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void takes_each_process_once(void **state)
{
	struct recorder_target target = {.kind = RECORDER_PROCESSES};
	pid_t child = start_sleeper();
	char text[64];

	(void)state;
	snprintf(text, sizeof(text), "%d,%d,%d", (int)getpid(), (int)child, (int)getpid());
	assert_int_equal(target_add_ids(&target, text, NULL), 0);
	assert_int_equal(target.tasks.len, 2);
	assert_int_equal(target.tasks.items[0].pid, getpid());
	assert_int_equal(target.tasks.items[1].pid, child);
	assert_int_equal(target.tasks.items[1].tid, child);
	assert_true(target.tasks.items[1].start >= target.tasks.items[0].start);
	end_sleeper(child);
	target_fini(&target);
}

static void refuses_what_is_no_list(void **state)
{
	static const char *const bad[] = {"",
					  "0",
					  "a",
					  "-1",
					  "1,",
					  ",1",
					  "1 ",
					  "1,,",
					  "1x",
					  "0x1",
					  "1\n2",
					  "4194305",
					  "99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct recorder_target target = {.kind = RECORDER_PROCESSES};
		struct err err = {0};

		if (target_add_ids(&target, bad[i], &err) != ERR_USAGE)
			fail_msg("'%s' was taken", bad[i]);
		assert_true(err.hint[0]);
		target_fini(&target);
	}
}

static void tells_the_gone_from_zombies(void **state)
{
	struct recorder_target target = {.kind = RECORDER_PROCESSES};
	pid_t child = fork();
	char text[32];
	struct err err = {0};
	siginfo_t info;

	(void)state;
	if (child == 0)
		_exit(0);
	snprintf(text, sizeof(text), "%d", (int)child);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(target_add_ids(&target, text, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "zombie"));
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(target_add_ids(&target, text, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "does not exist"));
	assert_int_equal(target.tasks.len, 0);
	target_fini(&target);
}

static void ends_with_the_last(void **state)
{
	struct recorder_target target = {.kind = RECORDER_PROCESSES};
	pid_t first = start_sleeper(), second = start_sleeper();
	char text[64];

	(void)state;
	snprintf(text, sizeof(text), "%d,%d", (int)first, (int)second);
	assert_int_equal(target_add_ids(&target, text, NULL), 0);
	assert_false(target_ended(&target));
	end_sleeper(first);
	assert_false(target_ended(&target));
	end_sleeper(second);
	assert_true(target_ended(&target));
	target_fini(&target);
}

/* Another process that got the pid is not the one that was attached to. */
static void knows_a_reused_pid(void **state)
{
	struct recorder_target target = {.kind = RECORDER_PROCESSES};
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%d", (int)getpid());
	assert_int_equal(target_add_ids(&target, text, NULL), 0);
	assert_false(target_ended(&target));
	target.tasks.items[0].start--;
	assert_true(target_ended(&target));
	target_fini(&target);
}

static void finds_processes_of_a_user(void **state)
{
	struct recorder_target target = {.kind = RECORDER_PROCESSES};
	pid_t child = start_sleeper();
	bool found = false;
	char uid[16];

	(void)state;
	snprintf(uid, sizeof(uid), "%u", (unsigned int)getuid());
	assert_int_equal(target_add_user(&target, uid, NULL), 0);
	for (size_t i = 0; i < target.tasks.len; i++) {
		found |= target.tasks.items[i].pid == child;
		assert_int_not_equal(target.tasks.items[i].pid, getpid());
	}
	assert_true(found);
	end_sleeper(child);
	assert_int_equal(target_add_user(&target, "no such user", NULL), ERR_USAGE);
	assert_int_equal(target_add_user(&target, "", NULL), ERR_USAGE);
	assert_int_equal(target_add_user(&target, "1x", NULL), ERR_USAGE);
	target_fini(&target);
}

static void takes_cpus_that_are_online(void **state)
{
	struct recorder_target target = {.kind = RECORDER_CPUS};
	struct cpus online = {0};
	struct err err = {0};
	char text[32];

	(void)state;
	assert_int_equal(cpus_online(&online, NULL), 0);
	snprintf(text, sizeof(text), "%d,%d", online.items[0], online.items[0]);
	assert_int_equal(target_add_cpus(&target, text, NULL), 0);
	assert_int_equal(target.cpus.len, 1);
	assert_int_equal(target_add_cpus(&target, "65535", &err), ERR_NOT_FOUND);
	assert_int_equal(target_add_cpus(&target, "x", &err), ERR_USAGE);
	assert_false(target_ended(&target));
	vec_fini(&online);
	target_fini(&target);
}

static void describes(void **state)
{
	struct recorder_target all = {.kind = RECORDER_CPUS};
	struct recorder_target target = {.kind = RECORDER_PROCESSES};
	struct strbuf words = {0};
	char text[64];

	(void)state;
	target_describe(&all, &words);
	assert_string_equal(strbuf_text(&words), "all CPUs");
	assert_int_equal(target_add_cpus(&all, "0", NULL), 0);
	strbuf_reset(&words);
	target_describe(&all, &words);
	assert_string_equal(strbuf_text(&words), "CPU 0");
	snprintf(text, sizeof(text), "%d", (int)getpid());
	assert_int_equal(target_add_ids(&target, text, NULL), 0);
	strbuf_reset(&words);
	target_describe(&target, &words);
	snprintf(text, sizeof(text), "process %d (test_target)", (int)getpid());
	assert_string_equal(strbuf_text(&words), text);
	strbuf_fini(&words);
	target_fini(&all);
	target_fini(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_each_process_once),
		cmocka_unit_test(refuses_what_is_no_list),
		cmocka_unit_test(tells_the_gone_from_zombies),
		cmocka_unit_test(ends_with_the_last),
		cmocka_unit_test(knows_a_reused_pid),
		cmocka_unit_test(finds_processes_of_a_user),
		cmocka_unit_test(takes_cpus_that_are_online),
		cmocka_unit_test(describes),
	};

	return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
