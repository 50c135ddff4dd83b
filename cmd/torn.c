#include "cmd/cmd.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Files that are cut short while they are read. Recordings and binaries are mapped, and a mapping
 * beyond the end of its file raises SIGBUS: a library that is copied over, and not replaced by
 * another file, would end the recording of a program that had used it. Here such a page becomes
 * one of zeros. Whoever reads it finds a damaged file, which is an error like others.
 */
static void put_zeros(int number, siginfo_t *info, void *context)
{
	uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)((uintptr_t)info->si_addr & ~(size - 1));
	int saved = errno;

	/* Else the instruction is run again, and this time it is the end. */
	if (info->si_code != BUS_ADRERR ||
	    mmap(page, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		signal(number, SIG_DFL);
	errno = saved;
}

void command_reads_torn_files(void)
{
	struct sigaction action = {.sa_sigaction = put_zeros, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}
