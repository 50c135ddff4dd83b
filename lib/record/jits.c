#include "record/jits.h"

#include "base/log.h"
#include "base/strbuf.h"
#include "perfmap/jitdump.h"
#include "perfmap/perfmap.h"
#include "process/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors of processes that have ended are kept until there are so many. */
#define OPEN_MAX 256u
/* Of all files together: what is beyond is refused. */
#define STORED_MAX (UINT64_C(512) << 20)

struct jit_file {
	pid_t pid, ns_pid;
	uid_t uid;
	char *path;	 /* of a jitdump; NULL: a perf map */
	int fd;		 /* -1: could not be opened, or is closed */
	bool ended;	 /* belongs to an earlier program of its pid */
	bool done;	 /* text has all that there is */
	uint64_t before; /* another file of this pid, index + 1; 0: none */
	struct strbuf text;
};

static void close_file(struct jits *jits, struct jit_file *file)
{
	if (file->fd < 0)
		return;
	close(file->fd);
	file->fd = -1;
	jits->open--;
}

void jits_fini(struct jits *jits)
{
	for (size_t i = 0; i < jits->files.len; i++) {
		close_file(jits, &jits->files.items[i]);
		strbuf_fini(&jits->files.items[i].text);
		free(jits->files.items[i].path);
	}
	vec_fini(&jits->files);
	map_fini(&jits->by_pid);
}

static void refuse(struct jits *jits, const char *why)
{
	if (!jits->refused++)
		snprintf(jits->first, sizeof(jits->first), "%s", why);
}

/* Steps through the files of a process, latest first; starts with NULL, ends with it. */
static struct jit_file *next_of(struct jits *jits, pid_t pid, const struct jit_file *file)
{
	uint64_t *latest = file ? NULL : map_get(&jits->by_pid, (uint64_t)pid);
	uint64_t index = file ? file->before : latest ? *latest : 0;

	return index ? &jits->files.items[index - 1] : NULL;
}

/* The file of the program that the process runs now; path NULL: its perf map. */
static struct jit_file *find(struct jits *jits, pid_t pid, const char *path)
{
	struct jit_file *file = NULL;

	while ((file = next_of(jits, pid, file)))
		if (!file->ended && !file->path == !path &&
		    (!path || strcmp(file->path, path) == 0))
			return file;
	return NULL;
}

/* Where there is none yet it is tried again later. */
static void open_file(struct jits *jits, struct jit_file *file, bool last)
{
	const char *held = roots_path(jits->roots, file->pid);
	struct err why = {0};

	file->fd = file->path ? jitdump_open(held, file->pid, file->ns_pid, file->uid, file->path,
					     &why)
			      : perfmap_open(held, file->pid, file->ns_pid, file->uid, &why);
	if (file->fd >= 0) {
		jits->open++;
	} else if (why.code != ERR_NOT_FOUND) {
		file->done = true;
		refuse(jits, why.text);
	} else if (last && file->path) {
		refuse(jits, why.text);
	}
}

static struct jit_file *add(struct jits *jits, pid_t pid, const char *path)
{
	struct jit_file *file = vec_push(&jits->files);
	uint64_t *latest = file ? map_put(&jits->by_pid, (uint64_t)pid, NULL) : NULL;
	char proc[32];
	struct stat st;

	if (file)
		file->fd = -1;
	if (!latest)
		return NULL;
	file->before = *latest;
	*latest = jits->files.len;
	file->pid = pid;
	file->ns_pid = proc_innermost_pid(pid);
	snprintf(proc, sizeof(proc), "/proc/%d", (int)pid);
	file->uid = stat(proc, &st) == 0 ? st.st_uid : geteuid();
	file->path = path ? strdup(path) : NULL;
	return path && !file->path ? NULL : file;
}

