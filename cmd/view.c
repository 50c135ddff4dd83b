#include "cmd/cmd.h"
#include "cmd/page.h"
#include "cmd/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct {
	int port, no_browser;
} given;

const struct poptOption view_command_options[] = {
	{"port", '\0', POPT_ARG_INT, &given.port, 0, "port to serve on (default: any free one)",
	 "PORT"},
	{"no-browser", '\0', POPT_ARG_NONE, &given.no_browser, 0,
	 "print the address and open nothing", NULL},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)reduced_options, 0, NULL, NULL},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)inline_options, 0, NULL, NULL},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)view_options, 0, NULL, NULL},
	POPT_TABLEEND,
};

/* The user's browser; -1 where there is none, or no screen. */
static pid_t open_browser(const char *url)
{
	const char *browser = getenv("BROWSER");
	const char *program = browser && *browser && !strpbrk(browser, " %:") ? browser
									      : "xdg-open";
	const char *const argv[] = {program, url, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid = -1;

	if (program != browser && !getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY"))
		return -1;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	if (posix_spawnp(&pid, program, &files, &attributes, (char **)argv, environ))
		pid = -1;
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return pid;
}

static int wait_for_end(const struct server *server, const sigset_t *ends)
{
	pid_t browser = given.no_browser ? -1 : open_browser(server_page_url(server));
	int number;

	printf("%s\n", server_page_url(server));
	if (server_file_url(server))
		printf("%s   the recording, for viewers\n", server_file_url(server));
	printf("Ctrl-C ends it.\n");
	fflush(stdout);
	sigwait(ends, &number);
	if (browser > 0)
		waitpid(browser, NULL, WNOHANG);
	return 0;
}

static int view(const sigset_t *ends, struct err *err)
{
	struct page_input *input;
	struct server *server = NULL;
	char *page = NULL;
	struct serve serve = {.port = (uint16_t)given.port};
	FILE *out;
	int rc = page_read(&input, err);

	if (rc)
		return rc;
	out = open_memstream(&page, &serve.page_len);
	rc = out ? page_write(input, out, err) : err_nomem(err);
	if (out && fclose(out) && !rc)
		rc = err_nomem(err);
	page_free(input);
	serve.page = page;
	serve.file = view_given.input && strcmp(view_given.input, "-") == 0 ? NULL : view_input();
	if (!rc)
		rc = server_start(&server, &serve, err);
	if (!rc)
		rc = wait_for_end(server, ends);
	server_stop(server);
	free(page);
	return rc;
}

int cmd_view(int argc, const char **argv)
{
	const struct command *command = command_find("view");
	struct err err = {0};
	poptContext context;
	const char *file;
	sigset_t ends;
	int status = 0, rc;

	context = command_options(command, argc, argv, 0, &status);
	if (!context)
		return status;
	file = poptGetArg(context);
	if (file && view_given.input)
		status = command_usage(command, "the recording is named twice");
	else if (file && poptPeekArg(context))
		status = command_usage(command, "unexpected word '%s'", poptPeekArg(context));
	else if (given.port < 0 || given.port > 65535)
		status = command_usage(command, "--port is 1 to 65535, not %d", given.port);
	if (file && !status)
		view_given.input = strdup(file);
	poptFreeContext(context);
	if (status)
		return status;
	/* Blocked before threads begin, so that none but sigwait() takes them. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	command_spare_hangup(&ends);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	rc = view(&ends, &err);
	return command_finish_output(rc < 0 ? command_fail(&err) : 0);
}
