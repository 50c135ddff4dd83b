#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/pyperf-test-io-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/file", folder);
	return 0;
}

static int remove_folder(void **state)
{
	unlink(path);
	return rmdir(folder);
}

static void write_file(const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, bytes, len), 0);
	close(fd);
}

/* A pipe whose writer comes in pieces, with a signal between them. */
struct writer {
	int fd;
	pthread_t reader;
	size_t len;
};

static void on_signal(int number)
{
}

static void *write_slowly(void *arg)
{
	struct writer *writer = arg;

	for (size_t i = 0; i < writer->len; i++) {
		char c = (char)i;

		if (write(writer->fd, &c, 1) != 1)
			break;
		pthread_kill(writer->reader, SIGUSR1);
		usleep(500);
	}
	close(writer->fd);
	return NULL;
}

static void test_read_pieces(void **state)
{
	struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: EINTR */
	struct writer writer = {.reader = pthread_self(), .len = 100};
	unsigned char buf[200];
	pthread_t thread;
	int fds[2];

	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(pipe(fds), 0);
	writer.fd = fds[1];
	assert_int_equal(pthread_create(&thread, NULL, write_slowly, &writer), 0);
	assert_int_equal(io_read_full(fds[0], buf, 60), 60);
	/* The end of file comes before the length does. */
	assert_int_equal(io_read_full(fds[0], buf + 60, 140), 40);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(buf[i], i);
	assert_int_equal(io_read_full(fds[0], buf, 1), 0);
	pthread_join(thread, NULL);
	close(fds[0]);
}

static void *drain(void *arg)
{
	char buf[1000];
	size_t total = 0;
	ssize_t n;

	while ((n = read(*(int *)arg, buf, sizeof(buf))) > 0)
		total += (size_t)n;
	return (void *)total;
}

static void test_write_pieces(void **state)
{
	size_t len = 1 << 20; /* more than a pipe holds */
	char *bytes = calloc(1, len);
	pthread_t thread;
	void *total;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pthread_create(&thread, NULL, drain, &fds[0]), 0);
	assert_int_equal(io_write_full(fds[1], bytes, len), 0);
	close(fds[1]);
	pthread_join(thread, &total);
	assert_int_equal((size_t)total, len);
	close(fds[0]);
	free(bytes);
}

static void test_errors(void **state)
{
	char c = 'x';
	int fd;

	assert_int_equal(io_read_full(-1, &c, 1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(io_write_full(-1, &c, 1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(io_write_full(-1, &c, 0), 0);
	fd = open("/dev/full", O_WRONLY);
	if (fd < 0) {
		printf("no /dev/full\n");
		skip();
	}
	assert_int_equal(io_write_full(fd, &c, 1), -1);
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

/* A file that may grow to a limit in the middle of a write: the part that fits, then the error. */
static void test_write_limit(void **state)
{
	struct rlimit before, limit;
	char bytes[1000] = {0};
	struct stat st;
	int fd, ret, saved;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	limit = before;
	limit.rlim_cur = 600;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ret = io_write_full(fd, bytes, sizeof(bytes));
	saved = errno;
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(ret, -1);
	assert_int_equal(saved, EFBIG);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 600);
	close(fd);
}

static void test_read_file(void **state)
{
	struct strbuf out = {0};
	struct err err = {0};
	char *bytes = malloc(100000);

	for (size_t i = 0; i < 100000; i++)
		bytes[i] = (char)(i * 7);
	/* Around the size of a chunk, and the limit itself. */
	for (size_t len = 16383; len <= 16385; len++) {
		write_file(bytes, len);
		strbuf_reset(&out);
		strbuf_str(&out, "kept ");
		assert_int_equal(io_read_file(path, &out, len, &err), 0);
		assert_int_equal(out.len, len + 5);
		assert_memory_equal(out.buf, "kept ", 5);
		assert_memory_equal(out.buf + 5, bytes, len);
		assert_int_equal(io_read_file(path, &out, len - 1, &err), ERR_UNSUPPORTED);
		assert_non_null(strstr(err.text, path));
	}
	write_file("", 0);
	strbuf_reset(&out);
	assert_int_equal(io_read_file(path, &out, 0, &err), 0);
	assert_int_equal(out.len, 0);
	/* Files of /proc say that they are empty. */
	assert_int_equal(io_read_file("/proc/self/status", &out, 1 << 20, &err), 0);
	assert_non_null(strstr(strbuf_text(&out), "Pid:"));
	assert_int_equal(io_read_file("/nonexistent", &out, 10, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "/nonexistent"));
	assert_true(io_read_file(folder, &out, 10, &err) < 0);
	/* A file without an end stops at the limit. */
	assert_int_equal(io_read_file("/dev/zero", &out, 1 << 20, NULL), ERR_UNSUPPORTED);
	strbuf_fini(&out);
	free(bytes);
}

static void test_read_line(void **state)
{
	struct err err = {0};
	char line[8];

	write_file("12\n34\n", 6);
	assert_int_equal(io_read_line(path, line, sizeof(line), &err), 2);
	assert_string_equal(line, "12");
	write_file("nonewline", 9);
	assert_int_equal(io_read_line(path, line, sizeof(line), &err), 7);
	assert_string_equal(line, "nonewli");
	write_file("\n", 1);
	assert_int_equal(io_read_line(path, line, sizeof(line), &err), 0);
	assert_string_equal(line, "");
	write_file("a\0b\n", 4);
	assert_int_equal(io_read_line(path, line, sizeof(line), &err), 1);
	write_file("x", 1);
	assert_int_equal(io_read_line(path, line, 1, &err), 0);
	assert_int_equal(io_read_line("/nonexistent", line, sizeof(line), &err), ERR_NOT_FOUND);
	assert_int_equal(io_read_line("/nonexistent", line, sizeof(line), NULL), ERR_NOT_FOUND);
	assert_true(io_read_line(folder, line, sizeof(line), &err) < 0);
}

/* A name that a recording gives may be anything. SIGALRM ends the test should an open block. */
static void test_open_regular(void **state)
{
	static const char *const refused[] = {
		"/dev/zero",  "/dev/tty",	   "/proc/self/maps",
		"/proc/kmsg", "/sys/kernel/notes", "/tmp",
	};
	struct stat st;
	int fd;

	alarm(10);
	write_file("text", 4);
	fd = io_open_regular(path, &st, NULL);
	assert_true(fd >= 0);
	assert_int_equal(st.st_size, 4);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(io_open_regular(path, &st, NULL), ERR_NOT_FOUND);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(io_open_regular(path, &st, NULL), ERR_PERMISSION);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (access(refused[i], F_OK) == 0)
			assert_int_equal(io_open_regular(refused[i], &st, NULL), ERR_PERMISSION);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_pieces),  cmocka_unit_test(test_write_pieces),
		cmocka_unit_test(test_errors),	     cmocka_unit_test(test_write_limit),
		cmocka_unit_test(test_read_file),    cmocka_unit_test(test_read_line),
		cmocka_unit_test(test_open_regular),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
