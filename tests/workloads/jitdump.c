/*
 * What a JIT that reuses its memory does, small enough to know its shares: one piece of code, named
 * in a jitdump, that is "early" for three of ten rounds and "late" for seven. A child that is
 * forked in between has no dump of its own; for it the code stays "early", five rounds long.
 *
 *     jitdump FOLDER ROUNDS [keep]
 *
 * With `keep` the dump stays behind; else it is unlinked before the end.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Makes a frame, counts down, calls its second argument with its first, returns. */
static const unsigned char code[] = {
#if defined(__x86_64__)
	0x55,			      /* push %rbp */
	0x48, 0x89, 0xe5,	      /* mov %rsp,%rbp */
	0xb9, 0xff, 0xff, 0x00, 0x00, /* mov $65535,%ecx */
	0xff, 0xc9,		      /* dec %ecx */
	0x75, 0xfc,		      /* jne -2 */
	0xff, 0xd6,		      /* call *%rsi */
	0x5d,			      /* pop %rbp */
	0xc3,			      /* ret */
#elif defined(__aarch64__)
	0xfd, 0x7b, 0xbf, 0xa9, /* stp x29, x30, [sp, #-16]! */
	0xfd, 0x03, 0x00, 0x91, /* mov x29, sp */
	0xe9, 0xff, 0x9f, 0xd2, /* mov x9, #65535 */
	0x29, 0x05, 0x00, 0xf1, /* subs x9, x9, #1 */
	0xe1, 0xff, 0xff, 0x54, /* b.ne -4 */
	0x20, 0x00, 0x3f, 0xd6, /* blr x1 */
	0xfd, 0x7b, 0xc1, 0xa8, /* ldp x29, x30, [sp], #16 */
	0xc0, 0x03, 0x5f, 0xd6, /* ret */
#endif
};

typedef void trampoline(long n, void (*callee)(long n));

static volatile long sink;
static FILE *dump;

static __attribute__((noinline)) void add(long n)
{
	for (long i = 0; i < 1000; i++)
		sink += n;
}

static __attribute__((noinline)) void spin(long n)
{
	for (long i = 0; i < n; i++)
		add(i);
	sink = 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void put32(uint32_t v)
{
	fwrite(&v, sizeof(v), 1, dump);
}

static void put64(uint64_t v)
{
	fwrite(&v, sizeof(v), 1, dump);
}

static void put_head(void)
{
	put32(0x4a695444);
	put32(1);
	put32(40);
	put32(0); /* the machine, as CPython 3.13.0 leaves it out */
	put32(0);
	put32((uint32_t)getpid());
	put64(now_ns());
	put64(0);
}

static void put_load(void *memory, const char *name, uint64_t index)
{
	uint32_t name_size = (uint32_t)strlen(name) + 1;

	put32(2); /* a line: the whole function is line 42 */
	put32(16 + 16 + 16 + 9);
	put64(now_ns());
	put64((uintptr_t)memory);
	put64(1);
	put64((uintptr_t)memory);
	put32(42);
	put32(0);
	fwrite("/app.jit", 9, 1, dump);
	put32(0);
	put32(16 + 40 + name_size + sizeof(code));
	put64(now_ns());
	put32((uint32_t)getpid());
	put32((uint32_t)syscall(SYS_gettid));
	put64((uintptr_t)memory);
	put64((uintptr_t)memory);
	put64(sizeof(code));
	put64(index);
	fwrite(name, name_size, 1, dump);
	fwrite(code, sizeof(code), 1, dump);
	fflush(dump);
}

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* A round is a time on a CPU, since the speed of CPUs varies. */
static void work(void *memory, long rounds)
{
	int64_t end = cpu_ns() + rounds * 40000;

	while (cpu_ns() < end)
		((trampoline *)(uintptr_t)memory)(20, spin);
}

int main(int argc, char **argv)
{
	long rounds = argc > 2 ? atol(argv[2]) : 100;
	unsigned char *memory;
	char path[4096];
	pid_t child;

	if (!sizeof(code)) {
		fprintf(stderr, "jitdump: no code for this architecture\n");
		return 77;
	}
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	snprintf(path, sizeof(path), "%s/jit-%d.dump", argc > 1 ? argv[1] : ".", (int)getpid());
	dump = fopen(path, "w+");
	if (memory == MAP_FAILED || !dump)
		return 1;
	put_head();
	fflush(dump);
	/* Says in every recording where the dump is. */
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
		return 1;
	memcpy(memory, code, sizeof(code));
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) != 0)
		return 1;
	__builtin___clear_cache((char *)memory, (char *)memory + 4096);
	put_load(memory, "early", 1);
	work(memory, 3 * rounds);
	child = fork();
	if (child == 0) {
		work(memory, 5 * rounds);
		_exit(0);
	}
	put_load(memory, "late", 2);
	work(memory, 7 * rounds);
	waitpid(child, NULL, 0);
	if (argc <= 3)
		unlink(path);
	return 0;
}
