#include "cmd/filter.h"

#include "base/log.h"
#include "base/privilege.h"
#include "output/dump.h"
#include "record/target.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
	char *pids, *native;
	int json;
} given;

const struct poptOption dump_options[] = {
	{"pid", 'p', POPT_ARG_STRING, &given.pids, 0, "the processes to look at", "PID[,PID...]"},
	{"native", '\0', POPT_ARG_STRING, &given.native, 0,
	 "native frames: on (default), off, or all, with the interpreter's own", "on|off|all"},
	{"json", '\0', POPT_ARG_NONE, &given.json, 0, "print JSON", NULL},
	POPT_TABLEEND,
};

static int explain(struct err *err)
{
	struct privilege privilege;

	if (err->code == ERR_PERMISSION && !err->hint[0]) {
		privilege_read(&privilege);
		err_hint(err, "%s", privilege_remedy(PRIVILEGE_NEED_PTRACE, privilege.place));
	}
	return err->code;
}

/* The recording is never to be seen: it lies in memory. */
static int dump(const struct recorder_target *target, enum profile_native native, struct err *err)
{
	const struct profile_options options = {.native = native, .no_inline = true};
	struct snapshot snapshot = {0};
	struct data_file *file = NULL;
	struct dump shown = {.snapshot = &snapshot, .all_frames = native == PROFILE_NATIVE_ALL};
	char path[32];
	int fd = memfd_create("pyperf", MFD_CLOEXEC), ret;

	if (fd < 0)
		return err_sys(err, errno, "cannot create a file in memory");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = snapshot_take(&snapshot, path, target, err);
	if (ret)
		explain(err);
	if (!ret)
		ret = data_open(&file, path, err);
	if (!ret)
		ret = profile_load(&shown.profile, file, &options, err);
	if (!ret)
		ret = given.json ? output_dump_json(stdout, &shown, err)
				 : output_dump_text(stdout, &shown, err);
	if (!ret && snapshot.missed)
		log_warn("%u threads could not be held: %s", snapshot.missed, snapshot.missed_why);
	profile_free(shown.profile);
	data_close(file);
	snapshot_fini(&snapshot);
	close(fd);
	return ret;
}

int cmd_dump(int argc, const char **argv)
{
	const struct command *command = command_find("dump");
	struct recorder_target target = {.kind = RECORDER_PROCESSES};
	int native = PROFILE_NATIVE_ON;
	struct err err = {0};
	poptContext context;
	const char *word;
	int status = 0;

	context = command_options(command, argc, argv, 0, &status);
	if (!context)
		return status;
	command_verbosity(0, 0);
	word = poptGetArg(context);
	if (given.native && (native = word_find(native_words, given.native)) < 0)
		status = command_usage(command, "--native is on, off or all, not '%s'",
				       given.native);
	if (!status && !given.pids && !word)
		status = command_usage(command, "which process? For example: pyperf dump -p 4711");
	if (!status && (target_check(&err) < 0 ||
			(given.pids && target_add_ids(&target, given.pids, &err) < 0)))
		status = command_fail(&err);
	for (; !status && word; word = poptGetArg(context))
		if (target_add_ids(&target, word, &err) < 0)
			status = command_fail(&err);
	if (!status && dump(&target, (enum profile_native)native, &err) < 0)
		status = command_fail(&err);
	target_fini(&target);
	poptFreeContext(context);
	return command_finish_output(status);
}
