#include "record/meta.h"

#include "base/io.h"
#include "record/native.h"
#include "record/way.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* A string that is no UTF-8 goes through Latin-1, so that nothing is lost silently. */
static json_t *text(const char *bytes)
{
	json_t *string = json_string(bytes);
	struct strbuf utf8 = {0};

	if (string)
		return string;
	for (const unsigned char *s = (const unsigned char *)bytes; *s; s++) {
		if (*s >= 0x80)
			strbuf_char(&utf8, (char)(0xc0 | *s >> 6));
		strbuf_char(&utf8, (char)(*s >= 0x80 ? 0x80 | (*s & 0x3f) : *s));
	}
	string = json_string(strbuf_text(&utf8));
	strbuf_fini(&utf8);
	return string;
}

static json_t *texts(const char *const *words)
{
	json_t *array = json_array();

	for (; words && *words; words++)
		json_array_append_new(array, text(*words));
	return array;
}

static void add_python(const char *version, const char *path, void *ctx)
{
	json_t *python = json_object();

	json_object_set_new(python, "version", text(version));
	json_object_set_new(python, "path", text(path));
	json_array_append_new(ctx, python);
}

static char *command_line(const char *const *argv)
{
	struct strbuf line = {0};

	for (size_t i = 0; argv && argv[i]; i++) {
		if (i)
			strbuf_char(&line, ' ');
		strbuf_str(&line, argv[i]);
	}
	return strbuf_detach(&line, NULL);
}

static void add_end(const char *reason, const char *object, uint64_t samples, void *ctx)
{
	json_t *end = json_object();

	json_object_set_new(end, "reason", text(reason));
	json_object_set_new(end, "object", text(object));
	json_object_set_new(end, "samples", json_integer((json_int_t)samples));
	json_array_append_new(ctx, end);
}

/* How native stacks were found, and of those that were unwound here, why some are not whole. */
static json_t *stacks_of(const struct recorder_options *options, const struct native *native)
{
	json_t *stacks = json_object(), *ends;
	uint64_t total, complete;

	json_object_set_new(stacks, "by", text(way_name(options->chain)));
	if (!native)
		return stacks;
	ends = json_array();
	native_counts(native, &total, &complete);
	native_each_end(native, add_end, ends);
	json_object_set_new(stacks, "bytes", json_integer(options->stack_bytes));
	json_object_set_new(stacks, "samples", json_integer((json_int_t)total));
	json_object_set_new(stacks, "complete", json_integer((json_int_t)complete));
	json_object_set_new(stacks, "incomplete", ends);
	return stacks;
}

/* What the kernel counted in all, also behind the last sample. */
static json_t *counts_of(const struct meta *meta)
{
	json_t *counts = json_array();

	for (size_t i = 0; i < meta->options->events->len; i++) {
		const struct recorder_count *total = &meta->totals[i];
		json_t *count = json_object();

		json_object_set_new(count, "event", json_integer((json_int_t)i));
		json_object_set_new(count, "value", json_integer((json_int_t)total->value));
		json_object_set_new(count, "enabled_ns",
				    json_integer((json_int_t)total->enabled_ns));
		json_object_set_new(count, "running_ns",
				    json_integer((json_int_t)total->running_ns));
		json_array_append_new(counts, count);
	}
	return counts;
}

