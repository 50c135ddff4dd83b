#ifndef PYPERF_TEST_LIVE_PYTHON_H
#define PYPERF_TEST_LIVE_PYTHON_H

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The CPythons of this machine, for tests that need real ones: those of $PYTHON_LIST (paths with
 * colons between) when it is set, else python3.N on PATH, in /usr/bin and in pyenv's versions.
 */

#define LIVE_PYTHONS_MAX 32

struct live_pythons {
	char *path[LIVE_PYTHONS_MAX];
	int minor[LIVE_PYTHONS_MAX];
	size_t count;
};

/* Not a script, as pyenv's shims are. */
static inline bool live_python_is_elf(const char *path)
{
	char magic[4] = "";
	FILE *file = fopen(path, "r");
	bool is = file && fread(magic, 1, 4, file) == 4 && memcmp(magic, "\177ELF", 4) == 0;

	if (file)
		fclose(file);
	return is;
}

static inline void live_pythons_add(struct live_pythons *list, const char *path)
{
	char *real = realpath(path, NULL);
	const char *at = real ? strstr(strrchr(real, '/'), "python3.") : NULL;
	int minor = at ? atoi(at + strlen("python3.")) : 0;

	if (!real || minor == 0 || !live_python_is_elf(real) || list->count == LIVE_PYTHONS_MAX) {
		free(real);
		return;
	}
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->path[i], real) == 0) {
			free(real);
			return;
		}
	list->path[list->count] = real;
	list->minor[list->count++] = minor;
}

static inline void live_pythons_scan(struct live_pythons *list, const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[8192];
	int end;

	while (dir && (entry = readdir(dir))) {
		int minor;

		if (sscanf(entry->d_name, "python3.%d%n", &minor, &end) == 1 &&
		    entry->d_name[end] == '\0') {
			snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
			live_pythons_add(list, path);
		}
	}
	if (dir)
		closedir(dir);
}

static inline void live_pythons_scan_pyenv(struct live_pythons *list)
{
	const char *home = getenv("HOME"), *root = getenv("PYENV_ROOT");
	char versions[4096], bin[4400];
	struct dirent *entry;
	DIR *dir;

	if (root)
		snprintf(versions, sizeof(versions), "%s/versions", root);
	else
		snprintf(versions, sizeof(versions), "%s/.pyenv/versions", home ? home : "");
	dir = opendir(versions);
	while (dir && (entry = readdir(dir))) {
		snprintf(bin, sizeof(bin), "%s/%s/bin", versions, entry->d_name);
		live_pythons_scan(list, bin);
	}
	if (dir)
		closedir(dir);
}

static inline void live_pythons_find(struct live_pythons *list)
{
	const char *given = getenv("PYTHON_LIST");
	const char *from = given ? given : getenv("PATH");
	char *copy = strdup(from ? from : ""), *save = NULL;

	memset(list, 0, sizeof(*list));
	for (char *at = strtok_r(copy, ":", &save); at; at = strtok_r(NULL, ":", &save)) {
		if (given)
			live_pythons_add(list, at);
		else
			live_pythons_scan(list, at);
	}
	free(copy);
	if (given)
		return;
	live_pythons_scan(list, "/usr/bin");
	live_pythons_scan_pyenv(list);
}

static inline void live_pythons_free(struct live_pythons *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->path[i]);
}

/* A child that runs a script and says what it wants on its standard output; it dies with us. */
struct live_child {
	pid_t pid;
	FILE *out;
};

static inline bool live_child_start(struct live_child *child, const char *python,
				    const char *script)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	child->pid = fork();
	if (child->pid == 0) {
		/* A group of its own, so that what it forks ends with it. */
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		execl(python, python, "-I", "-S", "-c", script, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	child->out = fdopen(ends[0], "r");
	return child->pid > 0 && child->out;
}

/* The next line without its newline; false at the end. */
static inline bool live_child_line(struct live_child *child, char *line, size_t size)
{
	if (!fgets(line, (int)size, child->out))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

static inline void live_child_stop(struct live_child *child)
{
	setpgid(child->pid, child->pid);
	kill(-child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	if (child->out)
		fclose(child->out);
}

#endif
