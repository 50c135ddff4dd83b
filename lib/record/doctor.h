#ifndef PYPERF_DOCTOR_H
#define PYPERF_DOCTOR_H

#include "base/err.h"
#include "base/privilege.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "event/event.h"
#include "record/recorder.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What works on this machine, for this user, and why not: facts that are tried, not guessed.
 *
 * Every check is a row of a table (doctor.c) with the function that tries it and what is missing
 * where it fails; the remedy is that of privilege_remedy(). Nothing is changed; a thread of a
 * Python is stopped for some microseconds while its frames are walked.
 */
enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_NOTE,	/* less than there could be; recording goes on without it */
	DOCTOR_FAIL,	/* in the way of Python lines */
	DOCTOR_UNKNOWN, /* the system does not say */
};

struct doctor_line {
	const char *id;	   /* stable: "perf-events" */
	const char *title; /* "perf events" */
	enum doctor_verdict verdict;
	char text[400];
	int need; /* enum privilege_need: what is missing; -1 where all is well */
};

struct doctor_python {
	pid_t pid, ns_pid; /* ns_pid: in its own pid namespace */
	uid_t uid;
	char comm[32], version[32], path[256];
	bool debug, free_threaded;
	enum doctor_verdict verdict; /* OK: its frames can be walked */
	int need; /* enum privilege_need: what is missing; -1: nothing, or time */
	/* What walking its threads gave; no threads where that was not possible. */
	unsigned int threads, python_threads, frames;
	char text[400]; /* what there is to say */
};

struct doctor {
	char kernel[80]; /* "Linux 6.1.0-18-amd64 x86_64" */
	int cpus;	 /* online */
	struct privilege privilege;
	struct {
		VEC_OF(struct doctor_line)
	} lines;
	struct {
		VEC_OF(struct doctor_python)
	} pythons;
	unsigned int hidden_processes; /* whose maps may not be read */
	enum recorder_python engine;   /* that --python=auto takes */
	bool works;		       /* would a recording have Python lines? */
};

/* The machine as the checks see it; tests put others in its place. */
struct doctor_machine {
	const char *root; /* see privilege_read_at() */
	/* As event_open_fd(). */
	int (*open_event)(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd);
	/* Loads the walker and attaches it to an event. */
	int (*try_bpf)(struct err *err);
	/* The engine that `auto` takes; appends why those before it were refused. */
	int (*choose_engine)(enum recorder_python *engine, struct strbuf *why, struct err *err);
};
extern const struct doctor_machine doctor_machine_host;

/*
 * Runs all checks. `pid` is a process to look at, or 0: then all Pythons that run are looked at.
 * ERR_NOT_FOUND where there is no such process.
 */
int doctor_run(struct doctor *doctor, const struct doctor_machine *machine, pid_t pid,
	       struct err *err);
void doctor_fini(struct doctor *doctor);

/* "docker", "podman", "kubernetes", "container"; NULL for the host. */
const char *doctor_place_name(enum privilege_place place);

/* doctor_python.c: the Pythons of doctor_run(). */
int doctor_look_at(struct doctor *doctor, pid_t pid, struct err *err);
int doctor_look_around(struct doctor *doctor, struct err *err);

#endif
