#include "process/system.h"

#include "base/io.h"
#include "base/vec.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lines of /proc/kallsyms to look at: the first few may stand at address 0 (per-CPU symbols). */
#define KALLSYMS_LINES 100000
#define NAMES_MAX 4096

static const char *join(char buf[PATH_MAX], const char *root, const char *path)
{
	snprintf(buf, PATH_MAX, "%s%s", root, path);
	return buf;
}

/* The whole text is one number; blanks around it are allowed. */
static bool parse_number(const char *text, int base, long long *value)
{
	char *end;

	errno = 0;
	*value = strtoll(text, &end, base);
	if (end == text || errno)
		return false;
	end += strspn(end, " \t");
	return !*end;
}

int system_number(const char *root, const char *path, long long *value, struct err *err)
{
	char full[PATH_MAX], line[64];
	int ret = io_read_line(join(full, root, path), line, sizeof(line), err);

	if (ret < 0)
		return ret;
	if (!parse_number(line, 10, value))
		return err_set(err, ERR_CORRUPT, "%s does not hold a number", full);
	return 0;
}

int system_status(const char *root, const char *field, int base, uint64_t *value, struct err *err)
{
	char full[PATH_MAX], wanted[64], *line, *end;
	struct strbuf text = {0};
	int ret = io_read_file(join(full, root, "/proc/self/status"), &text, 1 << 20, err);

	if (ret < 0)
		goto out;
	snprintf(wanted, sizeof(wanted), "\n%s:", field);
	line = strstr(strbuf_text(&text), wanted);
	if (!line) {
		ret = err_set(err, ERR_NOT_FOUND, "%s has no field %s", full, field);
		goto out;
	}
	line += strlen(wanted);
	line += strspn(line, " \t");
	errno = 0;
	*value = strtoull(line, &end, base);
	if (end == line || errno || *line == '-' || (*end && !isspace((unsigned char)*end)))
		ret = err_set(err, ERR_CORRUPT, "%s has no number in field %s", full, field);
out:
	strbuf_fini(&text);
	return ret;
}

int system_choice(const char *root, const char *path, char *buf, size_t size, struct err *err)
{
	char full[PATH_MAX], line[256];
	int ret = io_read_line(join(full, root, path), line, sizeof(line), err);
	const char *open, *close;

	if (ret < 0)
		return ret;
	open = strchr(line, '[');
	close = open ? strchr(open, ']') : NULL;
	if (!close || close == open + 1 || (size_t)(close - open) > size)
		return err_set(err, ERR_CORRUPT, "%s does not mark one of its words", full);
	memcpy(buf, open + 1, (size_t)(close - open) - 1);
	buf[close - open - 1] = '\0';
	return 0;
}

