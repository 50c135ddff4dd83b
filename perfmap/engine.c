#include "perfmap/engine.h"

/* The bpf engine. See engine_none.c for builds without it. */
#ifdef HAVE_BPF

#include "base/io.h"
#include "base/log.h"
#include "base/privilege.h"
#include "perfmap/frames.h"
#include "perfmap/kernel_types.h"
#include "perfmap/walker_maps.h"

#include "perfmap/walker.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct py_engine {
	struct walker_bpf *skel;
	struct walker_bpf *tracepoint; /* loaded when first needed, on the maps of `skel` */
	struct ring_buffer *requests;
	int cpus;
	void (*each)(const struct py_code_request *request, void *ctx);
	void *each_ctx;
	bool forget;
	int types_fd;	/* of the kernel's types; -1: none */
	bool all_types; /* libbpf is to read them itself */
};

static int log_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[512];
	size_t len;

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	len = strlen(line);
	while (len && line[len - 1] == '\n')
		line[--len] = '\0';
	log_debug("%s", line);
	return 0;
}

/* Puts a refusal of the kernel into words. A filter may also say that there is no bpf(). */
static int engine_error(int code, struct err *err)
{
	struct privilege privilege;
	enum privilege_need need;
	const char *why = "CAP_BPF and CAP_PERFMON are missing";

	privilege_read(&privilege);
	if (code != EPERM && code != EACCES && !(code == ENOSYS && privilege.seccomp)) {
		err_sys(err, code, "cannot load the interpreter walker");
		err_hint(err, "kernels from 5.8 on can; -v shows what this one objects to");
		return code == ENOMEM ? ERR_NOMEM : ERR_UNSUPPORTED;
	}
	need = code == ENOSYS ? PRIVILEGE_NEED_SECCOMP
			      : privilege_explain(&privilege, PRIVILEGE_NEED_BPF);
	if (privilege.lockdown == PRIVILEGE_LOCKDOWN_CONFIDENTIALITY) {
		need = PRIVILEGE_NEED_LOCKDOWN;
		why = "it is locked down (confidentiality), which forbids BPF to read memory";
	} else if (need == PRIVILEGE_NEED_SECCOMP) {
		why = "a seccomp filter blocks bpf";
	} else if (need == PRIVILEGE_NEED_USER_NAMESPACE) {
		why = "capabilities of a user namespace do not count for it";
	} else if (privilege_has(&privilege, PRIVILEGE_PERFMON)) {
		why = "CAP_BPF is missing";
	} else if (privilege_has(&privilege, PRIVILEGE_BPF)) {
		why = "CAP_PERFMON is missing";
	}
	if (privilege_bpf(&privilege) && need == PRIVILEGE_NEED_BPF)
		why = "a security module forbids it";
	err_set(err, ERR_PERMISSION, "the kernel does not let pyperf load BPF programs: %s", why);
	err_hint(err, "%s", privilege_remedy(need, privilege.place));
	return ERR_PERMISSION;
}

static int on_request(void *ctx, void *data, size_t size)
{
	struct py_engine *engine = ctx;
	const struct walker_request *request = data;

	if (size < sizeof(*request))
		return 0;
	if (request->kind == WALKER_REQUEST_FORGET) {
		engine->forget = true;
		return 0;
	}
	if (engine->each) {
		struct py_code_request code = {
			.pid = request->pid,
			.lineage = request->lineage,
			.code = request->code,
			.fingerprint = request->fingerprint,
		};

		engine->each(&code, engine->each_ctx);
	}
	return 0;
}

/* Then callbacks such as bpf_loop()'s are refused, and the program is interpreted. */
static bool jit_is_off(void)
{
	FILE *file = fopen("/proc/sys/net/core/bpf_jit_enable", "re");
	int value = file ? fgetc(file) : EOF;

	if (file)
		fclose(file);
	return value == '0';
}

/* The kernel's types that the program names, in a file of memory; without it libbpf reads all. */
static void write_types(const struct py_engine *engine, const struct btf *program)
{
	struct kernel_type_names names = {0};
	struct strbuf types = {0};
	struct err err = {0};

	for (uint32_t i = 1; i < btf__type_cnt(program); i++) {
		const struct btf_type *type = btf__type_by_id(program, i);
		const char *name = btf__name_by_offset(program, type->name_off);
		const char **slot;

		if (!*name || !(btf_is_composite(type) || btf_is_any_enum(type)))
			continue;
		slot = vec_push(&names);
		if (slot)
			*slot = name;
	}
	if (kernel_types_read(&names, &types, &err) < 0 ||
	    io_write_full(engine->types_fd, types.buf, types.len) < 0)
		log_debug("%s", err.text);
	strbuf_fini(&types);
	vec_fini(&names);
}

