#include "profile/metric.h"

#include <math.h>
#include <string.h>

#define SURE_FACTOR 2.0

/* The columns of a row: key, heading and summary; above / below; of one type of event; scale;
 * decimals and unit; shown unasked; tolerance. */
const struct metric metric_table[] = {
	{"ipc", "IPC", "instructions per cycle", /**/
	 ROLE_INSTRUCTIONS, ROLE_CYCLES, false, 1, 2, "", true, 0.05},
	{"mpki", "MPKI", "cache misses per 1,000 instructions", /**/
	 ROLE_CACHE_MISSES, ROLE_INSTRUCTIONS, false, 1000, 1, "", true, 0.5},
	{"miss", "miss", "cache misses per cache reference", /**/
	 ROLE_CACHE_MISSES, ROLE_CACHE_REFERENCES, true, 100, 1, "%", true, 1},
	{"br-miss", "br.miss", "mispredicted branches per branch", /**/
	 ROLE_BRANCH_MISSES, ROLE_BRANCHES, true, 100, 1, "%", true, 0.25},
	{"br-mpki", "brMPKI", "mispredicted branches per 1,000 instructions", /**/
	 ROLE_BRANCH_MISSES, ROLE_INSTRUCTIONS, false, 1000, 1, "", false, 0.5},
	{"l1-mpki", "L1MPKI", "level 1 data cache misses per 1,000 instructions", /**/
	 ROLE_L1D_MISSES, ROLE_INSTRUCTIONS, false, 1000, 1, "", true, 0.5},
	{"l1-miss", "L1miss", "level 1 data cache misses per access", /**/
	 ROLE_L1D_MISSES, ROLE_L1D_LOADS, true, 100, 1, "%", false, 1},
	{"tlb-mpki", "tlbMPKI", "data TLB load misses per 1,000 instructions", /**/
	 ROLE_DTLB_MISSES, ROLE_INSTRUCTIONS, false, 1000, 1, "", true, 0.5},
	{"stalled", "stalled", "cycles stalled in the back end", /**/
	 ROLE_STALLED_BACKEND, ROLE_CYCLES, false, 100, 1, "%", true, 1},
	{"ghz", "GHz", "cycles per nanosecond", /**/
	 ROLE_CYCLES, ROLE_TIME, false, 1, 2, "", false, 0.05},
	{"kernel", "kernel", "share of the time that was spent in the kernel", /**/
	 ROLE_KERNEL, ROLE_RANKED, false, 100, 1, "%", false, 2},
	{"ns", "ns/event", "nanoseconds per event of the kind that ranks the rows", /**/
	 ROLE_TIME, ROLE_RANKED, false, 1, 2, "", false, 0.05},
	{0},
};

_Static_assert(sizeof(metric_table) / sizeof(metric_table[0]) - 1 <= METRICS_MAX, "METRICS_MAX");

const struct metric *metric_find(const char *key, size_t len)
{
	for (const struct metric *m = metric_table; m->key; m++)
		if (strlen(m->key) == len && strncmp(m->key, key, len) == 0)
			return m;
	return NULL;
}

/* What must agree in two counts that are divided: the modes that they count in. */
static unsigned int modes(const struct perf_event_attr *attr)
{
	return (attr->exclude_user ? 0 : 1) | (attr->exclude_kernel ? 0 : 2);
}

/* Which PMU of a hybrid CPU counts: the generic types have it in the upper half of the config
 * (PERF_PMU_TYPE_SHIFT); 0 is the only one there is. */
static uint64_t pmu_of(const struct perf_event_attr *attr)
{
	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
		return attr->config >> 32;
	case PERF_TYPE_RAW:
		return 0;
	default:
		return attr->type;
	}
}

struct search {
	struct metric_plan *plan;
	const struct metric_event *events;
	size_t count;
	uint32_t ranked;
};

static bool plays(const struct search *search, size_t i, enum metric_role role)
{
	if (role == ROLE_RANKED || role == ROLE_KERNEL)
		return i == search->ranked;
	return metric_role_of(search->events[i].name, search->events[i].attr) == role;
}

