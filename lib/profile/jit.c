#include "profile/jit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORKS_MAX 64		 /* generations of parents that are asked */
#define ASK_AGAIN_NS 1000000000u /* at most once in so long a map is read that has grown */

struct jit_dump {
	uint32_t pid;
	bool used;	      /* by the process that mapped it */
	struct bytes path;    /* in the recording's section */
	struct bytes text;    /* likewise; parsed at first use */
	struct jitdump *dump; /* NULL: not parsed, or no dump */
};

struct jit_process {
	uint64_t dump;	 /* index + 1; 0: none */
	uint64_t parent; /* index + 1; 0: none, or not known */
	uint64_t forked; /* when */
	uint32_t pid;
};

void jit_fini(struct jit *jit)
{
	for (size_t i = 0; i < jit->maps.len; i++)
		perfmap_free(jit->maps.items[i].map);
	for (size_t i = 0; i < jit->dumps.len; i++)
		jitdump_free(jit->dumps.items[i].dump);
	vec_fini(&jit->maps);
	vec_fini(&jit->dumps);
	vec_fini(&jit->processes);
	map_fini(&jit->by_pid);
	map_fini(&jit->map_by_pid);
}

/* The pid's map, made where it had none; NULL when memory ran out. */
static struct jit_map *map_place(struct jit *jit, uint32_t pid)
{
	uint64_t *index = map_put(&jit->map_by_pid, pid, NULL);

	if (index && !*index && vec_push(&jit->maps))
		*index = jit->maps.len;
	return index && *index ? &jit->maps.items[*index - 1] : NULL;
}

/* Gives the pid its map, in place of what it had. What is no map is as good as none. */
static int set_map(struct jit *jit, uint32_t pid, const char *text, size_t len, struct err *err)
{
	struct jit_map *place = map_place(jit, pid);
	struct perfmap *map;
	int rc = place ? perfmap_parse(&map, text, len, err) : err_nomem(err);

	if (rc < 0)
		return rc == ERR_NOMEM ? rc : 0;
	jit->skipped += perfmap_skipped(map);
	if (place->map)
		jit->skipped -= perfmap_skipped(place->map);
	perfmap_free(place->map);
	place->map = map;
	return 0;
}

int jit_load_maps(struct jit *jit, struct bytes section, struct err *err)
{
	struct bytes text;
	uint32_t pid;
	int rc = 0;

	while (rc == 0 && perfmap_section_next(&section, &pid, &text))
		rc = set_map(jit, pid, (const char *)text.at, bytes_left(&text), err);
	if (rc == 0 && section.bad)
		rc = err_set(err, ERR_CORRUPT, "the recorded perf maps are cut short");
	return rc;
}

int jit_load_dumps(struct jit *jit, struct bytes section, struct err *err)
{
	struct jit_dump dump = {0}, *place;

	while (jitdump_section_next(&section, &dump.pid, &dump.path, &dump.text)) {
		place = vec_push(&jit->dumps);
		if (!place)
			return err_nomem(err);
		*place = dump;
	}
	return section.bad ? err_set(err, ERR_CORRUPT, "the recorded jitdumps are cut short") : 0;
}

/* The process's number, 0 when memory ran out. */
static uint64_t process_of(struct jit *jit, uint32_t pid)
{
	uint64_t *index = map_put(&jit->by_pid, pid, NULL);
	struct jit_process *process;

	if (index && !*index) {
		process = vec_push(&jit->processes);
		if (!process)
			return 0;
		process->pid = pid;
		*index = jit->processes.len;
	}
	return index ? *index : 0;
}

/* Files of this host are believed when they belong to whoever reads them, or to root: others could
 * plant one. Those of a program that still runs may have grown since they were recorded. */
static int read_live_dump(struct jit *jit, struct jit_dump *dump, const char *path, struct err *err)
{
	pid_t pid = (pid_t)dump->pid;
	int fd = jit->live ? jitdump_open("", pid, pid, geteuid(), path, NULL) : -1, rc = 0;
	struct jitdump_head recorded, found;
	struct strbuf text = {0};
	uint64_t refused;

	if (fd < 0)
		return 0;
	if (jitdump_read(fd, &text, &refused, NULL) == 0 && text.len > bytes_left(&dump->text) &&
	    (!bytes_left(&dump->text) ||
	     (jitdump_head(dump->text.at, bytes_left(&dump->text), &recorded) &&
	      jitdump_head(text.buf, text.len, &found) &&
	      memcmp(&recorded, &found, sizeof(found)) == 0)))
		rc = jitdump_parse(&dump->dump, text.buf, text.len, err);
	strbuf_fini(&text);
	close(fd);
	return rc;
}

static int parse_dump(struct jit *jit, struct jit_dump *dump, const char *path, struct err *err)
{
	int rc;

	dump->used = true;
	rc = read_live_dump(jit, dump, path, err);
	if (!dump->dump && rc != ERR_NOMEM)
		rc = jitdump_parse(&dump->dump, dump->text.at, bytes_left(&dump->text), err);
	if (dump->dump)
		jit->skipped += jitdump_skipped(dump->dump);
	else if (rc == ERR_CORRUPT && bytes_left(&dump->text))
		jit->skipped++;
	return rc == ERR_NOMEM ? rc : 0;
}

static bool same_path(struct bytes a, const char *path)
{
	return bytes_left(&a) == strlen(path) && memcmp(a.at, path, bytes_left(&a)) == 0;
}

