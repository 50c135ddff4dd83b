#include "perfmap/thread_keys.h"

#include "process/memory.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A program that says of two threads what they have under each of its keys. */
static const char source[] =
	"#include <pthread.h>\n"
	"#include <stdio.h>\n"
	"#include <unistd.h>\n"
	"#define KEYS 40\n"
	"static pthread_key_t keys[KEYS];\n"
	"static void *thread(void *base)\n"
	"{\n"
	"	for (long i = 0; i < KEYS; i++)\n"
	"		pthread_setspecific(keys[i], (char *)base + i + 1);\n"
	"	for (long i = 0; i < KEYS; i++)\n"
	"		printf(\"%lx %lx %u %lx\\n\", (long)__builtin_thread_pointer(),\n"
	"		       (long)pthread_self(), keys[i], "
	"(long)pthread_getspecific(keys[i]));\n"
	"	if (base == (void *)0x1000)\n"
	"		return NULL;\n"
	"	printf(\"end\\n\");\n"
	"	fflush(stdout);\n"
	"	for (;;)\n"
	"		pause();\n"
	"}\n"
	"int main(void)\n"
	"{\n"
	"	pthread_t other;\n"
	"	for (int i = 0; i < KEYS; i++)\n"
	"		pthread_key_create(&keys[i], NULL);\n"
	"	thread((void *)0x1000);\n"
	"	return pthread_create(&other, NULL, thread, (void *)0x2000) || pthread_join(other, "
	"NULL);\n"
	"}\n";

/* The C library that the program runs with: the file itself where it has one in it. */
static struct elf_file *open_libc(pid_t pid, const char *program)
{
	char path[64], line[512], file[400] = "";
	struct elf_file *elf;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (strchr(line, '/') && (strstr(line, "/libc.so") || strstr(line, "/ld-musl")))
			sscanf(strchr(line, '/'), "%399s", file);
	if (maps)
		fclose(maps);
	assert_int_equal(elf_open(&elf, *file ? file : program, NULL), 0);
	return elf;
}

static bool has_command(const char *name)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
	return system(command) == 0;
}

static void check_program(const char *program)
{
	struct memory_process live;
	struct memory memory;
	struct elf_file *elf;
	struct py_tsd tsd;
	char line[128];
	int pipes[2], rows = 0;
	FILE *out;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		dup2(pipes[1], 1);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	out = fdopen(pipes[0], "r");
	assert_non_null(out);
	memory_process_init(&live, pid);
	memory = memory_of_process(&live);
	/* The first line's thread still runs. */
	for (elf = NULL; fgets(line, sizeof(line), out) && strcmp(line, "end\n") != 0; rows++) {
		unsigned long tp, self, value;
		uint64_t block, word;
		unsigned int key;

		assert_int_equal(sscanf(line, "%lx %lx %u %lx", &tp, &self, &key, &value), 4);
		if (!elf) {
			elf = open_libc(pid, program);
			assert_true(thread_keys_read(elf, &tsd));
		}
		assert_int_equal(tp + (uint64_t)(int64_t)tsd.self, self);
		assert_true(key / tsd.block_keys < tsd.block_count);
		assert_int_equal(
			memory_read(&memory,
				    tp + (uint64_t)(int64_t)tsd.blocks + 8 * (key / tsd.block_keys),
				    &block, sizeof(block)),
			0);
		assert_int_equal(
			memory_read(&memory,
				    block + key % tsd.block_keys * tsd.entry_size + tsd.data, &word,
				    sizeof(word)),
			0);
		assert_int_equal(word, value);
	}
	assert_int_equal(rows, 80);
	elf_close(elf);
	memory_process_fini(&live);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fclose(out);
}

static void check_compiler(const char *compiler)
{
	char folder[] = "/tmp/pyperf-keys-XXXXXX", command[512], program[64];

	if (!has_command(compiler)) {
		print_message("skipped: no %s here\n", compiler);
		skip();
	}
	assert_non_null(mkdtemp(folder));
	snprintf(program, sizeof(program), "%s/keys", folder);
	for (int i = 0; i < 2; i++) {
		FILE *in;

		snprintf(command, sizeof(command), "%s -O1 -w -x c %s -o %s - -lpthread", compiler,
			 i ? "-static" : "", program);
		in = popen(command, "w");
		assert_non_null(in);
		fputs(source, in);
		assert_int_equal(pclose(in), 0);
		/* A static glibc has what libthread_db wants only where the program pulls it in. */
		if (i == 0 || strcmp(compiler, "cc") != 0)
			check_program(program);
		unlink(program);
	}
	rmdir(folder);
}

static void test_glibc(void **state)
{
	check_compiler("cc");
}

static void test_musl(void **state)
{
	check_compiler("musl-gcc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glibc),
		cmocka_unit_test(test_musl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
