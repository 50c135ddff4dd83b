#include "process/stopped.h"

#include "arch/arch.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

/* A thread that runs stops within microseconds, one in an uninterruptible wait maybe never. */
#define WAIT_STEP_NS 100000
#define WAIT_STEPS 2000

/* False where it did not stop in time, or ended. */
static bool wait_stop(pid_t tid, int *status)
{
	static const struct timespec step = {.tv_nsec = WAIT_STEP_NS};

	for (int i = 0; i < WAIT_STEPS; i++) {
		pid_t got = waitpid(tid, status, __WALL | WNOHANG);

		if (got == tid)
			return WIFSTOPPED(*status);
		if (got < 0 && errno != EINTR)
			return false;
		nanosleep(&step, NULL);
	}
	return false;
}

bool stopped_thread_pointer(pid_t tid, uint64_t *pointer)
{
	const struct arch *arch = arch_host();
	unsigned char regs[1024];
	struct iovec io = {.iov_base = regs, .iov_len = sizeof(regs)};

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)arch->thread_regset, &io) != 0 ||
	    io.iov_len < arch->thread_offset + sizeof(*pointer))
		return false;
	memcpy(pointer, regs + arch->thread_offset, sizeof(*pointer));
	return true;
}

bool stopped_registers(pid_t tid, uint64_t mask, uint64_t *values)
{
	const uint8_t *places = arch_host()->perf_to_ptrace;
	uint64_t regs[128];
	struct iovec io = {.iov_base = regs, .iov_len = sizeof(regs)};
	size_t n = 0;

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) != 0)
		return false;
	for (unsigned int reg = 0; mask >> reg; reg++) {
		size_t place = places ? places[reg] : reg;

		if (!(mask >> reg & 1))
			continue;
		if ((place + 1) * sizeof(*regs) > io.iov_len)
			return false;
		values[n++] = regs[place];
	}
	return true;
}

int stopped_hold(struct stopped *stopped, pid_t tid, struct err *err)
{
	int status = 0;

	*stopped = (struct stopped){.tid = tid};
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return errno == ESRCH ? err_set(err, ERR_NOT_FOUND, "thread %d is gone", (int)tid)
				      : err_sys(err, errno, "cannot stop thread %d", (int)tid);
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 || !wait_stop(tid, &status)) {
		/* What never stops is let go by the kernel when this process ends. */
		ptrace(PTRACE_DETACH, tid, NULL, NULL);
		return err_set(err, ERR_UNSUPPORTED, "thread %d does not stop", (int)tid);
	}
	/* A signal on its way comes first, as a stop of its own. */
	if (status >> 16 != PTRACE_EVENT_STOP)
		stopped->signal = WSTOPSIG(status);
	if (!stopped_thread_pointer(tid, &stopped->thread_pointer)) {
		stopped_release(stopped);
		return err_set(err, ERR_UNSUPPORTED, "cannot read the registers of thread %d",
			       (int)tid);
	}
	return 0;
}

void stopped_release(struct stopped *stopped)
{
	ptrace(PTRACE_DETACH, stopped->tid, NULL, (void *)(uintptr_t)stopped->signal);
}
