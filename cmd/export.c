#include "cmd/cmd.h"
#include "cmd/filter.h"

#include "base/strbuf.h"
#include "output/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	char *format, *output, *weight;
} given;

const struct poptOption export_options[] = {
	{"format", 'f', POPT_ARG_STRING, &given.format, 0, "format; 'list' shows them all",
	 "FORMAT"},
	{"output", 'o', POPT_ARG_STRING, &given.output, 0,
	 "file to write, - for standard output (default)", "FILE"},
	{"weight", '\0', POPT_ARG_STRING, &given.weight, 0,
	 "what a stack counts: its samples (default) or its share of the event's period",
	 "samples|period"},
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

/* 0 and the format, or an exit status; -1 after --format list. */
static int check_options(const struct command *command, const char *extra,
			 const struct export_format **format, struct export_options *options)
{
	struct strbuf names = {0};
	int weight = given.weight ? word_find(weights, given.weight) : 0, status;

	if (extra)
		return command_usage(command, "unexpected word '%s'", extra);
	if (given.format && strcmp(given.format, "list") == 0)
		return -1;
	if (weight < 0)
		return command_usage(command, "--weight is samples or period, not '%s'",
				     given.weight);
	options->by_period = weight;
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

/* Writes aside and renames, so that a file is whole or not there. What is no plain file (a pipe, a
 * device) is written in place. */
static int write_file(const char *path, const struct export_format *format,
		      const struct export_options *options, struct err *err)
{
	struct strbuf aside = {0};
	struct stat st;
	bool in_place = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
	FILE *out = NULL;
	int fd = -1, rc = 0, saved;

	strbuf_printf(&aside, in_place ? "%s" : "%s.XXXXXX", path);
	if (strbuf_failed(&aside))
		return err_nomem(err);
	if (!in_place)
		fd = mkstemp(aside.buf);
	out = in_place ? fopen(path, "w") : fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!out) {
		rc = err_sys(err, errno, "cannot write %s", path);
		if (fd >= 0)
			close(fd);
		goto out;
	}
	rc = format->write(out, options, err);
	saved = ferror(out) ? EIO : 0;
	errno = 0;
	if (fflush(out) || ferror(out))
		saved = errno ? errno : EIO;
	if (!in_place && !saved && !rc) {
		mode_t mask = umask(0);

		umask(mask);
		fchmod(fileno(out), 0666 & ~mask);
	}
	if (fclose(out) && !saved)
		saved = errno;
	if (!rc && saved)
		rc = err_sys(err, saved, "cannot write %s", path);
	if (!rc && !in_place && rename(aside.buf, path))
		rc = err_sys(err, errno, "cannot write %s", path);
out:
	if (rc && !in_place && fd >= 0)
		unlink(aside.buf);
	strbuf_fini(&aside);
	return rc;
}

int cmd_export(int argc, const char **argv)
{
	const struct command *command = command_find("export");
	const struct profile_options load = {0};
	const struct export_format *format = NULL;
	struct export_options options = {0};
	struct opened opened;
	struct err err = {0};
	poptContext context;
	int status = 0, rc;

	context = command_options(command, argc, argv, 0, &status);
	if (!context)
		return status;
	status = check_options(command, poptPeekArg(context), &format, &options);
	poptFreeContext(context);
	if (status)
		return status < 0 ? command_finish_output(list_formats()) : status;
	rc = view_open(&opened, &load, &err);
	if (!rc) {
		options.profile = opened.profile;
		options.filter = &opened.filter;
		options.event = opened.event;
		if (given.output && strcmp(given.output, "-") != 0)
			rc = write_file(given.output, format, &options, &err);
		else
			rc = format->write(stdout, &options, &err);
		view_close(&opened);
	}
	return command_finish_output(rc < 0 ? command_fail(&err) : 0);
}
