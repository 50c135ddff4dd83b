#include "event/internal.h"

#include "base/log.h"
#include "base/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Fits a list of events to the machine.
 *
 * Each event is opened once and closed again. What is too much to ask is asked again with less:
 * a lower precision, user space only. Then what the machine does not have is replaced (cycles) or
 * dropped, and groups are mended (group.c: made to fit). All that is said in at most one line per
 * kind of change; only a refusal that the user can lift is an error.
 */

enum fate {
	KEPT,
	ABSENT,	   /* the machine does not have it */
	IDLE,	   /* without the cycles that it was to be counted along with */
	REFUSED,   /* EINVAL: known to the machine, but not like this */
	TAKEN,	   /* somebody else has its counter, and keeps it */
	UNSAMPLED, /* it counts, but does not interrupt */
	WHOLE, /* it counts for a CPU (a memory controller, a socket's power), not for a program */
	TWIN,  /* another event of the list does the same */
};

struct change {
	enum fate fate;
	bool user_only; /* exclude_kernel was added */
	bool less_precise;
	bool was_cycles;
	bool was_taken; /* cycles, for that reason */
};

/* Far apart, so that even an event that gets enabled would not sample. */
#define PROBE_PERIOD (UINT64_C(1) << 40)

int event_try_open(const struct event_system *sys, const struct event_spec *spec, int group_fd)
{
	struct perf_event_attr attr = spec->attr;

	attr.disabled = group_fd < 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (!attr.freq && !attr.sample_period && !spec->counted)
		attr.sample_period = PROBE_PERIOD;
	return sys->open(&attr, 0, -1, group_fd);
}

/* Those happen in the kernel, so nothing is left of them without it. */
static bool is_kernel_only(const struct perf_event_attr *attr)
{
	static const uint64_t configs[] = {PERF_COUNT_SW_CONTEXT_SWITCHES,
					   PERF_COUNT_SW_CPU_MIGRATIONS, 11 /* CGROUP_SWITCHES */};

	if (attr->type == PERF_TYPE_TRACEPOINT || attr->exclude_user)
		return true;
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++)
		if (attr->type == PERF_TYPE_SOFTWARE && attr->config == configs[i])
			return true;
	return false;
}

static bool needs_counter(const struct perf_event_attr *attr)
{
	return attr->type != PERF_TYPE_SOFTWARE && attr->type != PERF_TYPE_TRACEPOINT &&
	       attr->type != PERF_TYPE_BREAKPOINT;
}

/* Kernels open what they have no counter for at the moment: pinned events of others, such as the
 * NMI watchdog's, may hold it for good. */
static bool runs_alone(const struct event_system *sys, const struct event_spec *spec, int fd)
{
	struct event_pin pin;
	bool runs = !event_pin(spec->cpus, &pin) || sys->runs(fd);

	event_unpin(&pin);
	return runs;
}

/* Opens with as much of what was asked as is given; 0 or -errno. */
static int settle(const struct event_system *sys, struct event_spec *spec, struct change *change)
{
	struct perf_event_attr *attr = &spec->attr;

	for (;;) {
		int fd = event_try_open(sys, spec, -1);

		if (fd >= 0) {
			bool runs = !needs_counter(attr) || spec->traces ||
				    runs_alone(sys, spec, fd);

			close(fd);
			return runs ? 0 : -EBUSY;
		}
		if ((fd == -EACCES || fd == -EPERM) && !attr->exclude_kernel &&
		    !is_kernel_only(attr)) {
			attr->exclude_kernel = attr->exclude_hv = 1;
			change->user_only = true;
		} else if ((fd == -EOPNOTSUPP || fd == -EINVAL) && attr->precise_ip) {
			attr->precise_ip--;
			change->less_precise = true;
		} else {
			return fd;
		}
	}
}

static bool is_cycles(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE &&
	       (attr->config & UINT32_MAX) == PERF_COUNT_HW_CPU_CYCLES;
}

static int rename_spec(struct event_spec *spec, char *name, struct err *err)
{
	if (!name)
		return err_nomem(err);
	free(spec->name);
	spec->name = name;
	return 0;
}

static int rename_by_attr(struct event_spec *spec, struct err *err)
{
	char name[64];

	event_attr_name(&spec->attr, name, sizeof(name));
	return rename_spec(spec, strdup(name), err);
}

