#ifndef PYPERF_ENGINE_H
#define PYPERF_ENGINE_H

#include "base/err.h"
#include "perfmap/layout.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The bpf engine: loads the walker, feeds it the processes that are Python, attaches it to sampled
 * events. Fork copies a process's entry in the kernel, exec and the last exit drop it.
 */
struct py_engine;
struct py_stack;

/* ERR_UNSUPPORTED where it was not built in or the kernel cannot; ERR_PERMISSION with the remedy.
 */
int py_engine_open(struct py_engine **engine, struct err *err);
void py_engine_close(struct py_engine *engine);

/* The BPF_OUTPUT event (cpu-wide) whose ring takes the walker's records on that CPU. */
int py_engine_set_output(struct py_engine *engine, int cpu, int event_fd, struct err *err);
/* Runs the walker at each overflow of the event; children inherit it. Tracepoint events too. */
int py_engine_attach(struct py_engine *engine, int event_fd, bool tracepoint, struct err *err);

int py_engine_add_process(struct py_engine *engine, pid_t pid, const struct py_process *process,
			  struct err *err);
void py_engine_remove_process(struct py_engine *engine, pid_t pid);

/*
 * Before each sample a copy of its stack is sent (PY_RAW_STACK): down to the base where that is
 * known and at most `most` bytes away, else `usual` bytes. ERR_UNSUPPORTED on kernels before 5.15.
 */
int py_engine_copy_stacks(struct py_engine *engine, uint32_t usual, uint32_t most, struct err *err);
/* Of a thread as py_raw_stack names it. */
void py_engine_learn_stack(struct py_engine *engine, uint32_t thread, const struct py_stack *stack);

/*
 * The walker asks for code objects that it could not read whole (a page that is not in memory, a
 * long line table). The fd becomes readable at once; draining calls back for each.
 */
struct py_code_request {
	uint32_t pid, lineage;
	uint64_t code;
	uint32_t fingerprint;
	uint32_t reserved;
};
int py_engine_request_fd(const struct py_engine *engine);
int py_engine_requests(struct py_engine *engine,
		       void (*each)(const struct py_code_request *request, void *ctx), void *ctx);

struct py_engine_stats {
	uint64_t walks, frames, faults, output_lost, code_sent, processes;
};
void py_engine_stats(const struct py_engine *engine, struct py_engine_stats *stats);

#endif
