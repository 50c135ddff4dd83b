#include "event/internal.h"

#include <stdio.h>
#include <string.h>

/*
 * The names that perf gives to the kernel's generic events: hardware, software, and the hardware
 * caches, whose names are composed of a cache, an operation and a result.
 */

#define HW PERF_TYPE_HARDWARE
#define SW PERF_TYPE_SOFTWARE

/* The first name of a type and config is the one that is shown. */
static const struct {
	const char *name;
	uint32_t type;
	uint32_t config;
} generic[] = {
	{"cycles", HW, PERF_COUNT_HW_CPU_CYCLES},
	{"cpu-cycles", HW, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", HW, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", HW, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", HW, PERF_COUNT_HW_CACHE_MISSES},
	{"branches", HW, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-instructions", HW, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", HW, PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", HW, PERF_COUNT_HW_BUS_CYCLES},
	{"stalled-cycles-frontend", HW, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"idle-cycles-frontend", HW, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", HW, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"idle-cycles-backend", HW, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"ref-cycles", HW, PERF_COUNT_HW_REF_CPU_CYCLES},
	{"cpu-clock", SW, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", SW, PERF_COUNT_SW_TASK_CLOCK},
	{"page-faults", SW, PERF_COUNT_SW_PAGE_FAULTS},
	{"faults", SW, PERF_COUNT_SW_PAGE_FAULTS},
	{"context-switches", SW, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cs", SW, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", SW, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"migrations", SW, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"minor-faults", SW, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", SW, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"alignment-faults", SW, PERF_COUNT_SW_ALIGNMENT_FAULTS},
	{"emulation-faults", SW, PERF_COUNT_SW_EMULATION_FAULTS},
	{"dummy", SW, PERF_COUNT_SW_DUMMY},
	{"bpf-output", SW, PERF_COUNT_SW_BPF_OUTPUT},
	{"cgroup-switches", SW, 11}, /* PERF_COUNT_SW_CGROUP_SWITCHES, since Linux 5.13 */
};

#define GENERIC (sizeof(generic) / sizeof(generic[0]))

/* Words for one part of a cache event. The first is shown in "cache-op-misses", the second, where
 * there is one, in "cache-ops". Bits of `ops`: which operations the cache has (linux
 * tools/perf/util/evsel.c, evsel__hw_cache_stat). */
struct words {
	const char *word[5];
	unsigned int ops;
};

enum {
	R = 1 << PERF_COUNT_HW_CACHE_OP_READ,
	W = 1 << PERF_COUNT_HW_CACHE_OP_WRITE,
	P = 1 << PERF_COUNT_HW_CACHE_OP_PREFETCH
};

static const struct words caches[] = {
	[PERF_COUNT_HW_CACHE_L1D] = {{"L1-dcache", "l1-d", "l1d", "L1-data"}, R | W | P},
	[PERF_COUNT_HW_CACHE_L1I] = {{"L1-icache", "l1-i", "l1i", "L1-instruction"}, R | P},
	[PERF_COUNT_HW_CACHE_LL] = {{"LLC", "L2"}, R | W | P},
	[PERF_COUNT_HW_CACHE_DTLB] = {{"dTLB", "d-tlb", "Data-TLB"}, R | W | P},
	[PERF_COUNT_HW_CACHE_ITLB] = {{"iTLB", "i-tlb", "Instruction-TLB"}, R},
	[PERF_COUNT_HW_CACHE_BPU] = {{"branch", "branches", "bpu", "btb", "bpc"}, R},
	[PERF_COUNT_HW_CACHE_NODE] = {{"node"}, R | W | P},
};
static const struct words ops[] = {
	[PERF_COUNT_HW_CACHE_OP_READ] = {{"load", "loads", "read"}, 0},
	[PERF_COUNT_HW_CACHE_OP_WRITE] = {{"store", "stores", "write"}, 0},
	[PERF_COUNT_HW_CACHE_OP_PREFETCH] = {{"prefetch", "prefetches", "speculative-read",
					      "speculative-load"},
					     0},
};
static const struct words results[] = {
	[PERF_COUNT_HW_CACHE_RESULT_ACCESS] = {{"refs", "Reference", "ops", "access"}, 0},
	[PERF_COUNT_HW_CACHE_RESULT_MISS] = {{"misses", "miss"}, 0},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define WORDS 5

/* Takes the longest word of the table that the text starts with and that ends at a '-' or at the
 * end; its row, or -1. */
static int take_word(const struct words *table, size_t rows, const char **text)
{
	size_t longest = 0;
	int found = -1;

	for (size_t row = 0; row < rows; row++) {
		for (size_t w = 0; w < WORDS && table[row].word[w]; w++) {
			const char *word = table[row].word[w];
			size_t len = strlen(word);

			if (len <= longest || strncasecmp(*text, word, len) != 0 ||
			    ((*text)[len] && (*text)[len] != '-'))
				continue;
			longest = len;
			found = (int)row;
		}
	}
	*text += longest;
	return found;
}

static bool find_cache(const char *name, uint64_t *config)
{
	int cache = take_word(caches, COUNT(caches), &name), op = -1, result = -1;

	if (cache < 0)
		return false;
	while (*name) {
		int word;

		name++; /* the '-' */
		if (op < 0 && (word = take_word(ops, COUNT(ops), &name)) >= 0)
			op = word;
		else if (result < 0 && (word = take_word(results, COUNT(results), &name)) >= 0)
			result = word;
		else
			return false;
	}
	if (op < 0)
		op = PERF_COUNT_HW_CACHE_OP_READ;
	if (result < 0)
		result = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
	if (!(caches[cache].ops & 1u << op))
		return false;
	*config = (uint64_t)cache | (uint64_t)op << 8 | (uint64_t)result << 16;
	return true;
}

bool event_name_find(const char *name, struct perf_event_attr *attr)
{
	uint64_t config;

	for (size_t i = 0; i < GENERIC; i++) {
		if (strcasecmp(generic[i].name, name) != 0)
			continue;
		attr->type = generic[i].type;
		attr->config = generic[i].config;
		return true;
	}
	if (!find_cache(name, &config))
		return false;
	attr->type = PERF_TYPE_HW_CACHE;
	attr->config = config;
	return true;
}

static bool cache_name(uint64_t config, char *buf, size_t size)
{
	uint64_t cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16 & 0xff;

	if (cache >= COUNT(caches) || op >= COUNT(ops) || result >= COUNT(results) ||
	    config >> 24 || !(caches[cache].ops & 1u << op))
		return false;
	if (result == PERF_COUNT_HW_CACHE_RESULT_MISS)
		snprintf(buf, size, "%s-%s-misses", caches[cache].word[0], ops[op].word[0]);
	else
		snprintf(buf, size, "%s-%s", caches[cache].word[0], ops[op].word[1]);
	return true;
}

bool event_name_of(uint32_t type, uint64_t config, char *buf, size_t size)
{
	if (type == PERF_TYPE_HW_CACHE)
		return cache_name(config, buf, size);
	for (size_t i = 0; i < GENERIC; i++) {
		if (generic[i].type != type || generic[i].config != config)
			continue;
		snprintf(buf, size, "%s", generic[i].name);
		return true;
	}
	return false;
}

void event_name_each(event_name_visit *visit, void *ctx)
{
	char name[64];

	for (size_t i = 0; i < GENERIC; i++)
		if (!visit(generic[i].name, ctx))
			return;
	for (uint64_t cache = 0; cache < COUNT(caches); cache++)
		for (uint64_t op = 0; op < COUNT(ops); op++)
			for (uint64_t result = 0; result < COUNT(results); result++)
				if (cache_name(cache | op << 8 | result << 16, name,
					       sizeof(name)) &&
				    !visit(name, ctx))
					return;
}

bool event_is_clock(const struct perf_event_attr *attr)
{
	return attr->type == SW && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
				    attr->config == PERF_COUNT_SW_TASK_CLOCK);
}