/* How well two events fit; 0: not at all. */
static int fit(const struct search *search, size_t above, size_t below)
{
	const struct metric_event *a = &search->events[above], *b = &search->events[below];
	bool clock = search->plan->metric->above == ROLE_TIME ||
		     search->plan->metric->below == ROLE_TIME;

	/* A clock runs for every PMU, and in all modes. */
	if (clock)
		return above != below;
	if (modes(a->attr) != modes(b->attr) ||
	    (search->plan->metric->alike && a->attr->type != b->attr->type))
		return 0;
	return 1 + (pmu_of(a->attr) == pmu_of(b->attr)) +
	       2 * (a->group >= 0 && a->group == b->group);
}

/* The sums of a plan must count nothing twice: other PMUs' only, of the modes of the first pair. */
static bool adds(const struct search *search, size_t below)
{
	const struct metric_plan *plan = search->plan;
	const struct perf_event_attr *attr = search->events[below].attr;

	for (size_t i = 0; i < plan->count; i++) {
		const struct perf_event_attr *have = search->events[plan->pairs[i].below].attr;

		if (plan->metric->below == ROLE_RANKED || plan->metric->below == ROLE_TIME ||
		    modes(have) != modes(attr) || !pmu_of(have) || !pmu_of(attr) ||
		    pmu_of(have) == pmu_of(attr))
			return false;
	}
	return true;
}

/* Adds the best pair whose lower event may still be added. */
static bool add_pair(struct search *search)
{
	struct metric_plan *plan = search->plan;
	int best = 0;

	for (size_t b = 0; b < search->count; b++) {
		if (!plays(search, b, plan->metric->below) || !adds(search, b))
			continue;
		for (size_t a = 0; a < search->count; a++) {
			int fits = plays(search, a, plan->metric->above) ? fit(search, a, b) : 0;

			/* Several pairs are of one PMU each, and the event that ranks shows
			 * in which modes. */
			if (plan->count && search->events[a].attr->type != PERF_TYPE_SOFTWARE &&
			    pmu_of(search->events[a].attr) != pmu_of(search->events[b].attr))
				continue;
			fits = fits ? 2 * fits + (b == search->ranked || a == search->ranked) : 0;
			if (fits <= best)
				continue;
			best = fits;
			plan->pairs[plan->count].above = (uint32_t)a;
			plan->pairs[plan->count].below = (uint32_t)b;
		}
	}
	plan->count += best > 0;
	return best > 0;
}

bool metric_plan(struct metric_plan *plan, const struct metric *metric,
		 const struct metric_event *events, size_t count, uint32_t ranked)
{
	struct search search = {plan, events, count, ranked};

	*plan = (struct metric_plan){.metric = metric, .joint = true};
	while (plan->count < METRIC_PAIRS_MAX && add_pair(&search))
		;
	for (size_t i = 0; i < plan->count; i++) {
		const struct metric_event *a = &events[plan->pairs[i].above];

		plan->joint &= a->group >= 0 && a->group == events[plan->pairs[i].below].group;
	}
	return plan->count > 0;
}

bool metric_is_sure(const struct metric *metric, const struct estimate *figure)
{
	if (!figure->known || figure->few || !isfinite(figure->high))
		return false;
	return figure->high <= SURE_FACTOR * figure->low ||
	       figure->high - figure->low <= 2 * metric->tolerance;
}

void metric_text(const struct metric *metric, double value, struct strbuf *out)
{
	int decimals = (int)metric->decimals;

	/* Rare events: one digit more, before nothing is left of the figure. */
	if (value > 0 && value * pow(10, decimals) < 1)
		decimals++;
	strbuf_printf(out, "%.*f%s", decimals, value, metric->unit);
}

bool metric_error_shows(const struct metric *metric, const struct estimate *figure)
{
	return (figure->high - figure->low) * pow(10, metric->decimals) >= 1;
}

void metric_error_text(const struct metric *metric, const struct estimate *figure,
		       struct strbuf *out)
{
	strbuf_printf(out, "%.*f", (int)metric->decimals, (figure->high - figure->low) / 2);
}
