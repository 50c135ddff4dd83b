#include "profile/jit.h"

#include <unistd.h>

#define FORKS_MAX 64 /* generations of parents that are asked */

void jit_fini(struct jit *jit)
{
	for (size_t i = 0; i < jit->maps.len; i++)
		perfmap_free(jit->maps.items[i]);
	vec_fini(&jit->maps);
	map_fini(&jit->by_pid);
	map_fini(&jit->parents);
}

/* Gives the pid its map. What is no map is as good as none. */
static int add(struct jit *jit, uint32_t pid, const char *text, size_t len, struct err *err)
{
	uint64_t *index = map_put(&jit->by_pid, pid, NULL);
	struct perfmap **map;
	int rc;

	if (!index || !(map = vec_push(&jit->maps)))
		return err_nomem(err);
	rc = perfmap_parse(map, text, len, err);
	if (rc < 0) {
		*map = NULL;
		return rc == ERR_NOMEM ? rc : 0;
	}
	*index = jit->maps.len;
	return 0;
}

int jit_load(struct jit *jit, struct bytes section, struct err *err)
{
	struct bytes text;
	uint32_t pid;
	int rc = 0;

	if (bytes_left(&section))
		jit->live = false;
	while (rc == 0 && perfmap_section_next(&section, &pid, &text))
		rc = add(jit, pid, (const char *)text.at, bytes_left(&text), err);
	return rc;
}

bool jit_fork(struct jit *jit, uint32_t pid, uint32_t ppid)
{
	uint64_t *parent = map_put(&jit->parents, pid, NULL);

	if (parent)
		*parent = ppid;
	return parent;
}

/* The map that a process of this host left behind. A file is believed when it belongs to whoever
 * reads it, or to root: others could plant one. */
static void read_live(struct jit *jit, uint32_t pid)
{
	struct strbuf text = {0};

	if (perfmap_read((pid_t)pid, (pid_t)pid, geteuid(), &text, NULL) >= 0)
		add(jit, pid, strbuf_text(&text), text.len, NULL);
	strbuf_fini(&text);
}

static const struct perfmap *map_of(struct jit *jit, uint32_t pid)
{
	uint64_t *index = map_get(&jit->by_pid, pid);

	if (!index && jit->live) {
		map_put(&jit->by_pid, pid, NULL);
		read_live(jit, pid);
		index = map_get(&jit->by_pid, pid);
	}
	return index && *index ? jit->maps.items[*index - 1] : NULL;
}

bool jit_find(struct jit *jit, uint32_t pid, uint64_t addr, struct perfmap_entry *entry)
{
	for (unsigned int i = 0; i < FORKS_MAX; i++) {
		const struct perfmap *map = map_of(jit, pid);
		uint64_t *parent = map_get(&jit->parents, pid);

		if (map && perfmap_find(map, addr, entry))
			return true;
		if (!parent || *parent == pid)
			return false;
		pid = (uint32_t)*parent;
	}
	return false;
}
