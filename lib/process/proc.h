#ifndef PYPERF_PROC_H
#define PYPERF_PROC_H

#include "base/err.h"
#include "process/process.h"

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* What /proc says of live processes. */

struct proc_map {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	char perms[5]; /* "r-xp" */
	/* As the kernel has it, " (deleted)" and all; "" for anonymous; valid during the callback.
	 */
	const char *path;
};
/* Calls back for each line of /proc/PID/maps; a non-zero return stops and is passed on. */
int proc_each_map(pid_t pid, int (*each)(const struct proc_map *map, void *ctx), void *ctx,
		  struct err *err);
/* Opens the file of a mapping for reading: by its name under `root` (safe_open()), or, where that
 * is gone or another file by now, through the mapping itself, which takes more rights. ino 0 is not
 * known, and every file of the name is taken. The fd, or a negative code. */
int proc_open_map(pid_t pid, const struct proc_map *map, const char *root, struct stat *st,
		  struct err *err);
/* The name of a thread; its length, or a negative code. */
int proc_comm(pid_t pid, pid_t tid, char *buf, size_t size);
/* What a thread is doing: its state as /proc has it ('R' runs, 'S' sleeps, 'D', 'T', ...) and the
 * function of the kernel that it sleeps in, "" where it does not or that may not be known. 0, or a
 * negative code. */
int proc_state(pid_t pid, pid_t tid, char *state, char *sleeps_in, size_t size);
/* The name and the state of a thread, and how long it was on a CPU since it began: in the kernel's
 * ticks, or exactly where the kernel keeps such counts (CONFIG_SCHED_INFO). */
struct proc_thread {
	char comm[32];
	char state;
	uint64_t ran_ns;
};
int proc_thread(pid_t pid, pid_t tid, struct proc_thread *thread);
/* The pid in the innermost namespace of the process (last of NSpid), or pid itself. */
pid_t proc_innermost_pid(pid_t pid);

#endif
