#include "cmd/cmd.h"

#include "base/json_value.h"
#include "base/text.h"
#include "record/doctor.h"
#include "record/pythons.h"

#include <errno.h>
#include <jansson.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_COLUMN 27
#define WIDTH 110
#define PYTHONS_SHOWN 10
#define PID_LIMIT (1 << 22) /* PID_MAX_LIMIT, linux/threads.h */

static struct {
	int json;
} given;

const struct poptOption doctor_options[] = {
	{"json", '\0', POPT_ARG_NONE, &given.json, 0, "print JSON", NULL},
	POPT_TABLEEND,
};

static const char *const verdicts[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_NOTE] = "note",
	[DOCTOR_FAIL] = "FAIL",
	[DOCTOR_UNKNOWN] = "?",
};
static const char *const verdict_keys[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_NOTE] = "note",
	[DOCTOR_FAIL] = "fail",
	[DOCTOR_UNKNOWN] = "unknown",
};

/* What stands in a file or in a process is not trusted. */
static void put_text(const char *text, int column)
{
	struct strbuf safe = {0};

	text_escape(&safe, text, strlen(text));
	command_put_wrapped(stdout, strbuf_text(&safe), column, WIDTH);
	strbuf_fini(&safe);
}

static const char *user_name(uid_t uid, char *buf, size_t size)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(buf, size, "%.31s", user->pw_name);
	else
		snprintf(buf, size, "%u", (unsigned int)uid);
	return buf;
}

static void put_remedy(enum privilege_need need, enum privilege_place place)
{
	printf("%*s-> ", TEXT_COLUMN, "");
	put_text(privilege_remedy(need, place), TEXT_COLUMN + 3);
}

/* A sign of a container may be left from the image of a virtual machine: what has the machine's own
 * pids may be the host. */
static void put_remedies(const struct privilege *privilege, enum privilege_need need)
{
	put_remedy(need, privilege->place);
	if (privilege->place != PRIVILEGE_HOST && !privilege->pid_namespace)
		put_remedy(need, PRIVILEGE_HOST);
}

static void put_lines(const struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->lines.len; i++) {
		const struct doctor_line *line = &doctor->lines.items[i];
		bool told = false;

		printf("%-5s %-*s ", verdicts[line->verdict], TEXT_COLUMN - 7, line->title);
		put_text(line->text, TEXT_COLUMN);
		/* Once: several checks may fail for one reason. */
		for (size_t before = 0; before < i; before++)
			told |= doctor->lines.items[before].need == line->need;
		if (line->need >= 0 && !told)
			put_remedies(&doctor->privilege, (enum privilege_need)line->need);
	}
}

/* What the line above says of a process that was named is not said again. */
static void put_python(const struct doctor_python *python, bool named)
{
	struct strbuf safe = {0};
	char user[32];

	text_escape(&safe, python->comm, strlen(python->comm));
	printf("%8d %-8s %-15s ", (int)python->pid, user_name(python->uid, user, sizeof(user)),
	       strbuf_text(&safe));
	strbuf_reset(&safe);
	if (python->version[0]) {
		text_escape(&safe, python->path, strlen(python->path));
		printf("%-8s %s%s%s", python->version, strbuf_text(&safe),
		       python->debug ? ", debug" : "",
		       python->free_threaded ? ", free-threaded" : "");
	}
	if (python->ns_pid != python->pid)
		printf(", pid %d in its container", (int)python->ns_pid);
	if (python->text[0] && !named) {
		strbuf_reset(&safe);
		text_escape(&safe, python->text, strlen(python->text));
		printf("%s%s", python->version[0] ? ": " : "", strbuf_text(&safe));
	}
	putchar('\n');
	strbuf_fini(&safe);
}

static void put_screen(const struct doctor *doctor, pid_t pid)
{
	char user[32];
	size_t shown = doctor->pythons.len < PYTHONS_SHOWN ? doctor->pythons.len : PYTHONS_SHOWN;

	printf("pyperf %s   %s, %d CPUs   user %s\n", PYPERF_VERSION, doctor->kernel, doctor->cpus,
	       user_name(doctor->privilege.euid, user, sizeof(user)));
	printf("%s\n\n", doctor->works ? "A recording has Python lines here."
				       : "A recording has NO Python lines here: see FAIL below.");
	put_lines(doctor);
	if (shown)
		putchar('\n');
	for (size_t i = 0; i < shown; i++)
		if (!pid || doctor->pythons.items[i].version[0])
			put_python(&doctor->pythons.items[i], pid != 0);
	if (shown < doctor->pythons.len)
		printf("%8s %zu more\n", "", doctor->pythons.len - shown);
}

