#ifndef PYPERF_PROCESS_H
#define PYPERF_PROCESS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The processes of a recording as of one moment: what is mapped where, who is whose child, what
 * they are called.
 *
 * The side-band events are applied in the order of their times, so a look-up between two of them
 * sees the maps as they were then. exec (a comm with the exec flag) drops the maps; fork copies
 * them; a new map replaces what it covers, in part if need be.
 *
 * Ids are dense, start at 1 (0: none) and never change.
 */
struct process_table;

enum dso_kind {
	DSO_ELF,    /* a file */
	DSO_KERNEL, /* the kernel image */
	DSO_MODULE, /* a kernel module */
	DSO_VDSO,
	DSO_ANON,    /* memory without a file: JIT code, trampolines */
	DSO_SPECIAL, /* [stack], [heap], ... */
};

struct dso {
	const char *path; /* as mapped: in the target's mount namespace */
	enum dso_kind kind;
	uint8_t build_id[20];
	uint32_t build_id_len; /* 0: not known */
};

struct map_hit {
	uint32_t dso;
	uint64_t file_offset; /* of the address within the file; for DSO_KERNEL, DSO_ANON and
				 DSO_SPECIAL the address itself */
	uint64_t start, end;  /* of the mapping */
};

struct process_table *process_table_new(void);
void process_table_free(struct process_table *table);

struct process_map {
	uint32_t pid; /* UINT32_MAX: the kernel */
	uint64_t start, len, pgoff;
	const char *path;
	const uint8_t *build_id; /* may be NULL */
	uint32_t build_id_len;
	bool kernel; /* cpumode was kernel */
};
int process_mmap(struct process_table *table, const struct process_map *map, struct err *err);
int process_comm(struct process_table *table, uint32_t pid, uint32_t tid, const char *comm,
		 bool exec, struct err *err);
/* Not for the forks that perf makes up for processes that were there before (their misc has
 * PERF_RECORD_MISC_FORK_EXEC): those have maps of their own, which follow. */
int process_fork(struct process_table *table, uint32_t pid, uint32_t tid, uint32_t ppid,
		 uint32_t ptid, struct err *err);
/* The maps and the name of the process stay, for samples that come behind its exit. */
void process_exit(struct process_table *table, uint32_t pid, uint32_t tid);

/* False where nothing is mapped there. Addresses of the kernel half are looked up in the kernel's
 * maps, whatever the pid. Fast for repeated look-ups near one another. */
bool process_find(struct process_table *table, uint32_t pid, uint64_t addr, bool kernel,
		  struct map_hit *hit);
/* UINT32_MAX: of the kernel's maps. Changes whenever any map of the process changes: what was
 * cached for an older one is stale. Unique over the whole table: no two processes, and no two
 * states of one, share a number, save that a forked child that has changed nothing has its
 * parent's. */
uint64_t process_generation(struct process_table *table, uint32_t pid);
/* The thread's name; its process's where it has none of its own; "" where none is known. */
const char *process_thread_name(struct process_table *table, uint32_t pid, uint32_t tid);

/* NULL for an id that is none. Valid until the next process_mmap(); its path for ever. */
const struct dso *process_dso(const struct process_table *table, uint32_t id);
size_t process_dso_count(const struct process_table *table); /* ids are 1..count */
/* A BUILD_ID feature row: gives the build-id of maps that came without one. */
int process_set_build_id(struct process_table *table, const char *path, const uint8_t *id,
			 uint32_t len, struct err *err);

#endif
