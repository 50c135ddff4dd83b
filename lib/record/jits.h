#ifndef PYPERF_JITS_H
#define PYPERF_JITS_H

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "data/writer.h"
#include "process/roots.h"

#include <stdint.h>
#include <sys/types.h>

/*
 * What runtimes write of the code that they make: the perf maps and jitdumps of the recorded
 * processes. A file is opened as soon as its process is seen to have one, so that neither the
 * process's end nor its exec nor its container takes it away, and read at the end.
 *
 * All zero but for `roots` is ready.
 */
struct jits {
	const struct roots *roots; /* set by the owner; borrowed */
	struct {
		VEC_OF(struct jit_file)
	} files;
	struct map by_pid; /* latest file, index + 1 */
	size_t open;	   /* that hold a descriptor */
	uint64_t refused;  /* files, or parts of files, that are not in the recording */
	char first[512];   /* why, of the first one */
};

void jits_fini(struct jits *jits);

/* Executable memory without a file: the process may write a perf map. */
void jits_code(struct jits *jits, pid_t pid);
/* A mapped file: nothing happens unless it is named like a jitdump. */
void jits_mmap(struct jits *jits, pid_t pid, const char *path);
/* The child may write a perf map if its parent may. */
void jits_fork(struct jits *jits, pid_t pid, pid_t parent);
void jits_exec(struct jits *jits, pid_t pid);
void jits_exit(struct jits *jits, pid_t pid);

/* The private sections; called once, at the end. */
int jits_store(struct jits *jits, struct data_writer *writer, struct err *err);

#endif
