#include "cmd/cmd.h"
#include "cmd/filter.h"
#include "cmd/match.h"

#include "base/log.h"
#include "browse/annotate.h"
#include "output/details.h"
#include "output/output.h"

#include <stdlib.h>
#include <string.h>

/* Of several functions one is taken without asking when it has this share of their time. */
#define DOMINANT 0.9

static struct {
	char *metrics;
	int json, csv, stdio, tui, memory;
	int bytecode, callers, callees;
} given;

const struct poptOption annotate_options[] = {
	{"metrics", '\0', POPT_ARG_STRING, &given.metrics, 0, METRICS_HELP,
	 "all|none|KEY[,KEY...]"},
	{"memory", '\0', POPT_ARG_NONE, &given.memory, 0,
	 "what the lines made resident (page faults), and how long their accesses took", NULL},
	{"bytecode", '\0', POPT_ARG_NONE, &given.bytecode, 0,
	 "below each line its instructions, with what each cost", NULL},
	{"callers", '\0', POPT_ARG_NONE, &given.callers, 0,
	 "below each line the lines from which it was reached", NULL},
	{"callees", '\0', POPT_ARG_NONE, &given.callees, 0, "below each line all that it called",
	 NULL},
	{"json", '\0', POPT_ARG_NONE, &given.json, 0,
	 "write JSON: the functions that match, and their lines", NULL},
	{"csv", '\0', POPT_ARG_NONE, &given.csv, 0,
	 "write comma-separated values: the lines of the functions that match", NULL},
	{"stdio", '\0', POPT_ARG_NONE, &given.stdio, 0,
	 "plain text, on a terminal too, instead of the interactive view", NULL},
	{"tui", '\0', POPT_ARG_NONE, &given.tui, 0,
	 "the interactive view; where there is no terminal that is an error", NULL},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)reduced_options, 0, NULL, NULL},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)view_options, 0, NULL, NULL},
	POPT_TABLEEND,
};

static unsigned int wanted_details(void)
{
	return (given.bytecode ? DETAIL_BYTECODE : 0) | (given.callers ? DETAIL_CALLERS : 0) |
	       (given.callees ? DETAIL_CALLEES : 0);
}

struct annotation {
	struct opened opened;
	struct view *functions, *lines;
	struct matches matches;
	struct metric_columns metrics;
	const char *word; /* NULL: the hottest Python function */
};

static const char *qualname(const struct annotation *a, uint32_t function)
{
	const struct profile_function *f = profile_function(a->opened.profile, function);

	return profile_text(a->opened.profile, f->qualname ? f->qualname : f->name);
}

static uint64_t weight(const struct annotation *a, uint32_t function)
{
	for (size_t i = 0; i < a->functions->count; i++)
		if (a->functions->rows[i].function == function)
			return a->functions->rows[i].counts[a->opened.event].total;
	return 0;
}

static struct report report_of(struct annotation *a)
{
	return (struct report){
		.profile = a->opened.profile,
		.view = a->functions,
		.lines = a->lines,
		.only = a->matches.count ? a->matches.functions : NULL,
		.only_count = a->matches.count,
		.event = a->opened.event,
		.kind = OUTPUT_ANY_KIND,
		.filter = a->opened.filter_text,
		.percent_limit = view_given.reduced ? REDUCED_PERCENT : 0,
		.quiet = true,
		.width = view_width(),
		.metrics = &a->metrics,
	};
}

/* The Python function in which most time was spent, the C code that it called included. */
static int find_hottest(struct annotation *a, struct err *err)
{
	uint64_t most = 0;

	for (size_t i = 0; i < a->functions->count; i++) {
		const struct view_row *row = &a->functions->rows[i];
		const uint64_t *split = row->counts[a->opened.event].split;
		uint64_t innermost = split[0] + split[1] + split[2];

		if (innermost > most) {
			most = innermost;
			a->matches.functions[0] = row->function;
			a->matches.count = 1;
		}
	}
	if (a->matches.count)
		return 0;
	err_set(err, ERR_NOT_FOUND, "the recording has no samples of Python functions");
	err_hint(err, "pyperf report shows what it has; pyperf annotate FUNCTION takes native "
		      "functions too.");
	return ERR_NOT_FOUND;
}

