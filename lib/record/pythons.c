#include "record/pythons.h"

#include "base/clock.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/map.h"
#include "base/privilege.h"
#include "base/vec.h"
#include "perfmap/code.h"
#include "perfmap/frames.h"
#include "perfmap/runtime.h"
#include "perfmap/source.h"
#include "process/proc.h"
#include "record/engine.h"
#include "record/jits.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What is known of one process. */
struct tracked {
	enum {
		NOT_PYTHON,
		PARTIAL, /* not to be walked yet: runtime.h */
		WALKED,
		UNKNOWN_VERSION,
	} state;
	pid_t pid;
	uint32_t cwd;	    /* string */
	uint16_t looks;	    /* that were taken while PARTIAL or unproved */
	bool unproved;	    /* WALKED, but no frames were there yet that bear out the layout */
	uint64_t walked_ns; /* since when the walker knows it */
	struct py_process process;
};

struct interpreter {
	char version[32];
	char path[256];
	bool refused; /* and that was said */
};

struct pythons {
	const struct roots *roots;
	const struct engine_ops *ops;
	struct engine *engine;
	struct runtime_cache *runtimes;
	struct intern strings;
	struct py_codes *codes;
	bool told; /* `codes` is a listener's: nothing is kept for a file */
	struct {
		VEC_OF(uint8_t)
	} read_here;   /* by code index: not (wholly) in the stream, goes into the section */
	bool read_any; /* some is */
	struct {
		VEC_OF(struct tracked)
	} processes;
	size_t ended;	   /* places of processes that are gone: their pid is 0 */
	bool partial;	   /* some process may be in that state */
	bool unproved;	   /* or in that */
	struct map by_pid; /* pid -> index + 1 */
	struct map origin; /* file name of code -> pid that it was first read from */
	struct {
		VEC_OF(struct interpreter)
	} interpreters;
	struct jits jits;
	struct pythons_stats stats;
	bool closed_told;
	uint32_t last_lineage;
};

int pythons_new(struct pythons **result, enum recorder_python *python,
		const struct recorder_target *target, const struct roots *roots, struct err *err)
{
	struct pythons *pythons = calloc(1, sizeof(*pythons));
	int ret;

	if (!pythons)
		return err_nomem(err);
	pythons->roots = pythons->jits.roots = roots;
	intern_init(&pythons->strings);
	pythons->codes = py_codes_new(&pythons->strings);
	pythons->runtimes = runtime_cache_new();
	if (!pythons->codes || !pythons->runtimes)
		ret = err_nomem(err);
	else
		ret = engine_open(&pythons->engine, &pythons->ops, python, target, err);
	if (ret) {
		pythons_free(pythons);
		return ret;
	}
	*result = pythons;
	return 0;
}

void pythons_free(struct pythons *pythons)
{
	if (!pythons)
		return;
	if (pythons->engine)
		pythons->ops->close(pythons->engine);
	runtime_cache_free(pythons->runtimes);
	if (!pythons->told)
		py_codes_free(pythons->codes);
	intern_fini(&pythons->strings);
	vec_fini(&pythons->read_here);
	vec_fini(&pythons->processes);
	vec_fini(&pythons->interpreters);
	map_fini(&pythons->by_pid);
	map_fini(&pythons->origin);
	jits_fini(&pythons->jits);
	free(pythons);
}

bool pythons_walk(const struct pythons *pythons)
{
	return pythons->ops->walks;
}

bool pythons_open_events(const struct pythons *pythons)
{
	return pythons->ops->start;
}

bool pythons_need_output(const struct pythons *pythons)
{
	return pythons->ops->output;
}

int pythons_output(struct pythons *pythons, int cpu, int fd, struct err *err)
{
	return pythons->ops->output(pythons->engine, cpu, fd, err);
}

