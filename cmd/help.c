#include "cmd/cmd.h"

#include <string.h>

const struct poptOption help_options[] = {POPT_TABLEEND};

int cmd_help(int argc, const char **argv)
{
	const struct command *command;

	if (argc > 1 && argv[1][0] != '-') {
		command = command_find(argv[1]);
		if (!command)
			return command_unknown(argv[1]);
		command_help(stdout, command);
		return command_finish_output(0);
	}
	printf("pyperf samples Python programs with hardware counters and shows which lines are "
	       "slow "
	       "and why.\n\nusage: pyperf COMMAND [OPTIONS]\n\n");
	for (const struct command *c = commands; c->name; c++)
		printf("  %-10s %s\n", c->name, c->summary);
	printf("\nstart with:\n  pyperf record -- python3 program.py\n  pyperf report\n"
	       "\npyperf help COMMAND explains a command.\n");
	return command_finish_output(0);
}
