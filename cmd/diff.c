#include "cmd/cmd.h"
#include "cmd/filter.h"

#include "base/strbuf.h"
#include "output/output.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Smaller changes are of no interest, unless asked for. */
#define DEFAULT_PERCENT_LIMIT 0.5
/* Neither a failure nor a usage error: what --fail-if says has come about. */
#define STATUS_REGRESSED 3

static struct {
	char *sort, *fail_if;
	double percent_limit;
} given = {.percent_limit = DEFAULT_PERCENT_LIMIT};

const struct poptOption diff_options[] = {
	{"fail-if", '\0', POPT_ARG_STRING, &given.fail_if, 0,
	 "exit with status 3 where a function's share surely grew by more of the whole",
	 "REGRESSION>PERCENT%"},
	{"sort", 's', POPT_ARG_STRING, &given.sort, 0,
	 "compare functions by self (default) or total", "self|total"},
	{"percent-limit", '\0', POPT_ARG_DOUBLE, &given.percent_limit, 0,
	 "leave out what changed by less of the whole (default: 0.5)", "PERCENT"},
	{"event", 'e', POPT_ARG_STRING, &view_given.event, 0,
	 "event to compare (default: the first of A)", "EVENT"},
	{"comm", 'c', POPT_ARG_STRING, &view_given.comm, 0, "only threads of these names",
	 "NAME[,NAME...]"},
	{"dso", 'd', POPT_ARG_STRING, &view_given.dso, 0,
	 "only samples whose innermost code lies in these files", "FILE[,FILE...]"},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)shown_options, 0, NULL, NULL},
	{"quiet", 'q', POPT_ARG_NONE, &view_given.quiet, 0, "the result alone, no remarks", NULL},
	{"verbose", 'v', POPT_ARG_NONE, &view_given.verbose, 0, "say more", NULL},
	POPT_TABLEEND,
};

static const struct word orders[] = {{"self", VIEW_BY_SELF}, {"total", VIEW_BY_TOTAL}, {0}};

/* "REGRESSION>5%", blanks allowed; false for anything else. */
static bool parse_condition(const char *text, double *percent)
{
	static const char word[] = "regression";
	char *end;

	text += strspn(text, " ");
	if (strncasecmp(text, word, strlen(word)) != 0)
		return false;
	text += strlen(word);
	text += strspn(text, " ");
	if (*text++ != '>')
		return false;
	text += strspn(text, " ");
	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	*percent = strtod(text, &end);
	end += strspn(end, " ");
	return strcmp(end, "%") == 0 || !*end;
}

static int check_options(const struct command *command, const char *const *paths, int *order,
			 double *regression)
{
	*order = given.sort ? word_find(orders, given.sort) : VIEW_BY_SELF;
	*regression = -1;
	if (!paths || !paths[0] || !paths[1] || paths[2])
		return command_usage(command, "name two recordings: the one before, then the one "
					      "after");
	if (strcmp(paths[0], "-") == 0 && strcmp(paths[1], "-") == 0)
		return command_usage(command, "standard input can be one of the two only");
	if (*order < 0)
		return command_usage(command, "--sort is self or total, not '%s'", given.sort);
	if (given.fail_if && !parse_condition(given.fail_if, regression))
		return command_usage(command,
				     "--fail-if takes REGRESSION>PERCENT%%, such as "
				     "'REGRESSION>5%%', not '%s'",
				     given.fail_if);
	return 0;
}

/* B's event is the one of the same name. */
static int open_sides(struct opened opened[2], char *const paths[2], struct err *err)
{
	const struct profile_options options = {.no_inline = true};
	char *event = view_given.event;
	int rc;

	view_given.input = paths[0];
	rc = view_open(&opened[0], &options, err);
	if (rc)
		return rc;
	if (!event) {
		event = strdup(profile_event(opened[0].profile, opened[0].event)->name);
		if (!event)
			return err_nomem(err);
	}
	view_given.event = event;
	view_given.input = paths[1];
	rc = view_open(&opened[1], &options, err);
	if (rc == ERR_USAGE)
		err_wrap(err, "%s", paths[1]);
	return rc;
}

static int compare(const struct opened opened[2], char *const paths[2], enum view_sort order,
		   double limit, size_t *regressions, struct err *err)
{
	struct compare_side sides[2];
	struct compare functions = {0}, lines = {0};
	struct diff diff = {
		.sides = sides,
		.paths = {paths[0], paths[1]},
		.functions = &functions,
		.lines = &lines,
		.percent_limit = given.percent_limit,
		.quiet = view_given.quiet,
		.width = view_width(),
	};
	int rc;

	for (int i = 0; i < 2; i++)
		sides[i] = (struct compare_side){opened[i].profile, &opened[i].filter,
						 opened[i].event};
	rc = compare_init(&functions, sides, false, order, err);
	if (!rc)
		rc = compare_init(&lines, sides, true, VIEW_BY_SELF, err);
	if (!rc)
		rc = output_diff(stdout, &diff, err);
	if (!rc && limit >= 0)
		*regressions = diff_regressions(&functions, limit);
	compare_fini(&functions);
	compare_fini(&lines);
	return rc;
}

int cmd_diff(int argc, const char **argv)
{
	const struct command *command = command_find("diff");
	struct opened opened[2] = {0};
	struct err err = {0};
	poptContext context;
	const char **words;
	char *paths[2] = {0};
	double limit;
	size_t regressions = 0;
	int status = 0, order, rc;

	context = command_options(command, argc, argv, 0, &status);
	if (!context)
		return status;
	words = poptGetArgs(context);
	status = check_options(command, words, &order, &limit);
	for (int i = 0; i < 2 && !status; i++)
		paths[i] = strdup(words[i]);
	poptFreeContext(context);
	if (status)
		return status;
	rc = paths[0] && paths[1] ? open_sides(opened, paths, &err) : err_nomem(&err);
	if (!rc)
		rc = compare(opened, paths, (enum view_sort)order, limit, &regressions, &err);
	view_close(&opened[0]);
	view_close(&opened[1]);
	free(paths[0]);
	free(paths[1]);
	if (rc < 0)
		return command_finish_output(command_fail(&err));
	status = command_finish_output(0);
	if (status || !regressions)
		return status;
	fprintf(stderr, "pyperf: %zu function%s grew by more than %g%% of the whole\n", regressions,
		regressions == 1 ? "" : "s", limit);
	return STATUS_REGRESSED;
}