/* cpu-clock in the place of cycles; the modifiers that a clock understands stay. */
static void become_clock(struct event_spec *spec, const struct perf_event_attr *asked)
{
	spec->attr = *asked;
	spec->attr.type = PERF_TYPE_SOFTWARE;
	spec->attr.config = PERF_COUNT_SW_CPU_CLOCK;
	spec->attr.precise_ip = 0;
	spec->attr.exclude_guest = spec->attr.exclude_host = 0;
	spec->fallback = true;
	/* Of any PMU's cores. */
	free(spec->cpus);
	spec->cpus = NULL;
}

static bool same_event(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	return a->type == b->type && a->config == b->config && a->config1 == b->config1 &&
	       a->config2 == b->config2 && a->exclude_user == b->exclude_user &&
	       a->exclude_kernel == b->exclude_kernel && a->exclude_guest == b->exclude_guest &&
	       a->exclude_host == b->exclude_host && a->exclude_idle == b->exclude_idle;
}

static bool has_twin(const struct event_list *list, const struct change *changes, size_t at)
{
	for (size_t i = 0; i < list->len; i++) {
		bool first = i < at || !list->items[i].fallback;

		if (i != at && first && changes[i].fate == KEPT &&
		    same_event(&list->items[i].attr, &list->items[at].attr))
			return true;
	}
	return false;
}

/* What the kernel refuses to sample for a task: what would it take? */
static enum fate fate_of_refused(const struct event_system *sys, const struct event_spec *spec)
{
	struct perf_event_attr attr = spec->attr;
	int fd;

	attr.disabled = 1;
	attr.freq = 0;
	attr.sample_period = 0;
	fd = sys->open(&attr, 0, -1, -1);
	if (fd >= 0) {
		close(fd);
		return UNSAMPLED;
	}
	fd = sys->open(&attr, -1, 0, -1);
	if (fd < 0)
		return REFUSED;
	close(fd);
	return WHOLE;
}

static int probe_one(const struct event_system *sys, struct event_spec *spec, struct change *change,
		     struct err *err)
{
	struct perf_event_attr asked = spec->attr;
	int ret = settle(sys, spec, change);

	if ((ret == -ENOENT || ret == -ENODEV || ret == -ENXIO || ret == -EOPNOTSUPP ||
	     ret == -EINVAL || ret == -EBUSY) &&
	    is_cycles(&asked) && !spec->counted) {
		become_clock(spec, &asked);
		*change = (struct change){.was_cycles = true, .was_taken = ret == -EBUSY};
		ret = settle(sys, spec, change);
	}
	switch (ret) {
	case 0:
		return 0;
	case -ENOENT:
	case -ENODEV:
	case -ENXIO:
		change->fate = ABSENT;
		return 0;
	case -EOPNOTSUPP:
	case -EINVAL:
		change->fate = fate_of_refused(sys, spec);
		if (change->fate == REFUSED && ret == -EOPNOTSUPP)
			change->fate = ABSENT;
		return 0;
	case -EBUSY:
		change->fate = TAKEN;
		return 0;
	default:
		change->fate = ABSENT;
		return spec->along ? 0 : event_open_error_on(sys, spec, ret, err);
	}
}

/* "a, b" of the events for which pick() holds. */
static size_t join(struct strbuf *names, const struct event_list *list,
		   const struct change *changes, bool along, bool (*pick)(const struct change *))
{
	size_t count = 0;

	strbuf_reset(names);
	for (size_t i = 0; i < list->len; i++)
		if (pick(&changes[i]) && list->items[i].along == along)
			strbuf_printf(names, "%s%s", count++ ? ", " : "",
				      changes[i].was_cycles ? "cpu-clock" : list->items[i].name);
	return count;
}

static bool is_user_only(const struct change *change)
{
	return change->fate == KEPT && change->user_only;
}

static bool is_less_precise(const struct change *change)
{
	return change->fate == KEPT && change->less_precise;
}

static size_t join_fate(struct strbuf *names, const struct event_list *list,
			const struct change *changes, bool along, enum fate fate)
{
	size_t count = 0;

	strbuf_reset(names);
	for (size_t i = 0; i < list->len; i++)
		if (changes[i].fate == fate && list->items[i].along == along)
			strbuf_printf(names, "%s%s", count++ ? ", " : "",
				      changes[i].was_cycles ? "cpu-clock" : list->items[i].name);
	return count;
}

/* Why an event is left out; NULL: somebody has its counter. And what to do where nothing is left.
 */
