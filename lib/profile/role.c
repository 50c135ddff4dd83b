#include "profile/metric.h"

#include <ctype.h>
#include <string.h>

/*
 * Which role an event plays. The kernel's generic events have a type and a config of their own; the
 * rest is known by the names that sysfs and libpfm4 give it. Names are compared in lower case with
 * '-' for '_' and '.', without the PMU ("cpu/", "skl::") and without modifiers.
 */

#define CACHE(cache, op, result)                                          \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static const struct {
	uint32_t type;
	uint32_t config;
	enum metric_role role;
} generic[] = {
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, ROLE_CYCLES},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, ROLE_INSTRUCTIONS},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, ROLE_CACHE_REFERENCES},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, ROLE_CACHE_MISSES},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, ROLE_BRANCHES},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, ROLE_BRANCH_MISSES},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, ROLE_STALLED_BACKEND},
	{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, ROLE_TIME},
	{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, ROLE_TIME},
	{PERF_TYPE_HW_CACHE, CACHE(L1D, READ, ACCESS), ROLE_L1D_LOADS},
	{PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS), ROLE_L1D_MISSES},
	{PERF_TYPE_HW_CACHE, CACHE(LL, READ, ACCESS), ROLE_CACHE_REFERENCES},
	{PERF_TYPE_HW_CACHE, CACHE(LL, READ, MISS), ROLE_CACHE_MISSES},
	{PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, MISS), ROLE_DTLB_MISSES},
};

static const struct {
	const char *name;
	enum metric_role role;
} named[] = {
	{"cycles", ROLE_CYCLES},
	{"cpu-cycles", ROLE_CYCLES},
	{"cpu-clk-unhalted", ROLE_CYCLES},
	{"cpu-clk-unhalted:core", ROLE_CYCLES},
	{"cpu-clk-unhalted:core-p", ROLE_CYCLES},
	{"cpu-clk-unhalted:thread", ROLE_CYCLES},
	{"cpu-clk-unhalted:thread-p", ROLE_CYCLES},
	{"cpu-clk-unhalted-thread", ROLE_CYCLES},
	{"cycles-not-in-halt", ROLE_CYCLES},
	{"unhalted-core-cycles", ROLE_CYCLES},
	{"ls-not-halted-cyc", ROLE_CYCLES},
	{"inst-retired", ROLE_INSTRUCTIONS},
	{"inst-retired:any", ROLE_INSTRUCTIONS},
	{"inst-retired:any-p", ROLE_INSTRUCTIONS},
	{"inst-retired-any", ROLE_INSTRUCTIONS},
	{"instructions", ROLE_INSTRUCTIONS},
	{"instruction-retired", ROLE_INSTRUCTIONS},
	{"instructions-retired", ROLE_INSTRUCTIONS},
	{"retired-instructions", ROLE_INSTRUCTIONS},
	{"ex-ret-instr", ROLE_INSTRUCTIONS},
	{"cache-references", ROLE_CACHE_REFERENCES},
	{"l3-lookup-state:all-coherent-accesses-to-l3", ROLE_CACHE_REFERENCES},
	{"ll-cache-rd", ROLE_CACHE_REFERENCES},
	{"llc-loads", ROLE_CACHE_REFERENCES},
	{"llc-references", ROLE_CACHE_REFERENCES},
	{"longest-lat-cache:reference", ROLE_CACHE_REFERENCES},
	{"longest-lat-cache-reference", ROLE_CACHE_REFERENCES},
	{"last-level-cache-references", ROLE_CACHE_REFERENCES},
	{"cache-misses", ROLE_CACHE_MISSES},
	{"l3-lookup-state:l3-miss", ROLE_CACHE_MISSES},
	{"ll-cache-miss-rd", ROLE_CACHE_MISSES},
	{"llc-load-misses", ROLE_CACHE_MISSES},
	{"llc-misses", ROLE_CACHE_MISSES},
	{"longest-lat-cache:miss", ROLE_CACHE_MISSES},
	{"longest-lat-cache-miss", ROLE_CACHE_MISSES},
	{"last-level-cache-misses", ROLE_CACHE_MISSES},
	{"br-inst-retired", ROLE_BRANCHES},
	{"br-inst-retired:all-branches", ROLE_BRANCHES},
	{"br-inst-retired-all-branches", ROLE_BRANCHES},
	{"br-retired", ROLE_BRANCHES},
	{"branches", ROLE_BRANCHES},
	{"branch-instructions", ROLE_BRANCHES},
	{"branch-instructions-retired", ROLE_BRANCHES},
	{"retired-branch-instructions", ROLE_BRANCHES},
	{"ex-ret-brn", ROLE_BRANCHES},
	{"br-misp-retired", ROLE_BRANCH_MISSES},
	{"br-misp-retired:all-branches", ROLE_BRANCH_MISSES},
	{"br-misp-retired-all-branches", ROLE_BRANCH_MISSES},
	{"br-mis-pred-retired", ROLE_BRANCH_MISSES},
	{"branch-misses", ROLE_BRANCH_MISSES},
	{"branch-misses-retired", ROLE_BRANCH_MISSES},
	{"mispredicted-branch-retired", ROLE_BRANCH_MISSES},
	{"retired-branch-instructions-mispredicted", ROLE_BRANCH_MISSES},
	{"retired-mispredicted-branch-instructions", ROLE_BRANCH_MISSES},
	{"ex-ret-brn-misp", ROLE_BRANCH_MISSES},
	{"l1-dcache-loads", ROLE_L1D_LOADS},
	{"l1d-cache", ROLE_L1D_LOADS},
	{"l1-dcache-load-misses", ROLE_L1D_MISSES},
	{"l1d-cache-refill", ROLE_L1D_MISSES},
	{"dtlb-load-misses", ROLE_DTLB_MISSES},
	{"dtlb-walk", ROLE_DTLB_MISSES},
	{"dtlb-load-misses:miss-causes-a-walk", ROLE_DTLB_MISSES},
	{"dtlb-load-misses-miss-causes-a-walk", ROLE_DTLB_MISSES},
	{"stalled-cycles-backend", ROLE_STALLED_BACKEND},
	{"stall-backend", ROLE_STALLED_BACKEND},
	{"cpu-clock", ROLE_TIME},
	{"task-clock", ROLE_TIME},
};

