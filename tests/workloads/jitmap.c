/*
 * What a JIT does, small enough to know its shares: two pieces of code made at run time, named in
 * /tmp/perf-PID.map as CPython's -X perf names its trampolines, each calling one C function. Of ten
 * rounds of equal work, `seven` does seven and `three` does three.
 *
 *     jitmap ROUNDS [FILE]
 *
 * With FILE, whatever that is, it is moved to where the map would be, and nothing is written; the
 * code lies at 0x20000000.
 *
 * The map first gives the code other names, as after an exec in the same process: the last wins.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Makes a frame, calls its second argument with its first, returns. */
static const unsigned char code[] = {
#if defined(__x86_64__)
	0x55,		  /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
	0xff, 0xd6,	  /* call *%rsi */
	0x5d,		  /* pop %rbp */
	0xc3,		  /* ret */
#elif defined(__aarch64__)
	0xfd, 0x7b, 0xbf, 0xa9, /* stp x29, x30, [sp, #-16]! */
	0xfd, 0x03, 0x00, 0x91, /* mov x29, sp */
	0x20, 0x00, 0x3f, 0xd6, /* blr x1 */
	0xfd, 0x7b, 0xc1, 0xa8, /* ldp x29, x30, [sp], #16 */
	0xc0, 0x03, 0x5f, 0xd6, /* ret */
#endif
};

#define PLACE 64

typedef void trampoline(long n, void (*callee)(long n));

static volatile long sink;

/* A function that calls none gets no frame, and its caller is lost from the chain. */
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

int main(int argc, char **argv)
{
	static const char *const names[] = {"seven", "three"};
	long rounds = argc > 1 ? atol(argv[1]) : 1000;
	unsigned char *memory;
	char path[64];
	FILE *map;

	if (!sizeof(code)) {
		fprintf(stderr, "jitmap: no code for this architecture\n");
		return 77;
	}
	memory = mmap((void *)(uintptr_t)0x20000000, 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	if (memory == MAP_FAILED)
		return 1;
	for (int i = 0; i < 2; i++)
		memcpy(memory + i * PLACE, code, sizeof(code));
	if (argc > 2) {
		if (rename(argv[2], path) != 0)
			return 1;
		goto run;
	}
	map = fopen(path, "w");
	if (!map)
		return 1;
	fprintf(map, "%lx 1000 py::stale:/gone.py\n", (unsigned long)memory);
	for (int i = 0; i < 2; i++)
		fprintf(map, "%lx %x py::%s:/src/jit program.py\n",
			(unsigned long)(memory + i * PLACE), PLACE, names[i]);
	fclose(map);
run:
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) != 0)
		return 1;
	__builtin___clear_cache((char *)memory, (char *)memory + 4096);
	while (rounds-- > 0)
		for (int i = 0; i < 10; i++)
			((trampoline *)(uintptr_t)(memory + (i < 7 ? 0 : PLACE)))(20, spin);
	return 0;
}
