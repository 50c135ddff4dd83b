#ifndef PYPERF_BROWSE_CHOICES_H
#define PYPERF_BROWSE_CHOICES_H

#include "browse/zoom.h"

/* What there is to zoom into, of one kind: each with its share of the samples that are shown. */
struct choice {
	uint64_t weight;
	char *value, *shown, *word; /* of the filter; of the zoom's label; of the box */
};
struct choices {
	enum zoom_into into;
	struct {
		VEC_OF(struct choice)
	} list;
};

struct report_view;

/* Threads and processes by all their time, modules by the time in their code, Python files by that
 * of their lines. Those found before are forgotten. */
int choices_find(struct choices *choices, const struct report_view *view, enum zoom_into into,
		 struct err *err);
int choices_take(const struct choices *choices, size_t index, struct zooms *zooms, struct err *err);
void choices_fini(struct choices *choices);

#endif