/* JSON: documented in pyperf-doctor(1). NULL values, which jansson takes for failures, are turned
 * into one at the end. */

static json_t *remedy_value(const struct doctor_line *line, enum privilege_place place)
{
	return json_of_text(privilege_remedy((enum privilege_need)line->need, place));
}

static json_t *line_value(const struct doctor_line *line)
{
	json_t *ways = json_null();

	if (line->need >= 0)
		ways = json_pack("{s:o, s:o, s:o, s:o}", "host", remedy_value(line, PRIVILEGE_HOST),
				 "docker", remedy_value(line, PRIVILEGE_DOCKER), "podman",
				 remedy_value(line, PRIVILEGE_PODMAN), "kubernetes",
				 remedy_value(line, PRIVILEGE_KUBERNETES));
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "id", line->id, "title", line->title,
			 "verdict", verdict_keys[line->verdict], "text", json_of_text(line->text),
			 "remedy", ways);
}

static json_t *python_value(const struct doctor_python *python)
{
	bool found = python->version[0];

	return json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:b, s:b, s:s, s:o, s:i, s:i, s:i}", "pid",
			 (int)python->pid, "namespace_pid", (int)python->ns_pid, "uid",
			 (int)python->uid, "comm", json_of_text(python->comm), "version",
			 json_of_text(found ? python->version : NULL), "path",
			 json_of_text(found ? python->path : NULL), "debug", python->debug,
			 "free_threaded", python->free_threaded, "verdict",
			 verdict_keys[python->verdict], "text", json_of_text(python->text),
			 "threads", (int)python->threads, "python_threads",
			 (int)python->python_threads, "frames", (int)python->frames);
}

static int put_json(const struct doctor *doctor)
{
	json_t *checks = json_array(), *pythons = json_array(), *root;
	int rc = 0;

	for (size_t i = 0; i < doctor->lines.len; i++)
		rc |= json_array_append_new(checks, line_value(&doctor->lines.items[i]));
	for (size_t i = 0; i < doctor->pythons.len; i++)
		rc |= json_array_append_new(pythons, python_value(&doctor->pythons.items[i]));
	root = json_pack("{s:i, s:s, s:b, s:s, s:{s:s, s:i, s:i, s:o, s:b, s:b}, s:o, s:i, s:o}",
			 "version", 1, "pyperf", PYPERF_VERSION, "python_lines", doctor->works,
			 "engine", engine_name(doctor->engine), "machine", "kernel", doctor->kernel,
			 "cpus", doctor->cpus, "uid", (int)doctor->privilege.euid, "container",
			 json_of_text(doctor_place_name(doctor->privilege.place)), "pid_namespace",
			 doctor->privilege.pid_namespace != 0, "user_namespace",
			 doctor->privilege.user_namespace, "checks", checks, "hidden_processes",
			 (int)doctor->hidden_processes, "pythons", pythons);
	if (!root || rc || json_dumpf(root, stdout, JSON_INDENT(1)) < 0)
		rc = -1;
	else
		putchar('\n');
	json_decref(root);
	return rc;
}

static int parse_pid(const char *text, pid_t *pid)
{
	char *end;
	long value;

	if (text[0] < '0' || text[0] > '9')
		return -1;
	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || *end || value < 1 || value > PID_LIMIT)
		return -1;
	*pid = (pid_t)value;
	return 0;
}

static int diagnose(pid_t pid)
{
	struct doctor doctor;
	struct err err = {0};
	int status;

	if (doctor_run(&doctor, &doctor_machine_host, pid, &err) < 0) {
		doctor_fini(&doctor);
		return command_fail(&err);
	}
	status = doctor.works ? 0 : 1;
	if (!given.json) {
		put_screen(&doctor, pid);
	} else if (put_json(&doctor) < 0) {
		err_nomem(&err);
		status = command_fail(&err);
	}
	doctor_fini(&doctor);
	return command_finish_output(status);
}

int cmd_doctor(int argc, const char **argv)
{
	const struct command *command = command_find("doctor");
	poptContext context;
	const char *word;
	pid_t pid = 0;
	int status;

	context = command_options(command, argc, argv, 0, &status);
	if (!context)
		return status;
	/* What falls back is told by the lines themselves. */
	command_verbosity(1, 0);
	word = poptGetArg(context);
	if (word && parse_pid(word, &pid) < 0)
		status = command_usage(command, "'%s' is not the number of a process", word);
	else if (word && poptPeekArg(context))
		status = command_usage(command, "one process at a time");
	else
		status = diagnose(pid);
	poptFreeContext(context);
	return status;
}
