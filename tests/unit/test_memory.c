/* Reading memory: a live child, and images; what /proc says against what we know of ourselves. */
#include "process/memory.h"
#include "process/proc.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t child_that_waits(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void reads_a_live_process(void **state)
{
	static char pattern[3 * 4096];
	struct memory_process process;
	struct memory memory;
	char copy[sizeof(pattern)];
	pid_t pid;

	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (char)(i * 7);
	pid = child_that_waits();
	memset(pattern, 0, 16); /* the child's copy keeps the old bytes */
	memory_process_init(&process, pid);
	memory = memory_of_process(&process);
	for (int by_file = 0; by_file < 2; by_file++) {
		if (by_file) {
			char path[64];

			snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
			process.mem_fd = open(path, O_RDONLY | O_CLOEXEC);
			assert_true(process.mem_fd >= 0);
		}
		memset(copy, 0, sizeof(copy));
		assert_int_equal(memory_read(&memory, (uintptr_t)pattern, copy, sizeof(copy)), 0);
		for (size_t i = 0; i < sizeof(copy); i++)
			assert_int_equal(copy[i], (char)(i * 7));
		assert_int_equal(memory_read(&memory, 16, copy, 8), -1);
		assert_int_equal(memory_read(&memory, UINT64_MAX - 2, copy, 8), -1);
		assert_int_equal(memory_read(&memory, UINT64_MAX / 2 + 8, copy, 8), -1);
		assert_int_equal(memory_read(&memory, 16, copy, 0), 0);
	}
	memory_process_fini(&process);
	reap(pid);
	memory_process_init(&process, pid);
	assert_int_equal(memory_read(&memory, (uintptr_t)pattern, copy, 8), -1);
	memory_process_fini(&process);
}

/* The part of a range that is not mapped makes the whole read fail. */
static void refuses_half_a_read(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct memory_process process;
	struct memory memory;
	char buf[64];

	assert_ptr_not_equal(at, MAP_FAILED);
	munmap(at + page, page);
	memory_process_init(&process, getpid());
	memory = memory_of_process(&process);
	assert_int_equal(memory_read(&memory, (uintptr_t)at + page - 32, buf, 32), 0);
	assert_int_equal(memory_read(&memory, (uintptr_t)at + page - 32, buf, 33), -1);
	memory_process_fini(&process);
	munmap(at, page);
}

static void reads_images(void **state)
{
	struct memory_image *image = memory_image_new();
	struct memory memory = memory_of_image(image);
	struct err err = {0};
	char buf[16];

	assert_int_equal(memory_read(&memory, 0x1000, buf, 1), -1);
	assert_int_equal(memory_image_add(image, 0x2000, "efgh", 4, &err), 0);
	assert_int_equal(memory_image_add(image, 0x1ffc, "abcd", 4, &err), 0);
	assert_int_equal(memory_image_add(image, 0x3000, "wxyz", 4, &err), 0);
	assert_int_equal(memory_image_add(image, UINT64_MAX - 3, "last", 4, &err), 0);
	assert_int_equal(memory_read(&memory, 0x1ffe, buf, 4), 0);
	assert_memory_equal(buf, "cdef", 4);
	assert_int_equal(memory_read(&memory, 0x1ffc, buf, 8), 0);
	assert_memory_equal(buf, "abcdefgh", 8);
	assert_int_equal(memory_read(&memory, 0x1ffc, buf, 9), -1);
	assert_int_equal(memory_read(&memory, 0x1ffb, buf, 2), -1);
	assert_int_equal(memory_read(&memory, 0x3003, buf, 1), 0);
	assert_int_equal(memory_read(&memory, 0x3004, buf, 1), -1);
	assert_int_equal(memory_read(&memory, UINT64_MAX - 1, buf, 2), 0);
	assert_memory_equal(buf, "st", 2);
	assert_int_equal(memory_read(&memory, UINT64_MAX - 1, buf, 3), -1);

	assert_int_equal(memory_image_add(image, 0x2003, "!", 1, &err), ERR_CORRUPT);
	assert_int_equal(memory_image_add(image, 0x1ff0, "0123456789abcdef", 16, &err),
			 ERR_CORRUPT);
	assert_int_equal(memory_image_add(image, UINT64_MAX, "no", 2, &err), ERR_CORRUPT);
	assert_int_equal(memory_image_add(image, 0x2001, "", 0, &err), 0);
	memory_image_free(image);
	memory_image_free(NULL);
}

struct seen {
	const char *path;
	uint64_t addr;
	bool path_found, stack_found;
	char perms[5];
	uint64_t last_end;
	size_t count;
};

