#include "cmd/cmd.h"
#include "cmd/filter.h"
#include "cmd/page.h"

#include "base/sink.h"
#include "base/text.h"
#include "browse/browse.h"
#include "output/output.h"

#include <string.h>

/* Rows that matter less than this are left out of text, unless asked for. */
#define DEFAULT_PERCENT_LIMIT 0.5

static struct {
	char *sort, *kind, *metrics, *html;
	double percent_limit;
	int children, no_children, samples, json, csv, memory, stdio, tui;
} given = {.percent_limit = -1};

const struct poptOption report_options[] = {
	{"sort", 's', POPT_ARG_STRING, &given.sort, 0,
	 "order by self (default) or total; group by comm, pid, tid, dso, file, kind, "
	 "origin (whose code it is), function",
	 "KEY[,KEY...]"},
	{"children", '\0', POPT_ARG_NONE, &given.children, 0, "the same as --sort total", NULL},
	{"no-children", '\0', POPT_ARG_NONE, &given.no_children, 0, "leave out the totals", NULL},
	{"percent-limit", '\0', POPT_ARG_DOUBLE, &given.percent_limit, 0,
	 "leave out what has less (default: 0.5; 0 in JSON and CSV)", "PERCENT"},
	{"kind", 'k', POPT_ARG_STRING, &given.kind, 0, "only functions of this kind",
	 "python|native|kernel"},
	{"show-nr-samples", 'n', POPT_ARG_NONE, &given.samples, 0, "numbers of samples too", NULL},
	{"metrics", '\0', POPT_ARG_STRING, &given.metrics, 0, METRICS_HELP,
	 "all|none|KEY[,KEY...]"},
	{"memory", '\0', POPT_ARG_NONE, &given.memory, 0,
	 "what functions made resident (page faults), and how long their accesses took", NULL},
	{"json", '\0', POPT_ARG_NONE, &given.json, 0, "write JSON: functions and lines", NULL},
	{"csv", '\0', POPT_ARG_NONE, &given.csv, 0, "write comma-separated values", NULL},
	{"html", '\0', POPT_ARG_STRING, &given.html, 0,
	 "write one page for browsers: flame graph, tables, source, time line", "FILE"},
	{"stdio", '\0', POPT_ARG_NONE, &given.stdio, 0,
	 "text, on a terminal too, where otherwise a view opens", NULL},
	{"tui", '\0', POPT_ARG_NONE, &given.tui, 0,
	 "the interactive view; where there is no terminal that is an error", NULL},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)reduced_options, 0, NULL, NULL},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)inline_options, 0, NULL, NULL},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)view_options, 0, NULL, NULL},
	POPT_TABLEEND,
};

static const struct word kinds[] = {
	{"python", FRAME_PYTHON},
	{"native", FRAME_NATIVE},
	{"kernel", FRAME_KERNEL},
	{0},
};

static const struct word orders[] = {
	{"self", VIEW_BY_SELF},
	{"overhead", VIEW_BY_SELF},
	{"total", VIEW_BY_TOTAL},
	{"overhead_children", VIEW_BY_TOTAL},
	{0},
};

/* Names that perf has for our keys. */
static const struct word aliases[] = {
	{"symbol", VIEW_FUNCTION},
	{"sym", VIEW_FUNCTION},
	{0},
};

struct sorting {
	enum view_sort order;
	enum view_key keys[VIEW_KEYS_MAX];
	size_t key_count;
};

static int add_sort_word(const struct command *command, const char *word, struct sorting *sorting)
{
	int order = word_find(orders, word), key = view_key_find(word, strlen(word));

	if (order >= 0) {
		sorting->order = (enum view_sort)order;
		return 0;
	}
	if (key < 0)
		key = word_find(aliases, word);
	if (key < 0)
		return command_usage(command,
				     "--sort knows self, total, comm, pid, tid, dso, file, kind "
				     "and function, not '%s'",
				     word);
	if (sorting->key_count == VIEW_KEYS_MAX)
		return command_usage(command, "--sort takes at most %d keys", VIEW_KEYS_MAX);
	sorting->keys[sorting->key_count++] = (enum view_key)key;
	return 0;
}

/* 0, or the exit status of a usage error. */
static int parse_sort(const struct command *command, struct sorting *sorting)
{
	char *save = NULL;
	int status = 0;

	if (given.children)
		sorting->order = VIEW_BY_TOTAL;
	if (!given.sort)
		return 0;
	for (char *word = strtok_r(given.sort, ",", &save); word && !status;
	     word = strtok_r(NULL, ",", &save))
		status = add_sort_word(command, word, sorting);
	/* Functions are what is shown without any key. */
	if (sorting->key_count == 1 && sorting->keys[0] == VIEW_FUNCTION)
		sorting->key_count = 0;
	return status;
}

/* Terminals get the interactive view, unless something else was asked for. */
static bool is_interactive(void)
{
	return given.tui || (!given.stdio && !given.json && !given.csv && !given.html &&
			     !given.memory && !screen_check(NULL));
}

