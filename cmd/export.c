#include "cmd/cmd.h"
#include "cmd/filter.h"

#include "base/sink.h"
#include "base/strbuf.h"
#include "output/output.h"
#include "output/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	char *format, *output, *weight, *min_duration, *merge, *offset;
} given;

const struct poptOption export_options[] = {
	{"format", 'f', POPT_ARG_STRING, &given.format, 0, "format; 'list' shows them all",
	 "FORMAT"},
	{"output", 'o', POPT_ARG_STRING, &given.output, 0,
	 "file to write, - for standard output (default); NAME.gz and NAME.zst are compressed",
	 "FILE"},
	{"weight", '\0', POPT_ARG_STRING, &given.weight, 0,
	 "what a stack counts: its samples (default) or its share of the event's period",
	 "samples|period"},
	{"min-duration", '\0', POPT_ARG_STRING, &given.min_duration, 0,
	 "trace: leave out slices that are shorter (ns, us, ms or s; a bare number is us)", "TIME"},
	{"merge", '\0', POPT_ARG_STRING, &given.merge, 0,
	 "trace: put the trace of another tool (PyTorch, VizTracer, ...) on the same time line",
	 "TRACE"},
	{"offset", '\0', POPT_ARG_STRING, &given.offset, 0,
	 "what to add to the merged trace's times; where it has no base time: how long after the "
	 "recording's start its time 0 is",
	 "TIME|epoch"},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)inline_options, 0, NULL, NULL},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)view_options, 0, NULL, NULL},
	POPT_TABLEEND,
};

static const struct word weights[] = {{"samples", 0}, {"period", 1}, {0}};

static int list_formats(void)
{
	for (const struct export_format *f = export_formats; f->name; f++)
		printf("%-10s %s\n", f->name, f->summary);
	return 0;
}

/* 0 and the format, or the exit status of a usage error. */
static int find_format(const struct command *command, const struct export_format **format)
{
	struct strbuf names = {0};
	int status;

	*format = given.format ? export_format_find(given.format) : NULL;
	if (*format)
		return 0;
	for (const struct export_format *f = export_formats; f->name; f++)
		strbuf_printf(&names, "%s%s", names.len ? ", " : "", f->name);
	status = given.format ? command_usage(command, "no format '%s'; there is: %s", given.format,
					      strbuf_text(&names))
			      : command_usage(command, "say --format FORMAT; there is: %s",
					      strbuf_text(&names));
	strbuf_fini(&names);
	return status;
}

/* Nanoseconds of "100us", "1.5ms", "250"; false for anything else. */
static bool parse_duration(const char *text, int64_t *ns)
{
	static const struct word units[] = {
		{"", 1000}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {0},
	};
	char *end;
	double value = strtod(text, &end);
	int unit = word_find(units, end);

	if (end == text || unit < 0 || !isfinite(value) || fabs(value) * unit > 9e18)
		return false;
	*ns = llrint(value * unit);
	return true;
}

/* Those that only the time line has; 0 or the exit status of a usage error. */
static int check_trace_options(const struct command *command, const struct export_format *format,
			       struct export_options *options)
{
	int64_t duration = 0;

	if (strcmp(format->name, "trace") != 0 &&
	    (given.min_duration || given.merge || given.offset))
		return command_usage(command, "--%s is for --format trace",
				     given.min_duration ? "min-duration"
				     : given.merge	? "merge"
							: "offset");
	if (given.min_duration && (!parse_duration(given.min_duration, &duration) || duration < 0))
		return command_usage(command,
				     "--min-duration is a time such as 100us or 2ms, not '%s'",
				     given.min_duration);
	if (given.offset && !given.merge)
		return command_usage(command, "--offset goes with --merge");
	options->min_duration = (uint64_t)duration;
	options->merge = given.merge;
	options->has_offset = given.offset;
	options->offset_is_epoch = given.offset && strcmp(given.offset, "epoch") == 0;
	if (given.offset && !options->offset_is_epoch &&
	    !parse_duration(given.offset, &options->offset))
		return command_usage(command,
				     "--offset is a time such as 1.5s or -20ms, or epoch, "
				     "not '%s'",
				     given.offset);
	return 0;
}

/* 0 and the format, or an exit status; -1 after --format list. */
static int check_options(const struct command *command, const char *extra,
			 const struct export_format **format, struct export_options *options)
{
	int weight = given.weight ? word_find(weights, given.weight) : 0, status;

	if (extra)
		return command_usage(command, "unexpected word '%s'", extra);
	if (given.format && strcmp(given.format, "list") == 0)
		return -1;
	if (weight < 0)
		return command_usage(command, "--weight is samples or period, not '%s'",
				     given.weight);
	options->by_period = weight;
	status = find_format(command, format);
	if (status)
		return status;
	status = check_trace_options(command, *format, options);
	if (status)
		return status;
	if ((*format)->write_file && (!given.output || strcmp(given.output, "-") == 0))
		return command_usage(command, "%s is written to a file: say --output FILE",
				     (*format)->name);
	if (((*format)->needs & EXPORT_BINARY) && !given.output && isatty(STDOUT_FILENO))
		return command_usage(command,
				     "%s is not for a terminal: say --output FILE, or -o - for "
				     "standard output",
				     (*format)->name);
	return 0;
}

static int write_file(const char *path, const struct export_format *format,
		      const struct export_options *options, struct err *err)
{
	struct sink *sink;
	int rc = sink_open(&sink, path, err);

	if (rc)
		return rc;
	return sink_close(sink, format->write(sink_file(sink), options, err), err);
}

static int write_out(const struct export_format *format, const struct export_options *options,
		     struct err *err)
{
	if (format->write_file)
		return format->write_file(given.output, options, err);
	if (given.output && strcmp(given.output, "-") != 0)
		return write_file(given.output, format, options, err);
	return format->write(stdout, options, err);
}

int cmd_export(int argc, const char **argv)
{
	const struct command *command = command_find("export");
	struct profile_options load = {0};
	const struct export_format *format = NULL;
	struct export_options options = {0};
	struct samples *samples = NULL;
	struct opened opened;
	struct err err = {0};
	poptContext context;
	int status = 0, rc = 0;

	context = command_options(command, argc, argv, 0, &status);
	if (!context)
		return status;
	status = check_options(command, poptPeekArg(context), &format, &options);
	poptFreeContext(context);
	if (status)
		return status < 0 ? command_finish_output(list_formats()) : status;
	/* perf finds what was inlined by itself. */
	load.no_inline = format->write_file != NULL;
	if (format->needs & EXPORT_SAMPLES) {
		samples = samples_new();
		load.on_sample = samples_keep;
		load.ctx = samples;
		rc = samples ? 0 : err_nomem(&err);
	}
	if (!rc)
		rc = view_open(&opened, &load, &err);
	if (!rc) {
		options.profile = opened.profile;
		options.info = opened.file ? data_info(opened.file) : NULL;
		options.file = opened.file;
		options.input = view_given.input ? view_given.input : "perf.data";
		options.samples = samples;
		options.filter = &opened.filter;
		options.event = opened.event;
		options.all_events = !view_given.event;
		rc = write_out(format, &options, &err);
		view_close(&opened);
	}
	samples_free(samples);
	return command_finish_output(rc < 0 ? command_fail(&err) : 0);
}
