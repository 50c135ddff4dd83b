#ifndef PYPERF_PYTHONS_H
#define PYPERF_PYTHONS_H

#include "base/bytes.h"
#include "base/err.h"
#include "data/writer.h"
#include "process/roots.h"
#include "record/engine.h"
#include "record/recorder.h"

#include <sys/types.h>

/*
 * The Pythons among the recorded processes: found a moment after their runtime is mapped, walked
 * by the engine, their code objects, perf maps and sources kept for the file.
 *
 * Side-band records say when to look. What a process is, is inherited by fork (the kernel copies
 * the engine's entry at the same moment) and forgotten at exec.
 */
struct pythons;
struct py_stack;

struct pythons_stats {
	unsigned int found;   /* processes whose interpreter is walked */
	unsigned int unknown; /* of a version that the walker does not know */
	uint64_t code_unread; /* code objects that were gone before they could be read */
	uint64_t walks_faulted;
	struct engine_stats engine;
};

/* *python comes back as what was chosen. What the target is, is known; of a command no pid. `roots`
 * is borrowed and kept up by the caller. */
int pythons_new(struct pythons **pythons, enum recorder_python *python,
		const struct recorder_target *target, const struct roots *roots, struct err *err);
void pythons_free(struct pythons *pythons);

/* The engine's part (engine.h). Does it walk frames? Does it open the sampled events? Else it is to
 * be attached to each of them, and may need an output on each CPU. */
bool pythons_walk(const struct pythons *pythons);
bool pythons_open_events(const struct pythons *pythons);
bool pythons_need_output(const struct pythons *pythons);
int pythons_output(struct pythons *pythons, int cpu, int fd, struct err *err);
int pythons_attach(struct pythons *pythons, int fd, bool tracepoint, struct err *err);
int pythons_copy_stacks(struct pythons *pythons, uint32_t usual, uint32_t most, struct err *err);
void pythons_learn_stack(struct pythons *pythons, uint32_t thread, const struct py_stack *stack);
int pythons_start(struct pythons *pythons, const struct channels *channels, struct err *err);
void pythons_enable(struct pythons *pythons, bool on);
void pythons_finish(struct pythons *pythons);
int pythons_event(const struct pythons *pythons, uint64_t id);
enum engine_frames pythons_frames(struct pythons *pythons, uint32_t tid, uint64_t time, bool urgent,
				  struct bytes *frames);
void pythons_round(struct pythons *pythons);

/* Side-band, in the order in which it comes. `identity` stands for the content of the file that was
 * mapped: made of its build-id or of its device and inode. */
void pythons_mmap(struct pythons *pythons, pid_t pid, const char *path, bool anonymous_code,
		  uint64_t identity);
/* Looks at processes again whose interpreter was still starting when it was found; true while there
 * are any. */
bool pythons_look_again(struct pythons *pythons);
void pythons_fork(struct pythons *pythons, pid_t pid, pid_t parent, uint64_t time_ns);
void pythons_exec(struct pythons *pythons, pid_t pid);
void pythons_exit(struct pythons *pythons, pid_t pid);

/* A process that the kernel does not let us look into: told once. */
void pythons_closed(struct pythons *pythons, pid_t pid);

/* No file is made: code objects go into this table, of which nothing is known yet, so that the
 * engine tells all again that it meets. Borrowed until the next call or pythons_free(). */
void pythons_use_codes(struct pythons *pythons, struct py_codes *codes);
/* The processes that are walked, until one says false. */
void pythons_each_process(const struct pythons *pythons,
			  bool (*each)(pid_t pid, const struct py_process *process, void *ctx),
			  void *ctx);

/* A code object from the walker's records. */
void pythons_code(struct pythons *pythons, struct bytes raw);
/* Becomes readable when the walker wants code objects read at once; -1 without an engine. */
int pythons_request_fd(const struct pythons *pythons);
void pythons_requests(struct pythons *pythons);

/* The private sections; called once, at the end. */
int pythons_store(struct pythons *pythons, struct sources *sources, struct data_writer *writer,
		  struct err *err);
void pythons_stats(const struct pythons *pythons, struct pythons_stats *stats);
/* Calls back for each distinct interpreter: "3.12.1" and the path of its runtime. */
void pythons_each(const struct pythons *pythons,
		  void (*each)(const char *version, const char *path, void *ctx), void *ctx);

#endif
