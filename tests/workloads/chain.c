/*
 * Waits with a known stack: chain MODE [SECONDS]. Prints "ready TID" when it is there. With a
 *number of seconds it spends so much CPU time there instead.
 *
 *	sleep     main -> chain_a -> 4 x chain_b -> chain_c -> leaf -> the wait
 *	signal    the same, and in the leaf a signal whose handler waits
 *	altstack  the same on a stack of the handler's own
 *	thread    the chain in a thread
 *	deep      main -> chain_a -> 3000 x chain_b -> ...
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHAIN __attribute__((noinline, noclone, used))

static volatile int sink;
static clock_t spin_until; /* 0: waits */
static const char *mode;
int chain_c(size_t size), chain_b(int depth), chain_a(int depth);

CHAIN static void wait_here(void)
{
	while (clock() < spin_until)
		for (int i = 0; i < 100000; i++)
			sink = i & 7;
	if (spin_until)
		_exit(0);
	printf("ready %ld\n", (long)syscall(SYS_gettid));
	fflush(stdout);
	while (sink >= 0)
		pause();
}

CHAIN void on_signal(int number)
{
	volatile char buf[200];

	buf[sink & 63] = 1;
	wait_here();
	sink += buf[1];
}

CHAIN void leaf(void)
{
	static char own[65536];
	struct sigaction action = {.sa_handler = on_signal};
	stack_t stack = {.ss_sp = own, .ss_size = sizeof(own)};

	if (strcmp(mode, "altstack") == 0) {
		action.sa_flags = SA_ONSTACK;
		sigaltstack(&stack, NULL);
	}
	if (strcmp(mode, "signal") == 0 || strcmp(mode, "altstack") == 0) {
		sigaction(SIGUSR1, &action, NULL);
		raise(SIGUSR1);
	}
	wait_here();
	sink++;
}

/* Its frame has no fixed size: the rule for it goes by the frame pointer. */
CHAIN int chain_c(size_t size)
{
	volatile char *buf = __builtin_alloca(size);

	buf[size / 2] = 1;
	leaf();
	return sink + buf[size / 2];
}

CHAIN int chain_b(int depth)
{
	volatile long kept = sink;
	int got = depth > 1 ? chain_b(depth - 1) : chain_c(333 + (size_t)sink);

	return got + (int)kept + 1;
}

CHAIN int chain_a(int depth)
{
	volatile long big[1000];

	big[sink & 511] = 2;
	return chain_b(depth) + (int)big[3];
}

/* A page that was never written is not there to be copied, and a new thread's stack has many. */
CHAIN static void touch_stack(void)
{
	volatile char buf[32768];

	for (size_t i = 0; i < sizeof(buf); i += 1024)
		buf[i] = 1;
}

CHAIN static void *in_thread(void *unused)
{
	touch_stack();
	sink = chain_a(4);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	mode = argc > 1 ? argv[1] : "sleep";
	spin_until = argc > 2 ? (clock_t)(atof(argv[2]) * CLOCKS_PER_SEC) : 0;
	if (strcmp(mode, "thread") == 0) {
		if (pthread_create(&thread, NULL, in_thread, NULL) == 0)
			pthread_join(thread, NULL);
		return 0;
	}
	sink = chain_a(strcmp(mode, "deep") == 0 ? 3000 : 4);
	return 0;
}
