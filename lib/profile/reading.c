#include "profile/measure.h"

#include <string.h>

/*
 * Thresholds are those at which the named cause alone would explain most of the time lost on
 * today's cores, which retire up to four and more instructions per cycle:
 *
 *  - A miss to memory costs about 200 cycles, of which out-of-order execution hides some: 10 in
 *    1,000 instructions are 2 cycles per instruction, an IPC of at most 1 with half of them hidden.
 *  - A mispredicted branch costs about 20 cycles: 10 in 1,000 instructions are 0.2 cycles each,
 *    much of what an IPC below 2 loses.
 *  - A walk of the page tables costs about 50 cycles: 10 are half a cycle each.
 */
const struct reading readings[] = {
	{"kernel-bound", "most of the time is the kernel's", {{"kernel", true, 50}}},
	{"memory-bound",
	 "waits for memory: IPC below 1 and 10 or more cache misses per 1,000 instructions",
	 {{"ipc", false, 1}, {"mpki", true, 10}}},
	{"TLB-bound",
	 "waits for page tables: IPC below 1 and 10 or more TLB misses per 1,000 instructions",
	 {{"ipc", false, 1}, {"tlb-mpki", true, 10}}},
	{"branch-bound",
	 "redoes mispredicted work: IPC below 2 and 10 or more branch misses per 1,000 "
	 "instructions",
	 {{"ipc", false, 2}, {"br-mpki", true, 10}}},
	{"stalled",
	 "waits, but neither for memory nor for branches: IPC below 0.7, few misses of either kind",
	 {{"ipc", false, 0.7}, {"mpki", false, 3}, {"br-mpki", false, 5}}},
	{"compute-bound", "busy: 2 or more instructions per cycle", {{"ipc", true, 2}}},
	{0},
};

#define CONDITIONS (sizeof(readings[0].when) / sizeof(readings[0].when[0]))

/* Is the figure sure, and does its whole interval lie beyond the threshold? */
static bool holds(const struct metric *metric, const struct estimate *figure, bool above,
		  double threshold)
{
	if (!metric_is_sure(metric, figure))
		return false;
	return above ? figure->low >= threshold : figure->high < threshold;
}

static bool fits(const struct reading *reading, const struct measures *measures,
		 const struct estimate *figures)
{
	for (size_t i = 0; i < CONDITIONS && reading->when[i].metric; i++) {
		const char *key = reading->when[i].metric;
		int plan = measures_find(measures, key, strlen(key));

		if (plan < 0 || !holds(measures->plans[plan].metric, &figures[plan],
				       reading->when[i].above, reading->when[i].threshold))
			return false;
	}
	return true;
}

/* "IPC 0.41, 38.2 MPKI": rates per thousand have their name behind. */
static void add_why(const struct reading *reading, const struct measures *measures,
		    const struct estimate *figures, struct strbuf *why)
{
	for (size_t i = 0; i < CONDITIONS && reading->when[i].metric; i++) {
		const char *key = reading->when[i].metric;
		int plan = measures_find(measures, key, strlen(key));
		const struct metric *metric = measures->plans[plan].metric;
		bool behind = metric->scale > 1;

		strbuf_printf(why, "%s%s%s", i ? ", " : "", behind ? "" : metric->heading,
			      behind ? "" : " ");
		metric_text(metric, figures[plan].value, why);
		strbuf_printf(why, "%s%s", behind ? " " : "", behind ? metric->heading : "");
	}
}

const struct reading *measure_reading(const struct measures *measures,
				      const struct estimate *figures, struct strbuf *why)
{
	for (const struct reading *r = readings; r->name; r++) {
		if (!fits(r, measures, figures))
			continue;
		if (why)
			add_why(r, measures, figures, why);
		return r;
	}
	return NULL;
}