static struct walker_bpf *open_walker(struct py_engine *engine)
{
	LIBBPF_OPTS(bpf_object_open_opts, options);
	char path[32];
	bool first = engine->types_fd < 0 && !engine->all_types;
	struct walker_bpf *skel;
	struct privilege privilege;

	if (first)
		engine->types_fd = memfd_create("kernel-types", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", engine->types_fd);
	if (engine->types_fd >= 0)
		options.btf_custom_path = path;
	skel = walker_bpf__open_opts(&options);
	if (!skel)
		return NULL;
	if (first && engine->types_fd >= 0)
		write_types(engine, bpf_object__btf(skel->obj));
	/* In a pid namespace of its own, pyperf and perf number processes by it. */
	privilege_read(&privilege);
	skel->rodata->pid_namespace_inum = privilege.pid_namespace;
	skel->rodata->plain_loops = jit_is_off() ||
				    secure_getenv("PYPERF_TEST_PLAIN_LOOPS") != NULL;
	return skel;
}

static int load(struct py_engine *engine, struct err *err)
{
	struct walker_bpf *skel;
	int code;

	engine->cpus = libbpf_num_possible_cpus();
	if (engine->cpus < 1)
		return err_set(err, ERR_FAILED, "cannot tell how many CPUs there are");
	skel = engine->skel = open_walker(engine);
	if (!skel)
		return engine_error(errno, err);
	bpf_program__set_autoload(skel->progs.walk_tracepoint, false);
	code = bpf_map__set_max_entries(skel->maps.scratches, (uint32_t)engine->cpus);
	if (!code)
		code = bpf_map__set_max_entries(skel->maps.output, (uint32_t)engine->cpus);
	if (!code)
		code = bpf_map__set_max_entries(skel->maps.stack_copies, (uint32_t)engine->cpus);
	if (!code)
		code = walker_bpf__load(skel);
	if (!code)
		code = walker_bpf__attach(skel);
	if (code)
		return engine_error(-code, err);
	engine->requests = ring_buffer__new(bpf_map__fd(skel->maps.requests), on_request, engine,
					    NULL);
	return engine->requests ? 0 : engine_error(errno, err);
}

/* The walker for tracepoints, which few recordings need and which costs as much to load. */
static int load_tracepoint(struct py_engine *engine, struct err *err)
{
	struct walker_bpf *skel = open_walker(engine);
	struct bpf_program *program;
	int code = 0;

	if (!skel)
		return engine_error(errno, err);
	const struct {
		struct bpf_map *map, *shared;
	} maps[] = {
		{skel->maps.processes, engine->skel->maps.processes},
		{skel->maps.seen, engine->skel->maps.seen},
		{skel->maps.output, engine->skel->maps.output},
		{skel->maps.requests, engine->skel->maps.requests},
		{skel->maps.scratches, engine->skel->maps.scratches},
		{skel->maps.stacks, engine->skel->maps.stacks},
		{skel->maps.stack_copies, engine->skel->maps.stack_copies},
	};

	skel->bss->stack_usual = engine->skel->bss->stack_usual;
	skel->bss->stack_most = engine->skel->bss->stack_most;
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]) && !code; i++)
		code = bpf_map__reuse_fd(maps[i].map, bpf_map__fd(maps[i].shared));
	bpf_object__for_each_program(program, skel->obj)
		bpf_program__set_autoload(program, program == skel->progs.walk_tracepoint);
	if (!code)
		code = walker_bpf__load(skel);
	if (code) {
		walker_bpf__destroy(skel);
		return engine_error(-code, err);
	}
	engine->tracepoint = skel;
	return 0;
}

static void unload(struct py_engine *engine)
{
	ring_buffer__free(engine->requests);
	walker_bpf__destroy(engine->skel);
	if (engine->types_fd >= 0)
		close(engine->types_fd);
	engine->requests = NULL;
	engine->skel = NULL;
	engine->types_fd = -1;
}

int py_engine_open(struct py_engine **out, struct err *err)
{
	struct py_engine *engine;
	int ret;

	*out = NULL;
	/* libbpf's CO-RE needs the kernel's types. */
	if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
		struct privilege privilege;

		privilege_read(&privilege);
		err_set(err, ERR_UNSUPPORTED,
			"the kernel's types are not described here (/sys/kernel/btf/vmlinux)");
		err_hint(err, "%s; or --python=trampoline",
			 privilege_remedy(PRIVILEGE_NEED_BTF, privilege.place));
		return ERR_UNSUPPORTED;
	}
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return err_nomem(err);
	libbpf_set_print(log_libbpf);
	engine->types_fd = -1;
	ret = load(engine, err);
	if (ret < 0 && ret != ERR_PERMISSION && engine->types_fd >= 0) {
		unload(engine);
		engine->all_types = true;
		ret = load(engine, err);
	}
	if (ret < 0) {
		py_engine_close(engine);
		return ret;
	}
	*out = engine;
	return 0;
}

