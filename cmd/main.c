#include "cmd/cmd.h"

#include "base/confine.h"

#include <locale.h>
#include <string.h>

static const char *const record_examples[] = {
	"pyperf record -- python3 train.py",
	"pyperf record -p 4711 --duration 30",
	"pyperf record -e cycles,cache-misses -F 4999 -o train.data -- python3 train.py",
	NULL,
};
static const char *const report_examples[] = {
	"pyperf report",
	"pyperf report --sort total --kind python",
	"pyperf report --sort comm,dso -i train.data",
	"pyperf report --json >profile.json",
	"pyperf report --html profile.html",
	NULL,
};
static const char *const annotate_examples[] = {
	"pyperf annotate                  the hottest Python function",
	"pyperf annotate Model.fit",
	"pyperf annotate train.py:42",
	"pyperf annotate '*.forward'",
	NULL,
};
static const char *const view_examples[] = {
	"pyperf view",
	"pyperf view train.data",
	NULL,
};
static const char *const script_examples[] = {"pyperf script | less", NULL};
static const char *const export_examples[] = {
	"pyperf export --format folded -o stacks.txt",
	"pyperf export --format folded | flamegraph.pl >flame.svg",
	"pyperf export --format pprof -o out.pb.gz && go tool pprof -http=: out.pb.gz",
	"pyperf export --format firefox -o profile.json.gz",
	"pyperf export --format trace --merge torch_trace.json.gz -o both.json.gz",
	"pyperf export --format perf -o for-perf.data && perf report -i for-perf.data",
	NULL,
};
static const char *const diff_examples[] = {
	"pyperf diff perf.data.old perf.data",
	"pyperf diff --fail-if 'REGRESSION>5%' main.data branch.data",
	NULL,
};
static const char *const dump_examples[] = {
	"pyperf dump -p 4711",
	"pyperf dump --native=off -p 4711     Python frames alone",
	NULL,
};
static const char *const doctor_examples[] = {
	"pyperf doctor",
	"pyperf doctor 4711               a process that is to be recorded",
	NULL,
};
static const char *const stat_examples[] = {
	"pyperf stat -- python3 train.py",
	"pyperf stat -r 5 -e cycles,instructions,dTLB-load-misses -- python3 train.py",
	"pyperf stat --by-function -- python3 train.py",
	"pyperf stat -I 1000 -p 4711",
	NULL,
};
static const char *const top_examples[] = {
	"pyperf top -p 4711",
	"pyperf top -- python3 train.py",
	"pyperf top --stdio --by line -n 1 -p 4711",
	NULL,
};
static const char *const list_examples[] = {
	"pyperf list cache",
	"pyperf list 'sched:*'",
	"pyperf list l2_rqsts             also events of libpfm4 that are like it",
	"pyperf list skl::                of another processor",
	NULL,
};
static const char *const no_examples[] = {NULL};

const struct command commands[] = {
	{"record", "[OPTIONS] [--] [COMMAND [ARG...]]",
	 "run a program, or attach to what runs, and sample it", cmd_record, record_options,
	 record_examples, true},
	{"stat", "[OPTIONS] [--] [COMMAND [ARG...]]", "count events of a program, or of what runs",
	 cmd_stat, stat_options, stat_examples, true},
	{"top", "[OPTIONS] [--] [COMMAND [ARG...]]",
	 "watch a program, or what runs: its functions, lines and threads as they are now", cmd_top,
	 top_options, top_examples, true},
	{"report", "[OPTIONS]", "rank functions by the time and the events they took", cmd_report,
	 report_options, report_examples, false},
	{"annotate", "[OPTIONS] [FUNCTION | FILE:LINE | GLOB]",
	 "show the source of a function with what each line took", cmd_annotate, annotate_options,
	 annotate_examples, false},
	{"view", "[OPTIONS] [FILE]", "open the report in a browser: flame graph, source, time line",
	 cmd_view, view_command_options, view_examples, false},
	{"script", "[OPTIONS]", "print every sample with its stack", cmd_script, script_options,
	 script_examples, false},
	{"export", "--format FORMAT [OPTIONS]", "write the recording for other tools", cmd_export,
	 export_options, export_examples, false},
	{"diff", "[OPTIONS] A B", "compare two recordings, and tell what could be chance", cmd_diff,
	 diff_options, diff_examples, false},
	{"dump", "[OPTIONS] [-p] PID[,PID...]", "show what all threads of a process are doing now",
	 cmd_dump, dump_options, dump_examples, true},
	{"list", "[OPTIONS] [PATTERN]", "list the events of this machine, and which of them count",
	 cmd_list, list_options, list_examples, true},
	{"doctor", "[OPTIONS] [PID]",
	 "tell what works on this machine, and what to do where it does not", cmd_doctor,
	 doctor_options, doctor_examples, true},
	{"version", "", "show the version and the features compiled in", cmd_version,
	 version_options, no_examples, false},
	{"help", "[COMMAND]", "explain a command", cmd_help, help_options, no_examples, false},
	{0},
};

const struct command *command_find(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

int main(int argc, const char **argv)
{
	const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
	struct err err = {0};

	command_verbosity(0, 0);
	command_reads_torn_files();
	if (confine(command && command->records, &err))
		return command_fail(&err);
	setlocale(LC_CTYPE, "");
	if (argc < 2) {
		cmd_help(1, argv);
		return 2;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		return cmd_version(1, argv);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return cmd_help(1, argv);
	if (!command)
		return command_unknown(argv[1]);
	return command->run(argc - 1, argv + 1);
}
