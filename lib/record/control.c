#include "record/control.h"

#include "base/clock.h"
#include "base/log.h"
#include "perfmap/source.h"
#include "record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 1024 /* of an order; a longer one is none */

struct control {
	int fd, answer_fd;
	size_t len;
	bool skipping; /* the rest of a line that is too long */
	bool told;     /* that an order was not understood */
	char line[LINE_BYTES];
};

/* What an order works on. */
struct order {
	struct control_scope *scope;
	const char *name;
	uint64_t time;
	uint32_t pid, tid;
	uid_t owner; /* of the pipe: it may name no files but its own */
};

static int do_enable(struct order *order, struct err *err)
{
	return recorder_enable(order->scope->recorder, true, err);
}

static int do_disable(struct order *order, struct err *err)
{
	return recorder_enable(order->scope->recorder, false, err);
}

static int do_ping(struct order *order, struct err *err)
{
	(void)order, (void)err;
	return 0;
}

static int do_stop(struct order *order, struct err *err)
{
	(void)err;
	order->scope->stop = true;
	return 0;
}

static int do_source(struct order *order, struct err *err)
{
	const char *tab = strchr(order->name, '\t');
	char *path;
	int ret;

	if (!tab)
		return 0;
	path = strndup(order->name, (size_t)(tab - order->name));
	ret = path ? sources_read_as(order->scope->sources, tab + 1, path, order->owner, err)
		   : err_nomem(err);
	free(path);
	/* Without the text there are still its lines' numbers. */
	return ret == ERR_NOMEM ? ret : 0;
}

static int do_begin(struct order *order, struct err *err)
{
	return phases_begin(order->scope->phases, order->name, order->pid, order->tid, order->time,
			    err);
}

static int do_end(struct order *order, struct err *err)
{
	(void)err;
	phases_end(order->scope->phases, order->name, order->pid, order->tid, order->time);
	return 0;
}

static int do_mark(struct order *order, struct err *err)
{
	return phases_mark(order->scope->phases, order->name, order->pid, order->tid, order->time,
			   err);
}

static const struct verb {
	const char *name;
	enum { ALONE, WITH_TEXT, WITH_TIME } form; /* the last is not answered */
	int (*carry_out)(struct order *order, struct err *err);
} verbs[] = {
	{"enable", ALONE, do_enable},	  {"disable", ALONE, do_disable},
	{"ping", ALONE, do_ping},	  {"stop", ALONE, do_stop},
	{"source", WITH_TEXT, do_source}, {"begin", WITH_TIME, do_begin},
	{"end", WITH_TIME, do_end},	  {"mark", WITH_TIME, do_mark},
};

static int open_fifo(const char *path, const char *whole, int *fd, struct err *err)
{
	struct stat st;

	/* For both: without a writer yet, or for a moment, it is not at its end. */
	*fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (*fd < 0)
		return err_sys(err, errno, "--control %s: cannot open %s", whole, path);
	if (fstat(*fd, &st) == 0 && S_ISFIFO(st.st_mode))
		return 0;
	err_set(err, ERR_USAGE, "--control %s: %s is no FIFO", whole, path);
	err_hint(err, "Make one:  mkfifo %s", path);
	return ERR_USAGE;
}

static int take_fd(const char *number, const char *whole, int *fd, struct err *err)
{
	char *end;
	long value = strtol(number, &end, 10);

	if (end == number || *end || value < 0 || value > INT_MAX || fcntl((int)value, F_GETFD) < 0)
		return err_set(err, ERR_USAGE, "--control %s: %s is no open file descriptor", whole,
			       number);
	*fd = (int)value;
	fcntl(*fd, F_SETFD, FD_CLOEXEC);
	fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) | O_NONBLOCK);
	return 0;
}

