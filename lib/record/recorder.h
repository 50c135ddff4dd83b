#ifndef PYPERF_RECORDER_H
#define PYPERF_RECORDER_H

#include "base/cpus.h"
#include "base/err.h"
#include "base/vec.h"
#include "event/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A recording: opens the events on every CPU, moves what the kernel writes into the file, finds
 * the Pythons among the processes, and completes the file whatever ends it. Or there is no file,
 * and a listener is told of each sample as it comes.
 *
 *      recorder_new()    the engine for Python frames
 *      recorder_open()   events, rings and file; a command is still held
 *      recorder_run()    until on_wake says stop, the target is gone, or writing fails
 *      recorder_close()  what needs the live process or machine is read now or never
 *
 * One thread. The recorder prints nothing and knows no signals: the caller passes an fd that
 * becomes readable when it wants to be asked.
 */
enum recorder_python {
	RECORDER_PYTHON_AUTO, /* the first that works, and says which */
	RECORDER_PYTHON_BPF,
	RECORDER_PYTHON_STOP,
	RECORDER_PYTHON_TRAMPOLINE,
	RECORDER_PYTHON_OFF,
};

/* How native stacks are found; kernel stacks are there in all but NONE. */
enum recorder_chain {
	RECORDER_CHAIN_AUTO, /* way_choose() is to be asked before the recorder is made */
	RECORDER_CHAIN_NONE,
	RECORDER_CHAIN_FP,    /* by frame pointers, in the kernel */
	RECORDER_CHAIN_DWARF, /* by unwind tables, from registers and a copy of the stack */
	RECORDER_CHAIN_LBR,   /* by the CPU's last branch records, as far as they reach */
};

/* The copy where no base of a stack is known: whole stacks of most programs; the kernel allows 8
 * bytes less than 64 kB. */
#define RECORDER_STACK_BYTES 16384u
#define RECORDER_STACK_BYTES_MAX 65528u

struct phases;
struct sources;
struct perf_event_header;
struct py_codes;
struct py_process;
struct data_event;

/* A sample with the Python frames that belong to it. All of it is valid during the call. */
struct recorder_sample {
	const struct perf_event_header *record; /* as a file would have it, but for sums.h */
	uint32_t event;				/* of recorder_event() */
	const void *frames;			/* payload of perfmap/frames.h, or NULL */
	size_t frames_len;
};

/* Takes the place of the file: process, thread and map records in the order of their time, samples
 * in the order of their CPU, each after the records that it needs. Code objects are those of
 * recorder_use_codes(). */
struct recorder_listener {
	int (*sample)(void *ctx, const struct recorder_sample *sample, struct err *err);
	int (*sideband)(void *ctx, const struct perf_event_header *record, struct err *err);
	void *ctx;
};

/* What is recorded. All but a command runs already: see target.h. */
enum recorder_target_kind {
	RECORDER_COMMAND,   /* one held child, counted from its exec on */
	RECORDER_PROCESSES, /* all threads of them */
	RECORDER_THREADS,
	RECORDER_CPUS, /* whatever runs there */
};

struct recorder_task {
	pid_t pid, tid;
	uint64_t start; /* in the kernel's ticks: tells it from a later one with the same id */
};

/* Tasks count with all that they create from now on. */
struct recorder_target {
	enum recorder_target_kind kind;
	struct {
		VEC_OF(struct recorder_task)
	} tasks;
	struct cpus cpus; /* RECORDER_CPUS; none: all */
	struct {
		char *path; /* RECORDER_CPUS: only what belongs to this control group; or NULL */
		int fd;
	} cgroup;
};

struct recorder_options {
	const struct event_list *events; /* probed before recorder_open(); borrowed while open */
	uint64_t frequency;		 /* Hz; 0 when `period` is given */
	uint64_t period;		 /* events per sample */
	bool rate_given;		 /* by the user: for tracepoints and page faults, too */
	enum recorder_chain chain;
	uint32_t stack_bytes; /* RECORDER_CHAIN_DWARF: of each sample's stack that are copied; 0: as
				 many as it takes */
	bool no_inherit;      /* the tasks alone, not what they create */
	bool counting;	      /* nothing is sampled: for recorder_counts() */
	size_t pages;	/* per CPU, a power of two; 0: the default, less where mlock forbids */
	int zstd_level; /* 0: no compression */
	int delay_ms;	/* counting starts that long after exec or recorder_run(); 0: at once;
			   negative: when recorder_enable() says so */
	enum recorder_python python;
	const struct recorder_listener *listener; /* NULL: it goes into the file `path` */
	const char *path;
	const char *const *command;  /* argv of a child, NULL-terminated, or NULL: for the file */
	const char *const *argv;     /* of pyperf itself, likewise */
	const struct phases *phases; /* what the target named until the end; or NULL */
	struct sources *sources;     /* texts that it gave; those of files are added */
};