int meta_store(struct data_writer *writer, const struct meta *meta, struct err *err)
{
	const struct recorder_options *options = meta->options;
	const struct recorder_result *result = meta->result;
	json_t *root = json_object(), *pythons_array = json_array(), *events = json_array();
	char *command = command_line(options->command), *dump;
	struct pythons_stats stats;
	int ret;

	pythons_stats(meta->pythons, &stats);
	pythons_each(meta->pythons, add_python, pythons_array);
	for (size_t i = 0; i < options->events->len; i++)
		json_array_append_new(events, text(options->events->items[i].name));
	json_object_set_new(root, "pyperf", text(PYPERF_VERSION));
	if (command)
		json_object_set_new(root, "command", text(command));
	if (result->target[0])
		json_object_set_new(root, "target", text(result->target));
	json_object_set_new(root, "argv", texts(options->command));
	json_object_set_new(root, "engine", text(engine_name(meta->engine)));
	json_object_set_new(root, "pythons", pythons_array);
	json_object_set_new(root, "events", events);
	json_object_set_new(root, "samples", json_integer((json_int_t)result->samples));
	json_object_set_new(root, "lost", json_integer((json_int_t)result->lost));
	json_object_set_new(root, "duration_ns", json_integer((json_int_t)result->duration_ns));
	json_object_set_new(root, "code_unread", json_integer((json_int_t)stats.code_unread));
	json_object_set_new(root, "walks_faulted", json_integer((json_int_t)stats.walks_faulted));
	if (stats.engine.rate_cut > 1)
		json_object_set_new(root, "rate_cut", json_real(stats.engine.rate_cut));
	if (stats.engine.not_stopped)
		json_object_set_new(root, "not_stopped",
				    json_integer((json_int_t)stats.engine.not_stopped));
	json_object_set_new(root, "stacks", stacks_of(options, meta->native));
	if (meta->totals)
		json_object_set_new(root, "counts", counts_of(meta));
	if (result->reads_dropped)
		json_object_set_new(root, "reads_dropped",
				    json_integer((json_int_t)result->reads_dropped));
	if (meta->exit_status >= 0)
		json_object_set_new(root, "exit_status", json_integer(meta->exit_status));
	dump = json_dumps(root, JSON_COMPACT);
	ret = dump ? data_writer_section(writer, DATA_SECTION_META, dump, strlen(dump), err)
		   : err_nomem(err);
	free(dump);
	free(command);
	json_decref(root);
	return ret;
}

/* "model name : ..." of the first CPU; arm64 has none. */
static void read_cpu_desc(char *buf, size_t size)
{
	struct strbuf cpuinfo = {0};
	const char *at;

	buf[0] = '\0';
	if (io_read_file("/proc/cpuinfo", &cpuinfo, 1 << 22, NULL) == 0) {
		at = strstr(strbuf_text(&cpuinfo), "model name");
		at = at ? strchr(at, ':') : NULL;
		if (at)
			snprintf(buf, size, "%.*s", (int)strcspn(at + 2, "\n"), at + 2);
	}
	strbuf_fini(&cpuinfo);
}

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void meta_machine(struct machine_facts *facts, const char *const *argv)
{
	struct timespec resolution = {0};
	struct utsname uts;

	memset(facts, 0, sizeof(*facts));
	if (uname(&uts) == 0) {
		snprintf(facts->hostname, sizeof(facts->hostname), "%s", uts.nodename);
		snprintf(facts->os_release, sizeof(facts->os_release), "%s", uts.release);
		snprintf(facts->arch, sizeof(facts->arch), "%s", uts.machine);
	}
	read_cpu_desc(facts->cpu_desc, sizeof(facts->cpu_desc));
	/* Arm's: by it the trace's numbers of data sources are read. */
	io_read_line("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", facts->cpuid,
		     sizeof(facts->cpuid), NULL);
	clock_getres(CLOCK_MONOTONIC, &resolution);
	facts->info = (struct data_info){
		.hostname = facts->hostname,
		.os_release = facts->os_release,
		.perf_version = "pyperf " PYPERF_VERSION,
		.arch = facts->arch,
		.cpu_desc = facts->cpu_desc[0] ? facts->cpu_desc : NULL,
		.cpuid = facts->cpuid[0] ? facts->cpuid : NULL,
		.cpus_available = (uint32_t)sysconf(_SC_NPROCESSORS_CONF),
		.cpus_online = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
		.total_memory_kb = (uint64_t)sysconf(_SC_PHYS_PAGES) *
				   ((uint64_t)sysconf(_SC_PAGESIZE) / 1024),
		.cmdline = argv,
		.has_clockid = true,
		.clockid = CLOCK_MONOTONIC,
		.clock_resolution_ns = (uint64_t)resolution.tv_nsec,
		.has_clock_data = true,
		.clock_wall_ns = now(CLOCK_REALTIME),
		.clock_ns = now(CLOCK_MONOTONIC),
	};
	while (argv && argv[facts->info.cmdline_len])
		facts->info.cmdline_len++;
}