int control_open(struct control **result, const char *where, struct err *err)
{
	int (*open_one)(const char *, const char *, int *, struct err *) = NULL;
	struct control *control;
	char *words, *comma;
	int ret;

	if (strncmp(where, "fifo:", 5) == 0)
		open_one = open_fifo;
	else if (strncmp(where, "fd:", 3) == 0)
		open_one = take_fd;
	else
		return err_set(err, ERR_USAGE,
			       "--control is fifo:PATH[,PATH] or fd:NUMBER[,NUMBER], not '%s'",
			       where);
	control = calloc(1, sizeof(*control));
	words = strdup(strchr(where, ':') + 1);
	if (!control || !words) {
		free(control);
		free(words);
		return err_nomem(err);
	}
	control->fd = control->answer_fd = -1;
	comma = strchr(words, ',');
	if (comma)
		*comma = '\0';
	ret = open_one(words, where, &control->fd, err);
	if (!ret && comma)
		ret = open_one(comma + 1, where, &control->answer_fd, err);
	free(words);
	if (ret)
		control_free(control);
	else
		*result = control;
	return ret;
}

int control_fd(const struct control *control)
{
	return control ? control->fd : -1;
}

static void answer(const struct control *control, const char *text)
{
	/* A full pipe is one that nobody reads. */
	if (control->answer_fd >= 0 && write(control->answer_fd, text, strlen(text)) < 0 &&
	    errno != EAGAIN)
		log_debug("--control: an answer could not be written: %s", strerror(errno));
}

static const struct verb *find_verb(const char *line, const char **rest)
{
	size_t len = strcspn(line, " ");

	*rest = line + len + (line[len] == ' ');
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strlen(verbs[i].name) == len && memcmp(verbs[i].name, line, len) == 0 &&
		    (verbs[i].form == ALONE) == (**rest == '\0'))
			return &verbs[i];
	return NULL;
}

/* Takes "@TIME,PID,TID " off a name; without it the time is now. */
static bool find_origin(struct order *order)
{
	unsigned long long time;
	int len = 0;

	if (order->name[0] != '@') {
		order->time = clock_now_ns();
		return true;
	}
	if (sscanf(order->name, "@%llu,%u,%u %n", &time, &order->pid, &order->tid, &len) != 3 ||
	    !len)
		return false;
	order->time = time;
	order->name += len;
	return true;
}

static int obey(struct control *control, const char *line, struct order order, struct err *err)
{
	const struct verb *verb = find_verb(line, &order.name);
	int ret;

	if (!verb || (verb->form == WITH_TIME && !find_origin(&order))) {
		if (!control->told)
			log_warn("--control: '%s' is not understood; orders are enable, disable, "
				 "ping, stop, source with a path and a name, and begin, end or "
				 "mark with a name",
				 line);
		control->told = true;
		answer(control, "nak\n");
		return 0;
	}
	ret = verb->carry_out(&order, err);
	if (!ret && verb->form != WITH_TIME)
		answer(control, "ack\n");
	return ret;
}

/* The whole lines of what was read; the begin of another stays. */
static int obey_lines(struct control *control, const struct order *order, struct err *err)
{
	char *line = control->line, *end;
	int ret = 0;

	while (!ret && (end = memchr(line, '\n', control->len - (size_t)(line - control->line)))) {
		*end = '\0';
		if (!control->skipping && end != line)
			ret = obey(control, line, *order, err);
		control->skipping = false;
		line = end + 1;
	}
	control->len -= (size_t)(line - control->line);
	memmove(control->line, line, control->len);
	if (control->len == sizeof(control->line)) {
		control->skipping = true;
		control->len = 0;
	}
	return ret;
}

int control_read(struct control *control, struct control_scope *scope, struct err *err)
{
	struct order order = {.scope = scope};
	struct stat st;
	int ret = 0;

	if (control->fd < 0 || fstat(control->fd, &st) < 0)
		return 0;
	order.owner = st.st_uid;
	while (!ret && control->fd >= 0) {
		ssize_t n = read(control->fd, control->line + control->len,
				 sizeof(control->line) - control->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			close(control->fd);
			control->fd = -1;
			break;
		}
		control->len += (size_t)n;
		ret = obey_lines(control, &order, err);
	}
	return ret;
}

void control_free(struct control *control)
{
	if (!control)
		return;
	if (control->fd >= 0)
		close(control->fd);
	if (control->answer_fd >= 0)
		close(control->answer_fd);
	free(control);
}
