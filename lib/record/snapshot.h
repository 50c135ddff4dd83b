#ifndef PYPERF_SNAPSHOT_H
#define PYPERF_SNAPSHOT_H

#include "base/err.h"
#include "base/vec.h"
#include "record/recorder.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What the threads of processes do at one moment, as a recording of one sample each: what reads
 * recordings then has their stacks, Python and native frames in true order.
 *
 * All threads of a process are held while they are read, some milliseconds, and go on unharmed.
 */
struct snapshot_thread {
	uint32_t pid, tid;
	char state;	    /* as /proc has it: 'R' runs, 'S' sleeps */
	char sleeps_in[64]; /* function of the kernel; "" where it does not, or it is not known */
	char name[64];	    /* that the program gave it; "" where only the kernel's is known */
	bool python;	    /* it has a PyThreadState */
	bool has_gil;
};

struct snapshot_process {
	uint32_t pid;
	char command[256]; /* line; its beginning */
	char version[32];  /* of its CPython; "" where there is none that can be walked */
	char why[256];	   /* not, if so */
	bool gil_known;	   /* it can be told which thread has the lock, if one has it */
	uint64_t held_ns;
};

struct snapshot {
	struct {
		VEC_OF(struct snapshot_process)
	} processes;
	struct {
		VEC_OF(struct snapshot_thread)
	} threads;	     /* by process, its first thread first */
	unsigned int missed; /* threads that could not be held */
	char missed_why[256];
};

/* Writes the recording to `path`. ERR_PERMISSION, ERR_NOT_FOUND where not one thread can be read.
 */
int snapshot_take(struct snapshot *snapshot, const char *path, const struct recorder_target *target,
		  struct err *err);
void snapshot_fini(struct snapshot *snapshot);

#endif
