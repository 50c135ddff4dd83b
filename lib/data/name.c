#include "base/strbuf.h"
#include "data/file.h"

#include <string.h>

/* Names of events whose file does not tell them, as perf itself would make them. */

static const char *const hardware[] = {
	"cycles",
	"instructions",
	"cache-references",
	"cache-misses",
	"branches",
	"branch-misses",
	"bus-cycles",
	"stalled-cycles-frontend",
	"stalled-cycles-backend",
	"ref-cycles",
};

static const char *const software[] = {
	"cpu-clock",	    "task-clock",   "page-faults",  "context-switches",
	"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
	"emulation-faults", "dummy",	    "bpf-output",   "cgroup-switches",
};

static const char *const caches[] = {
	"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node",
};

static const char *const cache_ops[][2] = {
	{"loads", "load-misses"},
	{"stores", "store-misses"},
	{"prefetches", "prefetch-misses"},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void base_name(struct strbuf *sb, const struct perf_event_attr *attr)
{
	/* On machines with several kinds of CPU the upper half names the PMU. */
	uint64_t config = attr->config & 0xffffffff;
	uint64_t cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16 & 0xff;

	if (attr->type == PERF_TYPE_HARDWARE && config < COUNT(hardware))
		strbuf_str(sb, hardware[config]);
	else if (attr->type == PERF_TYPE_SOFTWARE && attr->config < COUNT(software))
		strbuf_str(sb, software[attr->config]);
	else if (attr->type == PERF_TYPE_HW_CACHE && cache < COUNT(caches) &&
		 op < COUNT(cache_ops) && result < 2)
		strbuf_printf(sb, "%s-%s", caches[cache], cache_ops[op][result]);
	else if (attr->type == PERF_TYPE_TRACEPOINT)
		strbuf_printf(sb, "tracepoint %llu", (unsigned long long)attr->config);
	else if (attr->type == PERF_TYPE_BREAKPOINT)
		strbuf_printf(sb, "mem:0x%llx", (unsigned long long)attr->bp_addr);
	else if (attr->type == PERF_TYPE_RAW)
		strbuf_printf(sb, "raw 0x%llx", (unsigned long long)attr->config);
	else
		strbuf_printf(sb, "pmu %u config 0x%llx", attr->type,
			      (unsigned long long)attr->config);
}

static void modifiers(struct strbuf *sb, const struct perf_event_attr *attr)
{
	size_t before = sb->len;

	strbuf_char(sb, ':');
	if (attr->exclude_user || attr->exclude_kernel || attr->exclude_hv) {
		if (!attr->exclude_user)
			strbuf_char(sb, 'u');
		if (!attr->exclude_kernel)
			strbuf_char(sb, 'k');
		if (!attr->exclude_hv && attr->exclude_kernel != attr->exclude_user)
			strbuf_char(sb, 'h');
	}
	for (unsigned int i = 0; i < attr->precise_ip; i++)
		strbuf_char(sb, 'p');
	if (sb->len == before + 1)
		sb->len = before;
}

const char *name_event(struct arena *arena, const struct perf_event_attr *attr)
{
	struct strbuf sb = {0};
	char *name = NULL;

	base_name(&sb, attr);
	if (attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
	    attr->type == PERF_TYPE_RAW)
		modifiers(&sb, attr);
	if (!strbuf_failed(&sb))
		name = arena_strndup(arena, sb.buf, sb.len);
	strbuf_fini(&sb);
	return name;
}
