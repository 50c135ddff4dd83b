#ifndef PYPERF_BROWSE_ANNOTATE_H
#define PYPERF_BROWSE_ANNOTATE_H

#include "output/names.h"
#include "output/output.h"
#include "screen/screen.h"

/*
 * The source of a Python function, or the instructions of a native one, with what each line took;
 * below a line, who calls it, what it calls, and its bytecode. What is called is a key away.
 *
 * Pushes the view of `annotate->function`; what `annotate` points to is borrowed as long as the
 * view is there, but for the choice of metrics, which is copied. `line` is selected, where it is
 * not 0, else the hottest one.
 */
int annotate_view_open(struct screen *screen, const struct annotate *annotate, uint32_t line,
		       struct err *err);

/* Its two kinds, and what they share. */
int annotate_python_open(struct screen *screen, const struct annotate *annotate, uint32_t line,
			 struct err *err);
int annotate_native_open(struct screen *screen, const struct annotate *annotate, struct err *err);
/* "matmul  train.py:53   58.9% of cpu-clock": for the title. */
void annotate_title(const struct annotate *annotate, const struct names *names,
		    struct screen_line *line);
/* The next event that has columns, from the one at hand on; `by` 1 or -1. */
uint32_t annotate_next_event(const struct annotate *annotate, const struct names *names, int by);

#endif
