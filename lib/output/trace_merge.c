#include "output/trace.h"

#include "output/trace_read.h"

#include "base/log.h"
#include "base/map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Puts our part into the trace of another tool, on the trace's own time line: the trace is copied
 * as it stands, and our times are turned into its times. So nothing of it changes its meaning, and
 * none of its digits is lost.
 *
 * The trace is read twice: its base time may stand at its end, and what it calls which process and
 * thread must be known before ours are added.
 *
 * Our threads get numbers of their own, since slices of two sources on one track would cross each
 * other; they stay in the processes that they belong to.
 */
#define FREE_TID 1000000000u

struct begun { /* a 'B' event that waits for its 'E' */
	uint64_t number;
	int64_t time;
	size_t below; /* index + 1 of the one that it lies in */
};

struct merge {
	struct trace *trace;
	int64_t min_duration;

	bool base_known, base_usable, viztracer;
	int64_t base;
	bool any;
	int64_t first, last;   /* times of its events */
	struct map named_pids; /* by the trace */
	struct map tids;       /* of the trace: hash of pid and tid, and the tid alone */
	uint32_t *our_tids;

	/* Pairs of 'B' and 'E' that are too short: one bit for each event of the file. */
	struct {
		VEC_OF(uint64_t)
	} dropped;
	struct {
		VEC_OF(struct begun)
	} begun;
	size_t free_begun;    /* index + 1 of the first that is free; linked through `below` */
	struct map innermost; /* hash of pid and tid -> index + 1 into begun */
};

static uint64_t track_of(const struct trace_event *event)
{
	return map_mix((uint64_t)event->pid, (uint64_t)event->tid);
}

static bool drop(struct merge *m, uint64_t number)
{
	while (m->dropped.len <= number / 64)
		if (!vec_push(&m->dropped))
			return false;
	m->dropped.items[number / 64] |= 1ull << (number % 64);
	return true;
}

/* The begun ones form a stack for each track, linked through `below`. */
static bool pair(struct merge *m, const struct trace_event *event)
{
	uint64_t *top = map_put(&m->innermost, track_of(event), NULL);
	struct begun *begun;
	size_t ended;

	if (!top)
		return false;
	if (event->phase == 'B') {
		size_t place = m->free_begun;

		begun = place ? &m->begun.items[place - 1] : vec_push(&m->begun);
		if (!begun)
			return false;
		if (place)
			m->free_begun = begun->below;
		*begun = (struct begun){event->number, event->time, (size_t)*top};
		*top = (uint64_t)(begun - m->begun.items) + 1;
		return true;
	}
	if (!*top)
		return true;
	ended = *top;
	begun = &m->begun.items[ended - 1];
	*top = begun->below;
	begun->below = m->free_begun;
	m->free_begun = ended;
	return event->time - begun->time >= m->min_duration ||
	       (drop(m, begun->number) && drop(m, event->number));
}

/* The first reading. */
static int learn_event(const struct trace_event *event, void *ctx, struct err *err)
{
	struct merge *m = ctx;
	int64_t end;

	if (event->names_process && event->phase == 'M' &&
	    !map_put(&m->named_pids, (uint64_t)event->pid, NULL))
		return err_nomem(err);
	if (!map_put(&m->tids, (uint64_t)event->tid, NULL))
		return err_nomem(err);
	if (!event->has_time || event->phase == 'M')
		return 1;
	if (!m->any || event->time < m->first)
		m->first = event->time;
	end = event->time + (event->has_duration ? event->duration : 0);
	if (!m->any || end > m->last)
		m->last = end;
	m->any = true;
	if (m->min_duration && (event->phase == 'B' || event->phase == 'E') && !pair(m, event))
		return err_nomem(err);
	return 1;
}

static void learn_base(bool usable, int64_t base, void *ctx)
{
	struct merge *m = ctx;

	m->base_known = true;
	m->base_usable = usable;
	m->base = base;
}

static void learn_viztracer(void *ctx)
{
	((struct merge *)ctx)->viztracer = true;
}

/* The second. Only slices have a duration; what has none is kept. */
static int keep_event(const struct trace_event *event, void *ctx, struct err *err)
{
	const struct merge *m = ctx;

	if (event->phase == 'X' && event->has_duration && event->duration < m->min_duration)
		return 0;
	return event->number / 64 >= m->dropped.len ||
	       !(m->dropped.items[event->number / 64] >> (event->number % 64) & 1);
}

static int add_ours(enum trace_container container, bool comma, void *ctx, struct err *err)
{
	struct merge *m = ctx;

	if (container == TRACE_FRAMES)
		trace_put_frames(m->trace, comma);
	else if (container == TRACE_SAMPLES)
		trace_put_samples(m->trace, comma);
	else
		return trace_put_events(m->trace, comma, err);
	return 0;
}

