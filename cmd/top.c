#include "cmd/top.h"

#include "base/log.h"
#include "record/child.h"
#include "record/target.h"
#include "record/way.h"
#include "screen/screen.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_HZ 99
#define DEFAULT_ROWS 30 /* of text */
#define DELAY_MIN_MS 100
#define DELAY_MAX_MS 3600000

static struct {
	char **events;
	char *frequency, *period, *python, *delay, *by, *sort;
	int native, no_metrics, all, stdio, json, turns, rows, quiet, verbose;
} given = {.turns = 0, .rows = -1};

const struct poptOption top_options[] = {
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)target_options, 0, NULL, NULL},
	{"event", 'e', POPT_ARG_ARGV, &given.events, 0,
	 "events to sample (default: cycles, counting instructions, cache and branch misses)",
	 "EVENT[,EVENT...]"},
	{"no-metrics", '\0', POPT_ARG_NONE, &given.no_metrics, 0,
	 "the events alone: count no instructions along with cycles", NULL},
	{"freq", 'F', POPT_ARG_STRING, &given.frequency, 0,
	 "samples per second of each event (default: 99)", "HZ"},
	{"count", 'c', POPT_ARG_STRING, &given.period, 0, "sample every PERIOD events instead",
	 "PERIOD"},
	{"delay", 'd', POPT_ARG_STRING, &given.delay, 0, "show anew every SECONDS (default: 1)",
	 "SECONDS"},
	{"native", '\0', POPT_ARG_NONE, &given.native, 0,
	 "show native and kernel functions, too, with whole stacks", NULL},
	{"python", '\0', POPT_ARG_STRING, &given.python, 0,
	 "Python frames: auto (default), bpf, stop, trampoline or off", "ENGINE"},
	{"by", 'b', POPT_ARG_STRING, &given.by, 0, "rows: function (default), line or thread",
	 "WHAT"},
	{"sort", 's', POPT_ARG_STRING, &given.sort, 0, "by self (default), total or name", "KEY"},
	{"all", '\0', POPT_ARG_NONE, &given.all, 0,
	 "count since the beginning, not the last seconds", NULL},
	{"stdio", '\0', POPT_ARG_NONE, &given.stdio, 0, "print tables instead of a screen", NULL},
	{"json", '\0', POPT_ARG_NONE, &given.json, 0, "print a line of JSON each time", NULL},
	{"iterations", 'n', POPT_ARG_INT, &given.turns, 0, "end after so many tables", "COUNT"},
	{"rows", '\0', POPT_ARG_INT, &given.rows, 0,
	 "rows of a table; 0: all (default: 30, of JSON all)", "COUNT"},
	{"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "warnings and errors only", NULL},
	{"verbose", 'v', POPT_ARG_NONE, &given.verbose, 0, "say more", NULL},
	POPT_TABLEEND,
};

static const struct word row_words[] = {
	{"function", TOP_FUNCTIONS}, {"line", TOP_LINES}, {"thread", TOP_THREADS}, {0}};
static const struct word sort_words[] = {
	{"self", TOP_BY_SELF}, {"total", TOP_BY_TOTAL}, {"name", TOP_BY_NAME}, {0}};

static int set_rate(const struct command *command, struct recorder_options *options)
{
	uint64_t limit = event_max_sample_rate();

	options->rate_given = given.frequency || given.period;
	options->frequency = given.period ? 0 : DEFAULT_HZ;
	if (given.frequency && given.period)
		return command_usage(command, "-F and -c exclude each other");
	if (given.period && parse_number(given.period, &options->period) < 0)
		return command_usage(command, "-c takes a number of events, not '%s'",
				     given.period);
	if (given.frequency && parse_number(given.frequency, &options->frequency) < 0)
		return command_usage(command, "-F takes samples per second, not '%s'",
				     given.frequency);
	if (limit && options->frequency > limit)
		options->frequency = limit;
	return 0;
}

static int set_choice(const struct command *command, struct top_setup *setup)
{
	struct top_choice *choice = &setup->choice;
	int rows = given.by ? word_find(row_words, given.by) : TOP_FUNCTIONS;
	int sort = given.sort ? word_find(sort_words, given.sort) : TOP_BY_SELF;

	if (rows < 0)
		return command_usage(command, "--by is function, line or thread, not '%s'",
				     given.by);
	if (sort < 0)
		return command_usage(command, "--sort is self, total or name, not '%s'",
				     given.sort);
	choice->rows = (enum top_rows)rows;
	choice->sort = (unsigned int)sort;
	choice->all = given.all;
	choice->most = given.rows >= 0 ? (size_t)given.rows : given.json ? 0 : DEFAULT_ROWS;
	choice->width = 0;
	return 0;
}

