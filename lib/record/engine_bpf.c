#include "record/engine.h"

#include "base/log.h"
#include "perfmap/engine.h"

/* The walker in the kernel (perfmap/engine.h), and the two rows that walk nothing. */

static struct py_engine *walker(const struct engine *engine)
{
	return (struct py_engine *)engine;
}

static int bpf_open(struct engine **engine, const struct recorder_target *target, struct err *err)
{
	return py_engine_open((struct py_engine **)engine, err);
}

static void bpf_close(struct engine *engine)
{
	py_engine_close(walker(engine));
}

static int bpf_output(struct engine *engine, int cpu, int event_fd, struct err *err)
{
	return py_engine_set_output(walker(engine), cpu, event_fd, err);
}

static int bpf_attach(struct engine *engine, int event_fd, bool tracepoint, struct err *err)
{
	return py_engine_attach(walker(engine), event_fd, tracepoint, err);
}

static int bpf_add_process(struct engine *engine, pid_t pid, const struct py_process *process,
			   struct err *err)
{
	return py_engine_add_process(walker(engine), pid, process, err);
}

static int bpf_copy_stacks(struct engine *engine, uint32_t usual, uint32_t most, struct err *err)
{
	return py_engine_copy_stacks(walker(engine), usual, most, err);
}

static void bpf_learn_stack(struct engine *engine, uint32_t thread, const struct py_stack *stack)
{
	py_engine_learn_stack(walker(engine), thread, stack);
}

static void bpf_drop_process(struct engine *engine, pid_t pid)
{
	py_engine_remove_process(walker(engine), pid);
}

static int bpf_request_fd(const struct engine *engine)
{
	return py_engine_request_fd(walker(engine));
}

static void on_request(const struct py_code_request *request, void *ctx)
{
	const struct engine_codes *codes = ctx;

	codes->read(codes->ctx, (pid_t)request->pid, request->lineage, request->code,
		    request->fingerprint);
}

static void bpf_requests(struct engine *engine, const struct engine_codes *codes)
{
	py_engine_requests(walker(engine), on_request, (void *)codes);
}

static void bpf_stats(const struct engine *engine, struct engine_stats *stats)
{
	struct py_engine_stats walks;

	py_engine_stats(walker(engine), &walks);
	*stats = (struct engine_stats){.faults = walks.faults};
}

const struct engine_ops engine_bpf = {
	.python = RECORDER_PYTHON_BPF,
	.name = "bpf",
	.walks = true,
	.open = bpf_open,
	.close = bpf_close,
	.output = bpf_output,
	.attach = bpf_attach,
	.copy_stacks = bpf_copy_stacks,
	.learn_stack = bpf_learn_stack,
	.add_process = bpf_add_process,
	.drop_process = bpf_drop_process,
	.request_fd = bpf_request_fd,
	.requests = bpf_requests,
	.stats = bpf_stats,
};

static int trampoline_open(struct engine **engine, const struct recorder_target *target,
			   struct err *err)
{
	log_info("Python functions come from the perf trampolines of CPython 3.12 and later, "
		 "without lines, where it was built with frame pointers");
	return 0;
}

const struct engine_ops engine_trampoline = {
	.python = RECORDER_PYTHON_TRAMPOLINE,
	.name = "trampoline",
	.open = trampoline_open,
};

static int off_open(struct engine **engine, const struct recorder_target *target, struct err *err)
{
	return 0;
}

const struct engine_ops engine_off = {
	.python = RECORDER_PYTHON_OFF,
	.name = "off",
	.open = off_open,
};
