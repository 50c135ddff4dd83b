#include "cmd/cmd.h"
#include "cmd/progress.h"

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
	progress_hide();
	text_escape(&safe, line, strlen(line));
	fprintf(stderr, "pyperf: %s\n", strbuf_text(&safe));
	strbuf_fini(&safe);
}

void command_verbosity(int quiet, int verbose)
{
	shown = verbose ? LOG_DEBUG : quiet ? LOG_WARN : LOG_INFO;
	log_set_sink(to_stderr, NULL);
	progress_show(!quiet);
}

int word_find(const struct word *words, const char *name)
{
	for (; words->name; words++)
		if (strcmp(words->name, name) == 0)
			return words->value;
	return -1;
}

int command_fail(const struct err *err)
{
	struct strbuf safe = {0};
	const char *line = err->hint;

	progress_hide();
	text_escape(&safe, err->text, strlen(err->text));
	fprintf(stderr, "pyperf: %s\n", strbuf_text(&safe));
	/* Hints may have several lines, and names in them. */
	while (*line) {
		size_t len = strcspn(line, "\n");

		strbuf_reset(&safe);
		text_escape(&safe, line, len);
		fprintf(stderr, "%s\n", strbuf_text(&safe));
		line += len + (line[len] == '\n');
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
	fprintf(stderr, "usage: pyperf %s%s%s (pyperf help %s says more)\n", command->name,
		command->arguments[0] ? " " : "", command->arguments, command->name);
	strbuf_fini(&text);
	strbuf_fini(&safe);
	return 2;
}

int command_unknown(const char *name)
{
	const char *nearest = NULL;
	unsigned int best = 1 + (unsigned int)strlen(name) / 3;
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

/* Calls back for every option of a table and of those that it includes; a non-zero return stops and
 * is passed on. */
static int each_option(const struct poptOption *table,
		       int (*each)(const struct poptOption *option, void *ctx), void *ctx)
{
	int rc = 0;

	for (const struct poptOption *o = table; !rc; o++) {
		if ((o->argInfo & POPT_ARG_MASK) == POPT_ARG_INCLUDE_TABLE)
			rc = each_option(o->arg, each, ctx);
		else if (!o->longName && !o->shortName)
			break;
		else
			rc = each(o, ctx);
	}
	return rc;
}

struct nearest {
	const char *word, *name;
	unsigned int distance;
};

/* A misspelling, or a beginning: --per for --percent-limit. */
static int compare_option(const struct poptOption *option, void *ctx)
{
	struct nearest *nearest = ctx;
	unsigned int distance;

	if (!option->longName)
		return 0;
	distance = text_distance(nearest->word, option->longName);
	if (strlen(nearest->word) >= 3 &&
	    strncmp(nearest->word, option->longName, strlen(nearest->word)) == 0)
		distance = 1;
	if (distance < nearest->distance) {
		nearest->distance = distance;
		nearest->name = option->longName;
	}
	return 0;
}

/* What popt says of an option that it refuses, in words that help. */
static int bad_option(const struct command *command, const char *bad, int rc)
{
	struct strbuf word = {0};
	struct nearest nearest = {.distance = 3};
	int status;

	if (rc != POPT_ERROR_BADOPT)
		return command_usage(command, "%s: %s", bad, poptStrerror(rc));
	if (strncmp(bad, "--", 2) == 0) {
		strbuf_add(&word, bad + 2, strcspn(bad + 2, "="));
		nearest.word = strbuf_text(&word);
		if (word.len < 4)
			nearest.distance = 2;
		each_option(command->options, compare_option, &nearest);
	}
	if (nearest.name)
		status = command_usage(command, "unknown option %s; did you mean --%s?", bad,
				       nearest.name);
	else
		status = command_usage(command, "unknown option %s", bad);
	strbuf_fini(&word);
	return status;
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
		*status = bad_option(command, poptBadOption(context, 0), rc);
		poptFreeContext(context);
		return NULL;
	}
	return context;
}

#define HELP_COLUMN 31
#define HELP_WIDTH 80

void command_put_wrapped(FILE *out, const char *text, int column, int width)
{
	int at = column;

	while (*text) {
		int word = (int)strcspn(text, " ");

		if (at > column && at + 1 + word > width) {
			fprintf(out, "\n%*s", column, "");
			at = column;
		} else if (at > column) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", word, text);
		at += word;
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static int put_option(const struct poptOption *o, void *ctx)
{
	FILE *out = ctx;
	char left[96];
	int len;

	if (o->argInfo & POPT_ARGFLAG_DOC_HIDDEN)
		return 0;
	snprintf(left, sizeof(left), "%c%c%s%s%s%s%s", o->shortName ? '-' : ' ',
		 o->shortName ? o->shortName : ' ', o->shortName && o->longName ? ", " : "  ",
		 o->longName ? "--" : "", o->longName ? o->longName : "",
		 o->argDescrip && o->longName ? "=" : "", o->argDescrip ? o->argDescrip : "");
	len = fprintf(out, "  %s", left);
	if (len >= HELP_COLUMN) {
		fputc('\n', out);
		len = 0;
	}
	fprintf(out, "%*s", HELP_COLUMN - len, "");
	command_put_wrapped(out, o->descrip ? o->descrip : "", HELP_COLUMN, HELP_WIDTH);
	return 0;
}

void command_help(FILE *out, const struct command *command)
{
	static const struct poptOption help = {
		"help", 'h', POPT_ARG_NONE, NULL, 'h', "explain the command", NULL};

	fprintf(out, "pyperf %s: %s\n\nusage: pyperf %s%s%s\n\n", command->name, command->summary,
		command->name, command->arguments[0] ? " " : "", command->arguments);
	each_option(command->options, put_option, out);
	put_option(&help, out);
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

void command_spare_hangup(sigset_t *set)
{
	struct sigaction action;

	if (sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
		sigdelset(set, SIGHUP);
}