static int see(const struct proc_map *map, void *ctx)
{
	struct seen *seen = ctx;

	assert_true(map->start >= seen->last_end && map->start < map->end);
	seen->last_end = map->end;
	seen->count++;
	if (strcmp(map->path, "[stack]") == 0)
		seen->stack_found = true;
	if (seen->addr >= map->start && seen->addr < map->end) {
		assert_string_equal(map->path, seen->path);
		memcpy(seen->perms, map->perms, 5);
		assert_int_equal(map->pgoff, 4096);
		assert_true(map->ino > 0);
		seen->path_found = true;
	}
	return 0;
}

static void lists_maps(void **state)
{
	char folder[] = "/tmp/pyperf-proc-XXXXXX", path[256], want[300];
	struct seen seen = {.path = want};
	struct err err = {0};
	int fd;
	void *at;

	/* Spaces, a newline, and a backslash that the kernel leaves alone. */
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/a b\nc \\d", folder);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 3 * 4096), 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
	assert_ptr_not_equal(at, MAP_FAILED);
	close(fd);
	seen.addr = (uintptr_t)at + 7;
	snprintf(want, sizeof(want), "%s", path);
	assert_int_equal(proc_each_map(getpid(), see, &seen, &err), 0);
	assert_true(seen.path_found && seen.stack_found && seen.count > 5);
	assert_string_equal(seen.perms, "r-xp");

	unlink(path);
	rmdir(folder);
	snprintf(want, sizeof(want), "%s (deleted)", path);
	seen = (struct seen){.path = want, .addr = (uintptr_t)at};
	assert_int_equal(proc_each_map(getpid(), see, &seen, &err), 0);
	assert_true(seen.path_found);
	munmap(at, 4096);
}

static int stop(const struct proc_map *map, void *ctx)
{
	++*(int *)ctx;
	return 7;
}

static void passes_on_what_stops_it(void **state)
{
	struct err err = {0};
	int calls = 0;
	pid_t pid;

	assert_int_equal(proc_each_map(getpid(), stop, &calls, &err), 7);
	assert_int_equal(calls, 1);
	pid = child_that_waits();
	reap(pid);
	assert_int_equal(proc_each_map(pid, stop, &calls, &err), ERR_NOT_FOUND);
	assert_int_equal(calls, 1);
}

static void knows_names_and_namespaces(void **state)
{
	char name[16];

	prctl(PR_SET_NAME, "two words");
	assert_int_equal(proc_comm(getpid(), getpid(), name, sizeof(name)), 9);
	assert_string_equal(name, "two words");
	prctl(PR_SET_NAME, "line\nfeed");
	assert_int_equal(proc_comm(getpid(), getpid(), name, sizeof(name)), 9);
	assert_string_equal(name, "line\nfeed");
	assert_int_equal(proc_comm(getpid(), getpid(), name, 4), 3);
	assert_string_equal(name, "lin");
	assert_true(proc_comm(getpid(), 0x7ffffffe, name, sizeof(name)) < 0);
	assert_int_equal(proc_innermost_pid(getpid()), getpid());
	assert_int_equal(proc_innermost_pid(0x7ffffffe), 0x7ffffffe);
}

static void finds_the_pid_in_a_namespace(void **state)
{
	char line[32] = "";
	FILE *pipe = popen("unshare --user --pid --fork --map-root-user sh -c "
			   "'echo $$; exec sleep 5' 2>/dev/null & echo $!; wait",
			   "r");
	pid_t outer, found = 0;

	assert_non_null(pipe);
	outer = fgets(line, sizeof(line), pipe) ? atoi(line) : 0;
	if (!fgets(line, sizeof(line), pipe) || atoi(line) != 1) {
		if (outer > 0)
			kill(outer, SIGKILL);
		pclose(pipe);
		print_message("user namespaces are not allowed here\n");
		skip();
	}
	/* unshare's only child is pid 1 of the new namespace. */
	{
		char path[64], kids[64] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)outer, (int)outer);
		file = fopen(path, "r");
		if (file && fgets(kids, sizeof(kids), file))
			found = atoi(kids);
		if (file)
			fclose(file);
	}
	if (found > 0) {
		assert_int_equal(proc_innermost_pid(found), 1);
		kill(found, SIGKILL);
	}
	pclose(pipe);
	assert_true(found > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_live_process),
		cmocka_unit_test(refuses_half_a_read),
		cmocka_unit_test(reads_images),
		cmocka_unit_test(lists_maps),
		cmocka_unit_test(passes_on_what_stops_it),
		cmocka_unit_test(knows_names_and_namespaces),
		cmocka_unit_test(finds_the_pid_in_a_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
