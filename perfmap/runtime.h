#ifndef PYPERF_RUNTIME_H
#define PYPERF_RUNTIME_H

#include "base/err.h"
#include "perfmap/layout.h"
#include "process/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Finding CPython: facts of an ELF file (kept per file, since many processes share it) and, from
 * them, facts of one process.
 */
struct runtime_cache;

struct runtime_cache *runtime_cache_new(void);
void runtime_cache_free(struct runtime_cache *cache);

enum runtime_found {
	RUNTIME_NONE = 0,    /* no CPython is mapped (yet) */
	RUNTIME_PARTIAL = 1, /* CPython is there, but cannot be walked: libc is not mapped yet, no
				thread is there that tells the key, or frames were not as its
				version has them (ask again, at the next map at least), or
				info->supported is false and asking again is in vain; err says
				what it is */
	RUNTIME_READY = 2,
};

struct runtime_info {
	char path[256];		 /* of the ELF file that holds the runtime, as mapped */
	int major, minor, micro; /* micro -1 where it is not known */
	bool free_threaded, debug;
	bool supported; /* false: a CPython or a libc that the walker does not know; say so once */
	bool doubtful;	/* its frames are not as its version has them: asking again may tell
			   otherwise */
	bool unproved;	/* no thread has frames yet that bear out the layout: ask again */
};

/* Could this file be CPython's, by its name? "python3.12", "libpython3.11.so.1.0", anything with
 * "python" in its last component. */
bool runtime_is_candidate(const char *path);
/* The same of a file that a process mapped, whatever its name: one that is not known by it is
 * opened once. `identity` stands for the file: embedded.h. */
bool runtime_may_be_in(struct runtime_cache *cache, pid_t pid, const char *path, uint64_t identity);

/*
 * Looks at the maps of a live process. On RUNTIME_READY `process` is complete but for `lineage`,
 * which is the caller's. `info` is filled from RUNTIME_PARTIAL on. Negative: an error.
 * Takes well below a millisecond when the file was seen before.
 */
int runtime_find(struct runtime_cache *cache, pid_t pid, struct py_process *process,
		 struct runtime_info *info, struct err *err);

#endif
