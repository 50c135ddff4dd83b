#ifndef PYPERF_OUTPUT_SUMMARY_H
#define PYPERF_OUTPUT_SUMMARY_H

#include "output/names.h"
#include "output/output.h"

/* What stands above and below a table: what was recorded, and what is missing from it. */

void summary_head(FILE *out, const struct report *report, const struct names *names);
/* Which functions alone are shown, where not all are. */
void summary_shown(FILE *out, const struct profile *profile);
/* "own code 61.2%   packages 22.0% ...": how the event's time divides by whose code ran. */
void summary_origins(FILE *out, const struct profile *profile, const struct view *functions,
		     uint32_t event);
/* One line per kind of loss that occurred: how many, and what to do about it. `brief` leaves out
 * those that touch callers only. */
void summary_losses(FILE *out, const struct profile *profile, bool brief);
/* How many figures are missing from the table because they are too uncertain; `metrics` may be
 * NULL.
 */
void summary_metrics(FILE *out, const struct metric_columns *metrics);
/* In place of a table that has no samples: why that is. */
void summary_empty(FILE *out, const struct profile *profile, const char *filter);

#endif
