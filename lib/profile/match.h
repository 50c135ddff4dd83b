#ifndef PYPERF_MATCH_H
#define PYPERF_MATCH_H

#include "profile/view.h"

#include <stdbool.h>

/*
 * Does a sample pass a filter? What depends on the thread or on the leaf alone is decided once per
 * thread and per function, so that asking costs two look-ups.
 */
struct view_matcher;

/* `filter` NULL lets all pass. */
int view_matcher_new(struct view_matcher **matcher, const struct profile *profile,
		     const struct view_filter *filter, struct err *err);
void view_matcher_free(struct view_matcher *matcher);
bool view_matches(const struct view_matcher *matcher, uint32_t thread, uint32_t stack);

#endif
