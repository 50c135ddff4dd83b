#include "process/proc.h"

#include "base/io.h"
#include "base/strbuf.h"
#include "process/safe_open.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MAPS_BYTES_MAX (256u << 20)

/* A hexadecimal number that ends with `end`; false otherwise. */
static bool take_hex(char **at, char end, uint64_t *value)
{
	char *stop;

	errno = 0;
	*value = strtoull(*at, &stop, 16);
	if (stop == *at || errno || *stop != end)
		return false;
	*at = stop + 1;
	return true;
}

/*
 * The kernel writes a newline within a path as \012 and nothing else in octal (seq_file_path() with
 * "\n" in fs/proc/task_mmu.c), so a backslash stays itself.
 */
static void unescape(char *path)
{
	char *out = path;

	for (const char *in = path; *in; out++) {
		if (strncmp(in, "\\012", 4) == 0) {
			*out = '\n';
			in += 4;
		} else {
			*out = *in++;
		}
	}
	*out = '\0';
}

static bool parse_map(char *line, struct proc_map *map)
{
	uint64_t maj, min;
	char *at = line;

	if (!take_hex(&at, '-', &map->start) || !take_hex(&at, ' ', &map->end))
		return false;
	if (strlen(at) < 5 || at[4] != ' ')
		return false;
	memcpy(map->perms, at, 4);
	map->perms[4] = '\0';
	at += 5;
	if (!take_hex(&at, ' ', &map->pgoff) || !take_hex(&at, ':', &maj) ||
	    !take_hex(&at, ' ', &min))
		return false;
	map->maj = (uint32_t)maj;
	map->min = (uint32_t)min;
	map->ino = strtoull(at, &at, 10);
	at += strspn(at, " ");
	unescape(at);
	map->path = at;
	return map->start < map->end;
}

int proc_each_map(pid_t pid, int (*each)(const struct proc_map *map, void *ctx), void *ctx,
		  struct err *err)
{
	struct strbuf text = {0};
	char path[32], *line, *next;
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	ret = io_read_file(path, &text, MAPS_BYTES_MAX, err);
	for (line = text.buf; !ret && line && *line; line = next) {
		struct proc_map map;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (!parse_map(line, &map))
			ret = err_set(err, ERR_CORRUPT, "%s has a line that is no mapping", path);
		else
			ret = each(&map, ctx);
	}
	strbuf_fini(&text);
	return ret;
}

/* File systems that lie over others have numbers of their own, so that only a file of the mapped
 * device tells. */
static bool is_replaced(const struct proc_map *map, const struct stat *st)
{
	return map->ino && st->st_ino != map->ino &&
	       st->st_dev == makedev((unsigned int)map->maj, (unsigned int)map->min);
}

int proc_open_map(pid_t pid, const struct proc_map *map, const char *root, struct stat *st,
		  struct err *err)
{
	int fd = safe_open(root, map->path, SAFE_OPEN_FOLLOW, st, err), mapped;
	struct stat mapped_st;
	char path[80];

	if (fd >= 0 && (!map->ino || st->st_ino == map->ino))
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid,
		 (unsigned long long)map->start, (unsigned long long)map->end);
	mapped = safe_open("", path, SAFE_OPEN_FOLLOW, &mapped_st, NULL);
	if (mapped < 0 && fd >= 0 && is_replaced(map, st)) {
		close(fd);
		return err_set(err, ERR_NOT_FOUND, "%s was replaced since it was mapped",
			       map->path);
	}
	if (mapped < 0)
		return fd;
	if (fd >= 0)
		close(fd);
	*st = mapped_st;
	return mapped;
}

int proc_comm(pid_t pid, pid_t tid, char *buf, size_t size)
{
	struct strbuf text = {0};
	char path[64];
	size_t len;
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	ret = io_read_file(path, &text, 4096, NULL);
	/* A name may hold newlines; the last one is the file's. */
	len = text.len && text.buf[text.len - 1] == '\n' ? text.len - 1 : text.len;
	if (!ret && size) {
		len = len < size ? len : size - 1;
		memcpy(buf, strbuf_text(&text), len);
		buf[len] = '\0';
		ret = (int)len;
	}
	strbuf_fini(&text);
	return ret;
}

int proc_state(pid_t pid, pid_t tid, char *state, char *sleeps_in, size_t size)
{
	struct strbuf text = {0};
	const char *comm_end;
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	ret = io_read_file(path, &text, 4096, NULL);
	comm_end = ret ? NULL : strrchr(strbuf_text(&text), ')');
	if (!ret && (!comm_end || comm_end[1] != ' '))
		ret = ERR_CORRUPT;
	if (!ret)
		*state = comm_end[2];
	strbuf_reset(&text);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", (int)pid, (int)tid);
	sleeps_in[0] = '\0';
	/* "0" where it runs, or where others are not to know. */
	if (!ret && io_read_file(path, &text, 4096, NULL) == 0 &&
	    strcmp(strbuf_text(&text), "0") != 0)
		snprintf(sleeps_in, size, "%s", strbuf_text(&text));
	strbuf_fini(&text);
	return ret;
}

/* "pid (comm) S ...": the name may hold anything but NUL; utime and stime are words 14 and 15. */
int proc_thread(pid_t pid, pid_t tid, struct proc_thread *thread)
{
	char path[64], line[1024];
	const char *name, *name_end;
	unsigned long long user, system;
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	ret = io_read_line(path, line, sizeof(line), NULL);
	if (ret < 0)
		return ret;
	name = strchr(line, '(');
	name_end = strrchr(line, ')');
	if (!name || !name_end || name_end < name ||
	    sscanf(name_end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu",
		   &thread->state, &user, &system) != 3)
		return ERR_CORRUPT;
	snprintf(thread->comm, sizeof(thread->comm), "%.*s", (int)(name_end - name - 1), name + 1);
	thread->ran_ns = (user + system) * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	if (io_read_line(path, line, sizeof(line), NULL) > 0)
		sscanf(line, "%" SCNu64, &thread->ran_ns);
	return 0;
}

pid_t proc_innermost_pid(pid_t pid)
{
	struct strbuf text = {0};
	char path[32], *line = NULL;
	pid_t inner = pid;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (io_read_file(path, &text, 1 << 20, NULL) == 0 && text.buf)
		line = strstr(text.buf, "\nNSpid:");
	if (line) {
		char *at = line + strlen("\nNSpid:"), *stop;

		for (;; at = stop) {
			long value;

			while (*at == ' ' || *at == '\t')
				at++;
			value = strtol(at, &stop, 10);
			if (stop == at || *at == '\n')
				break;
			inner = (pid_t)value;
		}
	}
	strbuf_fini(&text);
	return inner;
}
