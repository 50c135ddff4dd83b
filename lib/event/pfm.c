#include "event/pfm.h"

#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <string.h>

/* libpfm4 probes the processor and builds its tables: once, and only when a name needs it. */
static bool initialised(void)
{
	static int state;

	if (!state)
		state = pfm_initialize() == PFM_SUCCESS ? 1 : -1;
	return state > 0;
}

/* "skl" of "skl::INST_RETIRED" names a model that libpfm4 knows but that this machine is not. */
static bool is_other_model(const char *text)
{
	const char *colons = strstr(text, "::");
	size_t len = colons ? (size_t)(colons - text) : 0;
	pfm_pmu_t pmu;

	pfm_for_all_pmus(pmu)
	{
		pfm_pmu_info_t info = {.size = sizeof(info)};

		if (pfm_get_pmu_info(pmu, &info) == PFM_SUCCESS && len &&
		    strlen(info.name) == len && strncasecmp(info.name, text, len) == 0)
			return !info.is_present;
	}
	return false;
}

int event_pfm_parse(const char *text, void *attr, size_t size, struct err *err)
{
	/* The library may know a longer perf_event_attr than we do. */
	union {
		struct perf_event_attr attr;
		char room[1024];
	} out = {0};
	pfm_perf_encode_arg_t arg = {.attr = &out.attr, .size = sizeof(arg)};
	int ret;

	if (!initialised())
		return err_set(err, ERR_NOT_FOUND, "libpfm4 does not know this processor");
	out.attr.size = (uint32_t)size;
	ret = pfm_get_os_event_encoding(text, PFM_PLM0 | PFM_PLM3 | PFM_PLMH, PFM_OS_PERF_EVENT_EXT,
					&arg);
	switch (ret) {
	case PFM_SUCCESS:
		break;
	case PFM_ERR_NOMEM:
		return err_nomem(err);
	case PFM_ERR_NOTFOUND:
		if (!is_other_model(text))
			return err_set(err, ERR_NOT_FOUND, "libpfm4 knows no event '%s'", text);
		err_set(err, ERR_USAGE, "'%s' is an event of another processor than this one",
			text);
		err_hint(err,
			 "perf::CYCLES and the generic names work everywhere; "
			 "LIBPFM_FORCE_PMU=%.*s insists",
			 (int)strcspn(text, ":"), text);
		return ERR_USAGE;
	default:
		return err_set(err, ERR_USAGE, "'%s': %s", text, pfm_strerror(ret));
	}
	if (arg.cpu >= 0)
		return err_set(err, ERR_USAGE, "'%s': an event cannot be bound to a CPU", text);
	/* Its default leaves guests out, which the generic names do not. PEBS needs it. */
	if (!out.attr.precise_ip && !strcasestr(text, ":mg") && !strcasestr(text, ":mh"))
		out.attr.exclude_guest = 0;
	memcpy(attr, &out, size < sizeof(out) ? size : sizeof(out));
	return 0;
}

void event_pfm_each(bool (*visit)(const char *name, void *ctx), void *ctx)
{
	pfm_pmu_t pmu;

	if (!initialised())
		return;
	pfm_for_all_pmus(pmu)
	{
		pfm_pmu_info_t info = {.size = sizeof(info)};

		if (pfm_get_pmu_info(pmu, &info) != PFM_SUCCESS || !info.is_present)
			continue;
		for (int i = info.first_event; i >= 0; i = pfm_get_event_next(i)) {
			pfm_event_info_t event = {.size = sizeof(event)};
			char name[256];

			if (pfm_get_event_info(i, PFM_OS_PERF_EVENT_EXT, &event) != PFM_SUCCESS)
				continue;
			snprintf(name, sizeof(name), "%s::%s", info.name, event.name);
			if (!visit(name, ctx))
				return;
		}
	}
}

/* An event's variants; itself where it has none. */
static bool list_event(const pfm_pmu_info_t *info, int index,
		       bool (*visit)(const char *name, const char *text, bool present, void *ctx),
		       void *ctx)
{
	pfm_event_info_t event = {.size = sizeof(event)};
	bool variants = false, more = true;
	char name[256], text[512];

	if (pfm_get_event_info(index, PFM_OS_PERF_EVENT_EXT, &event) != PFM_SUCCESS)
		return true;
	for (int i = 0; more && i < event.nattrs; i++) {
		pfm_event_attr_info_t attr = {.size = sizeof(attr)};

		if (pfm_get_event_attr_info(index, i, PFM_OS_PERF_EVENT_EXT, &attr) !=
			    PFM_SUCCESS ||
		    attr.type != PFM_ATTR_UMASK)
			continue;
		variants = true;
		snprintf(name, sizeof(name), "%s::%s:%s", info->name, event.name, attr.name);
		snprintf(text, sizeof(text), "%s: %s", event.desc ? event.desc : "",
			 attr.desc ? attr.desc : "");
		more = visit(name, text, info->is_present, ctx);
	}
	if (variants || !more)
		return more;
	snprintf(name, sizeof(name), "%s::%s", info->name, event.name);
	return visit(name, event.desc, info->is_present, ctx);
}

void event_pfm_list(const char *model, size_t len,
		    bool (*visit)(const char *name, const char *text, bool present, void *ctx),
		    void *ctx)
{
	bool more = true;
	pfm_pmu_t pmu;

	if (!initialised())
		return;
	pfm_for_all_pmus(pmu)
	{
		pfm_pmu_info_t info = {.size = sizeof(info)};

		if (pfm_get_pmu_info(pmu, &info) != PFM_SUCCESS)
			continue;
		if (!info.is_present &&
		    !(len && strlen(info.name) == len && strncasecmp(info.name, model, len) == 0))
			continue;
		for (int i = info.first_event; more && i >= 0; i = pfm_get_event_next(i))
			more = list_event(&info, i, visit, ctx);
	}
}

void event_pfm_models(bool (*visit)(const struct pfm_model *model, void *ctx), void *ctx)
{
	pfm_pmu_t pmu;

	if (!initialised())
		return;
	pfm_for_all_pmus(pmu)
	{
		pfm_pmu_info_t info = {.size = sizeof(info)};
		struct pfm_model model;

		if (pfm_get_pmu_info(pmu, &info) != PFM_SUCCESS)
			continue;
		model = (struct pfm_model){
			.name = info.name,
			.text = info.desc,
			.events = info.nevents,
			.counters = info.num_cntrs,
			.fixed_counters = info.num_fixed_cntrs,
			.present = info.is_present,
		};
		if (!visit(&model, ctx))
			return;
	}
}
