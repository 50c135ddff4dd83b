#include "event/internal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Hybrid CPUs have cores of several kinds. Each kind has a PMU of its own, which counts on its
 * cores alone; sysfs says by a file `cpus` which these are.
 *
 * An event that names no PMU is meant for all of them: "cycles" becomes cpu_core/cycles/ and
 * cpu_atom/cycles/, as perf has it, and what reads the recording sums them up again
 * (profile/hybrid.h). A generic event says by the upper half of its config which PMU is to count
 * it, where the kernel knows that (x86 since 5.13, arm64 since 6.6); a raw one, or one that sysfs
 * lists, by its type.
 *
 * No group has events of two PMUs, so a group becomes one for each; what the kernel itself counts,
 * such as page faults, is then counted in each, on its PMU's CPUs. A group with an event that names
 * its PMU is that PMU's.
 */

#define PMUS_MAX 8
#define TYPE_SHIFT 32 /* PERF_PMU_TYPE_SHIFT */

struct core_pmu {
	char name[64], cpus[512];
	uint32_t type;
};

struct hybrid {
	const struct event_system *sys;
	struct core_pmu pmus[PMUS_MAX];
	size_t count;
	bool typed; /* generic events may say which PMU */
	struct event_list *out;
	int next_group;
	struct err *err;
};

/* Whose event is it? */
enum belongs {
	ELSEWHERE, /* the kernel's, or a PMU's outside of the cores */
	TO_ONE,	   /* core PMU */
	TO_ANY,
};

static int by_type(const void *a, const void *b)
{
	const struct core_pmu *x = a, *y = b;

	return (x->type > y->type) - (x->type < y->type);
}

static void find_pmus(struct hybrid *hybrid)
{
	DIR *dir = opendir(hybrid->sys->devices);
	struct dirent *entry;

	while (dir && hybrid->count < PMUS_MAX && (entry = readdir(dir))) {
		struct core_pmu *pmu = &hybrid->pmus[hybrid->count];
		size_t len = strlen(entry->d_name);

		/* None where all its cores are offline. */
		if (len >= sizeof(pmu->name) ||
		    !event_sysfs_read(hybrid->sys, entry->d_name, "", "cpus", pmu->cpus,
				      sizeof(pmu->cpus)) ||
		    !pmu->cpus[0] || !event_sysfs_type(hybrid->sys, entry->d_name, &pmu->type))
			continue;
		memcpy(pmu->name, entry->d_name, len + 1);
		hybrid->count++;
	}
	if (dir)
		closedir(dir);
	qsort(hybrid->pmus, hybrid->count, sizeof(hybrid->pmus[0]), by_type);
}

static bool takes_types(const struct hybrid *hybrid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES | (uint64_t)hybrid->pmus[0].type << TYPE_SHIFT,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = hybrid->sys->open(&attr, 0, -1, -1);

	if (fd >= 0)
		close(fd);
	return fd != -ENOENT && fd != -EINVAL && fd != -EOPNOTSUPP;
}

static bool is_generic(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE;
}

/* The PMU that the event names; NULL: none of the cores'. */
static const struct core_pmu *pmu_of(const struct hybrid *hybrid, const struct event_spec *spec)
{
	uint64_t type = is_generic(&spec->attr) ? spec->attr.config >> TYPE_SHIFT : spec->attr.type;

	for (size_t i = 0; i < hybrid->count; i++)
		if (hybrid->pmus[i].type == type)
			return &hybrid->pmus[i];
	return NULL;
}

/* The name without modifiers. */
static char *plain_name(const struct event_spec *spec)
{
	size_t len = event_name_modifiers(spec);

	return strndup(spec->name, len && spec->name[len - 1] == ':' ? len - 1 : len);
}

/* The event as the PMU has it; false where it has no such event. */
static bool retarget(const struct hybrid *hybrid, const struct event_spec *spec,
		     const struct core_pmu *pmu, struct perf_event_attr *attr)
{
	char *name, *renamed = NULL;
	bool found;

	*attr = spec->attr;
	if (is_generic(attr)) {
		attr->config |= (uint64_t)pmu->type << TYPE_SHIFT;
		return true;
	}
	attr->config = attr->config1 = attr->config2 = 0;
	name = plain_name(spec);
	found = name && event_sysfs_parse(hybrid->sys, pmu->name, name, attr, &renamed, NULL) == 0;
	free(name);
	free(renamed);
	return found;
}

