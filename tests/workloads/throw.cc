// Waits in a destructor that an exception runs, below inlined and template functions, or in a
// std::function. Prints "ready TID" when it is there. With a word it spends a third of a second of
// CPU time there instead.
#include <cstdio>
#include <ctime>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int sink;
static bool spins;

[[gnu::noinline]] static void wait_here()
{
	while (spins && clock() < CLOCKS_PER_SEC / 3)
		for (int i = 0; i < 100000; i++)
			sink = i & 7;
	if (spins)
		_exit(0);
	std::printf("ready %ld\n", (long)syscall(SYS_gettid));
	std::fflush(stdout);
	while (sink >= 0)
		pause();
}

struct Guard {
	~Guard()
	{
		wait_here();
		sink = sink + 1;
	}
};

template <int N> [[gnu::always_inline]] static inline int inlined(const std::string &text)
{
	if (N == 0)
		throw std::runtime_error(text);
	return inlined<(N > 0 ? N - 1 : 0)>(text + "x");
}

[[gnu::noinline]] static int thrower(const std::string &text)
{
	Guard guard;
	return inlined<3>(text) + sink;
}

int main(int argc, char **argv)
{
	spins = argc > 1 && argv[1][0];
	std::function<int(const std::string &)> call = [](const std::string &text) {
		return thrower(text) + sink;
	};
	try {
		return call("text");
	} catch (const std::exception &) {
		return 1;
	}
}
