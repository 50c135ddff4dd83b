/*
 * Processes over time.
 *
 * A process holds a reference to a set of maps. fork only adds a reference; the first of the two
 * to change its maps takes a copy, so ten thousand workers that map nothing cost a row each.
 * Threads have a name and nothing else: one entry of a hash map, stamped with the epoch of their
 * process, which exec and a reuse of the pid renew, so that stale names need not be searched.
 * Exited processes stay: samples of a system-wide recording may come behind the exit, and a reuse
 * of the pid begins with a fork that replaces them.
 */
#include "process/process.h"

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "process/dso.h"
#include "process/mapset.h"

#include <stdlib.h>
#include <string.h>

struct process {
	struct mapset *maps;
	uint32_t name; /* 0: none known */
	uint32_t epoch;
};

struct process_table {
	struct dso_table dsos;
	struct intern names;
	struct {
		VEC_OF(struct process)
	} processes;
	struct map by_pid;  /* index into processes */
	struct map threads; /* (pid, tid) -> (epoch, name) */
	struct mapset *kernel;
	uint64_t generation;
	uint32_t epoch;
	/* The process of the last look-up; samples come in runs. */
	uint32_t last_pid;
	size_t last; /* SIZE_MAX: none */
};

#define KERNEL_PID UINT32_MAX

struct process_table *process_table_new(void)
{
	struct process_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	dso_table_init(&table->dsos);
	intern_init(&table->names);
	table->last = SIZE_MAX;
	table->kernel = mapset_new(++table->generation);
	if (!table->kernel) {
		process_table_free(table);
		return NULL;
	}
	return table;
}

void process_table_free(struct process_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->processes.len; i++)
		mapset_release(table->processes.items[i].maps);
	mapset_release(table->kernel);
	vec_fini(&table->processes);
	map_fini(&table->by_pid);
	map_fini(&table->threads);
	dso_table_fini(&table->dsos);
	intern_fini(&table->names);
	free(table);
}

static struct process *find_process(struct process_table *table, uint32_t pid)
{
	const uint64_t *index;

	if (table->last != SIZE_MAX && table->last_pid == pid)
		return &table->processes.items[table->last];
	index = map_get(&table->by_pid, pid);
	if (!index)
		return NULL;
	table->last_pid = pid;
	table->last = (size_t)*index;
	return &table->processes.items[*index];
}

/* Made with no maps and no name where it is new; NULL when memory runs out. */
static struct process *get_process(struct process_table *table, uint32_t pid)
{
	struct process *process = find_process(table, pid);
	struct mapset *maps;
	uint64_t *index;

	if (process)
		return process;
	maps = mapset_new(++table->generation);
	process = maps ? vec_push(&table->processes) : NULL;
	index = process ? map_put(&table->by_pid, pid, NULL) : NULL;
	if (!index) {
		mapset_release(maps);
		table->processes.len -= process != NULL;
		return NULL;
	}
	*index = table->processes.len - 1;
	*process = (struct process){.maps = maps, .epoch = ++table->epoch};
	return process;
}

/* The process's own set under a new generation, ready to be changed. */
static struct mapset *own_maps(struct process_table *table, struct process *process)
{
	struct mapset *copy;

	if (process->maps->users == 1) {
		process->maps->generation = ++table->generation;
		return process->maps;
	}
	copy = mapset_copy(process->maps, ++table->generation);
	if (!copy)
		return NULL;
	mapset_release(process->maps);
	return process->maps = copy;
}

int process_mmap(struct process_table *table, const struct process_map *map, struct err *err)
{
	struct mapset_entry entry = {.start = map->start, .pgoff = map->pgoff};
	bool kernel = map->kernel || map->pid == KERNEL_PID, ok;
	struct process *process = NULL;

	entry.end = map->len <= UINT64_MAX - map->start ? map->start + map->len : UINT64_MAX;
	if (entry.end == entry.start)
		return 0;
	/* A guest's kernel lies at the addresses of the host's, which it must not hide. */
	if (kernel && strncmp(map->path, "[guest.", 7) == 0)
		return 0;
	entry.dso = dso_of_map(&table->dsos, map);
	if (!entry.dso)
		return err_nomem(err);
	if (kernel) {
		table->kernel->generation = ++table->generation;
		/* perf writes the image as all that is not a module, in front of the modules or
		 * behind them. */
		ok = process_dso(table, entry.dso)->kind == DSO_KERNEL
			     ? mapset_fill(table->kernel, &entry)
			     : mapset_replace(table->kernel, &entry);
	} else {
		struct mapset *maps;

		process = get_process(table, map->pid);
		maps = process ? own_maps(table, process) : NULL;
		ok = maps && mapset_replace(maps, &entry);
	}
	return ok ? 0 : err_nomem(err);
}

