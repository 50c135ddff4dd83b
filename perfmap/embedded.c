#include "perfmap/embedded.h"

#include "base/log.h"
#include "symbol/elf.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum verdict { NOT_SEEN, NOTHING, INTERPRETER };

void embedded_fini(struct embedded *embedded)
{
	map_fini(&embedded->seen);
	map_fini(&embedded->paths);
}

static uint64_t hash_path(const char *path)
{
	uint64_t hash = 0;

	for (; *path; path++)
		hash = map_mix(hash, (unsigned char)*path);
	return hash;
}

/* Is the file the program itself? Then *exe is a name that opens it even when it was deleted. */
static bool is_program(pid_t pid, const char *path, char *exe, size_t size)
{
	char target[PATH_MAX];
	ssize_t len;

	snprintf(exe, size, "/proc/%d/exe", (int)pid);
	len = readlink(exe, target, sizeof(target) - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	return strcmp(target, path) == 0;
}

/*
 * A library that others call exports what it defines; a program that nobody links with may keep
 * its symbols to itself, and lose them to strip. CPython from 3.13 on has its state in a section of
 * its own, which outlives that.
 */
static bool has_interpreter(struct elf_file *elf, bool program)
{
	uint64_t vaddr, size;

	return elf_section(elf, ".PyRuntime", &vaddr, &size) ||
	       elf_defines(elf, "_PyRuntime", program) ||
	       elf_defines(elf, "PyEval_EvalCode", program);
}

bool embedded_look(struct embedded *embedded, pid_t pid, const char *path, uint64_t identity)
{
	uint64_t *verdict = map_put(&embedded->seen, identity, NULL);
	char name[PATH_MAX + 32];
	struct elf_file *elf;
	struct err err = {0};
	bool program;

	if (!verdict || path[0] != '/')
		return false;
	if (*verdict != NOT_SEEN)
		return *verdict == INTERPRETER;
	program = is_program(pid, path, name, sizeof(name));
	if (!program)
		snprintf(name, sizeof(name), "/proc/%d/root%s", (int)pid, path);
	/* A file that cannot be opened (the process has ended) may be asked for again. */
	if (elf_open(&elf, name, &err) < 0) {
		log_debug("%s of process %d: %s", path, (int)pid, err.text);
		return false;
	}
	*verdict = has_interpreter(elf, program) ? INTERPRETER : NOTHING;
	elf_close(elf);
	if (*verdict == INTERPRETER)
		map_put(&embedded->paths, hash_path(path), NULL);
	return *verdict == INTERPRETER;
}

bool embedded_knows(const struct embedded *embedded, const char *path)
{
	return embedded->paths.count && map_get(&embedded->paths, hash_path(path));
}