static int none_found(const struct annotation *a, struct err *err)
{
	uint32_t nearest = match_nearest(a->opened.profile, a->functions, a->word);

	err_set(err, ERR_NOT_FOUND, "no sampled function matches '%s'", a->word);
	if (nearest != UINT32_MAX)
		err_hint(err, "Did you mean '%s'?", qualname(a, nearest));
	else
		err_hint(err, "pyperf report lists the functions.");
	return ERR_NOT_FOUND;
}

/* Which of several matches is meant: one that outweighs all others, or UINT32_MAX. */
static uint32_t choose(const struct annotation *a)
{
	uint64_t sum = 0, most = 0;
	uint32_t chosen = UINT32_MAX;

	for (size_t i = 0; i < a->matches.count; i++) {
		uint64_t w = weight(a, a->matches.functions[i]);

		sum += w;
		if (w > most) {
			most = w;
			chosen = a->matches.functions[i];
		}
	}
	if (a->matches.count == 1)
		return a->matches.functions[0];
	return (double)most >= DOMINANT * (double)sum ? chosen : UINT32_MAX;
}

/* Several that could be meant: a usage error with what there is to choose from. */
static int list_matches(struct annotation *a, struct err *err)
{
	struct report report = report_of(a);
	int rc;

	fflush(stdout);
	rc = output_report_text(stderr, &report, err);
	if (rc)
		return rc;
	err_set(err, ERR_USAGE, "'%s' matches %zu functions", a->word, a->matches.count);
	err_hint(err, "Name one of them by its file and line: pyperf annotate FILE.py:LINE");
	return ERR_USAGE;
}

static int show_memory(struct annotation *a, uint32_t function, struct err *err)
{
	const struct memory_report report = {
		.profile = a->opened.profile,
		.filter = &a->opened.filter,
		.function = function,
		.quiet = view_given.quiet,
		.width = view_width(),
	};

	if (profile_function(a->opened.profile, function)->kind != FRAME_PYTHON) {
		err_set(err, ERR_USAGE, "--memory shows lines of Python functions; '%s' is none",
			a->word);
		err_hint(err, "pyperf report --memory shows functions of all kinds.");
		return ERR_USAGE;
	}
	return given.json ? output_memory_json(stdout, &report, err)
			  : output_memory_text(stdout, &report, err);
}

/* The view on a terminal; a positive number where there is none to draw on. */
static int browse(const struct annotate *annotate, struct err *err)
{
	struct screen *screen;
	int rc;

	if (!given.tui &&
	    (given.stdio || wanted_details() || view_given.reduced || screen_check(NULL)))
		return 1;
	rc = screen_open(&screen, err);
	if (rc)
		return rc == ERR_UNSUPPORTED && !given.tui ? 1 : rc;
	rc = annotate_view_open(screen, annotate, 0, err);
	if (!rc)
		rc = screen_run(screen, err);
	screen_close(screen);
	return rc;
}

/* UINT32_MAX: the lines that matter, of all. */
static int show_one(struct annotation *a, uint32_t function, struct err *err)
{
	struct annotate annotate = {
		.profile = a->opened.profile,
		.functions = a->functions,
		.filter = &a->opened.filter,
		.function = function,
		.event = a->opened.event,
		.reduced = view_given.reduced,
		.details = wanted_details(),
		.quiet = view_given.quiet,
		.width = view_width(),
		.metrics = &a->metrics,
	};
	int rc;

	if (function == UINT32_MAX)
		return output_annotate_overview(stdout, &annotate, a->lines, err);
	if (a->matches.count > 1)
		log_info("'%s' matches %zu functions; this one has most of their samples", a->word,
			 a->matches.count);
	rc = browse(&annotate, err);
	if (rc <= 0)
		return rc;
	if (profile_function(a->opened.profile, function)->kind == FRAME_PYTHON)
		return output_annotate_python(stdout, &annotate, err);
	return output_annotate_native(stdout, &annotate, err);
}