void py_engine_close(struct py_engine *engine)
{
	if (!engine)
		return;
	walker_bpf__destroy(engine->tracepoint);
	unload(engine);
	free(engine);
}

int py_engine_set_output(struct py_engine *engine, int cpu, int event_fd, struct err *err)
{
	uint32_t key = (uint32_t)cpu;

	if (bpf_map_update_elem(bpf_map__fd(engine->skel->maps.output), &key, &event_fd, BPF_ANY))
		return err_sys(err, errno, "cannot give the walker its output on CPU %d", cpu);
	return 0;
}

int py_engine_attach(struct py_engine *engine, int event_fd, bool tracepoint, struct err *err)
{
	int program, ret;

	if (tracepoint && !engine->tracepoint && (ret = load_tracepoint(engine, err)) < 0)
		return ret;
	program = bpf_program__fd(tracepoint ? engine->tracepoint->progs.walk_tracepoint
					     : engine->skel->progs.walk_sample);
	if (ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, program) == 0)
		return 0;
	/* Programs of a tracepoint belong to it, not to one event: one is enough for all CPUs. */
	if (tracepoint && errno == EEXIST)
		return 0;
	return err_sys(err, errno, "cannot attach the walker to an event");
}

int py_engine_add_process(struct py_engine *engine, pid_t pid, const struct py_process *process,
			  struct err *err)
{
	uint32_t key = (uint32_t)pid;

	if (bpf_map_update_elem(bpf_map__fd(engine->skel->maps.processes), &key, process,
				BPF_ANY)) {
		if (errno == E2BIG)
			return err_set(err, ERR_UNSUPPORTED,
				       "more than %d Python processes at a time are not walked",
				       WALKER_PROCESSES);
		return err_sys(err, errno, "cannot tell the walker about process %d", (int)pid);
	}
	return 0;
}

void py_engine_remove_process(struct py_engine *engine, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	bpf_map_delete_elem(bpf_map__fd(engine->skel->maps.processes), &key);
}

/* What the walker needs for it came with Linux 5.15. */
int py_engine_copy_stacks(struct py_engine *engine, uint32_t usual, uint32_t most, struct err *err)
{
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, NULL) != 1)
		return err_set(err, ERR_UNSUPPORTED,
			       "the walker cannot find the user's registers on this kernel");
	engine->skel->bss->stack_most = most < PY_STACK_BYTES_MAX ? most : PY_STACK_BYTES_MAX;
	engine->skel->bss->stack_usual = usual;
	return 0;
}

void py_engine_learn_stack(struct py_engine *engine, uint32_t thread, const struct py_stack *stack)
{
	bpf_map_update_elem(bpf_map__fd(engine->skel->maps.stacks), &thread, stack, BPF_ANY);
}

int py_engine_request_fd(const struct py_engine *engine)
{
	return ring_buffer__epoll_fd(engine->requests);
}

/* The walker remembers which code objects it sent. Full, the memory is emptied: they are sent once
 * more, which costs a little, and nothing is lost. */
static void forget_seen(struct py_engine *engine)
{
	int map = bpf_map__fd(engine->skel->maps.seen);
	struct walker_code_key key;

	while (bpf_map_get_next_key(map, NULL, &key) == 0 && bpf_map_delete_elem(map, &key) == 0)
		;
}

int py_engine_requests(struct py_engine *engine,
		       void (*each)(const struct py_code_request *request, void *ctx), void *ctx)
{
	int count;

	engine->each = each;
	engine->each_ctx = ctx;
	count = ring_buffer__consume(engine->requests);
	engine->each = NULL;
	if (engine->forget) {
		engine->forget = false;
		forget_seen(engine);
	}
	return count < 0 ? ERR_SYSTEM : count;
}

void py_engine_stats(const struct py_engine *engine, struct py_engine_stats *stats)
{
	const struct walker_bpf *skel = engine->skel;
	size_t size = bpf_map__value_size(skel->maps.scratches);
	unsigned char *value = malloc(size);
	uint32_t key, next, *from = NULL;

	memset(stats, 0, sizeof(*stats));
	for (uint32_t cpu = 0; value && cpu < (uint32_t)engine->cpus; cpu++) {
		struct walker_stats one;

		if (bpf_map_lookup_elem(bpf_map__fd(skel->maps.scratches), &cpu, value))
			continue;
		memcpy(&one, value, sizeof(one)); /* first in struct cpu_scratch */
		stats->walks += one.walks;
		stats->frames += one.frames;
		stats->faults += one.faults;
		stats->output_lost += one.output_lost;
		stats->code_sent += one.code_sent;
	}
	free(value);
	while (bpf_map_get_next_key(bpf_map__fd(skel->maps.processes), from, &next) == 0) {
		stats->processes++;
		key = next;
		from = &key;
	}
}

#endif
