#include "data/data.h"
#include "perfmap/source.h"
#include "profile/profile.h"
#include "record/recorder.h"
#include "record/target.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * Recording as on a hybrid CPU, by this machine's kernel: two parts of one event, each of which is
 * counted on one CPU alone. A child runs three times as long on the first as on the second.
 */
#define UNIT_MS 40
#define PAGES 512

static void spin(int cpu, int ms)
{
	struct timespec now, end;
	cpu_set_t on;

	CPU_ZERO(&on);
	CPU_SET(cpu, &on);
	if (sched_setaffinity(0, sizeof(on), &on) < 0)
		_exit(1);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	end.tv_nsec += ms * 1000000L;
	end.tv_sec += end.tv_nsec / 1000000000L;
	end.tv_nsec %= 1000000000L;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

static void fault(size_t pages)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *memory = mmap(NULL, pages * size, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise((void *)memory, pages * size, MADV_NOHUGEPAGE) < 0)
		_exit(1);
	for (size_t i = 0; i < pages; i++)
		memory[i * size] = 1;
}

static pid_t start_child(int go_fd)
{
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go_fd, &byte, 1) != 1)
		_exit(1);
	spin(0, 3 * UNIT_MS);
	fault(PAGES);
	spin(1, UNIT_MS);
	_exit(0);
}

static struct event_spec part(const char *name, const char *cpu)
{
	return (struct event_spec){
		.name = (char *)name,
		.cpus = (char *)cpu,
		.attr = {.type = PERF_TYPE_SOFTWARE,
			 .size = sizeof(struct perf_event_attr),
			 .config = PERF_COUNT_SW_TASK_CLOCK,
			 .exclude_kernel = 1},
		.group = -1,
		.leader = true,
	};
}

struct waited {
	pid_t pid;
	int go_fd;
	bool started;
};

static bool on_wake(void *ctx)
{
	struct waited *waited = ctx;

	if (!waited->started && write(waited->go_fd, "", 1) != 1)
		return true;
	waited->started = true;
	return waitpid(waited->pid, NULL, WNOHANG) == waited->pid;
}

static void parts_are_counted_on_their_cpus(void **state)
{
	struct event_spec specs[] = {
		part("cpu_core/task-clock/u", "0"), part("cpu_atom/task-clock/u", "1"),
		part("cpu_none/task-clock/u", "4095"), part("leader", "1"), part("member", NULL)};
	struct event_list events = {.items = specs, .len = 5, .cap = 5};
	struct recorder_target target = {.kind = RECORDER_PROCESSES, .cgroup = {.fd = -1}};
	struct recorder_options options = {.events = &events,
					   .frequency = 999,
					   .chain = RECORDER_CHAIN_NONE,
					   .python = RECORDER_PYTHON_OFF,
					   .sources = sources_new()};
	char path[] = "/tmp/pyperf-test-XXXXXX", pid[16];
	struct recorder_count counts[5];
	struct recorder_result result;
	struct recorder *recorder;
	struct profile *profile;
	struct data_file *file;
	struct waited waited;
	struct err err = {0};
	int pipe_fds[2], wake_fd = eventfd(1, EFD_CLOEXEC), fd = mkstemp(path), ret;
	double share;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	/* Its pages fault on the first CPU, where its leader is not. */
	specs[3].group = specs[4].group = 0;
	specs[4].leader = false;
	specs[4].attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	specs[4].attr.exclude_kernel = 0;
	assert_true(wake_fd >= 0 && fd >= 0 && pipe(pipe_fds) == 0);
	close(fd);
	waited = (struct waited){.pid = start_child(pipe_fds[0]), .go_fd = pipe_fds[1]};
	snprintf(pid, sizeof(pid), "%d", (int)waited.pid);
	assert_int_equal(target_add_ids(&target, pid, &err), 0);
	options.path = path;
	if (recorder_new(&recorder, &options, &target, &err) < 0)
		fail_msg("%s", err.text);
	ret = recorder_open(recorder, &target, &err);
	if (ret == ERR_PERMISSION) {
		print_message("%s\n", err.text);
		skip();
	}
	if (ret < 0 || recorder_run(recorder, wake_fd, on_wake, &waited, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(recorder_counts(recorder, counts));
	if (recorder_close(recorder, -1, &result, &err) < 0)
		fail_msg("%s", err.text);
	recorder_free(recorder);

	/* Nobody shared a counter: each part was enabled while the child was on its CPU. */
	for (int i = 0; i < 2; i++) {
		share = (double)counts[i].running_ns / (double)counts[i].enabled_ns;
		if (share < 0.98)
			fail_msg("part %d was counted for %g of its time", i, share);
	}
	assert_int_equal(counts[2].value, 0);
	assert_true(counts[3].value > 0);
	share = (double)counts[0].value / (double)(counts[0].value + counts[1].value);
	if (share < 0.7 || share > 0.8)
		fail_msg("the first CPU has %g", share);

	if (data_open(&file, path, &err) < 0 || profile_load(&profile, file, NULL, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(profile_event(profile, 0)->name, "task-clock:u");
	assert_true(profile_event(profile, 0)->samples > 0);
	share = profile_event(profile, 0)->estimated_total /
		(double)(counts[0].value + counts[1].value);
	if (share < 0.999 || share > 1.001)
		fail_msg("the recording has %g of what was counted", share);
	assert_false(profile_event(profile, 1)->sampled);
	assert_true(profile_event(profile, 4)->period_total < PAGES / 2);
	profile_free(profile);
	data_close(file);
	target_fini(&target);
	sources_free(options.sources);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_counted_on_their_cpus)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
