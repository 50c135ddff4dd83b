#include "process/dso.h"

#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

/* What the kernel, and perf where it makes up records, calls memory that is no file. First match.
 */
static const struct {
	const char *prefix;
	enum dso_kind kind;
} kinds[] = {
	{"[vdso]", DSO_VDSO},	      {"//anon", DSO_ANON},    {"[anon", DSO_ANON},
	{"/anon_hugepage", DSO_ANON}, {"/dev/zero", DSO_ANON}, {"/memfd:", DSO_ANON},
	{"anon_inode:", DSO_SPECIAL}, {"/SYSV", DSO_SPECIAL},  {"[", DSO_SPECIAL},
};

static const char *const kernel_images[] = {"[kernel", "vmlinux", "/boot/vmlinu", "[guest.kernel"};

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static enum dso_kind kind_of(const struct process_map *map)
{
	if (map->kernel || map->pid == UINT32_MAX) {
		const char *base = strrchr(map->path, '/');

		for (size_t i = 0; i < sizeof(kernel_images) / sizeof(kernel_images[0]); i++)
			if (starts_with(map->path, kernel_images[i]) ||
			    (base && strcmp(base + 1, kernel_images[i]) == 0))
				return DSO_KERNEL;
		return DSO_MODULE;
	}
	if (!*map->path)
		return DSO_ANON;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (starts_with(map->path, kinds[i].prefix))
			return kinds[i].kind;
	return DSO_ELF;
}

void dso_table_init(struct dso_table *table)
{
	*table = (struct dso_table){0};
	intern_init(&table->paths);
	intern_init(&table->keys);
}

void dso_table_fini(struct dso_table *table)
{
	intern_fini(&table->paths);
	intern_fini(&table->keys);
	vec_fini(&table->key_dso);
	vec_fini(&table->dsos);
	map_fini(&table->known);
	vec_fini(&table->build_ids);
}

static struct dso_build_id build_id_of(const uint8_t *id, uint32_t len)
{
	struct dso_build_id build_id = {.len = len < 20 ? len : 20};

	if (id)
		memcpy(build_id.id, id, build_id.len);
	else
		build_id.len = 0;
	return build_id;
}

/* The place of the dso's id for a key: 0 where the key is new; NULL when memory runs out. */
static uint32_t *key_place(struct dso_table *table, enum dso_kind kind, uint32_t path,
			   const struct dso_build_id *build_id)
{
	char key[2 + 20 + sizeof(path)] = {(char)kind, (char)build_id->len};
	uint32_t id;

	memcpy(key + 2, build_id->id, build_id->len);
	memcpy(key + 2 + build_id->len, &path, sizeof(path));
	id = intern_add(&table->keys, key, 2 + build_id->len + sizeof(path));
	if (id == INTERN_NONE)
		return NULL;
	while (table->key_dso.len < id)
		if (!vec_push(&table->key_dso))
			return NULL;
	return &table->key_dso.items[id - 1];
}

/* "[kernel.kallsyms]_text" names the symbol that its addresses refer to behind the image. */
static size_t path_len(enum dso_kind kind, const char *path)
{
	const char *close = kind == DSO_KERNEL && *path == '[' ? strchr(path, ']') : NULL;

	return close ? (size_t)(close + 1 - path) : strlen(path);
}

uint32_t dso_of_map(struct dso_table *table, const struct process_map *map)
{
	struct dso_build_id build_id = build_id_of(map->build_id, map->build_id_len);
	enum dso_kind kind = kind_of(map);
	uint32_t path = intern_add(&table->paths, map->path, path_len(kind, map->path));
	const uint64_t *known;
	uint32_t *place;
	struct dso *dso;

	if (path == INTERN_NONE)
		return 0;
	known = build_id.len ? NULL : map_get(&table->known, path);
	if (known)
		build_id = table->build_ids.items[*known];
	place = key_place(table, kind, path, &build_id);
	if (!place || *place)
		return place ? *place : 0;
	dso = table->dsos.len < UINT32_MAX - 1 ? vec_push(&table->dsos) : NULL;
	if (!dso)
		return 0;
	dso->path = intern_text(&table->paths, path, NULL);
	dso->kind = kind;
	memcpy(dso->build_id, build_id.id, sizeof(dso->build_id));
	dso->build_id_len = build_id.len;
	return *place = (uint32_t)table->dsos.len;
}

/*
 * Rows come before the maps (the header of a file is read first) or behind them (pipe mode), so
 * the row is kept for maps to come, and what is there without a build-id gets it; from then on
 * maps with this build-id mean that dso, too.
 */
int dso_set_build_id(struct dso_table *table, const char *text, const uint8_t *id, uint32_t len)
{
	struct dso_build_id build_id = build_id_of(id, len), none = {0};
	uint32_t path = intern_str(&table->paths, text);
	uint64_t *known;
	bool added;

	if (path == INTERN_NONE)
		return -1;
	if (!build_id.len)
		return 0;
	if (!vec_push(&table->build_ids))
		return -1;
	table->build_ids.items[table->build_ids.len - 1] = build_id;
	known = map_put(&table->known, path, &added);
	if (!known)
		return -1;
	*known = table->build_ids.len - 1;
	for (int kind = DSO_ELF; kind <= DSO_SPECIAL; kind++) {
		uint32_t *place = key_place(table, (enum dso_kind)kind, path, &none), dso;

		if (!place)
			return -1;
		dso = *place;
		if (!dso || table->dsos.items[dso - 1].build_id_len)
			continue;
		memcpy(table->dsos.items[dso - 1].build_id, build_id.id, 20);
		table->dsos.items[dso - 1].build_id_len = build_id.len;
		place = key_place(table, (enum dso_kind)kind, path, &build_id);
		if (!place)
			return -1;
		if (!*place)
			*place = dso;
	}
	return 0;
}
