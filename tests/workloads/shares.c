/*
 * Equal work, three parts in three() and one in one(): leaf functions of the same instructions.
 *
 *     shares ROUNDS
 */
#include <stdlib.h>

static volatile unsigned long sink;

/* Aligned alike, so that both fetch alike. */
#define WORK(name, times)                                             \
	static __attribute__((noinline, aligned(64))) void name(void) \
	{                                                             \
		for (int i = 0; i < 1000 * (times); i++)              \
			sink += (unsigned long)i;                     \
	}
WORK(three, 3)
WORK(one, 1)

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1000;

	for (long i = 0; i < rounds; i++) {
		three();
		one();
	}
	return 0;
}