static enum belongs whose(const struct hybrid *hybrid, const struct event_spec *spec)
{
	const struct core_pmu *named = pmu_of(hybrid, spec);
	bool bare = !strchr(spec->name, '/') && !strstr(spec->name, "::");
	struct perf_event_attr attr;

	if (is_generic(&spec->attr))
		return named ? TO_ONE : hybrid->typed ? TO_ANY : ELSEWHERE;
	if (bare && (named || spec->attr.type == PERF_TYPE_RAW))
		for (size_t i = 0; i < hybrid->count; i++)
			if (retarget(hybrid, spec, &hybrid->pmus[i], &attr))
				return TO_ANY;
	return named ? TO_ONE : ELSEWHERE;
}

/* "pmu/name/modifiers" */
static char *part_name(const struct event_spec *spec, const struct core_pmu *pmu)
{
	char *plain = plain_name(spec), *name;
	int len = -1;

	if (plain)
		len = asprintf(&name, "%s/%s/%s", pmu->name, plain,
			       spec->name + event_name_modifiers(spec));
	free(plain);
	return len < 0 ? NULL : name;
}

/* Appends the event as it is counted on one PMU's CPUs. */
static int add_part(struct hybrid *hybrid, const struct event_spec *spec,
		    const struct core_pmu *pmu, int group, bool leader)
{
	struct event_spec part = *spec, *slot;
	enum belongs belongs = whose(hybrid, spec);

	if (belongs == TO_ANY && !retarget(hybrid, spec, pmu, &part.attr))
		return 0;
	part.name = belongs == TO_ONE ? strdup(spec->name) : part_name(spec, pmu);
	part.cpus = strdup(pmu->cpus);
	part.group = group;
	part.leader = group < 0 || leader;
	part.counted &= !part.leader;
	slot = part.name && part.cpus ? vec_push(hybrid->out) : NULL;
	if (slot)
		*slot = part;
	else
		event_spec_fini(&part);
	return slot ? 0 : err_nomem(hybrid->err);
}

static int add_parts(struct hybrid *hybrid, const struct event_spec *specs, size_t count,
		     const struct core_pmu *pmu, int group)
{
	size_t first = hybrid->out->len;
	int ret = 0;

	for (size_t i = 0; i < count && !ret; i++)
		ret = add_part(hybrid, &specs[i], pmu, group, hybrid->out->len == first);
	return ret;
}

static int add_whole(struct hybrid *hybrid, struct event_spec *specs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct event_spec *slot = vec_push(hybrid->out);

		if (!slot)
			return err_nomem(hybrid->err);
		*slot = specs[i];
		specs[i] = (struct event_spec){0};
	}
	return 0;
}

/* One event, or a group. */
static int spread(struct hybrid *hybrid, struct event_spec *specs, size_t count)
{
	const struct core_pmu *one = NULL;
	int group = specs[0].group, ret = 0;
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		enum belongs belongs = whose(hybrid, &specs[i]);

		any |= belongs == TO_ANY;
		if (belongs == TO_ONE && !one)
			one = pmu_of(hybrid, &specs[i]);
	}
	if (one)
		return add_parts(hybrid, specs, count, one, group);
	if (!any || hybrid->count < 2)
		return add_whole(hybrid, specs, count);
	for (size_t i = 0; i < hybrid->count && !ret; i++) {
		if (i && group >= 0)
			group = hybrid->next_group++;
		ret = add_parts(hybrid, specs, count, &hybrid->pmus[i], group);
	}
	return ret;
}

int event_spread(const struct event_system *sys, struct event_list *list, size_t from,
		 struct err *err)
{
	struct event_list out = {0};
	struct hybrid hybrid = {
		.sys = sys, .out = &out, .next_group = event_list_next_group(list), .err = err};
	size_t end;
	int ret = 0;

	find_pmus(&hybrid);
	if (!hybrid.count)
		return 0;
	hybrid.typed = hybrid.count > 1 && takes_types(&hybrid);
	for (size_t at = from; at < list->len && !ret; at = end) {
		end = event_list_group_end(list, at);
		ret = spread(&hybrid, &list->items[at], end - at);
	}
	while (list->len > from)
		event_spec_fini(&list->items[--list->len]);
	for (size_t i = 0; i < out.len && !ret; i++) {
		struct event_spec *slot = vec_push(list);

		if (!slot) {
			ret = err_nomem(err);
			break;
		}
		*slot = out.items[i];
		out.items[i] = (struct event_spec){0};
	}
	event_list_fini(&out);
	return ret;
}