static int refuse(const struct merge *m, struct err *err)
{
	const char *path = m->trace->options->merge;

	if (m->base_known && !m->base_usable)
		err_set(err, ERR_UNSUPPORTED,
			"%s cannot be aligned: its baseTimeNanoseconds is no time since 1970",
			path);
	else if (!m->base_known)
		err_set(err, ERR_UNSUPPORTED,
			"%s cannot be aligned: it has no baseTimeNanoseconds that says when its "
			"time 0 was",
			path);
	else
		err_set(err, ERR_UNSUPPORTED,
			"%s cannot be aligned: the recording does not say what time of day its "
			"clock showed (no CLOCK_DATA)",
			path);
	err_hint(err,
		 "Say with --offset TIME how long after the start of the recording the trace's "
		 "time 0 is%s.",
		 m->any && m->last > INT64_C(1000000000000000000)
			 ? ", or --offset epoch, since its times seem to count from 1970"
			 : "");
	return ERR_UNSUPPORTED;
}

/*
 * VizTracer up to 1.1 does not write its base time, but its times are those of CLOCK_MONOTONIC
 * (viztracer quicktime.h), which is our clock, too. Of another boot they would be elsewhere.
 */
static bool has_our_clock(const struct merge *m, uint64_t start, uint64_t end)
{
	const struct data_info *info = m->trace->options->info;

	return m->viztracer && !m->base_known && m->any && info && info->has_clockid &&
	       info->clockid == CLOCK_MONOTONIC && m->first <= (int64_t)end &&
	       m->last >= (int64_t)start;
}

/* Finds what turns our times into the trace's. */
static int align(struct merge *m, struct err *err)
{
	const struct export_options *options = m->trace->options;
	uint64_t start = profile_summary(m->trace->profile)->first_time;
	uint64_t end = profile_summary(m->trace->profile)->last_time;
	bool epoch = options->offset_is_epoch;
	int64_t wall, first, last;
	bool has_wall = export_wall_time(options, start, &wall);

	if (has_wall && (epoch || (m->base_known && m->base_usable)))
		m->trace->shift = wall - (int64_t)start - (epoch ? 0 : m->base);
	else if (!epoch && has_our_clock(m, start, end))
		m->trace->shift = 0;
	else if (options->has_offset && !epoch)
		m->trace->shift = -(int64_t)start;
	else
		return refuse(m, err);
	m->trace->shift -= options->offset;
	first = (int64_t)start + m->trace->shift;
	last = (int64_t)end + m->trace->shift;
	if (m->any && (m->last < first || m->first > last))
		log_warn("the trace and the recording are not of the same time: the trace's events "
			 "are %.3f s %s",
			 (double)(m->last < first ? first - m->last : m->first - last) / 1e9,
			 m->last < first ? "earlier" : "later");
	return 0;
}

static int number_threads(struct merge *m, struct err *err)
{
	size_t threads = profile_thread_count(m->trace->profile);
	uint32_t next = FREE_TID;

	m->our_tids = calloc(threads + 1, sizeof(*m->our_tids));
	if (!m->our_tids)
		return err_nomem(err);
	for (uint32_t t = 0; t < threads; t++) {
		uint32_t tid = profile_thread(m->trace->profile, t)->tid;

		while (map_get(&m->tids, tid))
			tid = next++;
		m->our_tids[t] = tid;
		/* The same thread under another name may keep it; a new number is taken. */
		if (tid >= FREE_TID && !map_put(&m->tids, tid, NULL))
			return err_nomem(err);
	}
	m->trace->tids = m->our_tids;
	return 0;
}

static bool is_named(uint32_t pid, void *ctx)
{
	return map_get(&((struct merge *)ctx)->named_pids, pid);
}

int trace_merge(struct trace *trace, struct err *err)
{
	const char *path = trace->options->merge;
	struct merge m = {.trace = trace, .min_duration = (int64_t)trace->options->min_duration};
	const struct trace_visitor learn = {
		.event = learn_event, .base = learn_base, .viztracer = learn_viztracer, .ctx = &m};
	const struct trace_visitor copy = {
		.out = trace->out, .event = keep_event, .end = add_ours, .ctx = &m};
	int rc;

	if (strcmp(path, "-") == 0)
		rc = err_set(err, ERR_USAGE, "a trace is read twice, so it must be a file");
	else
		rc = trace_read(path, &learn, err);
	if (!rc)
		rc = align(&m, err);
	if (!rc)
		rc = number_threads(&m, err);
	trace->is_named = is_named;
	trace->ctx = &m;
	if (!rc)
		rc = trace_read(path, &copy, err);
	if (rc == ERR_CORRUPT)
		err_wrap(err, "%s", path);
	trace->tids = NULL;
	trace->is_named = NULL;
	free(m.our_tids);
	vec_fini(&m.dropped);
	vec_fini(&m.begun);
	map_fini(&m.innermost);
	map_fini(&m.tids);
	map_fini(&m.named_pids);
	return rc;
}
