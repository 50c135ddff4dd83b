#ifndef PYPERF_OUTPUT_ANNOTATE_H
#define PYPERF_OUTPUT_ANNOTATE_H

#include "output/layout.h"
#include "output/names.h"
#include "output/output.h"

/* "matmul   /src/train.py:9-16" (`last` 0: no range), then what each event saw of the function. */
void annotate_head(FILE *out, const struct annotate *annotate, const struct names *names,
		   uint32_t last);
/* The function's metrics on its own lines, and what they say. */
void annotate_metrics(FILE *out, const struct annotate *annotate, const struct view *lines);
/* Has the line at least REDUCED_PERCENT of some event? */
bool annotate_is_hot(const struct view *lines, const struct view_row *row);
/* The function's row in the view of all functions; NULL where it has no samples. */
const struct view_row *annotate_row(const struct annotate *annotate);

#endif
