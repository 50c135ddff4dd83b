#include "event/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lists of events as a whole: what is in them without being asked for, and how they end. */

/* The order in which events are given up where the counters are few: from the end. */
#define DEFAULT_EVENTS "{cycles,instructions,cache-misses,branch-misses,cache-references}:SW"

void event_spec_fini(struct event_spec *spec)
{
	free(spec->name);
	free(spec->cpus);
	*spec = (struct event_spec){0};
}

void event_list_fini(struct event_list *list)
{
	if (!list)
		return;
	while (list->len)
		event_spec_fini(&list->items[--list->len]);
	vec_fini(list);
}

int event_list_next_group(const struct event_list *list)
{
	int last = -1;

	for (size_t i = 0; i < list->len; i++)
		if (list->items[i].group > last)
			last = list->items[i].group;
	return last + 1;
}

int event_list_default_on(const struct event_system *sys, struct event_list *list, struct err *err)
{
	size_t first = list->len;
	int ret = event_parse_on(sys, list, DEFAULT_EVENTS, err);

	for (size_t i = first; !ret && i < list->len; i++)
		list->items[i].along = !list->items[i].leader;
	return ret;
}

int event_list_default(struct event_list *list, struct err *err)
{
	return event_list_default_on(&event_system_host, list, err);
}

static bool is_hardware(const struct event_spec *spec, uint64_t config)
{
	return spec->attr.type == PERF_TYPE_HARDWARE && (spec->attr.config & UINT32_MAX) == config;
}

/* The instructions that belong to cycles: of the same PMU, in the same rings of protection. */
static bool are_counted(const struct event_list *list, const struct event_spec *cycles)
{
	for (size_t i = 0; i < list->len; i++) {
		const struct event_spec *spec = &list->items[i];

		if (is_hardware(spec, PERF_COUNT_HW_INSTRUCTIONS) &&
		    spec->attr.config >> 32 == cycles->attr.config >> 32 &&
		    spec->attr.exclude_user == cycles->attr.exclude_user &&
		    spec->attr.exclude_kernel == cycles->attr.exclude_kernel)
			return true;
	}
	return false;
}

/* As the event itself is called: "cycles:u" gives "instructions:u", "cpu_core/cycles/" gives
 * "cpu_core/instructions/". */
static char *instructions_name(const struct event_spec *cycles, const struct perf_event_attr *attr)
{
	const char *slash = strchr(cycles->name, '/');
	char plain[64], *name;

	event_attr_name(attr, plain, sizeof(plain));
	if (!slash || !(attr->config >> 32))
		return strdup(plain);
	return asprintf(&name, "%.*s/instructions/%s", (int)(slash - cycles->name), cycles->name,
			strchr(plain, ':') ? strchr(plain, ':') + 1 : "") < 0
		       ? NULL
		       : name;
}

size_t event_list_group_end(const struct event_list *list, size_t at)
{
	int group = list->items[at].group;

	for (at++; group >= 0 && at < list->len && list->items[at].group == group;)
		at++;
	return at;
}

static int count_along(struct event_list *list, size_t cycles, struct err *err)
{
	size_t end = event_list_group_end(list, cycles);
	/* A leader's samples read all of its group: no member may have samples of its own. */
	bool reads = end == cycles + 1 || list->items[cycles + 1].counted;
	struct event_spec spec = {
		.group = -1, .leader = !reads, .counted = reads, .weak = true, .along = true};
	const struct event_spec *with = &list->items[cycles];

	spec.attr = with->attr;
	spec.attr.config = (with->attr.config & ~(uint64_t)UINT32_MAX) | PERF_COUNT_HW_INSTRUCTIONS;
	spec.attr.precise_ip = 0;
	spec.attr.pinned = spec.attr.exclusive = 0;
	spec.name = instructions_name(with, &spec.attr);
	if (reads)
		spec.group = with->group < 0 ? event_list_next_group(list) : with->group;
	spec.cpus = with->cpus ? strdup(with->cpus) : NULL;
	if (!spec.name || (with->cpus && !spec.cpus) || !vec_push(list)) {
		event_spec_fini(&spec);
		return err_nomem(err);
	}
	memmove(&list->items[end + 1], &list->items[end],
		(list->len - 1 - end) * sizeof(*list->items));
	if (reads)
		list->items[cycles].group = spec.group;
	list->items[end] = spec;
	return 0;
}

int event_list_count_instructions(struct event_list *list, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < list->len; i++)
		if (is_hardware(&list->items[i], PERF_COUNT_HW_CPU_CYCLES) &&
		    list->items[i].leader && !are_counted(list, &list->items[i]))
			ret = count_along(list, i, err);
	return ret;
}

int event_list_wanted(struct event_list *list, char **words, bool metrics, struct err *err)
{
	int ret = 0;

	for (char **word = words; !ret && word && *word; word++)
		ret = event_parse(list, *word, err);
	if (!ret && !words)
		ret = metrics ? event_list_default(list, err) : event_parse(list, "cycles", err);
	else if (!ret && metrics)
		ret = event_list_count_instructions(list, err);
	return ret;
}

bool event_reads_inherited(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER5,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_READ,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID,
		.inherit = 1,
		.disabled = 1,
		.exclude_kernel = 1,
	};
	int fd = event_open_fd(&attr, 0, -1, -1);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