static uint64_t thread_key(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

static int name_thread(struct process_table *table, const struct process *process, uint32_t pid,
		       uint32_t tid, uint32_t name)
{
	uint64_t *value = map_put(&table->threads, thread_key(pid, tid), NULL);

	if (!value)
		return -1;
	*value = (uint64_t)process->epoch << 32 | name;
	return 0;
}

/* 0 where the thread has no name of its own. */
static uint32_t own_name(const struct process_table *table, const struct process *process,
			 uint32_t pid, uint32_t tid)
{
	const uint64_t *value = map_get(&table->threads, thread_key(pid, tid));

	return value && (uint32_t)(*value >> 32) == process->epoch ? (uint32_t)*value : 0;
}

static uint32_t name_of(const struct process_table *table, const struct process *process,
			uint32_t pid, uint32_t tid)
{
	uint32_t name = tid != pid ? own_name(table, process, pid, tid) : 0;

	return name ? name : process->name;
}

int process_comm(struct process_table *table, uint32_t pid, uint32_t tid, const char *comm,
		 bool exec, struct err *err)
{
	struct process *process = get_process(table, pid);
	uint32_t name = intern_str(&table->names, comm);

	if (!process || name == INTERN_NONE)
		return err_nomem(err);
	if (exec) {
		struct mapset *maps = mapset_new(++table->generation);

		if (!maps)
			return err_nomem(err);
		mapset_release(process->maps);
		process->maps = maps;
		process->epoch = ++table->epoch;
	}
	if (tid == pid || !process->name)
		process->name = name;
	if (tid != pid && name_thread(table, process, pid, tid, name) < 0)
		return err_nomem(err);
	return 0;
}

int process_fork(struct process_table *table, uint32_t pid, uint32_t tid, uint32_t ppid,
		 uint32_t ptid, struct err *err)
{
	struct process *parent = get_process(table, ppid), *child;
	uint32_t name;

	if (!parent)
		return err_nomem(err);
	name = name_of(table, parent, ppid, ptid);
	if (pid == ppid) {
		if (tid != pid && name && name_thread(table, parent, pid, tid, name) < 0)
			return err_nomem(err);
		return 0;
	}
	child = get_process(table, pid);
	if (!child)
		return err_nomem(err);
	/* Making the child may have moved the parent. */
	parent = find_process(table, ppid);
	mapset_release(child->maps);
	child->maps = mapset_share(parent->maps);
	child->epoch = ++table->epoch;
	child->name = name;
	return 0;
}

void process_exit(struct process_table *table, uint32_t pid, uint32_t tid)
{
	if (tid != pid)
		map_remove(&table->threads, thread_key(pid, tid));
}

bool process_find(struct process_table *table, uint32_t pid, uint64_t addr, bool kernel,
		  struct map_hit *hit)
{
	struct process *process = kernel ? NULL : find_process(table, pid);
	struct mapset_entry entry;
	bool found = process && mapset_find(process->maps, addr, &entry);

	if (!found && (kernel || addr >> 63))
		found = mapset_find(table->kernel, addr, &entry);
	if (!found)
		return false;
	*hit = (struct map_hit){.dso = entry.dso, .start = entry.start, .end = entry.end};
	switch (table->dsos.dsos.items[entry.dso - 1].kind) {
	case DSO_KERNEL:
	case DSO_ANON:
	case DSO_SPECIAL:
		hit->file_offset = addr;
		break;
	default:
		hit->file_offset = addr - entry.start + entry.pgoff;
	}
	return true;
}

uint64_t process_generation(struct process_table *table, uint32_t pid)
{
	struct process *process;

	if (pid == KERNEL_PID)
		return table->kernel->generation;
	process = get_process(table, pid);
	return process ? process->maps->generation : 0;
}

const char *process_thread_name(struct process_table *table, uint32_t pid, uint32_t tid)
{
	const struct process *process = find_process(table, pid);
	uint32_t name = process ? name_of(table, process, pid, tid) : 0;

	/* The idle task never names itself; perf calls it so, too. */
	if (!name && pid == 0)
		return "swapper";
	return intern_text(&table->names, name, NULL);
}

const struct dso *process_dso(const struct process_table *table, uint32_t id)
{
	return id && id <= table->dsos.dsos.len ? &table->dsos.dsos.items[id - 1] : NULL;
}

size_t process_dso_count(const struct process_table *table)
{
	return table->dsos.dsos.len;
}

int process_set_build_id(struct process_table *table, const char *path, const uint8_t *id,
			 uint32_t len, struct err *err)
{
	return dso_set_build_id(&table->dsos, path, id, len) < 0 ? err_nomem(err) : 0;
}