int pythons_attach(struct pythons *pythons, int fd, bool tracepoint, struct err *err)
{
	return pythons->ops->attach ? pythons->ops->attach(pythons->engine, fd, tracepoint, err)
				    : 0;
}

int pythons_copy_stacks(struct pythons *pythons, uint32_t usual, uint32_t most, struct err *err)
{
	if (!pythons->ops->copy_stacks)
		return err_set(err, ERR_UNSUPPORTED, "--python=%s has no walker in the kernel",
			       pythons->ops->name);
	return pythons->ops->copy_stacks(pythons->engine, usual, most, err);
}

void pythons_learn_stack(struct pythons *pythons, uint32_t thread, const struct py_stack *stack)
{
	if (pythons->ops->learn_stack)
		pythons->ops->learn_stack(pythons->engine, thread, stack);
}

int pythons_start(struct pythons *pythons, const struct channels *channels, struct err *err)
{
	return pythons->ops->start ? pythons->ops->start(pythons->engine, channels, err) : 0;
}

void pythons_enable(struct pythons *pythons, bool on)
{
	if (pythons->ops->enable)
		pythons->ops->enable(pythons->engine, on);
}

void pythons_finish(struct pythons *pythons)
{
	if (pythons->ops->finish)
		pythons->ops->finish(pythons->engine);
}

int pythons_event(const struct pythons *pythons, uint64_t id)
{
	return pythons->ops->event ? pythons->ops->event(pythons->engine, id) : -1;
}

enum engine_frames pythons_frames(struct pythons *pythons, uint32_t tid, uint64_t time, bool urgent,
				  struct bytes *frames)
{
	if (!pythons->ops->frames)
		return ENGINE_AS_IT_IS;
	return pythons->ops->frames(pythons->engine, tid, time, urgent, frames);
}

void pythons_round(struct pythons *pythons)
{
	if (pythons->ops->round)
		pythons->ops->round(pythons->engine);
}

/* Processes come and go for as long as a listener likes: their places are used again. */
static struct tracked *free_place(struct pythons *pythons)
{
	for (size_t i = 0; pythons->told && pythons->ended && i < pythons->processes.len; i++)
		if (!pythons->processes.items[i].pid) {
			pythons->ended--;
			return &pythons->processes.items[i];
		}
	return vec_push(&pythons->processes);
}

static struct tracked *find(struct pythons *pythons, pid_t pid)
{
	uint64_t *index = map_get(&pythons->by_pid, (uint64_t)pid);

	return index ? &pythons->processes.items[*index - 1] : NULL;
}

/* NULL when memory runs out: that process then stays without Python frames. */
static struct tracked *track(struct pythons *pythons, pid_t pid)
{
	struct tracked *tracked = find(pythons, pid);
	uint64_t *index;

	if (tracked)
		return tracked;
	tracked = free_place(pythons);
	index = tracked ? map_put(&pythons->by_pid, (uint64_t)pid, NULL) : NULL;
	if (!index)
		return NULL;
	*index = (size_t)(tracked - pythons->processes.items) + 1;
	*tracked = (struct tracked){.pid = pid};
	return tracked;
}

/* As the process sees it: behind a chroot the link shows where that lies. */
static const char *inside_root(pid_t pid, const char *cwd)
{
	char path[32], root[PATH_MAX];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	len = readlink(path, root, sizeof(root));
	if (len <= 1 || strncmp(cwd, root, (size_t)len) != 0)
		return cwd;
	return cwd[len] == '/' ? cwd + len : cwd[len] ? cwd : "/";
}

/* Facts that are gone with the process. */
static void note_process(struct pythons *pythons, struct tracked *tracked)
{
	char path[64], cwd[PATH_MAX];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)tracked->pid);
	len = readlink(path, cwd, sizeof(cwd) - 1);
	if (len <= 0)
		return;
	cwd[len] = '\0';
	tracked->cwd = intern_str(&pythons->strings, inside_root(tracked->pid, cwd));
}

