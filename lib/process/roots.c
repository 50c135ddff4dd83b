#include "process/roots.h"

#include "base/map.h"
#include "base/vec.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Distinct trees, of two descriptors each. Beyond, files are read while their processes live. */
#define HELD_MAX 256u

struct tree {
	struct stat root, mounts;
	int root_fd, mounts_fd;
	char path[32]; /* "/proc/self/fd/N" */
};

struct roots {
	struct {
		VEC_OF(struct tree *)
	} trees;
	struct stat root, mounts; /* our own */
	struct map by_pid;	  /* index of the tree + 1; 0: ours */
};

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

struct roots *roots_new(void)
{
	struct roots *roots = calloc(1, sizeof(*roots));

	if (roots && (stat("/proc/self/root", &roots->root) < 0 ||
		      stat("/proc/self/ns/mnt", &roots->mounts) < 0)) {
		free(roots);
		return NULL;
	}
	return roots;
}

static void close_tree(struct tree *tree)
{
	if (tree->root_fd >= 0)
		close(tree->root_fd);
	if (tree->mounts_fd >= 0)
		close(tree->mounts_fd);
	free(tree);
}

void roots_free(struct roots *roots)
{
	if (!roots)
		return;
	for (size_t i = 0; i < roots->trees.len; i++)
		close_tree(roots->trees.items[i]);
	vec_fini(&roots->trees);
	map_fini(&roots->by_pid);
	free(roots);
}

/* Held as they are opened: the process may change its root meanwhile. NULL where it has ended, is
 * not ours to look at, or there are too many. */
static struct tree *open_tree(pid_t pid)
{
	struct tree *tree = malloc(sizeof(*tree));
	char path[32];

	if (!tree)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	tree->root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	tree->mounts_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (tree->root_fd < 0 || tree->mounts_fd < 0 || fstat(tree->root_fd, &tree->root) < 0 ||
	    fstat(tree->mounts_fd, &tree->mounts) < 0) {
		close_tree(tree);
		return NULL;
	}
	snprintf(tree->path, sizeof(tree->path), "/proc/self/fd/%d", tree->root_fd);
	return tree;
}

void roots_note(struct roots *roots, pid_t pid)
{
	struct tree *tree, **slot;
	uint64_t *index;
	bool added;

	index = map_put(&roots->by_pid, (uint64_t)pid, &added);
	if (!index || !added || !(tree = open_tree(pid)))
		return;
	if (same(&tree->root, &roots->root) && same(&tree->mounts, &roots->mounts)) {
		close_tree(tree);
		return;
	}
	for (size_t i = 0; i < roots->trees.len; i++)
		if (same(&tree->root, &roots->trees.items[i]->root) &&
		    same(&tree->mounts, &roots->trees.items[i]->mounts)) {
			*index = i + 1;
			close_tree(tree);
			return;
		}
	slot = roots->trees.len < HELD_MAX ? vec_push(&roots->trees) : NULL;
	if (!slot) {
		close_tree(tree);
		return;
	}
	*slot = tree;
	*index = roots->trees.len;
}

void roots_fork(struct roots *roots, pid_t pid, pid_t parent)
{
	const uint64_t *from = map_get(&roots->by_pid, (uint64_t)parent);
	uint64_t tree = from ? *from : 0, *to;

	if (!from || pid == parent)
		return;
	to = map_put(&roots->by_pid, (uint64_t)pid, NULL);
	if (to)
		*to = tree;
}

void roots_exec(struct roots *roots, pid_t pid)
{
	map_remove(&roots->by_pid, (uint64_t)pid);
}

const char *roots_path(const struct roots *roots, pid_t pid)
{
	const uint64_t *index = map_get(&roots->by_pid, (uint64_t)pid);

	return index && *index ? roots->trees.items[*index - 1]->path : "";
}