static void note(struct jits *jits, pid_t pid, const char *path)
{
	struct jit_file *file = find(jits, pid, path);

	if (!file)
		file = add(jits, pid, path);
	if (!file) /* at most its pid is noted, and it has no descriptor */
		refuse(jits, "memory ran out");
	else if (file->fd < 0 && !file->done)
		open_file(jits, file, false);
}

void jits_code(struct jits *jits, pid_t pid)
{
	note(jits, pid, NULL);
}

void jits_mmap(struct jits *jits, pid_t pid, const char *path)
{
	if (jitdump_name_pid(path))
		note(jits, pid, path);
}

void jits_fork(struct jits *jits, pid_t pid, pid_t parent)
{
	if (pid != parent && find(jits, parent, NULL))
		note(jits, pid, NULL);
}

static void read_file(struct jits *jits, struct jit_file *file)
{
	uint64_t beyond = 0;
	struct err why = {0};
	char text[128];
	int ret;

	if (file->fd < 0 || file->done)
		return;
	file->done = true;
	ret = file->path ? jitdump_read(file->fd, &file->text, &beyond, &why)
			 : perfmap_read(file->fd, &file->text, &beyond, &why);
	if (ret)
		refuse(jits, why.text);
	if (beyond) {
		snprintf(text, sizeof(text), "the %s of process %d is %llu MB too large",
			 file->path ? "jitdump" : "perf map", (int)file->pid,
			 (unsigned long long)(beyond >> 20));
		refuse(jits, text);
	}
	close_file(jits, file);
}

/* The new program may write over the old one's dump, but appends to its perf map. */
void jits_exec(struct jits *jits, pid_t pid)
{
	struct jit_file *file = NULL;

	while ((file = next_of(jits, pid, file))) {
		if (file->ended || !file->path)
			continue;
		read_file(jits, file);
		file->ended = true;
	}
}

void jits_exit(struct jits *jits, pid_t pid)
{
	struct jit_file *file = NULL;

	while ((file = next_of(jits, pid, file))) {
		if (file->ended)
			continue;
		file->ended = true;
		if (file->fd < 0 && !file->done)
			open_file(jits, file, true);
		if (jits->open > OPEN_MAX)
			read_file(jits, file);
	}
}

static int store(struct jits *jits, bool dumps, enum data_section id, struct data_writer *writer,
		 uint64_t *stored, struct err *err)
{
	struct strbuf section = {0};
	int ret = 0;

	for (size_t i = 0; i < jits->files.len; i++) {
		struct jit_file *file = &jits->files.items[i];

		if (!file->path == dumps)
			continue;
		if (file->fd < 0 && !file->done && !file->ended)
			open_file(jits, file, true);
		read_file(jits, file);
		if (file->text.len > STORED_MAX - *stored)
			refuse(jits, "all perf maps and jitdumps together are too large");
		else if (file->text.len && dumps)
			jitdump_section_add(&section, (uint32_t)file->pid, file->path,
					    file->text.buf, file->text.len);
		else if (file->text.len)
			perfmap_section_add(&section, (uint32_t)file->pid, file->text.buf,
					    file->text.len);
		if (file->text.len <= STORED_MAX - *stored)
			*stored += file->text.len;
		strbuf_fini(&file->text);
	}
	if (strbuf_failed(&section))
		ret = err_nomem(err);
	else if (section.len)
		ret = data_writer_section(writer, id, section.buf, section.len, err);
	strbuf_fini(&section);
	return ret;
}

int jits_store(struct jits *jits, struct data_writer *writer, struct err *err)
{
	uint64_t stored = 0;
	int ret = store(jits, false, DATA_SECTION_PERFMAP, writer, &stored, err);

	if (!ret)
		ret = store(jits, true, DATA_SECTION_JITDUMP, writer, &stored, err);
	if (jits->refused == 1)
		log_warn("code made at run time has no names: %s", jits->first);
	else if (jits->refused)
		log_warn("%llu perf maps or jitdumps, or parts of them, are left out; the first: "
			 "%s",
			 (unsigned long long)jits->refused, jits->first);
	return ret;
}