static struct interpreter *find_interpreter(struct pythons *pythons, const char *version,
					    const char *path)
{
	struct interpreter *interpreter;

	for (size_t i = 0; i < pythons->interpreters.len; i++) {
		interpreter = &pythons->interpreters.items[i];
		if (strcmp(interpreter->path, path) == 0 &&
		    strcmp(interpreter->version, version) == 0)
			return interpreter;
	}
	interpreter = vec_push(&pythons->interpreters);
	if (!interpreter)
		return NULL;
	snprintf(interpreter->version, sizeof(interpreter->version), "%s", version);
	snprintf(interpreter->path, sizeof(interpreter->path), "%s", path);
	return interpreter;
}

static void note_interpreter(struct pythons *pythons, const struct runtime_info *info,
			     const char *why)
{
	struct interpreter *interpreter;
	char version[sizeof(interpreter->version)];

	snprintf(version, sizeof(version), info->micro < 0 ? "%d.%d" : "%d.%d.%d", info->major,
		 info->minor, info->micro);
	interpreter = find_interpreter(pythons, version, info->path);
	if (info->supported || !pythons->ops->walks || (interpreter && interpreter->refused))
		return;
	log_warn("no Python frames: %s", why);
	if (interpreter)
		interpreter->refused = true;
}

void pythons_closed(struct pythons *pythons, pid_t pid)
{
	struct privilege privilege;
	enum privilege_need need = PRIVILEGE_NEED_PTRACE;

	if (pythons->closed_told)
		return;
	pythons->closed_told = true;
	privilege_read(&privilege);
	if (privilege_has(&privilege, PRIVILEGE_SYS_PTRACE) && privilege.user_namespace)
		need = PRIVILEGE_NEED_USER_NAMESPACE;
	log_warn("the kernel does not let pyperf look into process %d, so its code has no names "
		 "and its Python no frames: %s: %s",
		 (int)pid,
		 need == PRIVILEGE_NEED_PTRACE ? "CAP_SYS_PTRACE is missing"
					       : "capabilities of this user namespace do not count",
		 privilege_remedy(need, privilege.place));
}

static void look(struct pythons *pythons, struct tracked *tracked)
{
	struct runtime_info info = {.micro = -1};
	struct err err = {0};
	int found = runtime_find(pythons->runtimes, tracked->pid, &tracked->process, &info, &err);

	if (found < 0)
		log_debug("process %d: %s", (int)tracked->pid, err.text);
	if (found == ERR_PERMISSION)
		pythons_closed(pythons, tracked->pid);
	if (found <= RUNTIME_NONE)
		return;
	if (found == RUNTIME_PARTIAL && info.supported) {
		tracked->state = PARTIAL;
		pythons->partial = true;
		return;
	}
	note_interpreter(pythons, &info, err.text);
	note_process(pythons, tracked);
	if (!info.supported) {
		tracked->state = UNKNOWN_VERSION;
		pythons->stats.unknown++;
		return;
	}
	tracked->process.lineage = ++pythons->last_lineage;
	tracked->state = WALKED;
	tracked->unproved = info.unproved;
	pythons->unproved |= info.unproved;
	pythons->stats.found++;
	if (pythons->engine &&
	    pythons->ops->add_process(pythons->engine, tracked->pid, &tracked->process, &err) < 0)
		log_warn("process %d has no Python frames: %s", (int)tracked->pid, err.text);
	tracked->walked_ns = clock_now_ns();
}

void pythons_mmap(struct pythons *pythons, pid_t pid, const char *path, bool anonymous_code,
		  uint64_t identity)
{
	struct tracked *tracked = find(pythons, pid);

	if (anonymous_code) {
		if (!pythons->told)
			jits_code(&pythons->jits, pid);
		return;
	}
	if (!pythons->told)
		jits_mmap(&pythons->jits, pid, path);
	if (!tracked || tracked->state == NOT_PYTHON) {
		if (!runtime_may_be_in(pythons->runtimes, pid, path, identity))
			return;
		tracked = track(pythons, pid);
	}
	if (tracked && tracked->state <= PARTIAL)
		look(pythons, tracked);
}