static int check_options(const struct command *command, struct report *report)
{
	bool text = !given.json && !given.csv && !is_interactive();

	report->kind = OUTPUT_ANY_KIND;
	if (given.json + given.csv + (given.html != NULL) > 1)
		return command_usage(command, "--json, --csv and --html exclude each other");
	if (given.tui && (given.stdio || given.json || given.csv || given.html || given.memory))
		return command_usage(command, "--tui is a view, and no other output");
	if (given.memory && (given.csv || given.html))
		return command_usage(command, "--memory writes text or JSON");
	if (given.children && given.no_children)
		return command_usage(command, "--children and --no-children exclude each other");
	if (given.kind) {
		report->kind = word_find(kinds, given.kind);
		if (report->kind < 0)
			return command_usage(command,
					     "--kind is python, native or kernel, not '%s'",
					     given.kind);
	}
	if (given.percent_limit < 0)
		given.percent_limit = view_given.reduced ? REDUCED_PERCENT
				      : text		 ? DEFAULT_PERCENT_LIMIT
							 : 0;
	report->percent_limit = given.percent_limit;
	report->reduced = view_given.reduced;
	report->no_children = given.no_children;
	report->show_samples = given.samples;
	report->quiet = view_given.quiet;
	report->width = view_width();
	return 0;
}

static int print(const struct report *report, struct err *err)
{
	if (given.json)
		return output_json(stdout, report, err);
	if (given.csv)
		return output_report_csv(stdout, report, err);
	return output_report_text(stdout, report, err);
}

static int report_html(struct err *err)
{
	struct page_input *input;
	struct sink *sink;
	int rc = page_read(&input, err);

	if (rc)
		return rc;
	rc = sink_open(&sink, given.html, err);
	if (!rc)
		rc = sink_close(sink, page_write(input, sink_file(sink), err), err);
	page_free(input);
	return rc;
}

static int show_memory(const struct opened *opened, struct err *err)
{
	const struct memory_report report = {
		.profile = opened->profile,
		.filter = &opened->filter,
		.function = UINT32_MAX,
		.quiet = view_given.quiet,
		.width = view_width(),
	};

	return given.json ? output_memory_json(stdout, &report, err)
			  : output_memory_text(stdout, &report, err);
}

/* 1 where the terminal turned out to be none for views. */
static int browse(const struct report *report, const struct opened *opened,
		  const struct sorting *sorting, struct err *err)
{
	const struct browse browse = {
		.report = *report,
		.profile = opened->profile,
		.filter = &opened->filter,
		.order = sorting->order,
		.keys = sorting->keys,
		.key_count = sorting->key_count,
	};
	struct screen *screen;
	int rc = screen_open(&screen, err);

	if (rc)
		return rc == ERR_UNSUPPORTED && !given.tui ? 1 : rc;
	rc = browse_report(screen, &browse, err);
	if (!rc)
		rc = screen_run(screen, err);
	screen_close(screen);
	return rc;
}

static int show(struct report *report, const struct opened *opened, const struct sorting *sorting,
		struct err *err)
{
	struct metric_columns columns;
	struct view_groups *groups = NULL;
	struct view *functions = NULL, *lines = NULL;
	int rc;

	report->profile = opened->profile;
	report->event = opened->event;
	report->filter = opened->filter_text;
	rc = metric_columns_init(&columns, opened->profile, opened->event, given.metrics, err);
	if (rc)
		return rc;
	if (sorting->order == VIEW_BY_TOTAL)
		columns.basis = MEASURE_TOTAL;
	report->metrics = &columns;
	if (is_interactive()) {
		rc = browse(report, opened, sorting, err);
		if (rc <= 0)
			return rc;
	}
	if (sorting->key_count)
		rc = view_groups(&groups, opened->profile, &opened->filter, sorting->keys,
				 sorting->key_count, sorting->order, opened->event, err);
	else
		rc = view_functions(&functions, opened->profile, &opened->filter, sorting->order,
				    opened->event, err);
	if (!rc && given.json)
		rc = view_lines(&lines, opened->profile, &opened->filter, UINT32_MAX, opened->event,
				err);
	if (!rc) {
		report->groups = groups;
		report->view = groups ? &groups->view : functions;
		report->lines = lines;
		rc = print(report, err);
	}
	view_groups_free(groups);
	view_free(functions);
	view_free(lines);
	return rc;
}

int cmd_report(int argc, const char **argv)
{
	const struct command *command = command_find("report");
	/* A ranking is of what can be changed one by one; Py_DECREF is everywhere. */
	const struct profile_options options = {.no_inline = true};
	struct sorting sorting = {.order = VIEW_BY_SELF};
	struct report report = {0};
	struct opened opened;
	struct err err = {0};
	poptContext context;
	int status = 0, rc;

	context = command_options(command, argc, argv, 0, &status);
	if (!context)
		return status;
	if (poptPeekArg(context))
		status = command_usage(command, "unexpected word '%s'", poptPeekArg(context));
	else
		status = parse_sort(command, &sorting);
	if (!status)
		status = check_options(command, &report);
	poptFreeContext(context);
	if (status)
		return status;
	if (given.tui && screen_check(&err))
		return command_fail(&err);
	if (given.html) {
		rc = report_html(&err);
		return rc < 0 ? command_fail(&err) : 0;
	}
	rc = view_open(&opened, &options, &err);
	if (!rc) {
		rc = given.memory ? show_memory(&opened, &err)
				  : show(&report, &opened, &sorting, &err);
		view_close(&opened);
	}
	return command_finish_output(rc < 0 ? command_fail(&err) : 0);
}
