#ifndef PYPERF_METRIC_H
#define PYPERF_METRIC_H

#include "base/strbuf.h"
#include "profile/estimate.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Named formulas over counts: IPC, cache misses per 1,000 instructions, and so on. Each is one row
 * of a table, a quotient of two roles; report, annotate and stat take what they show from it.
 *
 * Which event plays a role is found by its meaning: the kernel's generic type and config, or a name
 * that sysfs or libpfm4 has for the same. So `cycles`, `cpu/cpu-cycles/`, `cpu_core/cycles/` and
 * `skl::UNHALTED_CORE_CYCLES` are all cycles.
 */
enum metric_role {
	ROLE_NONE,
	ROLE_CYCLES,
	ROLE_INSTRUCTIONS,
	ROLE_CACHE_REFERENCES,
	ROLE_CACHE_MISSES,
	ROLE_BRANCHES,
	ROLE_BRANCH_MISSES,
	ROLE_L1D_LOADS,
	ROLE_L1D_MISSES,
	ROLE_DTLB_MISSES,
	ROLE_STALLED_BACKEND,
	ROLE_TIME,   /* ns on a CPU */
	ROLE_RANKED, /* whichever event ranks the rows */
	ROLE_KERNEL, /* the part of it that was spent in the kernel */
	ROLES,
};

/* ROLE_NONE, or one of those up to ROLE_TIME. */
enum metric_role metric_role_of(const char *name, const struct perf_event_attr *attr);

struct metric {
	const char *key;     /* for --metrics, JSON, CSV */
	const char *heading; /* in text */
	const char *summary; /* for help */
	enum metric_role above, below;
	bool alike; /* both must be events of one type: all of the kernel's generic ones, or none */
	double scale;
	unsigned int decimals;
	const char *unit; /* behind the number: "%", " ns", "" */
	bool shown;	  /* without being asked for */
	/* A figure known to this much is sure enough however small it is. */
	double tolerance;
};
extern const struct metric metric_table[]; /* ended by a row without key */
#define METRICS_MAX 16
const struct metric *metric_find(const char *key, size_t len); /* NULL: there is none */

/* An event as metrics see it. */
struct metric_event {
	const char *name;
	const struct perf_event_attr *attr;
	int group; /* events with one number >= 0 are counted at the same samples; -1: alone */
};

/*
 * What a metric is made of, out of the events at hand: above and below are sums over pairs, one
 * pair for each PMU of a hybrid CPU. Both of a pair count in the same modes (user, kernel); pairs
 * of one group go before others. Events are indices.
 */
#define METRIC_PAIRS_MAX 8
struct metric_plan {
	const struct metric *metric;
	struct {
		uint32_t above, below;
	} pairs[METRIC_PAIRS_MAX];
	size_t count;
	bool joint; /* each pair is counted at the same samples */
};

/* False where the events have not what the metric takes. `ranked`: index of the event that ranks;
 * UINT32_MAX: there is none. */
bool metric_plan(struct metric_plan *plan, const struct metric *metric,
		 const struct metric_event *events, size_t count, uint32_t ranked);

/* Is the figure worth showing: known within a factor of two, or to its tolerance? */
bool metric_is_sure(const struct metric *metric, const struct estimate *figure);
/* "2.31", "38.2", "4.1%" */
void metric_text(const struct metric *metric, double value, struct strbuf *out);
/* Half the width of the interval with as many decimals: "0.04"; does it show any of them? */
bool metric_error_shows(const struct metric *metric, const struct estimate *figure);
void metric_error_text(const struct metric *metric, const struct estimate *figure,
		       struct strbuf *out);

#endif
