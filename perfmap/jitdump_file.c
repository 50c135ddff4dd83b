#include "perfmap/jitdump.h"
#include "process/safe_open.h"

#include <string.h>

/* Where dumps come from, and how a recording keeps them. */

uint32_t jitdump_name_pid(const char *path)
{
	static const char start[] = "jit-", end[] = ".dump";
	const char *slash = strrchr(path, '/'), *s = slash ? slash + 1 : path;
	uint64_t pid = 0;

	if (strncmp(s, start, sizeof(start) - 1) != 0)
		return 0;
	for (s += sizeof(start) - 1; *s >= '0' && *s <= '9'; s++) {
		pid = pid * 10 + (uint64_t)(*s - '0');
		if (pid > INT32_MAX)
			return 0;
	}
	return strcmp(s, end) == 0 ? (uint32_t)pid : 0;
}

int jitdump_open(const char *held, pid_t pid, pid_t ns_pid, uid_t uid, const char *path,
		 struct err *err)
{
	uint32_t number = jitdump_name_pid(path);

	if (path[0] != '/' || !number)
		return err_set(err, ERR_NOT_FOUND, "%s is no jitdump", path);
	if (number != (uint32_t)ns_pid && number != (uint32_t)pid)
		return err_set(err, ERR_PERMISSION,
			       "%s is not to be trusted: it is another process's", path);
	return safe_open_written(held, pid, ns_pid, uid, path, err);
}

int jitdump_read(int fd, struct strbuf *text, uint64_t *refused, struct err *err)
{
	return safe_read_start(fd, "a jitdump", JITDUMP_BYTES_MAX, text, refused, err);
}

void jitdump_section_add(struct strbuf *section, uint32_t pid, const char *path, const void *text,
			 size_t len)
{
	strbuf_u32(section, pid);
	strbuf_blob(section, path, strlen(path));
	strbuf_blob(section, text, len);
}

bool jitdump_section_next(struct bytes *section, uint32_t *pid, struct bytes *path,
			  struct bytes *text)
{
	if (!bytes_left(section))
		return false;
	*pid = bytes_u32(section);
	*path = bytes_blob(section);
	*text = bytes_blob(section);
	return !section->bad;
}