/* An interpreter that starts has its first thread within that; one that is stopped there is looked
 * at again when it maps something. */
#define LOOKS_MAX 1000

/* One that was walked on its table's word. What its frames belie is walked no longer. */
static void prove(struct pythons *pythons, struct tracked *tracked)
{
	struct runtime_info info;
	struct py_process process;

	if (runtime_find(pythons->runtimes, tracked->pid, &process, &info, NULL) !=
	    RUNTIME_PARTIAL) {
		tracked->unproved = info.unproved;
		return;
	}
	tracked->unproved = false;
	tracked->state = PARTIAL;
	pythons->partial = true;
	pythons->stats.found--;
	if (pythons->engine)
		pythons->ops->drop_process(pythons->engine, tracked->pid);
}

bool pythons_look_again(struct pythons *pythons)
{
	bool partial = false, unproved = false;

	for (size_t i = 0; (pythons->partial || pythons->unproved) && i < pythons->processes.len;
	     i++) {
		struct tracked *tracked = &pythons->processes.items[i];

		if ((tracked->state != PARTIAL && !tracked->unproved) ||
		    tracked->looks >= LOOKS_MAX)
			continue;
		tracked->looks++;
		if (tracked->unproved)
			prove(pythons, tracked);
		if (tracked->state == PARTIAL)
			look(pythons, tracked);
		partial |= tracked->state == PARTIAL;
		unproved |= tracked->unproved;
	}
	pythons->partial = partial;
	pythons->unproved = unproved;
	return partial;
}

void pythons_fork(struct pythons *pythons, pid_t pid, pid_t parent, uint64_t time_ns)
{
	const struct tracked *from = find(pythons, parent);
	struct tracked copy, *to;

	if (!pythons->told)
		jits_fork(&pythons->jits, pid, parent);
	if (!from || pid == parent)
		return;
	copy = *from;
	to = track(pythons, pid);
	if (!to)
		return;
	*to = copy;
	to->pid = pid;
	to->unproved = false; /* the parent's frames tell */
	/* The walker did not know the parent then, and copied nothing. */
	if (to->state == WALKED && time_ns < to->walked_ns)
		look(pythons, to);
}

void pythons_exec(struct pythons *pythons, pid_t pid)
{
	struct tracked *tracked = find(pythons, pid);

	if (!pythons->told)
		jits_exec(&pythons->jits, pid);
	if (tracked) {
		tracked->state = NOT_PYTHON;
		tracked->unproved = false;
		tracked->looks = 0;
	}
}

void pythons_exit(struct pythons *pythons, pid_t pid)
{
	struct tracked *tracked = pythons->told ? find(pythons, pid) : NULL;

	if (!pythons->told)
		jits_exit(&pythons->jits, pid);
	if (!tracked)
		return;
	map_remove(&pythons->by_pid, (uint64_t)pid);
	*tracked = (struct tracked){.state = NOT_PYTHON};
	pythons->ended++;
}

/* By another lineage every code object is a new one to the engine. */
static void begin_lineage(struct pythons *pythons, struct tracked *tracked)
{
	struct err err = {0};

	tracked->process.lineage = ++pythons->last_lineage;
	if (pythons->engine &&
	    pythons->ops->add_process(pythons->engine, tracked->pid, &tracked->process, &err) < 0)
		log_debug("process %d keeps its code objects: %s", (int)tracked->pid, err.text);
	tracked->walked_ns = clock_now_ns();
}

void pythons_use_codes(struct pythons *pythons, struct py_codes *codes)
{
	if (!pythons->told)
		py_codes_free(pythons->codes);
	pythons->codes = codes;
	pythons->told = true;
	for (size_t i = 0; i < pythons->processes.len; i++)
		if (pythons->processes.items[i].state == WALKED)
			begin_lineage(pythons, &pythons->processes.items[i]);
}

