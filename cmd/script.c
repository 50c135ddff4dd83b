#include "cmd/cmd.h"
#include "cmd/filter.h"

#include "output/output.h"
#include "output/samples.h"

const struct poptOption script_options[] = {
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)inline_options, 0, NULL, NULL},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)view_options, 0, NULL, NULL},
	POPT_TABLEEND,
};

int cmd_script(int argc, const char **argv)
{
	const struct command *command = command_find("script");
	struct profile_options options = {.on_sample = samples_keep, .by_pmu = true};
	struct opened opened;
	struct err err = {0};
	poptContext context;
	struct samples *samples;
	int status = 0, rc;

	context = command_options(command, argc, argv, 0, &status);
	if (!context)
		return status;
	status = poptPeekArg(context)
			 ? command_usage(command, "unexpected word '%s'", poptPeekArg(context))
			 : 0;
	poptFreeContext(context);
	if (status)
		return status;
	samples = samples_new();
	options.ctx = samples;
	rc = samples ? view_open(&opened, &options, &err) : err_nomem(&err);
	if (!rc) {
		rc = output_script(stdout, opened.profile, samples, &opened.filter,
				   view_given.event ? opened.event : UINT32_MAX, &err);
		view_close(&opened);
	}
	samples_free(samples);
	return command_finish_output(rc < 0 ? command_fail(&err) : 0);
}
