/*
 * Works deep in its stack, of one thread after another, by two ways that lead there in turns:
 *
 *	depths FRAMES
 *
 * main (or a thread) -> down_a ... down_a -> spin_a, then the same with b. A frame has 512 bytes.
 * Frames of both ways lie at the same places, so what is left of one is not the other's stack.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone, noipa, used, optimize("omit-frame-pointer")))
#define FRAME_WORDS 62 /* and what is saved around them: 512 bytes */

static volatile long sink;
static double seconds = 0.25; /* of each thread's CPU time */

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#define WAY(way)                                 \
	KEEP static void spin_##way(void)        \
	{                                        \
		for (int i = 0; i < 20000; i++)  \
			sink += i;               \
	}                                        \
	KEEP static void down_##way(int depth)   \
	{                                        \
		volatile long room[FRAME_WORDS]; \
                                                 \
		room[0] = depth;                 \
		if (depth > 1)                   \
			down_##way(depth - 1);   \
		else                             \
			spin_##way();            \
		sink += room[0];                 \
	}
WAY(a)
WAY(b)

KEEP static void *work(void *frames)
{
	double end = cpu_seconds() + seconds;

	while (cpu_seconds() < end) {
		down_a(*(int *)frames);
		down_b(*(int *)frames);
	}
	sink++;
	return NULL;
}

#define STACK_BYTES (1u << 20)

/* A stack with a guard at its base, and memory behind that: as beside the stack of another thread.
 */
static char *make_stack(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *stack = mmap(NULL, STACK_BYTES + 5 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED || mprotect(stack + STACK_BYTES, page, PROT_NONE) != 0)
		exit(1);
	memset(stack + STACK_BYTES + page, 1, 4 * page);
	return stack;
}

int main(int argc, char **argv)
{
	int frames = argc > 1 ? atoi(argv[1]) : 1;
	pthread_attr_t attr;
	pthread_t thread;

	if (argc > 2)
		seconds = atof(argv[2]);
	work(&frames);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, make_stack(), STACK_BYTES);
	if (pthread_create(&thread, &attr, work, &frames) == 0)
		pthread_join(thread, NULL);
	return 0;
}
