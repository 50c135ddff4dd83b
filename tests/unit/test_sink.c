#include "base/draft.h"
#include "base/sink.h"
#include "base/strbuf.h"
#include "base/unpack.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LEN 1000003u /* more than all buffers */

static char folder[] = "/tmp/test_sink.XXXXXX";

static int enter(void **state)
{
	return !mkdtemp(folder) || chdir(folder);
}

static int leave(void **state)
{
	return chdir("/") || rmdir(folder);
}

static void fill(char *bytes)
{
	uint32_t x = 1;

	for (size_t i = 0; i < LEN; i++) {
		x = x * 1103515245 + 12345;
		bytes[i] = (char)(x >> 28);
	}
}

static void write_all(const char *path, const char *bytes)
{
	struct sink *sink;

	assert_int_equal(sink_open(&sink, path, NULL), 0);
	assert_int_equal(fwrite(bytes, 1, LEN, sink_file(sink)), LEN);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(sink_close(sink, 0, NULL), 0);
}

/* Reads to the end or the first failure; unpack_failed()'s answer. */
static int read_all(const char *path, struct strbuf *out)
{
	char part[8192];
	FILE *file;
	size_t got;
	int rc = unpack_open(&file, path, NULL);

	strbuf_reset(out);
	if (rc)
		return rc;
	while ((got = fread(part, 1, sizeof(part), file)))
		strbuf_add(out, part, got);
	rc = unpack_failed(file, path, NULL);
	fclose(file);
	return rc;
}

static void test_round_trip(void **state)
{
	static const char *const names[] = {"plain", "a.gz", "a.zst"};
	char *bytes = malloc(LEN);
	struct strbuf back = {0};
	struct stat st;

	fill(bytes);
	for (size_t i = 0; i < 3; i++) {
		write_all(names[i], bytes);
		assert_int_equal(stat(names[i], &st), 0);
		assert_int_equal(st.st_size<LEN, i> 0);
		assert_int_equal(read_all(names[i], &back), 0);
		assert_int_equal(back.len, LEN);
		assert_memory_equal(back.buf, bytes, LEN);
		unlink(names[i]);
	}
	strbuf_fini(&back);
	free(bytes);
}

/* Several members or frames behind each other are one file, as gzip and zstd have it. */
static void test_joined(void **state)
{
	char *bytes = malloc(LEN);
	struct strbuf back = {0};

	fill(bytes);
	for (const char *const *name = (const char *const[]){"a.gz", "a.zst", NULL}; *name;
	     name++) {
		write_all(*name, bytes);
		assert_int_equal(system(strstr(*name, "gz")
						? "cat a.gz a.gz >both && mv both a.gz"
						: "cat a.zst a.zst >both && mv both a.zst"),
				 0);
		assert_int_equal(read_all(*name, &back), 0);
		assert_int_equal(back.len, 2 * LEN);
		assert_memory_equal(back.buf + LEN, bytes, LEN);
		unlink(*name);
	}
	strbuf_fini(&back);
	free(bytes);
}

static void test_damaged(void **state)
{
	char *bytes = malloc(LEN);
	struct strbuf back = {0};
	struct stat st;

	fill(bytes);
	for (const char *const *name = (const char *const[]){"a.gz", "a.zst", NULL}; *name;
	     name++) {
		FILE *file;

		write_all(*name, bytes);
		assert_int_equal(stat(*name, &st), 0);
		/* A byte in the middle, then a cut. */
		file = fopen(*name, "r+");
		fseek(file, st.st_size / 2, SEEK_SET);
		fputs("damage in the middle", file);
		fclose(file);
		assert_int_equal(read_all(*name, &back), ERR_CORRUPT);
		unlink(*name);
		write_all(*name, bytes);
		assert_int_equal(truncate(*name, st.st_size - 9), 0);
		assert_int_equal(read_all(*name, &back), ERR_CORRUPT);
		unlink(*name);
	}
	strbuf_fini(&back);
	free(bytes);
}

static void test_small(void **state)
{
	struct strbuf back = {0};
	FILE *file = fopen("empty", "w");

	fclose(file);
	assert_int_equal(read_all("empty", &back), 0);
	assert_int_equal(back.len, 0);
	file = fopen("empty", "w");
	fputs("\x1f", file);
	fclose(file);
	assert_int_equal(read_all("empty", &back), 0);
	assert_int_equal(back.len, 1);
	assert_int_equal(read_all("nosuch", &back), ERR_NOT_FOUND);
	assert_true(read_all("/", &back) < 0);
	unlink("empty");
	strbuf_fini(&back);
}