void pythons_each_process(const struct pythons *pythons,
			  bool (*each)(pid_t pid, const struct py_process *process, void *ctx),
			  void *ctx)
{
	for (size_t i = 0; i < pythons->processes.len; i++) {
		const struct tracked *tracked = &pythons->processes.items[i];

		if (tracked->state == WALKED && !each(tracked->pid, &tracked->process, ctx))
			return;
	}
}

/* One byte per code object, so that the mask covers all of them. */
static bool cover_all(struct pythons *pythons)
{
	while (pythons->read_here.len < py_codes_count(pythons->codes))
		if (!vec_push(&pythons->read_here))
			return false;
	return true;
}

/* Which process a source is to be looked for with. */
static void note_origin(struct pythons *pythons, int index, uint32_t pid)
{
	const struct py_code *code = pythons->told ? NULL : py_codes_get(pythons->codes, index);
	bool added = false;
	uint64_t *origin = code ? map_put(&pythons->origin, code->filename, &added) : NULL;

	if (added)
		*origin = pid;
}

/* A process that is read while it runs. */
struct live {
	struct memory_process process;
	struct memory memory;
};

static void live_init(struct live *live, pid_t pid)
{
	memory_process_init(&live->process, pid);
	live->memory = memory_of_process(&live->process);
}

static void live_fini(struct live *live)
{
	memory_process_fini(&live->process);
}

/* What the arguments of its instructions are called: for comfort, so whatever cannot be read any
 * more is not missed. */
static void read_names(struct pythons *pythons, int index, pid_t pid)
{
	const struct tracked *tracked = find(pythons, pid);
	struct live live;

	if (!tracked || tracked->state != WALKED || index < 0)
		return;
	live_init(&live, pid);
	py_codes_read_names(pythons->codes, &live.memory, &tracked->process.layout, index, NULL);
	live_fini(&live);
}

void pythons_code(struct pythons *pythons, struct bytes raw)
{
	struct py_raw_code head;
	struct err err = {0};
	int index;

	if (bytes_left(&raw) >= sizeof(head))
		memcpy(&head, raw.at, sizeof(head));
	if (py_codes_add_raw(pythons->codes, raw, &err) < 0) {
		log_debug("a code object is left out: %s", err.text);
		return;
	}
	index = py_codes_find(pythons->codes, head.lineage, head.code, head.fingerprint);
	note_origin(pythons, index, head.pid);
	read_names(pythons, index, (pid_t)head.pid);
}

int pythons_request_fd(const struct pythons *pythons)
{
	return pythons->ops->request_fd ? pythons->ops->request_fd(pythons->engine) : -1;
}

/* What was read from here, and not sent by the walker, goes into the section. */
static void keep_code(struct pythons *pythons, pid_t pid, uint32_t lineage, uint64_t code,
		      uint32_t fingerprint)
{
	int index = py_codes_find(pythons->codes, lineage, code, fingerprint);

	if (index < 0 || pythons->told)
		return;
	note_origin(pythons, index, (uint32_t)pid);
	read_names(pythons, index, pid);
	pythons->read_any = true;
	if (cover_all(pythons))
		pythons->read_here.items[index] = 1;
}

static void read_code(void *ctx, pid_t pid, uint32_t lineage, uint64_t code, uint32_t fingerprint)
{
	struct pythons *pythons = ctx;
	const struct tracked *tracked = find(pythons, pid);
	struct live live;
	struct err err = {0};
	int ret = ERR_NOT_FOUND;

	if (tracked) {
		live_init(&live, pid);
		ret = py_codes_read(pythons->codes, &live.memory, &tracked->process.layout, lineage,
				    code, fingerprint, &err);
		live_fini(&live);
	}
	if (ret < 0) {
		pythons->stats.code_unread++;
		log_debug("code object %#llx of process %d was not read: %s",
			  (unsigned long long)code, (int)pid, err.text);
		return;
	}
	keep_code(pythons, pid, lineage, code, fingerprint);
}