static int set_options(const struct command *command, struct top_setup *setup)
{
	struct recorder_options *options = &setup->options;
	uint64_t delay_us = 1000000;
	int python = RECORDER_PYTHON_AUTO, status = set_rate(command, options);

	if (!status)
		status = set_choice(command, setup);
	if (status)
		return status;
	if (given.python && (python = word_find(python_words, given.python)) < 0)
		return command_usage(command,
				     "--python is auto, bpf, stop, trampoline or off, not '%s'",
				     given.python);
	if (given.delay && (parse_seconds(given.delay, &delay_us) < 0 ||
			    delay_us < DELAY_MIN_MS * 1000 || delay_us / 1000 > DELAY_MAX_MS))
		return command_usage(command, "-d takes seconds, 0.1 at least, not '%s'",
				     given.delay);
	if (given.turns < 0)
		return command_usage(command, "-n takes a number of tables");
	options->python = (enum recorder_python)python;
	options->chain = given.native ? RECORDER_CHAIN_AUTO : RECORDER_CHAIN_NONE;
	options->no_inherit = target_given.alone;
	setup->delay_ms = delay_us / 1000;
	setup->turns = (uint64_t)given.turns;
	setup->json = given.json;
	setup->on_screen = !given.stdio && !given.json && !given.turns && !screen_check(NULL);
	return 0;
}

static int hold_program(struct looking *looking, struct child *child,
			struct recorder_target *target, struct err *err)
{
	const struct recorder_options *options = &looking->setup->options;
	struct recorder_task *task;
	int ret;

	if (!options->command)
		return 0;
	if (looking->setup->on_screen && (ret = aside_begin(&looking->aside, err)))
		return ret;
	ret = child_hold(child, options->command, recorder_environment(looking->recorder), err);
	aside_end(&looking->aside);
	if (ret || target->kind != RECORDER_COMMAND)
		return ret;
	task = vec_push(&target->tasks);
	if (!task)
		return err_nomem(err);
	*task = (struct recorder_task){.pid = child->pid, .tid = child->pid};
	return 0;
}

/* Between the events' opening and their end. Returns the status to exit with. */
static int look(struct looking *looking, struct child *child)
{
	const char *name = looking->setup->options.command ? looking->setup->options.command[0]
							   : NULL;
	struct recorder_result result;
	struct err err = {0};
	int ret = looking_open(looking, &err), status;

	if (!ret && name)
		ret = child_start(child, name, &err);
	if (ret) {
		command_fail(&err);
		return ret == ERR_NOT_FOUND && name ? 127 : 1;
	}
	if (looking->setup->duration_us)
		session_timer(looking->setup->duration_us);
	ret = looking->setup->on_screen ? top_screen(looking, &err) : top_print(looking, &err);
	if (ret)
		command_fail(&err);
	status = recorder_close(looking->recorder, -1, &result, &err);
	if (status && !ret)
		command_fail(&err);
	session_wait(&looking->session);
	aside_show(&looking->aside);
	session_warn(&looking->session, name);
	return session_status(&looking->session) ? session_status(&looking->session)
						 : ret || status;
}

static void choose_way(struct recorder_options *options, const struct recorder_target *target,
		       const char *program)
{
	struct strbuf why = {0};

	if (options->chain == RECORDER_CHAIN_AUTO)
		options->chain = way_choose(target, options->command ? program : NULL, &why);
	strbuf_fini(&why);
}

static int top(struct top_setup *setup, struct event_list *events)
{
	struct child child = {.pid = -1, .go_fd = -1, .error_fd = -1};
	struct looking looking = {
		.setup = setup,
		.session = {.pid = -1, .signal_fd = -1},
		.look_fd = -1,
		.turn_fd = -1,
		.aside = {.saved = {-1, -1, -1}, .file = -1},
	};
	struct err err = {0};
	char program[PATH_MAX];
	int status = setup->options.command ? child_find(setup->options.command[0], program, &err)
					    : 0;

	if (status) {
		command_fail(&err);
		return status == ERR_NOT_FOUND ? 127 : 126;
	}
	choose_way(&setup->options, setup->target, program);
	looking_listen(&looking);
	setup->options.listener = &looking.listener;
	status = event_list_permitted(events, &err);
	if (!status)
		status = recorder_new(&looking.recorder, &setup->options, setup->target, &err);
	if (!status)
		status = event_list_probe(
			events, recorder_reads_groups(looking.recorder, setup->target), &err);
	if (!status)
		status = hold_program(&looking, &child, setup->target, &err);
	if (!status)
		status = session_open(&looking.session, child.pid, &err);
	status = status ? command_fail(&err) : look(&looking, &child);
	child_drop(&child);
	recorder_free(looking.recorder);
	looking_close(&looking);
	session_close(&looking.session);
	return status;
}

int cmd_top(int argc, const char **argv)
{
	const struct command *command = command_find("top");
	struct recorder_target target = {0};
	struct top_setup setup = {.target = &target};
	struct event_list events = {0};
	struct err err = {0};
	poptContext context;
	int status = 0;

	context = command_options(command, argc, argv, 1, &status);
	if (!context)
		return status;
	command_verbosity(given.quiet, given.verbose);
	setup.options.events = &events;
	setup.options.command = (const char *const *)poptGetArgs(context);
	status = set_options(command, &setup);
	if (!status)
		status = session_target(command, setup.options.command, &target,
					&setup.duration_us);
	if (!status && event_list_wanted(&events, given.events, !given.no_metrics, &err) < 0)
		status = command_fail(&err);
	if (!status)
		status = top(&setup, &events);
	target_fini(&target);
	event_list_fini(&events);
	poptFreeContext(context);
	return command_finish_output(status);
}
