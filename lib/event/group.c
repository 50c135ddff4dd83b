#include "event/internal.h"

#include "base/io.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/*
 * Do the counters hold a group?
 *
 * Most kernels refuse the member that cannot be counted together with those before it (EINVAL); but
 * riscv64's take any, and none knows of counters that somebody else holds, such as the NMI
 * watchdog. Such a group opens and is never counted, so it is also let run for a moment.
 */

#define RUN_NS 100000u	  /* what gets a counter gets it at once, */
#define WAIT_NS 12000000u /* or when the kernel rotates: every tick, of 10 ms at most */
#define COUNTERS_MAX 32

static uint64_t used_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool event_runs(int leader_fd)
{
	uint64_t start = used_ns(), used;
	struct {
		uint64_t value, enabled, running;
	} now = {0};

	if (ioctl(leader_fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return true; /* it cannot be asked */
	do {
		used = used_ns() - start;
		if (used >= RUN_NS &&
		    (read(leader_fd, &now, sizeof(now)) != sizeof(now) || now.running))
			break;
	} while (used < WAIT_NS);
	ioctl(leader_fd, PERF_EVENT_IOC_DISABLE, 0);
	return now.running || !now.enabled;
}

/* Opens them as one group: how many the kernel takes, and whether they then get counters. Other
 * failures than EINVAL are told by whoever opens the event for good. */
static size_t open_group(const struct event_system *sys, const struct event_spec *const *specs,
			 size_t count, bool *runs)
{
	int fds[COUNTERS_MAX], fd = 0;
	struct event_pin pin = {0};
	size_t open = 0;

	while (open < count && open < COUNTERS_MAX) {
		fd = event_try_open(sys, specs[open], open ? fds[0] : -1);
		if (fd < 0)
			break;
		fds[open++] = fd;
	}
	*runs = !open || !event_pin(specs[0]->cpus, &pin) || sys->runs(fds[0]);
	event_unpin(&pin);
	/* Members before their leader, which would else be switched once more for each. */
	for (size_t i = open; i-- > 0;)
		close(fds[i]);
	return fd < 0 && fd != -EINVAL ? count : open;
}

/* How many of the events, from the first one on, are counted together. */
static size_t fitting(const struct event_system *sys, const struct event_spec *const *specs,
		      size_t count)
{
	bool runs;
	size_t open = open_group(sys, specs, count, &runs);

	while (open > 1 && !runs)
		open = open_group(sys, specs, open - 1, &runs);
	return open;
}

static size_t count_counters(const struct event_system *sys, const struct event_spec *spec)
{
	const struct event_spec *same[COUNTERS_MAX];

	for (size_t i = 0; i < COUNTERS_MAX; i++)
		same[i] = spec;
	return fitting(sys, same, COUNTERS_MAX);
}

static bool watchdog_counts(const struct event_system *sys)
{
	char line[16];

	return io_read_line(sys->watchdog, line, sizeof(line), NULL) > 0 && line[0] == '1';
}

const char *event_holder(const struct event_system *sys)
{
	return watchdog_counts(sys) ? "another user has its counter for itself: the NMI watchdog "
				      "holds one (sysctl kernel.nmi_watchdog=0 frees it)"
				    : "another user has its counter for itself";
}

static void group_names(const struct event_list *list, size_t first, size_t end,
			struct strbuf *names)
{
	strbuf_reset(names);
	for (size_t i = first; i < end; i++)
		strbuf_printf(names, "%s%s", i > first ? "," : "", list->items[i].name);
}

static int too_much(const struct event_system *sys, const struct event_list *list, size_t first,
		    size_t end, size_t culprit, struct err *err)
{
	const char *name = list->items[culprit].name;
	struct strbuf names = {0};
	size_t counters = count_counters(sys, &list->items[culprit]);

	group_names(list, first, end, &names);
	err_set(err, ERR_UNSUPPORTED,
		"the group {%s} does not fit on the counters: '%s' is too much for them; of its "
		"kind this machine counts %zu at once",
		strbuf_text(&names), name, counters);
	err_hint(err, "leave it out, or let the group give up what does not fit: {%s}:W%s",
		 strbuf_text(&names),
		 watchdog_counts(sys) ? "; the NMI watchdog holds a counter, too: sysctl "
					"kernel.nmi_watchdog=0"
				      : "");
	strbuf_fini(&names);
	return ERR_UNSUPPORTED;
}

/* Takes events out of the group, from `at` on, so that each stands alone. */
static void take_out(struct event_list *list, size_t at, size_t end)
{
	for (size_t i = at; i < end; i++) {
		struct event_spec *spec = &list->items[i];

		spec->group = -1;
		spec->leader = true;
		spec->counted = false;
	}
}

/* Of a weak group: puts the first event that does not fit behind the others, until the rest fits.
 */
static void give_up(const struct event_system *sys, struct event_list *list, size_t first,
		    size_t end, size_t fit)
{
	struct strbuf names = {0};
	size_t left = end;
	bool along = true;

	for (;;) {
		const struct event_spec *specs[COUNTERS_MAX];
		struct event_spec culprit;

		if (first + fit >= left)
			break;
		culprit = list->items[first + fit];
		memmove(&list->items[first + fit], &list->items[first + fit + 1],
			(end - first - fit - 1) * sizeof(culprit));
		list->items[end - 1] = culprit;
		left--;
		for (size_t i = first; i < left; i++)
			specs[i - first] = &list->items[i];
		fit = fitting(sys, specs, left - first);
	}
	for (size_t i = left; i < end; i++)
		along &= list->items[i].along;
	group_names(list, left, end, &names);
	take_out(list, left, end);
	if (left == first + 1)
		list->items[first].group = -1;
	if (along)
		log_debug("sampled on their own, since the counters do not hold them: %s",
			  strbuf_text(&names));
	else
		log_info("more than the counters hold at once; sampled on their own: %s",
			 strbuf_text(&names));
	strbuf_fini(&names);
}

int event_fit_groups(const struct event_system *sys, struct event_list *list, struct err *err)
{
	size_t end;

	for (size_t first = 0; first < list->len; first = end) {
		const struct event_spec *specs[COUNTERS_MAX];
		int group = list->items[first].group;
		size_t fit;

		for (end = first + 1; group >= 0 && end < list->len; end++)
			if (list->items[end].group != group)
				break;
		if (end == first + 1)
			continue;
		if (end - first > COUNTERS_MAX)
			return err_set(err, ERR_USAGE, "a group has at most %d events",
				       COUNTERS_MAX);
		for (size_t i = first; i < end; i++)
			specs[i - first] = &list->items[i];
		fit = fitting(sys, specs, end - first);
		if (fit >= end - first)
			continue;
		if (list->items[first].weak)
			give_up(sys, list, first, end, fit);
		else if (list->items[first + fit].along)
			give_up(sys, list, first, end, fit);
		else
			return too_much(sys, list, first, end, first + fit, err);
	}
	return 0;
}
