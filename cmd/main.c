#include "cmd/cmd.h"

#include <locale.h>
#include <string.h>

static const char *const record_examples[] = {
	"pyperf record -- python3 train.py",
	"pyperf record -e cycles,cache-misses -F 4999 -o train.data -- python3 train.py",
	NULL,
};
static const char *const no_examples[] = {NULL};

const struct command commands[] = {
	{"record", "[OPTIONS] [--] COMMAND [ARG...]", "run a program and sample it", cmd_record,
	 record_options, record_examples},
	{"version", "", "show the version and the features compiled in", cmd_version,
	 version_options, no_examples},
	{"help", "[COMMAND]", "explain a command", cmd_help, help_options, no_examples},
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
	const struct command *command;

	setlocale(LC_CTYPE, "");
	command_verbosity(0, 0);
	if (argc < 2) {
		cmd_help(1, argv);
		return 2;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		return cmd_version(1, argv);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return cmd_help(1, argv);
	command = command_find(argv[1]);
	if (!command)
		return command_unknown(argv[1]);
	return command->run(argc - 1, argv + 1);
}
