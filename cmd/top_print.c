#include "cmd/top.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

static int put(struct looking *looking, struct err *err)
{
	const struct top_setup *setup = looking->setup;
	int ret = setup->json ? output_top_json(stdout, &looking->top, setup->choice.most, err)
			      : output_top_text(stdout, &looking->top, &setup->choice, err);

	if (!ret && (fflush(stdout) || ferror(stdout)))
		ret = err_sys(err, errno, "cannot write the table");
	return ret;
}

static int turn(struct looking *looking, struct err *err)
{
	int ret = looking_turn(looking, err);

	if (!ret)
		ret = put(looking, err);
	return ret ? ret : looking_turned(looking, err);
}

static bool is_over(const struct looking *looking)
{
	return looking->setup->turns && looking->turns >= looking->setup->turns;
}

static bool on_wake(void *ctx)
{
	struct looking *looking = ctx;

	if (session_wake(&looking->session))
		return true;
	if (looking_timer(looking->look_fd))
		holders_look(looking->holders);
	return looking_timer(looking->turn_fd) &&
	       (turn(looking, &looking->err) < 0 || is_over(looking));
}

/* Signals and timers become readable as one. */
static int open_wake(const struct looking *looking, struct err *err)
{
	const int fds[] = {looking->session.signal_fd, looking->look_fd, looking->turn_fd};
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);

	for (size_t i = 0; fd >= 0 && i < sizeof(fds) / sizeof(fds[0]); i++)
		if (epoll_ctl(fd, EPOLL_CTL_ADD, fds[i], &event) < 0) {
			close(fd);
			fd = -1;
		}
	return fd >= 0 ? fd : err_sys(err, errno, "cannot wait for signals and time");
}

int top_print(struct looking *looking, struct err *err)
{
	int wake_fd = open_wake(looking, err), ret;

	if (wake_fd < 0)
		return wake_fd;
	ret = recorder_run(looking->recorder, wake_fd, on_wake, looking, err);
	close(wake_fd);
	if (!ret && looking->err.code) {
		*err = looking->err;
		return err->code;
	}
	/* What came since the last table. */
	looking->top.ended = !is_over(looking);
	return ret || is_over(looking) ? ret : turn(looking, err);
}
