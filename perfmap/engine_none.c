#include "perfmap/engine.h"

/* The bpf engine of a build without clang, bpftool or libbpf: it says so, and nothing else of it
 * is ever called. */
#ifndef HAVE_BPF

#include <string.h>

int py_engine_open(struct py_engine **engine, struct err *err)
{
	*engine = NULL;
	err_set(err, ERR_UNSUPPORTED, "this pyperf was built without BPF");
	err_hint(err, "install clang, bpftool and libbpf-dev and build again, or use "
		      "--python=trampoline");
	return ERR_UNSUPPORTED;
}

void py_engine_close(struct py_engine *engine)
{
}

int py_engine_set_output(struct py_engine *engine, int cpu, int event_fd, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "this pyperf was built without BPF");
}

int py_engine_attach(struct py_engine *engine, int event_fd, bool tracepoint, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "this pyperf was built without BPF");
}

int py_engine_add_process(struct py_engine *engine, pid_t pid, const struct py_process *process,
			  struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "this pyperf was built without BPF");
}

void py_engine_remove_process(struct py_engine *engine, pid_t pid)
{
}

int py_engine_copy_stacks(struct py_engine *engine, uint32_t usual, uint32_t most, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "this pyperf was built without BPF");
}

void py_engine_learn_stack(struct py_engine *engine, uint32_t thread, const struct py_stack *stack)
{
}

int py_engine_request_fd(const struct py_engine *engine)
{
	return -1;
}

int py_engine_requests(struct py_engine *engine,
		       void (*each)(const struct py_code_request *request, void *ctx), void *ctx)
{
	return 0;
}

void py_engine_stats(const struct py_engine *engine, struct py_engine_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
}

#endif
