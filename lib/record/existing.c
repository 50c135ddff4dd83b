#include "record/existing.h"

#include "base/map.h"
#include "process/proc.h"
#include "record/target.h"
#include "symbol/elf.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct existing {
	const struct synth *synth;
	struct roots *roots;
	struct pythons *pythons;
	struct hits *hits;
	struct map seen; /* hash of device and inode of files whose build-id is known */
	pid_t pid;
	struct err *err;
	int failed; /* to write: nothing goes on after that */
};

static int store_build_id(struct existing *existing, const struct proc_map *map, struct err *err)
{
	const struct outlet *out = existing->synth->out;
	uint8_t id[ELF_BUILD_ID_MAX];
	struct elf_file *elf;
	char path[32];
	struct stat st;
	size_t len = 0;
	bool added;
	int fd;

	if (!map_put(&existing->seen, map_mix((uint64_t)map->maj << 32 | map->min, map->ino),
		     &added))
		return err_nomem(err);
	if (!added)
		return 0;
	fd = proc_open_map(existing->pid, map, roots_path(existing->roots, existing->pid), &st,
			   NULL);
	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (elf_open(&elf, path, NULL) == 0) {
		len = elf_build_id(elf, id);
		elf_close(elf);
	}
	close(fd);
	return len ? out->build_id(out, map->path, id, len, err) : 0;
}

static void note_hits(struct existing *existing, const struct proc_map *map)
{
	struct record_mmap record = {
		.pid = (uint32_t)existing->pid,
		.addr = map->start,
		.len = map->end - map->start,
		.pgoff = map->pgoff,
		.maj = map->maj,
		.min = map->min,
		.ino = map->ino,
		.filename = map->path,
	};

	hits_mmap(existing->hits, &record);
}

static int store_map(const struct proc_map *map, void *ctx)
{
	struct existing *existing = ctx;
	bool anonymous = !map->path[0];

	if (map->perms[2] != 'x')
		return 0;
	existing->failed = synth_map(existing->synth, (uint32_t)existing->pid, map,
				     anonymous ? "//anon" : map->path, existing->err);
	if (!existing->failed && existing->synth->out->build_id && map->path[0] == '/' && map->ino)
		existing->failed = store_build_id(existing, map, existing->err);
	if (!anonymous)
		note_hits(existing, map);
	if (!existing->failed)
		pythons_mmap(existing->pythons, existing->pid, map->path, anonymous,
			     map_mix((uint64_t)map->maj << 32 | map->min, map->ino));
	return existing->failed;
}

static int store_threads(struct existing *existing, struct err *err)
{
	uint32_t pid = (uint32_t)existing->pid;
	struct tasks threads = {0};
	int ret = target_threads(existing->pid, &threads, err);

	for (size_t i = 0; !ret && i < threads.len; i++) {
		uint32_t tid = (uint32_t)threads.items[i];
		char comm[64];

		if (tid == pid ||
		    proc_comm(existing->pid, threads.items[i], comm, sizeof(comm)) < 0)
			continue;
		ret = synth_thread(existing->synth, pid, tid, err);
		if (!ret)
			ret = synth_comm(existing->synth, pid, tid, comm, err);
	}
	vec_fini(&threads);
	return ret;
}

static int store_process(struct existing *existing, struct err *err)
{
	uint32_t pid = (uint32_t)existing->pid;
	char comm[64];
	int ret;

	if (proc_comm(existing->pid, existing->pid, comm, sizeof(comm)) < 0)
		return 0;
	ret = synth_comm(existing->synth, pid, pid, comm, err);
	if (ret)
		return ret;
	roots_note(existing->roots, existing->pid);
	/* Its maps may be gone: then its addresses have no names. */
	if (proc_each_map(existing->pid, store_map, existing, NULL) == ERR_PERMISSION &&
	    !existing->failed)
		pythons_closed(existing->pythons, existing->pid);
	return existing->failed ? existing->failed : store_threads(existing, err);
}

int existing_store(const struct synth *synth, const struct recorder_target *target,
		   struct roots *roots, struct pythons *pythons, struct hits *hits, struct err *err)
{
	struct existing existing = {
		.synth = synth, .roots = roots, .pythons = pythons, .hits = hits, .err = err};
	struct tasks pids = {0};
	struct map done = {0};
	int ret = 0;

	if (target->kind == RECORDER_CPUS)
		ret = target_processes(&pids, err);
	for (size_t i = 0; !ret && i < target->tasks.len; i++) {
		bool added;

		if (!map_put(&done, (uint64_t)target->tasks.items[i].pid, &added)) {
			ret = err_nomem(err);
		} else if (added) {
			pid_t *pid = vec_push(&pids);

			if (pid)
				*pid = target->tasks.items[i].pid;
			else
				ret = err_nomem(err);
		}
	}
	for (size_t i = 0; !ret && i < pids.len; i++) {
		existing.pid = pids.items[i];
		ret = store_process(&existing, err);
	}
	map_fini(&done);
	map_fini(&existing.seen);
	vec_fini(&pids);
	return ret;
}
