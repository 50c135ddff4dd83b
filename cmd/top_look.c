#include "cmd/top.h"

#include "base/clock.h"
#include "data/data.h"
#include "record/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Looks at the lock a hundred times a second, but not in step with what does something so often. */
#define LOOK_NS 10100000u
/* The window: about so long, and so many intervals at most. */
#define WINDOW_MS 5000
#define WINDOW_MAX 50

static int event_of(const void *ctx, uint64_t id)
{
	return recorder_event_of(ctx, id);
}

static unsigned int window_of(const struct top_setup *setup)
{
	uint64_t window = (WINDOW_MS + setup->delay_ms - 1) / setup->delay_ms;

	return window > WINDOW_MAX ? WINDOW_MAX : (unsigned int)window;
}

/* Events are known when the first record comes. */
static int make_live(struct looking *looking, struct err *err)
{
	const struct recorder_options *options = &looking->setup->options;
	struct live_options live = {
		.native = options->chain == RECORDER_CHAIN_NONE ? PROFILE_NATIVE_OFF
								: PROFILE_NATIVE_ON,
		.window = window_of(looking->setup),
		.event_count = options->events->len,
		.event_of = event_of,
		.ctx = looking->recorder,
	};
	int ret;

	if (looking->top.live)
		return 0;
	looking->events = calloc(live.event_count, sizeof(*looking->events));
	if (!looking->events)
		return err_nomem(err);
	for (size_t i = 0; i < live.event_count; i++) {
		const struct data_event *event = recorder_event(looking->recorder, i);

		looking->events[i] = (struct live_event){event->name, &event->attr};
	}
	live.events = looking->events;
	ret = live_new(&looking->top.live, &live, clock_now_ns(), err);
	if (!ret)
		recorder_use_codes(looking->recorder, live_codes(looking->top.live));
	return ret;
}

static int on_sample(void *ctx, const struct recorder_sample *sample, struct err *err)
{
	struct looking *looking = ctx;
	int ret = make_live(looking, err);

	if (looking->renewing)
		return 0;
	return ret ? ret
		   : live_sample(looking->top.live, sample->record, sample->event, sample->frames,
				 sample->frames_len, err);
}

static int on_sideband(void *ctx, const struct perf_event_header *record, struct err *err)
{
	struct looking *looking = ctx;
	int ret = make_live(looking, err);

	return ret ? ret : live_sideband(looking->top.live, record, err);
}

void looking_listen(struct looking *looking)
{
	looking->listener = (struct recorder_listener){on_sample, on_sideband, looking};
}

static int open_timer(uint64_t every_ns, struct err *err)
{
	struct timespec every = {.tv_sec = (time_t)(every_ns / 1000000000u),
				 .tv_nsec = (long)(every_ns % 1000000000u)};
	struct itimerspec timer = {.it_interval = every, .it_value = every};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0 && timerfd_settime(fd, 0, &timer, NULL) == 0)
		return fd;
	return err_sys(err, errno, "cannot wait for time");
}

static void describe(struct looking *looking)
{
	const char *const *word = looking->setup->options.command;

	for (; word && *word; word++)
		strbuf_printf(&looking->title, "%s%s", looking->title.len ? " " : "", *word);
	if (!looking->title.len)
		strbuf_str(&looking->title, looking->top.result->target);
	looking->top.title = strbuf_text(&looking->title);
}

int looking_open(struct looking *looking, struct err *err)
{
	const struct top_setup *setup = looking->setup;
	uint64_t now;
	int ret = recorder_open(looking->recorder, setup->target, err);

	if (!ret)
		ret = make_live(looking, err);
	if (ret)
		return ret;
	now = clock_now_ns();
	looking->holders = holders_new(looking->recorder);
	if (!looking->holders ||
	    !thread_table_turn(&looking->threads, looking->recorder, setup->target, now))
		return err_nomem(err);
	holders_turn(looking->holders, 1);
	looking->top.holders = looking->holders;
	looking->top.threads = &looking->threads;
	looking->top.result = recorder_so_far(looking->recorder);
	looking->top.engine = engine_name(recorder_engine(looking->recorder));
	looking->top.frequency = setup->options.period ? 0 : setup->options.frequency;
	looking->top.began = looking->top.now = now;
	describe(looking);
	live_reset(looking->top.live, now);
	looking->look_fd = open_timer(LOOK_NS, err);
	if (looking->look_fd < 0)
		return looking->look_fd;
	looking->turn_fd = open_timer(setup->delay_ms * 1000000, err);
	return looking->turn_fd < 0 ? looking->turn_fd : 0;
}

void looking_close(struct looking *looking)
{
	if (looking->look_fd >= 0)
		close(looking->look_fd);
	if (looking->turn_fd >= 0)
		close(looking->turn_fd);
	holders_free(looking->holders);
	thread_table_fini(&looking->threads);
	live_free(looking->top.live);
	free(looking->events);
	strbuf_fini(&looking->title);
}

bool looking_timer(int fd)
{
	uint64_t ticks;

	return read(fd, &ticks, sizeof(ticks)) == sizeof(ticks);
}

int looking_turn(struct looking *looking, struct err *err)
{
	int ret = recorder_drain(looking->recorder, err);

	looking->top.now = clock_now_ns();
	if (!ret && !thread_table_turn(&looking->threads, looking->recorder, looking->setup->target,
				       looking->top.now))
		ret = err_nomem(err);
	return ret;
}

int looking_turned(struct looking *looking, struct err *err)
{
	struct live *live = looking->top.live;
	double window = window_of(looking->setup);
	int ret = 0;

	looking->turns++;
	holders_turn(looking->holders, (window - 1) / window);
	if (!live_is_full(live))
		return live_turn(live, looking->top.now, err);
	ret = live_renew(live, looking->top.now, err);
	if (ret)
		return ret;
	recorder_use_codes(looking->recorder, live_codes(live));
	ret = recorder_tell_state(looking->recorder, err);
	/* Samples of the time that this took name code objects that are forgotten. */
	looking->renewing = true;
	if (!ret)
		ret = recorder_drain(looking->recorder, err);
	looking->renewing = false;
	return ret;
}