static const struct {
	enum fate fate;
	enum err_code code;
	const char *why, *hint;
} dropped[] = {
	{UNSAMPLED, ERR_UNSUPPORTED, "it can be counted only",
	 "pyperf stat counts it; to sample, take a clock: -e cpu-clock"},
	{WHOLE, ERR_UNSUPPORTED, "it counts for whole CPUs, not for programs",
	 "perf stat -a counts it"},
	{TAKEN, ERR_SYSTEM, NULL,
	 "end other profilers, turn the NMI watchdog off (sysctl kernel.nmi_watchdog=0), or use a "
	 "clock: -e cpu-clock"},
	{REFUSED, ERR_UNSUPPORTED, "the kernel calls it invalid here",
	 "check its terms and modifiers, or use a clock: -e cpu-clock"},
	{ABSENT, ERR_UNSUPPORTED, "this machine does not have it",
	 "use a clock, which every machine has: -e cpu-clock (or task-clock, page-faults, "
	 "context-switches); hardware events in a virtual machine need its host to pass the "
	 "counters through"},
};
#define DROPPED (sizeof(dropped) / sizeof(dropped[0]))

static size_t dropped_as(enum fate fate)
{
	size_t d = 0;

	while (d + 1 < DROPPED && dropped[d].fate != fate)
		d++;
	return d;
}

static const char *why_dropped(const struct event_system *sys, size_t d)
{
	return dropped[d].why ? dropped[d].why : event_holder(sys);
}

/* Before names change: they are those that the user wrote. */
static void tell(const struct event_system *sys, const struct event_list *list,
		 const struct change *changes)
{
	struct strbuf names = {0};

	for (size_t i = 0; i < list->len; i++)
		if (changes[i].was_cycles && (changes[i].fate == KEPT || changes[i].fate == TWIN))
			log_info("%s: %s; %s", list->items[i].name,
				 changes[i].was_taken ? event_holder(sys)
						      : "this machine has no hardware counter "
							"(virtual machine?)",
				 changes[i].fate == KEPT ? "sampling cpu-clock instead"
							 : "cpu-clock is sampled already");
	for (size_t d = 0; d < DROPPED; d++)
		for (int along = 0; along < 2; along++)
			if (join_fate(&names, list, changes, along, dropped[d].fate))
				log_info("%s, since %s: %s",
					 along ? "not counted along" : "left out",
					 why_dropped(sys, d), strbuf_text(&names));
	if (join(&names, list, changes, false, is_less_precise))
		log_info("less precise than asked, since this machine gives no more: %s",
			 strbuf_text(&names));
	if (join(&names, list, changes, false, is_user_only)) {
		struct privilege privilege;

		sys->privilege(&privilege);
		log_info("user space only, since kernel.perf_event_paranoid is %d "
			 "(sysctl kernel.perf_event_paranoid=1 or CAP_PERFMON allows the kernel): "
			 "%s",
			 event_paranoid(&privilege), strbuf_text(&names));
	}
	strbuf_fini(&names);
}