int jit_mmap(struct jit *jit, uint32_t pid, const char *path, struct err *err)
{
	uint64_t process;
	struct jit_dump *dump;
	size_t i;

	if (!jitdump_name_pid(path))
		return 0;
	process = process_of(jit, pid);
	if (!process)
		return err_nomem(err);
	/* A process that was another program before had another dump, of perhaps the same name. */
	for (i = 0; i < jit->dumps.len; i++)
		if (jit->dumps.items[i].pid == pid && !jit->dumps.items[i].used &&
		    same_path(jit->dumps.items[i].path, path))
			break;
	if (i == jit->dumps.len) {
		if (jit->processes.items[process - 1].dump)
			return 0; /* mapped once more */
		dump = vec_push(&jit->dumps);
		if (!dump)
			return err_nomem(err);
		dump->pid = pid;
	}
	jit->processes.items[process - 1].dump = i + 1;
	return parse_dump(jit, &jit->dumps.items[i], path, err);
}

int jit_fork(struct jit *jit, uint32_t pid, uint32_t ppid, uint64_t time, struct err *err)
{
	uint64_t parent = process_of(jit, ppid), child = process_of(jit, pid);

	if (!parent || !child)
		return err_nomem(err);
	jit->processes.items[child - 1] = (struct jit_process){
		.parent = parent,
		.forked = time,
		.pid = pid,
	};
	return 0;
}

void jit_exec(struct jit *jit, uint32_t pid)
{
	uint64_t *index = map_get(&jit->by_pid, pid);

	if (index && *index)
		jit->processes.items[*index - 1] = (struct jit_process){.pid = pid};
}

static const struct jitdump *dump_of(const struct jit *jit, const struct jit_process *process)
{
	return process->dump ? jit->dumps.items[process->dump - 1].dump : NULL;
}

static const struct jit_process *process_at(const struct jit *jit, uint64_t index)
{
	return index ? &jit->processes.items[index - 1] : NULL;
}

uint64_t jit_epoch(struct jit *jit, uint32_t pid, uint64_t time)
{
	uint64_t *index = jit->dumps.len ? map_get(&jit->by_pid, pid) : NULL;
	const struct jit_process *process = process_at(jit, index ? *index : 0);
	uint64_t epoch = 0;

	for (unsigned int i = 0; process && i < FORKS_MAX; i++) {
		const struct jitdump *dump = dump_of(jit, process);

		if (dump) /* a parent's count changes no more, so a sum is enough */
			epoch += 1 + jitdump_count_until(dump, jit->timed ? time : UINT64_MAX);
		time = process->forked;
		process = process_at(jit, process->parent);
	}
	return epoch;
}

/* False where it has not grown since it was read. */
static bool read_live_map(struct jit *jit, uint32_t pid, struct jit_map *map)
{
	int fd = perfmap_open("", (pid_t)pid, (pid_t)pid, geteuid(), NULL);
	struct strbuf text = {0};
	uint64_t refused = 0;
	struct stat st;
	bool grown = fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size > map->size;

	if (grown) {
		map->size = (uint64_t)st.st_size;
		if (perfmap_read(fd, &text, &refused, NULL) >= 0)
			set_map(jit, pid, strbuf_text(&text), text.len, NULL);
		jit->skipped += refused > 0;
		strbuf_fini(&text);
	}
	if (fd >= 0)
		close(fd);
	return grown;
}

static bool find_in_map(struct jit *jit, uint32_t pid, uint64_t time, uint64_t addr,
			struct perfmap_entry *entry)
{
	bool known = map_get(&jit->map_by_pid, pid);
	struct jit_map *map = known || jit->maps_live ? map_place(jit, pid) : NULL;

	if (!map)
		return false;
	if (map->map && perfmap_find(map->map, addr, entry))
		return true;
	if (known && (!jit->maps_grow || time < map->asked + ASK_AGAIN_NS))
		return false;
	map->asked = time;
	return jit->maps_live && read_live_map(jit, pid, map) && map->map &&
	       perfmap_find(map->map, addr, entry);
}

static bool find_in_dump(const struct jit *jit, const struct jit_process *process, uint64_t time,
			 uint64_t addr, struct jit_hit *hit)
{
	const struct jitdump *dump = process ? dump_of(jit, process) : NULL;
	const struct jitdump_code *code = NULL;

	if (dump)
		code = jitdump_find(dump, addr, jit->timed ? time : UINT64_MAX);
	if (!code)
		return false;
	*hit = (struct jit_hit){.dump = dump, .code = code};
	perfmap_entry_of(code->addr, code->size, code->name, &hit->entry);
	return true;
}

bool jit_find(struct jit *jit, uint32_t pid, uint64_t time, uint64_t addr, struct jit_hit *hit)
{
	uint64_t *index = map_get(&jit->by_pid, pid);
	const struct jit_process *process = process_at(jit, index ? *index : 0);

	for (unsigned int i = 0; i < FORKS_MAX; i++) {
		if (find_in_dump(jit, process, time, addr, hit))
			return true;
		*hit = (struct jit_hit){0};
		if (find_in_map(jit, pid, time, addr, &hit->entry))
			return true;
		if (!process || !process->parent)
			return false;
		time = process->forked;
		process = process_at(jit, process->parent);
		pid = process->pid;
	}
	return false;
}
