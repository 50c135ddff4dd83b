#ifndef PYPERF_STOPPED_H
#define PYPERF_STOPPED_H

/* A thread stopped by ptrace as a source for the unwinder: its registers, maps and memory. For
 * programs of tests. */
#include "base/vec.h"
#include "process/memory.h"
#include "process/proc.h"
#include "unwind/unwind.h"

#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct stopped_map {
	uint64_t start, end, pgoff;
	uint32_t id; /* of the file */
	char perms[5];
	char path[256];
};

struct stopped {
	pid_t pid, tid;
	struct memory_process process;
	struct memory memory;
	struct unwind_input input;
	struct {
		VEC_OF(struct stopped_map)
	} maps;
	char path[512];
	/* Where set, only this part of memory can be read, as in a recording. */
	uint64_t only_start, only_end;
};

static inline int stopped_add_map(const struct proc_map *map, void *ctx)
{
	struct stopped *stopped = ctx;
	struct stopped_map *new = vec_push(&stopped->maps);

	new->start = map->start;
	new->end = map->end;
	new->pgoff = map->pgoff;
	memcpy(new->perms, map->perms, sizeof(new->perms));
	snprintf(new->path, sizeof(new->path), "%s", map->path);
	for (size_t i = 0; i < stopped->maps.len; i++)
		if (strcmp(stopped->maps.items[i].path, new->path) == 0) {
			new->id = (uint32_t)i + 1;
			break;
		}
	return 0;
}

static inline const struct stopped_map *stopped_find(const struct stopped *stopped, uint64_t addr)
{
	for (size_t i = 0; i < stopped->maps.len; i++)
		if (addr >= stopped->maps.items[i].start && addr < stopped->maps.items[i].end)
			return &stopped->maps.items[i];
	return NULL;
}

static inline int stopped_module(void *ctx, uint64_t addr, struct unwind_module *module)
{
	struct stopped *stopped = ctx;
	const struct stopped_map *map = stopped_find(stopped, addr);

	if (!map || map->perms[2] != 'x')
		return -1;
	*module = (struct unwind_module){
		.id = map->id, .start = map->start, .end = map->end, .file_offset = map->pgoff};
	if (map->path[0] == '/') {
		snprintf(stopped->path, sizeof(stopped->path), "/proc/%d/root%s", (int)stopped->pid,
			 map->path);
		if (access(stopped->path, R_OK) != 0)
			snprintf(stopped->path, sizeof(stopped->path), "/proc/%d/map_files/%lx-%lx",
				 (int)stopped->pid, (unsigned long)map->start,
				 (unsigned long)map->end);
		module->path = stopped->path;
	}
	return 0;
}

static inline int stopped_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct stopped *stopped = ctx;

	if (stopped->only_end && (addr < stopped->only_start || addr + len > stopped->only_end))
		return -1;
	return memory_read(&stopped->memory, addr, buf, len);
}

static inline struct unwind_source stopped_source(struct stopped *stopped)
{
	return (struct unwind_source){
		.read = stopped_read, .module = stopped_module, .ctx = stopped};
}

/* False on an architecture whose registers it does not know. */
static inline bool stopped_read_regs(struct stopped *stopped)
{
	struct user_regs_struct user;
	struct iovec iov = {.iov_base = &user, .iov_len = sizeof(user)};
	struct unwind_regs *regs = &stopped->input.regs;

	if (ptrace(PTRACE_GETREGSET, stopped->tid, NT_PRSTATUS, &iov) != 0)
		return false;
#if defined(__x86_64__)
	const uint64_t values[] = {user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi,
				   user.rbp, user.rsp, user.r8,	 user.r9,  user.r10, user.r11,
				   user.r12, user.r13, user.r14, user.r15, user.rip};

	memcpy(regs->reg, values, sizeof(values));
	regs->ip = user.rip;
	regs->sp = user.rsp;
	return true;
#elif defined(__aarch64__)
	memcpy(regs->reg, user.regs, sizeof(user.regs));
	regs->reg[31] = regs->sp = user.sp;
	regs->reg[32] = regs->ip = user.pc;
	return true;
#else
	return false;
#endif
}

/* False where tracing is not allowed. The thread stays stopped until stopped_release(). */
static inline bool stopped_take(struct stopped *stopped, pid_t pid, pid_t tid)
{
	int status;

	*stopped = (struct stopped){.pid = pid, .tid = tid};
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0)
		return false;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) != tid ||
	    !stopped_read_regs(stopped)) {
		ptrace(PTRACE_DETACH, tid, 0, 0);
		return false;
	}
	memory_process_init(&stopped->process, pid);
	stopped->memory = memory_of_process(&stopped->process);
	return proc_each_map(pid, stopped_add_map, stopped, NULL) == 0;
}

/* `left`: a signal that the thread gets. */
static inline void stopped_release(struct stopped *stopped, int left)
{
	ptrace(PTRACE_DETACH, stopped->tid, 0, left);
	memory_process_fini(&stopped->process);
	vec_fini(&stopped->maps);
}

#endif
