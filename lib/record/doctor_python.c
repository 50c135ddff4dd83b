#include "record/doctor.h"

#include "perfmap/frames.h"
#include "perfmap/runtime.h"
#include "perfmap/walk.h"
#include "process/memory.h"
#include "process/proc.h"
#include "process/stopped.h"
#include "record/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Threads of one process that are walked: enough to know. */
#define THREADS_MAX 256

struct walks {
	unsigned int held, failed, python, frames;
	struct err refused; /* why a thread could not be stopped */
	int status;	    /* of the last walk that failed */
};

static void walk_thread(const struct py_process *process, pid_t pid, pid_t tid,
			struct py_raw_frame *frames, struct walks *walks)
{
	struct memory_process live;
	struct memory memory;
	struct stopped stopped;
	unsigned int count = 0;
	int status;

	if (stopped_hold(&stopped, tid, &walks->refused) < 0)
		return;
	memory_process_init(&live, pid);
	memory = memory_of_process(&live);
	status = py_walk(process, &memory, stopped.thread_pointer, frames, PY_FRAMES_MAX, &count);
	stopped_release(&stopped);
	memory_process_fini(&live);
	walks->held++;
	if (status == PY_WALK_NO_THREAD)
		return;
	walks->python++;
	walks->frames += count;
	if (status != PY_WALK_OK && status != PY_WALK_TRUNCATED) {
		walks->failed++;
		walks->status = status;
	}
}

static void fail(struct doctor_python *python, enum privilege_need need)
{
	python->verdict = DOCTOR_FAIL;
	python->need = (int)need;
}

static void say_walks(struct doctor_python *python, const struct walks *walks)
{
	python->threads = walks->held;
	python->python_threads = walks->python;
	python->frames = walks->frames;
	if (!walks->held) {
		snprintf(python->text, sizeof(python->text), "can be walked; not tried: %.300s",
			 walks->refused.text);
	} else if (walks->failed) {
		snprintf(python->text, sizeof(python->text),
			 "%u frames of %u threads; the walk ends early in %u of them: %s",
			 walks->frames, walks->python, walks->failed,
			 walks->status == PY_WALK_FAULT ? "memory cannot be read"
							: "a pointer makes no sense");
		if (walks->failed == walks->python)
			fail(python, PRIVILEGE_NEED_LAYOUT);
	} else {
		snprintf(python->text, sizeof(python->text), "%u frames of %u threads",
			 walks->frames, walks->python);
	}
}

static int walk_threads(struct doctor_python *python, const struct py_process *process,
			struct err *err)
{
	struct py_raw_frame *frames = calloc(PY_FRAMES_MAX, sizeof(*frames));
	struct tasks threads = {0};
	struct walks walks = {0};
	int ret = frames ? target_threads(python->pid, &threads, err) : err_nomem(err);

	for (size_t i = 0; !ret && i < threads.len && walks.held < THREADS_MAX; i++)
		walk_thread(process, python->pid, threads.items[i], frames, &walks);
	if (!ret)
		say_walks(python, &walks);
	vec_fini(&threads);
	free(frames);
	return ret;
}

static void describe(struct doctor_python *python, const struct runtime_info *info)
{
	if (info->micro < 0)
		snprintf(python->version, sizeof(python->version), "%d.%d", info->major,
			 info->minor);
	else
		snprintf(python->version, sizeof(python->version), "%d.%d.%d", info->major,
			 info->minor, info->micro);
	snprintf(python->path, sizeof(python->path), "%s", info->path);
	python->debug = info->debug;
	python->free_threaded = info->free_threaded;
}

/* RUNTIME_NONE, or what was found, with the python filled. Only a process that was asked for is
 * stopped and walked. */
static int look(struct runtime_cache *cache, pid_t pid, bool walk, struct doctor_python *python,
		struct err *err)
{
	struct runtime_info info = {.micro = -1};
	struct py_process process = {0};
	struct stat st;
	char path[32];
	int found;

	*python = (struct doctor_python){.pid = pid, .ns_pid = proc_innermost_pid(pid), .need = -1};
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st) == 0)
		python->uid = st.st_uid;
	if (proc_comm(pid, pid, python->comm, sizeof(python->comm)) < 0)
		python->comm[0] = '\0';
	found = runtime_find(cache, pid, &process, &info, err);
	if (found <= RUNTIME_NONE)
		return found;
	describe(python, &info);
	if (found == RUNTIME_PARTIAL) {
		/* It has only begun. */
		bool pending = info.supported && !info.doubtful;

		snprintf(python->text, sizeof(python->text), "%.370s%s", err->text,
			 pending ? ": ask again" : "");
		if (pending)
			python->verdict = DOCTOR_NOTE;
		else
			fail(python, PRIVILEGE_NEED_LAYOUT);
		return found;
	}
	if (walk && walk_threads(python, &process, err) < 0)
		return err->code;
	return found;
}

static int keep(struct doctor *doctor, const struct doctor_python *python, struct err *err)
{
	struct doctor_python *kept = vec_push(&doctor->pythons);

	if (!kept)
		return err_nomem(err);
	*kept = *python;
	return 0;
}

int doctor_look_at(struct doctor *doctor, pid_t pid, struct err *err)
{
	struct runtime_cache *cache = runtime_cache_new();
	struct doctor_python python;
	struct err why = {0};
	int found;

	if (!cache)
		return err_nomem(err);
	found = look(cache, pid, true, &python, &why);
	runtime_cache_free(cache);
	if (found == ERR_NOMEM)
		return err_nomem(err);
	if (found == RUNTIME_NONE) {
		fail(&python, PRIVILEGE_NEED_PYTHON);
		snprintf(python.text, sizeof(python.text),
			 "no CPython: it maps no python executable and no libpython");
	} else if (found < 0) {
		fail(&python, PRIVILEGE_NEED_PTRACE);
		target_explain(pid, &why);
		snprintf(python.text, sizeof(python.text), "%.390s", why.text);
	}
	return keep(doctor, &python, err);
}

int doctor_look_around(struct doctor *doctor, struct err *err)
{
	struct runtime_cache *cache = runtime_cache_new();
	struct tasks pids = {0};
	int ret = cache ? target_processes(&pids, err) : err_nomem(err);

	for (size_t i = 0; !ret && i < pids.len; i++) {
		struct doctor_python python;
		struct err why = {0};
		int found;

		if (pids.items[i] == getpid())
			continue;
		found = look(cache, pids.items[i], false, &python, &why);
		if (found == ERR_PERMISSION)
			doctor->hidden_processes++;
		else if (found == ERR_NOMEM)
			ret = err_nomem(err);
		else if (found > RUNTIME_NONE)
			ret = keep(doctor, &python, err);
	}
	vec_fini(&pids);
	runtime_cache_free(cache);
	return ret;
}
