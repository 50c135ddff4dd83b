#ifndef PYPERF_MEASURE_H
#define PYPERF_MEASURE_H

#include "profile/metric.h"
#include "profile/view.h"

/*
 * The metrics of a profile's rows, and what they say in words.
 */
enum measure_basis {
	MEASURE_SELF,  /* of what the row's self counts */
	MEASURE_TOTAL, /* of its total */
};

struct measures {
	const struct profile *profile;
	struct metric_plan plans[METRICS_MAX]; /* those that the recording has the events for */
	size_t count;
};

/* `ranked`: the event that ranks the rows. */
int measures_init(struct measures *measures, const struct profile *profile, uint32_t ranked,
		  struct err *err);
/* Index into plans, or -1: this recording does not have it. */
int measures_find(const struct measures *measures, const char *key, size_t len);

struct estimate measure(const struct measures *measures, size_t plan, const struct view *view,
			const struct view_row *row, enum measure_basis basis);
/* The same for the rows of a view together, which must not overlap (lines by their self). */
struct estimate measure_all(const struct measures *measures, size_t plan, const struct view *view,
			    enum measure_basis basis);

/*
 * A short reading of a row: "memory-bound: IPC 0.41, 38.2 MPKI". Each is a row of a table of
 * thresholds, and is given only where the whole intervals lie beyond them. NULL: nothing stands
 * out. The figures that it rests on are appended to `why`, which may be NULL.
 */
struct reading {
	const char *name, *summary;
	struct {
		const char *metric; /* key; NULL: no more */
		bool above;	    /* the threshold, else below it */
		double threshold;
	} when[3];
};
extern const struct reading readings[]; /* ended by a row without name; the first that fits wins */

const struct reading *measure_reading(const struct measures *measures,
				      const struct estimate *figures, struct strbuf *why);

#endif
