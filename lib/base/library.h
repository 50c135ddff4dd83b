#ifndef PYPERF_LIBRARY_H
#define PYPERF_LIBRARY_H

#include "base/err.h"

#include <stddef.h>

/*
 * Libraries that few commands need. Linked with the program, they would cost every command the time
 * that it takes to map and relocate them: milliseconds, for those with large tables or many
 * libraries of their own.
 *
 *      static struct { __typeof__(cs_open) *open; } capstone;
 *      static const struct library_call calls[] = {{"cs_open", (void **)&capstone.open}};
 */

struct library_call {
	const char *name;
	void **address; /* is set to it */
};

/* The library stays until the program ends; to load it again costs next to nothing. One that lacks
 * a call is closed again, and no address is set.
 * ERR_UNSUPPORTED where it is not there, or lacks a call. */
int library_load(const char *file, const struct library_call *calls, size_t count, struct err *err);

#endif
