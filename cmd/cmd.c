#include "cmd/cmd.h"

#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static enum log_level shown = LOG_INFO;

static void to_stderr(enum log_level level, const char *line, void *ctx)
{
	struct strbuf safe = {0};

	if (level > shown)
		return;
	text_escape(&safe, line, strlen(line));
	fprintf(stderr, "pyperf: %s\n", strbuf_text(&safe));
	strbuf_fini(&safe);
}

void command_verbosity(int quiet, int verbose)
{
	shown = verbose ? LOG_DEBUG : quiet ? LOG_WARN : LOG_INFO;
	log_set_sink(to_stderr, NULL);
}

int command_fail(const struct err *err)
{
	struct strbuf safe = {0};

	text_escape(&safe, err->text, strlen(err->text));
	fprintf(stderr, "pyperf: %s\n", strbuf_text(&safe));
	if (err->hint[0]) {
		strbuf_reset(&safe);
		/* Hints may have several lines: they are ours. */
		fprintf(stderr, "%s\n", err->hint);
	}
	strbuf_fini(&safe);
	return err_exit_status(err->code);
}

int command_usage(const struct command *command, const char *fmt, ...)
{
	struct strbuf text = {0}, safe = {0};
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	text_escape(&safe, line, strlen(line));
	fprintf(stderr, "pyperf %s: %s\n", command->name, strbuf_text(&safe));
	fprintf(stderr, "usage: pyperf %s %s (pyperf help %s says more)\n", command->name,
		command->arguments, command->name);
	strbuf_fini(&text);
	strbuf_fini(&safe);
	return 2;
}

int command_unknown(const char *name)
{
	const char *nearest = NULL;
	unsigned int best = 3;
	struct strbuf safe = {0};

	for (const struct command *c = commands; c->name; c++) {
		unsigned int distance = text_distance(name, c->name);

		if (distance < best) {
			best = distance;
			nearest = c->name;
		}
	}
	text_escape(&safe, name, strlen(name));
	fprintf(stderr, "pyperf: there is no command '%s'\n", strbuf_text(&safe));
	if (nearest)
		fprintf(stderr, "Did you mean 'pyperf %s'?\n", nearest);
	else
		fprintf(stderr, "pyperf help lists the commands.\n");
	strbuf_fini(&safe);
	return 2;
}

static int has_long_option(const struct command *command, const char *word, const char **nearest)
{
	unsigned int best = 3;

	for (const struct poptOption *o = command->options; o->longName || o->shortName; o++) {
		unsigned int distance;

		if (!o->longName)
			continue;
		distance = text_distance(word, o->longName);
		if (distance < best) {
			best = distance;
			*nearest = o->longName;
		}
	}
	return *nearest != NULL;
}

poptContext command_options(const struct command *command, int argc, const char **argv,
			    int stop_at_word, int *status)
{
	struct poptOption table[] = {
		{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)command->options, 0, NULL, NULL},
		{"help", 'h', POPT_ARG_NONE, NULL, 'h', NULL, NULL},
		POPT_TABLEEND,
	};
	static struct poptOption kept[3];
	poptContext context;
	int rc;

	memcpy(kept, table, sizeof(table));
	context = poptGetContext(NULL, argc, argv, kept,
				 stop_at_word ? POPT_CONTEXT_POSIXMEHARDER : 0);
	while ((rc = poptGetNextOpt(context)) >= 0) {
		if (rc == 'h') {
			command_help(stdout, command);
			poptFreeContext(context);
			*status = command_finish_output(0);
			return NULL;
		}
	}
	if (rc < -1) {
		const char *bad = poptBadOption(context, 0);
		const char *nearest = NULL;

		if (rc == POPT_ERROR_BADOPT && strncmp(bad, "--", 2) == 0 &&
		    has_long_option(command, bad + 2, &nearest))
			*status = command_usage(command, "unknown option %s; did you mean --%s?",
						bad, nearest);
		else
			*status = command_usage(command, "%s: %s", bad, poptStrerror(rc));
		poptFreeContext(context);
		return NULL;
	}
	return context;
}

void command_help(FILE *out, const struct command *command)
{
	fprintf(out, "pyperf %s: %s\n\nusage: pyperf %s %s\n", command->name, command->summary,
		command->name, command->arguments);
	if (command->options[0].longName || command->options[0].shortName)
		fprintf(out, "\n");
	for (const struct poptOption *o = command->options; o->longName || o->shortName; o++) {
		char left[64];

		if (o->argInfo & POPT_ARGFLAG_DOC_HIDDEN)
			continue;
		snprintf(left, sizeof(left), "%s%c%s%s%s%s%s", o->shortName ? "-" : " ",
			 o->shortName ? o->shortName : ' ',
			 o->shortName && o->longName ? ", " : "  ", o->longName ? "--" : "",
			 o->longName ? o->longName : "",
			 o->argDescrip ? (o->longName ? "=" : "") : "",
			 o->argDescrip ? o->argDescrip : "");
		fprintf(out, "  %-28s %s\n", left, o->descrip ? o->descrip : "");
	}
	if (command->examples[0])
		fprintf(out, "\nexamples:\n");
	for (const char *const *example = command->examples; *example; example++)
		fprintf(out, "  %s\n", *example);
}

int command_finish_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno == EPIPE)
		return status;
	fprintf(stderr, "pyperf: cannot write the output: %s\n", strerror(errno));
	return status ? status : 1;
}
