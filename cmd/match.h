#ifndef PYPERF_CMD_MATCH_H
#define PYPERF_CMD_MATCH_H

#include "profile/profile.h"
#include "profile/view.h"

/*
 * Functions that a user's word may mean. Tried in this order, and the first that finds anything
 * decides: `file.py:line`, the qualified name, the name, the end of a qualified name behind a dot
 * ("Model.fit" for "Outer.Model.fit"), the module before it ("train.fit"), a glob.
 */
struct matches {
	uint32_t *functions; /* most important first: in the order of the view */
	size_t count;
};

int match_functions(struct matches *matches, const struct profile *profile,
		    const struct view *functions, const struct view *lines, const char *word,
		    struct err *err);
void match_free(struct matches *matches);

/* The function that the user most likely meant; UINT32_MAX where none comes near. */
uint32_t match_nearest(const struct profile *profile, const struct view *functions,
		       const char *word);

#endif
