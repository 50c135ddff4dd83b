#ifndef PYPERF_DSO_H
#define PYPERF_DSO_H

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "process/process.h"

/* Every file that was ever mapped, once: one per path and build-id. */
struct dso_table {
	struct intern paths;
	/* (kind, build-id, path) as bytes; keys[i] of the id i + 1 is its dso. */
	struct intern keys;
	struct {
		VEC_OF(uint32_t)
	} key_dso;
	struct {
		VEC_OF(struct dso)
	} dsos;
	/* BUILD_ID rows that came before the maps they tell of, by id of the path. */
	struct map known;
	struct {
		VEC_OF(struct dso_build_id)
	} build_ids;
};

struct dso_build_id {
	uint8_t id[20];
	uint32_t len;
};

void dso_table_init(struct dso_table *table);
void dso_table_fini(struct dso_table *table);
/* The id of the dso that a map names, made where it is new; 0 when memory runs out. */
uint32_t dso_of_map(struct dso_table *table, const struct process_map *map);
int dso_set_build_id(struct dso_table *table, const char *path, const uint8_t *id, uint32_t len);

#endif
