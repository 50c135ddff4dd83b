/* A program with the debug offsets of a CPython 3.13, by its cookie and version, that are nonsense
 * from there on. It spins for a while. */
#include <stdint.h>
#include <time.h>

struct {
	char cookie[8];
	uint64_t version, more[4096];
} _PyRuntime = {
	{'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'}, 0x030d00f0, {[2 ... 4000] = 0xfffffffffffff123}};

int main(void)
{
	struct timespec ts;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	while (!ts.tv_sec && ts.tv_nsec < 100000000 && _PyRuntime.version);
	return 0;
}