int system_kernel_addresses(const char *root, struct err *err)
{
	char full[PATH_MAX], line[512];
	FILE *file = fopen(join(full, root, "/proc/kallsyms"), "re");
	bool any = false, shown = false;

	if (!file)
		return err_sys(err, errno, "cannot open %s", full);
	for (int i = 0; i < KALLSYMS_LINES && !shown && fgets(line, sizeof(line), file); i++) {
		unsigned long long address;
		char blank;

		if (sscanf(line, "%llx %*c%c%*s", &address, &blank) != 2 || blank != ' ')
			continue;
		any = true;
		shown = address != 0;
	}
	fclose(file);
	if (!any)
		return err_set(err, ERR_CORRUPT, "%s lists no symbols", full);
	return shown;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int system_list(const char *root, const char *path, struct strbuf *out, struct err *err)
{
	struct {
		VEC_OF(char *)
	} names = {0};
	char full[PATH_MAX];
	DIR *folder = opendir(join(full, root, path));
	struct dirent *entry;
	int ret = 0;

	if (!folder)
		return err_sys(err, errno, "cannot read %s", full);
	while (!ret && names.len < NAMES_MAX && (entry = readdir(folder))) {
		char **slot;

		if (entry->d_name[0] == '.')
			continue;
		slot = vec_push(&names);
		if (slot)
			*slot = strdup(entry->d_name);
		if (!slot || !*slot)
			ret = err_nomem(err);
	}
	closedir(folder);
	if (!ret) {
		ret = (int)names.len;
		if (names.len)
			qsort(names.items, names.len, sizeof(*names.items), by_name);
		for (size_t i = 0; i < names.len; i++)
			strbuf_printf(out, "%s%s", i ? " " : "", names.items[i]);
	}
	for (size_t i = 0; i < names.len; i++)
		free(names.items[i]);
	vec_fini(&names);
	return ret;
}

static const struct {
	const char *path;
	enum system_container container;
} marks[] = {
	/* A pod's containers are those of a runtime, so the pod's own mark comes first. */
	{"/var/run/secrets/kubernetes.io", SYSTEM_KUBERNETES},
	{"/.dockerenv", SYSTEM_DOCKER},
	{"/run/.containerenv", SYSTEM_PODMAN},
	{"/run/systemd/container", SYSTEM_CONTAINER},
};

static const struct {
	const char *word; /* in the environment of the first process: container=WORD */
	enum system_container container;
} words[] = {
	{"docker", SYSTEM_DOCKER},
	{"podman", SYSTEM_PODMAN},
	{"oci", SYSTEM_CONTAINER},
	{"lxc", SYSTEM_CONTAINER},
	{"systemd-nspawn", SYSTEM_CONTAINER},
};

static void note_sign(struct system_place *place, enum system_container container, const char *sign)
{
	place->container = container;
	snprintf(place->sign, sizeof(place->sign), "%s", sign);
}

/* What the first process was started with: variables that end with a NUL. */
static void look_at_environment(const char *root, struct system_place *place)
{
	struct strbuf text = {0};
	char full[PATH_MAX];
	const char *at, *end;

	if (io_read_file(join(full, root, "/proc/1/environ"), &text, 1 << 20, NULL) < 0)
		text.len = 0;
	at = strbuf_text(&text);
	end = at + text.len;
	for (; at < end; at += strlen(at) + 1) {
		if (strncmp(at, "container=", strlen("container=")) != 0)
			continue;
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strcmp(at + strlen("container="), words[i].word) == 0)
				note_sign(place, words[i].container, "container= of process 1");
	}
	strbuf_fini(&text);
}

/* The number in "pid:[4026531836]". */
static bool is_other_namespace(const char *root, const char *path, unsigned long initial)
{
	char full[PATH_MAX], text[64];
	ssize_t len = readlink(join(full, root, path), text, sizeof(text) - 1);
	unsigned long number;

	if (len <= 0)
		return false;
	text[len] = '\0';
	return sscanf(text, "%*[a-z]:[%lu]", &number) == 1 && number != initial;
}

void system_place(const char *root, const char *kubernetes, struct system_place *place)
{
	char full[PATH_MAX];
	uint64_t seccomp;

	*place = (struct system_place){.seccomp = -1};
	if (kubernetes && *kubernetes)
		note_sign(place, SYSTEM_KUBERNETES, "$KUBERNETES_SERVICE_HOST");
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]) && !place->container; i++)
		if (access(join(full, root, marks[i].path), F_OK) == 0)
			note_sign(place, marks[i].container, marks[i].path);
	if (!place->container)
		look_at_environment(root, place);
	if (system_status(root, "Seccomp", 10, &seccomp, NULL) == 0 && seccomp <= 2)
		place->seccomp = (int)seccomp;
	/* PROC_USER_INIT_INO and PROC_PID_INIT_INO of linux/proc_ns.h: the same on every kernel. */
	place->user_namespace = is_other_namespace(root, "/proc/self/ns/user", 0xeffffffd);
	place->pid_namespace = is_other_namespace(root, "/proc/self/ns/pid", 0xeffffffc);
}

const char *system_container_name(enum system_container container)
{
	static const char *const names[] = {
		[SYSTEM_HOST] = NULL,
		[SYSTEM_DOCKER] = "docker",
		[SYSTEM_PODMAN] = "podman",
		[SYSTEM_KUBERNETES] = "kubernetes",
		[SYSTEM_CONTAINER] = "container",
	};

	return names[container];
}