/* Attributes behind a ':' that say when to count or how to sample, not what (perf's modifiers;
 * libpfm4's u, k, h, precise, ldlat). */
static bool is_modifier(const char *word, size_t len)
{
	static const char *const long_ones[] = {"u=", "k=", "h=", "precise=", "period=", "freq="};

	for (size_t i = 0; i < sizeof(long_ones) / sizeof(long_ones[0]); i++)
		if (strncmp(word, long_ones[i], strlen(long_ones[i])) == 0)
			return true;
	for (size_t i = 0; i < len; i++)
		if (!strchr("ukhpPGHSDWeb", word[i]))
			return false;
	return true;
}

static char plain(char c)
{
	return c == '_' || c == '.' ? '-' : (char)tolower((unsigned char)c);
}

/* Writes the name in the form of the table; false where it is too long to be in it. */
static bool simplify(const char *name, char *out, size_t size)
{
	const char *pmu = strstr(name, "::"), *slash = strchr(name, '/'), *end;
	size_t len = 0;

	if (pmu)
		name = pmu + 2;
	else if (slash)
		name = slash + 1;
	end = name + strcspn(name, "/:");
	for (const char *c = name; c < end && len + 1 < size; c++)
		out[len++] = plain(*c);
	while (*end == ':' || *end == '/') {
		const char *word = end + 1;

		end = word + strcspn(word, ":/");
		if (is_modifier(word, (size_t)(end - word)))
			continue;
		if (len + 2 + (size_t)(end - word) >= size)
			return false;
		out[len++] = ':';
		while (word < end)
			out[len++] = plain(*word++);
	}
	out[len] = '\0';
	return len + 1 < size;
}

enum metric_role metric_role_of(const char *name, const struct perf_event_attr *attr)
{
	char simple[64];

	/* Hybrid CPUs have the PMU in the upper half. */
	for (size_t i = 0; i < sizeof(generic) / sizeof(generic[0]); i++)
		if (attr->type == generic[i].type && (uint32_t)attr->config == generic[i].config)
			return generic[i].role;
	if (attr->type < PERF_TYPE_RAW || attr->type == PERF_TYPE_BREAKPOINT || !name ||
	    !simplify(name, simple, sizeof(simple)))
		return ROLE_NONE;
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (strcmp(simple, named[i].name) == 0)
			return named[i].role;
	return ROLE_NONE;
}
