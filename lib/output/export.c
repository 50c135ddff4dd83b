#include "output/export.h"

#include <inttypes.h>
#include <string.h>

const struct export_format export_formats[] = {
	{"folded", "collapsed stacks, one line each: for flame graphs", export_folded, 0, NULL},
	{"speedscope", "JSON for speedscope, a profile for each thread and event",
	 export_speedscope, EXPORT_SAMPLES, NULL},
	{"pprof", "protobuf for pprof, all events at once", export_pprof, EXPORT_BINARY, NULL},
	{"firefox", "JSON for the Firefox Profiler: threads, categories, counters", export_firefox,
	 EXPORT_SAMPLES, NULL},
	{"trace", "JSON of Chrome traces for Perfetto: a time line of slices and counters",
	 export_trace, EXPORT_SAMPLES, NULL},
	{"callgrind", "for KCachegrind and callgrind_annotate, all events at once",
	 export_callgrind, 0, NULL},
	{"script", "text as of perf script, for what reads that", export_script, EXPORT_SAMPLES,
	 NULL},
	{"csv", "comma-separated values, one row for each sample", export_csv, EXPORT_SAMPLES,
	 NULL},
	{"otlp", "protobuf of OpenTelemetry's profiles (v1development), a profile for each event",
	 export_otlp, EXPORT_SAMPLES | EXPORT_BINARY, NULL},
	{"perf", "perf.data in which Python functions are symbols, for perf report and annotate",
	 NULL, EXPORT_SAMPLES, export_perf},
	{0},
};

const struct export_format *export_format_find(const char *name)
{
	for (const struct export_format *f = export_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

uint32_t export_events(const struct export_options *options)
{
	return options->all_events ? SAMPLES_ALL_EVENTS : options->event;
}

bool export_has_event(const struct export_options *options, uint32_t event)
{
	const struct profile_event *e = profile_event(options->profile, event);

	return e->sampled && e->samples && (options->all_events || event == options->event);
}

bool export_event_is_time(const struct profile *profile, uint32_t event)
{
	const char *name = profile_event(profile, event)->name;
	size_t len = strcspn(name, ":");

	return (len == strlen("cpu-clock") && strncmp(name, "cpu-clock", len) == 0) ||
	       (len == strlen("task-clock") && strncmp(name, "task-clock", len) == 0);
}

const char *export_function_name(const struct profile *profile, uint32_t function)
{
	const struct profile_function *f = profile_function(profile, function);

	return profile_text(profile, f->qualname ? f->qualname : f->name);
}

void export_add_thread(struct strbuf *out, const struct profile *profile, uint32_t thread)
{
	const struct profile_thread *t = profile_thread(profile, thread);

	strbuf_printf(out, "%s %" PRIu32 "/%" PRIu32, profile_text(profile, t->comm), t->pid,
		      t->tid);
}

bool export_wall_time(const struct export_options *options, uint64_t time, int64_t *wall)
{
	const struct data_info *info = options->info;

	if (!info || !info->has_clock_data)
		return false;
	*wall = (int64_t)(time - info->clock_ns + info->clock_wall_ns);
	return true;
}
