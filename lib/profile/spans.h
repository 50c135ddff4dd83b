#ifndef PYPERF_SPANS_H
#define PYPERF_SPANS_H

#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/* A set of times in ns: spans with both ends in them. Add all, join once, then ask. */
struct span {
	uint64_t begin, end;
};
struct spans {
	struct {
		VEC_OF(struct span)
	} list;
};

bool spans_add(struct spans *spans, uint64_t begin, uint64_t end); /* false: no memory */
void spans_join(struct spans *spans);
bool spans_contain(const struct spans *spans, uint64_t time);
void spans_fini(struct spans *spans);

/*
 * As perf's --time: "START,STOP" in seconds, either may be missing, or "10%-20%" of the time from
 * `first` to `last`.
 */
int spans_parse(struct spans *spans, const char *text, uint64_t first, uint64_t last,
		struct err *err);

#endif