static int show_json(struct annotation *a, struct err *err)
{
	struct details *details = calloc(a->matches.count + 1, sizeof(*details));
	struct report report = report_of(a);
	int rc = 0;

	if (!details)
		return err_nomem(err);
	report.details = details;
	for (size_t i = 0; i < a->matches.count && wanted_details() && !rc; i++)
		rc = details_open(&details[report.detail_count++], a->opened.profile,
				  &a->opened.filter, a->matches.functions[i], a->opened.event,
				  wanted_details(), err);
	if (!rc)
		rc = output_json(stdout, &report, err);
	for (size_t i = 0; i < report.detail_count; i++)
		details_close(&details[i]);
	free(details);
	return rc;
}

static int show(struct annotation *a, struct err *err)
{
	const struct opened *opened = &a->opened;
	uint32_t function;
	int rc;

	rc = metric_columns_init(&a->metrics, opened->profile, opened->event, given.metrics, err);
	if (!rc)
		rc = view_functions(&a->functions, opened->profile, &opened->filter, VIEW_BY_TOTAL,
				    opened->event, err);
	if (!rc)
		rc = view_lines(&a->lines, opened->profile, &opened->filter, UINT32_MAX,
				opened->event, err);
	if (!rc)
		rc = match_functions(&a->matches, opened->profile, a->functions, a->lines,
				     a->word ? a->word : "", err);
	/* The lines that matter are shown of all functions, too. */
	if (!rc && !a->word && (!view_given.reduced || given.memory))
		rc = find_hottest(a, err);
	if (rc)
		return rc;
	if (!a->matches.count && a->word)
		return none_found(a, err);
	if (given.memory) {
		function = choose(a);
		return function == UINT32_MAX ? list_matches(a, err)
					      : show_memory(a, function, err);
	}
	if (given.json)
		return show_json(a, err);
	if (given.csv) {
		struct report report = report_of(a);

		return output_lines_csv(stdout, &report, err);
	}
	if (!a->matches.count)
		return show_one(a, UINT32_MAX, err);
	function = choose(a);
	return function == UINT32_MAX ? list_matches(a, err) : show_one(a, function, err);
}

int cmd_annotate(int argc, const char **argv)
{
	const struct command *command = command_find("annotate");
	/* What is inlined stays with the instructions of the function that holds it. */
	const struct profile_options options = {.no_inline = true};
	struct annotation annotation = {0};
	struct err err = {0};
	poptContext context;
	char *word = NULL;
	int status = 0, rc;

	context = command_options(command, argc, argv, 0, &status);
	if (!context)
		return status;
	if (given.json && given.csv)
		status = command_usage(command, "--json and --csv exclude each other");
	else if (given.tui && (given.stdio || given.json || given.csv || given.memory ||
			       wanted_details() || view_given.reduced))
		status = command_usage(command, "--tui is a view, and no other output");
	else if (wanted_details() && (given.memory || given.csv))
		status = command_usage(command, "--bytecode, --callers and --callees are neither "
						"in CSV nor with --memory");
	else if (given.memory && given.csv)
		status = command_usage(command, "--memory writes text or JSON, not CSV");
	else if (poptPeekArg(context)) {
		word = strdup(poptGetArg(context));
		if (poptPeekArg(context))
			status = command_usage(command, "one function at a time, not also '%s'",
					       poptPeekArg(context));
	}
	poptFreeContext(context);
	annotation.word = word;
	if (!status && given.tui && screen_check(&err))
		status = command_fail(&err);
	rc = status ? 0 : view_open(&annotation.opened, &options, &err);
	if (!rc && !status)
		rc = show(&annotation, &err);
	match_free(&annotation.matches);
	view_free(annotation.functions);
	view_free(annotation.lines);
	view_close(&annotation.opened);
	free(word);
	return status ? status : command_finish_output(rc < 0 ? command_fail(&err) : 0);
}
