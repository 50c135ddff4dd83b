#ifndef PYPERF_RECORD_ENGINE_H
#define PYPERF_RECORD_ENGINE_H

#include "base/bytes.h"
#include "base/err.h"
#include "perfmap/layout.h"
#include "record/recorder.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The ways of getting Python frames, one row each; pythons.c knows them only through this.
 *
 * In every file a record with the frames lies directly before its sample. How it gets there
 * differs: the bpf engine's walker writes into the ring at the overflow, so it is attached to the
 * events that the channels open. The stop engine opens the events itself, in the process that stops
 * their threads, and says of each sample which frames belong before it.
 */
struct engine;
struct channels;
struct py_stack;

/* Code objects that an engine wants to be known, in one of two ways. */
struct engine_codes {
	/* To be read from the process at once. */
	void (*read)(void *ctx, pid_t pid, uint32_t lineage, uint64_t code, uint32_t fingerprint);
	/* Read already: `section` is a blob of what py_codes_encode() makes of this one object,
	 * then what py_codes_encode_bytecode() makes. */
	void (*take)(void *ctx, pid_t pid, uint32_t lineage, uint64_t code, uint32_t fingerprint,
		     struct bytes section);
	void *ctx;
};

/* What lies directly before a sample in the file. */
enum engine_frames {
	ENGINE_AS_IT_IS, /* what the ring has */
	ENGINE_FRAMES,	 /* frames that the engine gives */
	ENGINE_WAIT,	 /* not known yet: ask again soon */
};

struct engine_stats {
	uint64_t faults;      /* walks that met memory that could not be read */
	uint64_t code_unread; /* code objects that were gone before they could be read */
	uint64_t not_stopped; /* samples whose thread could not be stopped at them */
	uint64_t not_sampled; /* threads without events */
	double rate_cut;      /* sampled so many times more seldom than asked for; 0, 1: no */
};

struct engine_ops {
	enum recorder_python python;
	const char *name; /* as users have it */
	bool walks;	  /* sends frames; without, all members but open are unused */
	/* Whether it works here, for this target: what is no command runs already. */
	int (*open)(struct engine **engine, const struct recorder_target *target, struct err *err);
	void (*close)(struct engine *engine);
	/* NULL: no event on each CPU takes the frames, and start() is called instead of attach().
	 */
	int (*output)(struct engine *engine, int cpu, int event_fd, struct err *err);
	int (*attach)(struct engine *engine, int event_fd, bool tracepoint, struct err *err);
	/* py_engine_copy_stacks(), py_engine_learn_stack(); NULL: the kernel copies stacks. */
	int (*copy_stacks)(struct engine *engine, uint32_t usual, uint32_t most, struct err *err);
	void (*learn_stack)(struct engine *engine, uint32_t thread, const struct py_stack *stack);
	/* Opens the sampled events of the target; rings and attributes are the channels'. */
	int (*start)(struct engine *engine, const struct channels *channels, struct err *err);
	void (*enable)(struct engine *engine, bool on);
	/* No more samples come: gives up what waits, leaves the target. */
	void (*finish)(struct engine *engine);
	int (*add_process)(struct engine *engine, pid_t pid, const struct py_process *process,
			   struct err *err);
	void (*drop_process)(struct engine *engine, pid_t pid);
	/* Becomes readable when requests() is to be called. */
	int (*request_fd)(const struct engine *engine);
	void (*requests)(struct engine *engine, const struct engine_codes *codes);
	/* Index of the event that has an id which the channels did not see; -1 without. */
	int (*event)(const struct engine *engine, uint64_t id);
	/* ENGINE_FRAMES: *frames is a payload (perfmap/frames.h), valid until the next call.
	 * `urgent`: the ring fills up, ENGINE_WAIT is no answer. */
	enum engine_frames (*frames)(struct engine *engine, uint32_t tid, uint64_t time,
				     bool urgent, struct bytes *frames);
	/* All samples were asked for that a ring held when requests() was called last. */
	void (*round)(struct engine *engine);
	void (*stats)(const struct engine *engine, struct engine_stats *stats);
};

/* The rows. */
extern const struct engine_ops engine_bpf, engine_stop, engine_trampoline, engine_off;

/* Opens that one or, of RECORDER_PYTHON_AUTO, the best that opens, and says what does not and why.
 * *python comes back as what was taken. *engine stays NULL where there is nothing to keep. */
int engine_open(struct engine **engine, const struct engine_ops **taken,
		enum recorder_python *python, const struct recorder_target *target,
		struct err *err);
/* Which engine `auto` takes here; those before it are told with the reason. Nothing stays open. */
int engine_choose(enum recorder_python *python,
		  void (*refused)(const char *engine, const struct err *why, void *ctx), void *ctx,
		  struct err *err);
/* As --python has it: "bpf". */
const char *engine_name(enum recorder_python python);
bool engine_has_lines(enum recorder_python python);

#endif
