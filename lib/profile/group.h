#ifndef PYPERF_GROUP_H
#define PYPERF_GROUP_H

#include "profile/view.h"

/*
 * Samples summed by something else than the function: by process, by object, or by several such
 * keys together.
 *
 * self and total mean what they mean for functions: self counts the leaf's group, total each group
 * that is anywhere on the stack, once per sample. For keys of the thread they are the same. Where
 * the first of several keys is the origin, rows of one origin lie together.
 */
#define VIEW_KEYS_MAX 4

/* Groups under VIEW_DSO: the Python code of all files. */
#define VIEW_GROUP_PYTHON (UINT32_MAX - 1)
/* A sample without a stack has no function, object or kind. */
#define VIEW_GROUP_NONE UINT32_MAX

struct view_groups {
	struct view view; /* rows[i].function is an index into `values`, of key_count each */
	enum view_key keys[VIEW_KEYS_MAX];
	size_t key_count;
	uint32_t *values;
	struct view_count *counts; /* of all rows */
};

/* "comm", "pid", ... and the way back; -1 for an unknown name. */
const char *view_key_name(enum view_key key);
int view_key_find(const char *name, size_t len);

int view_groups(struct view_groups **groups, const struct profile *profile,
		const struct view_filter *filter, const enum view_key *keys, size_t key_count,
		enum view_sort sort, uint32_t sort_event, struct err *err);
void view_groups_free(struct view_groups *groups);
/* A pid or tid, an enum frame_kind or code_origin, a function, or a string, by the key. */
uint32_t view_group_value(const struct view_groups *groups, const struct view_row *row, size_t key);

#endif