static int rename_kept(struct event_list *list, const struct change *changes, struct err *err)
{
	for (size_t i = 0; i < list->len; i++) {
		struct event_spec *spec = &list->items[i];
		int ret = 0;

		if (spec->fallback && changes[i].was_cycles)
			ret = rename_by_attr(spec, err);
		else if (changes[i].fate == KEPT &&
			 (changes[i].user_only || changes[i].less_precise))
			ret = rename_spec(spec, event_name_refresh(spec), err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static void remove_dropped(struct event_list *list, const struct change *changes)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->len; i++) {
		if (changes[i].fate == KEPT)
			list->items[kept++] = list->items[i];
		else
			event_spec_fini(&list->items[i]);
	}
	list->len = kept;
}

/* A group's events follow each other; the first that is left leads, and one alone is no group. */
static void mend_groups(struct event_list *list)
{
	for (size_t i = 0; i < list->len; i++) {
		struct event_spec *spec = &list->items[i];
		bool after = i > 0 && spec[-1].group == spec->group;
		bool before = i + 1 < list->len && spec[1].group == spec->group;

		spec->leader = spec->group < 0 || !after;
		spec->counted &= !spec->leader;
		if (spec->group >= 0 && !after && !before)
			spec->group = -1;
	}
}

/* Who counts nothing of its own accord has no place beside a clock. */
static void drop_idle(const struct event_list *list, struct change *changes)
{
	size_t leader = 0;

	for (size_t i = 0; i < list->len; i++) {
		if (list->items[i].leader)
			leader = i;
		else if (list->items[i].along && changes[leader].was_cycles)
			changes[i].fate = IDLE;
	}
}

/* Members are sampled where samples cannot read them. */
static void sample_members(struct event_list *list)
{
	bool asked = false;

	for (size_t i = 0; i < list->len; i++) {
		asked |= list->items[i].counted && !list->items[i].along;
		list->items[i].counted = false;
	}
	if (asked)
		log_info("each event of a group is sampled: before Linux 6.12 samples cannot read "
			 "a group that threads inherit (with -i or -a they can)");
}

/* What the kernel counts itself, clocks apart, it samples from one place for all events that count
 * it; in Linux 6.18 the second of two samples comes with the id of the first. */
static bool are_mixed_up(const struct event_spec *a, const struct event_spec *b)
{
	const struct perf_event_attr *one = &a->attr, *two = &b->attr;

	return !a->counted && !b->counted && one->type == PERF_TYPE_SOFTWARE &&
	       two->type == PERF_TYPE_SOFTWARE && one->config == two->config &&
	       !event_is_clock(one) &&
	       !((one->exclude_user || two->exclude_user) &&
		 (one->exclude_kernel || two->exclude_kernel));
}

static void warn_of_mixed_up(const struct event_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		for (size_t j = 0; j < i; j++)
			if (are_mixed_up(&list->items[i], &list->items[j]))
				log_info("%s and %s are the same to the kernel, which may write "
					 "the samples of one as the other's: leave one out",
					 list->items[j].name, list->items[i].name);
}

static int nothing_left(const struct event_system *sys, const struct event_list *list,
			const struct change *changes, struct err *err)
{
	size_t first = dropped_as(changes[0].fate);
	struct strbuf names = {0}, reasons = {0};
	bool same = true;

	for (size_t i = 0; i < list->len; i++) {
		size_t d = dropped_as(changes[i].fate);

		same &= d == first || changes[i].fate == IDLE;
		strbuf_printf(&names, "%s%s", i ? ", " : "", list->items[i].name);
		strbuf_printf(&reasons, "%s%s (%s)", i ? ", " : "", list->items[i].name,
			      why_dropped(sys, d));
	}
	if (!same)
		err_set(err, dropped[first].code, "none of the events can be sampled here: %s",
			strbuf_text(&reasons));
	else if (dropped[first].fate == ABSENT)
		err_set(err, dropped[first].code,
			"this machine has none of the events that were asked for: %s",
			strbuf_text(&names));
	else
		err_set(err, dropped[first].code, "cannot %s %s: %s",
			dropped[first].fate == UNSAMPLED ? "sample" : "count", strbuf_text(&names),
			why_dropped(sys, first));
	err_hint(err, "%s", dropped[first].hint);
	strbuf_fini(&names);
	strbuf_fini(&reasons);
	return dropped[first].code;
}

int event_list_probe_on(const struct event_system *sys, struct event_list *list, bool reads,
			struct err *err)
{
	struct change *changes = calloc(list->len + 1, sizeof(*changes));
	size_t kept = 0;
	int ret = 0;

	if (!changes)
		return err_nomem(err);
	if (!reads)
		sample_members(list);
	for (size_t i = 0; i < list->len && !ret; i++)
		ret = probe_one(sys, &list->items[i], &changes[i], err);
	if (ret < 0)
		goto out;
	for (size_t i = 0; i < list->len; i++)
		if (changes[i].was_cycles && changes[i].fate == KEPT && has_twin(list, changes, i))
			changes[i].fate = TWIN;
	drop_idle(list, changes);
	for (size_t i = 0; i < list->len; i++)
		kept += changes[i].fate == KEPT;
	if (!kept) {
		ret = nothing_left(sys, list, changes, err);
		goto out;
	}
	tell(sys, list, changes);
	ret = rename_kept(list, changes, err);
	if (ret < 0)
		goto out;
	remove_dropped(list, changes);
	mend_groups(list);
	warn_of_mixed_up(list);
	ret = event_fit_groups(sys, list, err);
out:
	free(changes);
	return ret;
}

int event_list_probe(struct event_list *list, bool reads, struct err *err)
{
	return event_list_probe_on(&event_system_host, list, reads, err);
}
