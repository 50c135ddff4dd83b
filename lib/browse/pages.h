#ifndef PYPERF_BROWSE_PAGES_H
#define PYPERF_BROWSE_PAGES_H

#include "screen/screen.h"

#include <stdio.h>

/*
 * Text that a writer of lib/output makes, as a view: made anew for each width of the terminal. Its
 * text is safe on terminals already, as all that lib/output writes for them.
 */
struct pages {
	int (*write)(FILE *out, void *self, int width, struct err *err);
	void *self;
	void (*close)(void *self); /* frees `self`; may be NULL */
};
int pages_open(struct screen *screen, const char *title, const struct pages *pages,
	       struct err *err);

#endif