static void take_code(void *ctx, pid_t pid, uint32_t lineage, uint64_t code, uint32_t fingerprint,
		      struct bytes section)
{
	struct pythons *pythons = ctx;
	struct err err = {0};

	if (py_codes_decode(pythons->codes, bytes_blob(&section), &err) < 0 ||
	    py_codes_decode_bytecode(pythons->codes, section, &err) < 0)
		log_debug("a code object is left out: %s", err.text);
	else
		keep_code(pythons, pid, lineage, code, fingerprint);
}

void pythons_requests(struct pythons *pythons)
{
	const struct engine_codes codes = {.read = read_code, .take = take_code, .ctx = pythons};

	if (pythons->ops->requests)
		pythons->ops->requests(pythons->engine, &codes);
}

/* Reads each source once, as the process saw it that its code was read from: its own tree where it
 * is another one and the process still runs, its working directory for relative names. */
static void read_sources(struct pythons *pythons, struct sources *sources)
{
	uint64_t name, *pid;
	size_t at = 0;

	while (map_next(&pythons->origin, &at, &name, &pid)) {
		const struct tracked *tracked = find(pythons, (pid_t)*pid);
		const char *cwd = "/";

		if (tracked && tracked->cwd)
			cwd = intern_text(&pythons->strings, tracked->cwd, NULL);
		sources_read(sources, intern_text(&pythons->strings, (uint32_t)name, NULL),
			     roots_path(pythons->roots, (pid_t)*pid), cwd, NULL);
	}
}

static int store_sources(struct pythons *pythons, struct sources *sources,
			 struct data_writer *writer, struct err *err)
{
	struct strbuf section = {0};
	int ret;

	read_sources(pythons, sources);
	ret = sources_encode(sources, &section);
	if (!ret && section.len)
		ret = data_writer_section(writer, DATA_SECTION_SOURCE, section.buf, section.len,
					  err);
	strbuf_fini(&section);
	return ret;
}

int pythons_store(struct pythons *pythons, struct sources *sources, struct data_writer *writer,
		  struct err *err)
{
	struct strbuf section = {0};
	int ret = 0;

	/* The walker's own records are in the stream: the section holds what was read from here. */
	if (!cover_all(pythons))
		return err_nomem(err);
	if (pythons->read_any)
		ret = py_codes_encode(pythons->codes, pythons->read_here.items, &section);
	if (!ret && section.len)
		ret = data_writer_section(writer, DATA_SECTION_CODE, section.buf, section.len, err);
	strbuf_reset(&section);
	if (!ret)
		ret = py_codes_encode_bytecode(pythons->codes, pythons->read_here.items, &section);
	if (!ret && section.len)
		ret = data_writer_section(writer, DATA_SECTION_BYTECODE, section.buf, section.len,
					  err);
	strbuf_fini(&section);
	if (!ret)
		ret = jits_store(&pythons->jits, writer, err);
	if (!ret)
		ret = store_sources(pythons, sources, writer, err);
	return ret;
}

void pythons_stats(const struct pythons *pythons, struct pythons_stats *stats)
{
	*stats = pythons->stats;
	if (pythons->ops->stats) {
		pythons->ops->stats(pythons->engine, &stats->engine);
		stats->walks_faulted = stats->engine.faults;
		stats->code_unread += stats->engine.code_unread;
	}
}

void pythons_each(const struct pythons *pythons,
		  void (*each)(const char *version, const char *path, void *ctx), void *ctx)
{
	for (size_t i = 0; i < pythons->interpreters.len; i++)
		each(pythons->interpreters.items[i].version, pythons->interpreters.items[i].path,
		     ctx);
}
