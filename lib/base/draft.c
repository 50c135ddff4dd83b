#include "base/draft.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Names beside a file that are tried: others of this pid are there only after a crash. */
#define NAMES_MAX 1000

/* Drafts that have a name, for the handler. */
static struct draft *named;

static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ};
#define FATALS (sizeof(fatal) / sizeof(fatal[0]))

static void on_fatal(int number)
{
	for (const struct draft *draft = named; draft; draft = draft->next)
		unlink(draft->aside.buf);
	/* The default is back already, and waits until we return. */
	raise(number);
}

static void hold_signals(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, old);
}

static void release_signals(const sigset_t *old)
{
	sigprocmask(SIG_SETMASK, old, NULL);
}

/* A signal that somebody handles or ignores already stays theirs. */
static void take_signals(void)
{
	struct sigaction action = {.sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND}, old;

	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < FATALS; i++)
		if (sigaction(fatal[i], NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) &&
		    old.sa_handler == SIG_DFL)
			sigaction(fatal[i], &action, NULL);
}

static void leave_signals(void)
{
	struct sigaction now;

	for (size_t i = 0; i < FATALS; i++)
		if (sigaction(fatal[i], NULL, &now) == 0 && now.sa_handler == on_fatal)
			signal(fatal[i], SIG_DFL);
}

/* Runs `make`, which returns -1 with EEXIST where the name is taken, with names beside the file. */
static int make_aside(struct draft *draft, int (*make)(const struct draft *draft, mode_t mode),
		      mode_t mode)
{
	int made = -1;

	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		strbuf_reset(&draft->aside);
		strbuf_printf(&draft->aside, "%s.%d-%u", draft->path.buf, (int)getpid(), i);
		if (strbuf_failed(&draft->aside)) {
			errno = ENOMEM;
			return -1;
		}
		made = make(draft, mode);
		if (made >= 0 || errno != EEXIST)
			break;
	}
	return made;
}

static int create_aside(const struct draft *draft, mode_t mode)
{
	return open(draft->aside.buf, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
}

static int link_as(const struct draft *draft, const char *name)
{
	char own[32];

	snprintf(own, sizeof(own), "/proc/self/fd/%d", draft->fd);
	return linkat(AT_FDCWD, own, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static int link_aside(const struct draft *draft, mode_t mode)
{
	return link_as(draft, draft->aside.buf);
}

/* A file without a name in the folder; -1 where there is no such thing, or none that could get a
 * name: that takes /proc. */
static int open_nameless(const struct draft *draft, mode_t mode)
{
	const char *slash = strrchr(draft->path.buf, '/');
	char folder[PATH_MAX], own[32];
	int fd;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - draft->path.buf) + 1 : 1,
		 slash ? draft->path.buf : ".");
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	if (fd >= 0 && access(own, F_OK)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int set_out(struct draft *draft, const char *path, struct err *err)
{
	*draft = (struct draft){.fd = -1};
	strbuf_str(&draft->path, path);
	return strbuf_failed(&draft->path) ? err_nomem(err) : 0;
}

static int give_up(struct draft *draft, struct err *err)
{
	int saved = errno;
	int rc = err_sys(err, saved, "cannot write %s", strbuf_text(&draft->path));

	strbuf_fini(&draft->path);
	strbuf_fini(&draft->aside);
	return rc;
}

static int open_aside(struct draft *draft, mode_t mode, struct err *err)
{
	sigset_t old;

	hold_signals(&old);
	draft->fd = make_aside(draft, create_aside, mode);
	if (draft->fd >= 0) {
		if (!named)
			take_signals();
		draft->next = named;
		named = draft;
	}
	release_signals(&old);
	return draft->fd < 0 ? give_up(draft, err) : 0;
}

int draft_open_aside(struct draft *draft, const char *path, mode_t mode, struct err *err)
{
	int rc = set_out(draft, path, err);

	return rc ? rc : open_aside(draft, mode, err);
}

int draft_open(struct draft *draft, const char *path, mode_t mode, struct err *err)
{
	int rc = set_out(draft, path, err);

	if (rc)
		return rc;
	draft->fd = open_nameless(draft, mode);
	return draft->fd >= 0 ? 0 : open_aside(draft, mode, err);
}

bool draft_reach(const struct draft *draft, struct strbuf *out)
{
	if (draft->aside.len)
		strbuf_str(out, draft->aside.buf);
	else
		strbuf_printf(out, "/proc/self/fd/%d", draft->fd);
	return !strbuf_failed(out);
}

/* A link does not take the place of a file, a rename does: so it is named twice in a row. */
static int give_name(struct draft *draft)
{
	if (!draft->aside.len) {
		if (link_as(draft, draft->path.buf) == 0)
			return 0;
		if (errno != EEXIST || make_aside(draft, link_aside, 0))
			return -1;
	}
	if (rename(draft->aside.buf, draft->path.buf) == 0)
		return 0;
	unlink(draft->aside.buf);
	return -1;
}

static void forget(const struct draft *draft)
{
	struct draft **link = &named;

	while (*link && *link != draft)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = draft->next;
	if (!named)
		leave_signals();
}

int draft_close(struct draft *draft, int rc, struct err *err)
{
	sigset_t old;
	int saved;

	hold_signals(&old);
	if (rc < 0 && draft->aside.len)
		unlink(draft->aside.buf);
	if (rc >= 0 && give_name(draft)) {
		saved = errno;
		rc = err_sys(err, saved, "cannot write %s", draft->path.buf);
	}
	forget(draft);
	release_signals(&old);
	close(draft->fd);
	strbuf_fini(&draft->path);
	strbuf_fini(&draft->aside);
	return rc;
}
