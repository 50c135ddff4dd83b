#include "cmd/cmd.h"

#include "base/log.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static const char *const no_examples[] = {NULL};

const struct command commands[] = {
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
	/* A pager that quits early shows as EPIPE in command_finish_output(). */
	signal(SIGPIPE, SIG_IGN);
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
