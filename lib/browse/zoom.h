#ifndef PYPERF_BROWSE_ZOOM_H
#define PYPERF_BROWSE_ZOOM_H

#include "base/err.h"
#include "base/vec.h"
#include "output/names.h"
#include "profile/group.h"
#include "profile/view.h"

/*
 * What a view is zoomed into: filters, each of which narrows the one below it. The lowest is that
 * of the command line, and stays.
 */
enum zoom_into {
	ZOOM_COMM,
	ZOOM_PROCESS,
	ZOOM_THREAD,
	ZOOM_MODULE,
	ZOOM_FILE,
};

struct zoom {
	struct view_filter filter;
	char *value, *label;
};

struct zooms {
	struct view_filter base;
	struct {
		VEC_OF(struct zoom)
	} stack;
};

const char *zoom_name(enum zoom_into into); /* "thread" */

void zooms_fini(struct zooms *zooms);
/* The filter in force; valid until the next push or pop. */
const struct view_filter *zooms_filter(const struct zooms *zooms);
/* The label becomes "thread 4711 (python3)" of "4711 (python3)", with `shown` NULL the value. */
int zooms_push(struct zooms *zooms, enum zoom_into into, const char *value, const char *shown,
	       struct err *err);
/* Into the Python file that the function lies in, or the module. */
int zooms_push_function(struct zooms *zooms, const struct profile *profile,
			const struct names *names, uint32_t function, struct err *err);
/* Into a group's key; nothing is pushed where that is no filter. */
int zooms_push_group(struct zooms *zooms, const struct profile *profile, const struct names *names,
		     enum view_key key, uint32_t value, struct err *err);
/* False where nothing is zoomed into. */
bool zooms_pop(struct zooms *zooms);

#endif