struct recorder_result {
	char target[256]; /* in words, of what is no command: "process 12 (python3)" */
	uint64_t samples; /* of the events that were asked for */
	uint64_t trace_bytes;
	uint64_t lost;
	uint64_t reads_dropped; /* samples whose counts went backwards: nothing was taken from them
				 */
	uint64_t python;	/* samples that carry Python frames */
	uint64_t stacks, whole_stacks; /* native ones that were unwound here */
	uint64_t bytes;		       /* of the finished file */
	uint64_t duration_ns;
	unsigned int pythons;	      /* interpreters that were found */
	unsigned int unknown_pythons; /* of a version that the walker does not know */
	uint64_t not_stopped;	      /* samples whose thread could not be stopped for its frames */
	uint64_t not_sampled;	      /* threads that could not be given events */
	double rate_cut; /* sampled so many times more seldom than asked for, to keep the program
			    fast; 0: no */
};

/* Copies of stacks take more room. */
#define RECORDER_DEFAULT_PAGES 512
#define RECORDER_DWARF_PAGES 2048
#define RECORDER_DEFAULT_HZ 999

struct recorder;

/* Chooses and loads the engine for Python frames; a fall-back is one log line. Of a command the
 * target has no task yet. */
int recorder_new(struct recorder **recorder, const struct recorder_options *options,
		 const struct recorder_target *target, struct err *err);
/* What the target needs in its environment ("NAME=VALUE"), or NULL. */
const char *recorder_environment(const struct recorder *recorder);
/* Can samples read the group of their event? What event_list_probe() is to know. */
bool recorder_reads_groups(const struct recorder *recorder, const struct recorder_target *target);
/* Opens events, rings and the file (an older one becomes PATH.old); tells a listener what runs.
 * `target` is borrowed until recorder_free(). */
int recorder_open(struct recorder *recorder, const struct recorder_target *target, struct err *err);
/* on_wake is called when wake_fd is readable, and at least every 250 ms; true stops. So does the
 * end of all tasks of a target that is no command. */
int recorder_run(struct recorder *recorder, int wake_fd, bool (*on_wake)(void *ctx), void *ctx,
		 struct err *err);
/* The same for who has a loop of his own: starts counting; does what is due, to be called when the
 * descriptor is readable and every RECORDER_STEP_MS; and tells the end of all tasks. */
#define RECORDER_STEP_MS 250
int recorder_start(struct recorder *recorder, struct err *err);
int recorder_fd(const struct recorder *recorder);
int recorder_step(struct recorder *recorder, struct err *err);
bool recorder_ended(const struct recorder *recorder);
/* What the kernel counted so far, of all events in their order; false where the engine has opened
 * them. Enabled is how long an event could have been counted: the time that its tasks (or CPUs)
 * had. From recorder_open() to recorder_close(). */
struct recorder_count {
	uint64_t value, enabled_ns, running_ns;
};
bool recorder_counts(const struct recorder *recorder, struct recorder_count *counts);
/* The same of one thread that was attached to, with what it created unless `no_inherit`; enabled
 * is how long it counted. */
void recorder_thread_counts(const struct recorder *recorder, pid_t tid,
			    struct recorder_count *counts);
/* The threads that were attached to, each once; freed by the caller. -1 when memory ran out. */
ssize_t recorder_threads(const struct recorder *recorder, pid_t **tids);
/* Starts or stops counting, within recorder_run(). */
int recorder_enable(struct recorder *recorder, bool on, struct err *err);

/* For a listener; the first three within recorder_run(), or between steps. */

/* Takes what the rings hold now; what waits for its frames comes later. */
int recorder_drain(struct recorder *recorder, struct err *err);
/* Code objects go into this table from now on, all that are met again included; borrowed until the
 * next call or recorder_free(). Also before recorder_open(). */
void recorder_use_codes(struct recorder *recorder, struct py_codes *codes);
/* Tells again what runs, as recorder_open() does. */
int recorder_tell_state(struct recorder *recorder, struct err *err);
/* An event by its number: those that were asked for, then our own. NULL: there is none. */
const struct data_event *recorder_event(const struct recorder *recorder, size_t event);
/* The number of the event that has an id (of a sample, or of a value that it read); -1. */
int recorder_event_of(const struct recorder *recorder, uint64_t id);
/* The interpreters that are walked now: calls back for each, until one says false. */
void recorder_each_python(const struct recorder *recorder,
			  bool (*each)(pid_t pid, const struct py_process *process, void *ctx),
			  void *ctx);
const struct recorder_result *recorder_so_far(const struct recorder *recorder);
enum recorder_python recorder_engine(const struct recorder *recorder);
/* Reads what is left and completes the file, whatever happened before. `exit_status` is the
 * target's as the shell has it, or -1. */
int recorder_close(struct recorder *recorder, int exit_status, struct recorder_result *result,
		   struct err *err);
/* A recording that was opened and never closed leaves no file behind: the older one is put back. */
void recorder_free(struct recorder *recorder);

#endif