/* What fails leaves nothing, and what was there stays. */
static void test_failed(void **state)
{
	struct sink *sink;
	FILE *file = fopen("kept", "w");
	struct stat st;

	fputs("old", file);
	fclose(file);
	assert_int_equal(sink_open(&sink, "kept", NULL), 0);
	fputs("newer", sink_file(sink));
	assert_int_equal(sink_close(sink, ERR_CORRUPT, NULL), ERR_CORRUPT);
	assert_int_equal(stat("kept", &st), 0);
	assert_int_equal(st.st_size, 3);
	unlink("kept");
	assert_int_equal(sink_open(&sink, "nosuch/file", NULL), ERR_NOT_FOUND);
	assert_int_equal(sink_close(NULL, 0, NULL), 0);
	for (const char *const *name = (const char *const[]){"/dev/full", NULL}; *name; name++) {
		struct err err = {0};

		assert_int_equal(sink_open(&sink, *name, NULL), 0);
		fputs("too much", sink_file(sink));
		assert_int_equal(sink_close(sink, 0, &err), ERR_SYSTEM);
		assert_non_null(strstr(err.text, "No space left"));
	}
}

static size_t files_here(void)
{
	DIR *dir = opendir(".");
	size_t count = 0;

	for (const struct dirent *entry; (entry = readdir(dir));)
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

typedef int opens(struct draft *draft, const char *path, mode_t mode, struct err *err);

static void write_draft(struct draft *draft, opens *open_draft, const char *text)
{
	assert_int_equal(open_draft(draft, "out", 0640, NULL), 0);
	assert_int_equal(write(draft->fd, text, strlen(text)), strlen(text));
}

/* Either way it has its name, its mode and all that was written only at the end, and takes the
 * place of what was there. */
static void test_draft(void **state)
{
	opens *const ways[] = {draft_open, draft_open_aside};
	mode_t mask = umask(027);

	for (size_t i = 0; i < 2; i++) {
		struct strbuf back = {0}, reached = {0};
		struct draft draft;
		struct stat st;

		for (int again = 0; again < 2; again++) {
			write_draft(&draft, ways[i], again ? "new" : "old");
			assert_int_equal(stat("out", &st), again - 1);
			assert_true(draft_reach(&draft, &reached));
			assert_int_equal(read_all(reached.buf, &back), 0);
			assert_string_equal(back.buf, again ? "new" : "old");
			strbuf_reset(&reached);
			assert_int_equal(draft_close(&draft, 0, NULL), 0);
			assert_int_equal(files_here(), 1);
		}
		assert_int_equal(stat("out", &st), 0);
		assert_int_equal(st.st_mode & 0777, 0640);
		assert_int_equal(read_all("out", &back), 0);
		assert_string_equal(back.buf, "new");
		write_draft(&draft, ways[i], "newest");
		assert_int_equal(draft_close(&draft, ERR_CORRUPT, NULL), ERR_CORRUPT);
		assert_int_equal(files_here(), 1);
		assert_int_equal(stat("out", &st), 0);
		assert_int_equal(st.st_size, 3);
		unlink("out");
		strbuf_fini(&back);
		strbuf_fini(&reached);
	}
	umask(mask);
}

/* Does the file system know files without a name? */
static bool knows_nameless(void)
{
	struct draft draft;
	bool knows;

	assert_int_equal(draft_open(&draft, "out", 0600, NULL), 0);
	knows = !draft.aside.len;
	assert_int_equal(draft_close(&draft, ERR_CORRUPT, NULL), ERR_CORRUPT);
	return knows;
}

/* What ends the process while it writes leaves nothing: SIGKILL neither, of files without a name.
 */
static void test_killed(void **state)
{
	static const struct {
		opens *open_draft;
		int number;
	} cases[] = {
		{draft_open, SIGINT},	    {draft_open, SIGTERM},	 {draft_open, SIGKILL},
		{draft_open_aside, SIGINT}, {draft_open_aside, SIGTERM}, {draft_open_aside, SIGHUP},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status;
		pid_t pid;

		if (cases[i].number == SIGKILL && !knows_nameless())
			continue;
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			struct draft draft, other;

			signal(cases[i].number, SIG_DFL);
			write_draft(&draft, cases[i].open_draft, "half");
			write_draft(&other, cases[i].open_draft, "half");
			draft_close(&other, ERR_CORRUPT, NULL);
			raise(cases[i].number);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), cases[i].number);
		assert_int_equal(files_here(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_joined),
		cmocka_unit_test(test_damaged),	   cmocka_unit_test(test_small),
		cmocka_unit_test(test_failed),	   cmocka_unit_test(test_draft),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
