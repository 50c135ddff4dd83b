#include "cmd/stat.h"

#include "base/map.h"
#include "data/data.h"
#include "profile/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Counts by Python function, or by thread of a program: the events become one group, the leader
 * (cycles, or the CPU's clock) is sampled, and each sample reads what all of them counted since the
 * one before. What a sample read belongs to the innermost Python function, with the C code and the
 * kernel that worked for it. Nothing is left out: what no Python function had, and what was counted
 * behind a thread's last sample, are rows as well, so the rows add up to what was counted.
 */

#define SHOWN_LEAST 0.005 /* of the leader's count; others are one row */

static bool leads(const struct event_spec *spec, uint32_t type, uint64_t config)
{
	return spec->attr.type == type && (spec->attr.config & UINT32_MAX) == config;
}

/* The event at `at` becomes the first. */
static void put_first(struct event_list *events, size_t at)
{
	struct event_spec first = events->items[at];

	memmove(&events->items[1], &events->items[0], at * sizeof(first));
	events->items[0] = first;
}

static int choose_leader(struct event_list *events, struct err *err)
{
	static const struct {
		uint32_t type;
		uint64_t config;
	} leaders[] = {
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	};
	int ret;

	for (size_t l = 0; l < sizeof(leaders) / sizeof(leaders[0]); l++)
		for (size_t i = 0; i < events->len; i++)
			if (leads(&events->items[i], leaders[l].type, leaders[l].config)) {
				put_first(events, i);
				return 0;
			}
	ret = event_parse(events, "task-clock", err);
	if (!ret)
		put_first(events, events->len - 1);
	return ret;
}

static bool same_cpus(const struct event_spec *a, const struct event_spec *b)
{
	return a->cpus && b->cpus ? strcmp(a->cpus, b->cpus) == 0 : a->cpus == b->cpus;
}

/* One group with the first event; what is not counted where that is, on a hybrid CPU, is put behind
 * it and stands alone. */
static void make_group(struct event_list *events)
{
	size_t members = 1;

	for (size_t i = 1; i < events->len; i++) {
		struct event_spec member = events->items[i];

		if (!same_cpus(&member, &events->items[0]))
			continue;
		memmove(&events->items[members + 1], &events->items[members],
			(i - members) * sizeof(member));
		events->items[members++] = member;
	}
	for (size_t i = 0; i < events->len; i++) {
		struct event_spec *spec = &events->items[i];

		spec->group = i < members && members > 1 ? 0 : -1;
		spec->counted = i > 0 && i < members;
		spec->leader = !spec->counted;
		spec->weak = true;
	}
}

static int prepare(const struct stat_setup *setup, struct recorder *recorder,
		   struct event_list *events, struct counts *counts, struct err *err)
{
	int ret;

	/* What is not here is left out, before there is a leader. */
	for (size_t i = 0; i < events->len; i++) {
		events->items[i].counted = true;
		events->items[i].group = -1;
		events->items[i].leader = true;
	}
	ret = event_list_probe(events, true, err);
	if (!ret)
		ret = choose_leader(events, err);
	if (!ret)
		make_group(events);
	if (!ret)
		ret = event_list_probe(events, recorder_reads_groups(recorder, setup->target), err);
	if (!ret)
		counts_init(counts, events, setup->metrics);
	return ret;
}

int stat_sample(struct stat_setup *setup, struct err *err)
{
	uint64_t limit = event_max_sample_rate();

	setup->memory_fd = memfd_create("pyperf-stat", MFD_CLOEXEC);
	if (setup->memory_fd < 0)
		return err_sys(err, errno, "cannot keep samples in memory");
	snprintf(setup->path, sizeof(setup->path), "/proc/self/fd/%d", setup->memory_fd);
	setup->options.path = setup->path;
	setup->options.counting = false;
	setup->options.python = RECORDER_PYTHON_AUTO;
	setup->options.frequency = limit && limit < RECORDER_DEFAULT_HZ ? limit
									: RECORDER_DEFAULT_HZ;
	setup->options.zstd_level = 1;
	setup->prepare = prepare;
	return 0;
}

void stat_close(struct stat_setup *setup)
{
	if (setup->memory_fd >= 0)
		close(setup->memory_fd);
	setup->memory_fd = -1;
}

struct sharing {
	struct counts *counts;
	struct counts_rows *rows; /* of functions, or of threads */
	const struct profile *profile;
	struct map row_of; /* function or thread -> index + 1 */
	double *factors;   /* of each event's samples to its count */
	double *left;	   /* of each event's count, to nobody so far */
};

static struct counts_row *add_row(struct sharing *sharing, const char *label)
{
	struct counts_row row, *slot;

	if (!counts_new_row(sharing->counts, &row, label))
		return NULL;
	slot = vec_push(sharing->rows);
	if (slot)
		*slot = row;
	else
		counts_row_fini(&row);
	return slot;
}

/* "Model.fit (train.py:12)" */
static void function_label(const struct profile *profile, uint32_t id, struct strbuf *label)
{
	const struct profile_function *function = profile_function(profile, id);
	const char *file = profile_text(profile, function->file), *slash = strrchr(file, '/');

	strbuf_printf(label, "%s (%s:%u)", profile_text(profile, function->qualname),
		      slash ? slash + 1 : file, function->line);
}

static void thread_label(const struct profile *profile, uint32_t id, struct strbuf *label)
{
	const struct profile_thread *thread = profile_thread(profile, id);

	strbuf_printf(label, "%s %u", profile_text(profile, thread->comm), thread->tid);
	if (thread->pid != thread->tid)
		strbuf_printf(label, " (of %u)", thread->pid);
}

static struct counts_row *row_of(struct sharing *sharing, uint32_t id,
				 void (*name)(const struct profile *profile, uint32_t id,
					      struct strbuf *label))
{
	uint64_t *index = map_put(&sharing->row_of, id, NULL);
	struct strbuf label = {0};
	struct counts_row *row;

	if (!index)
		return NULL;
	if (*index)
		return &sharing->rows->items[*index - 1];
	name(sharing->profile, id, &label);
	row = add_row(sharing, strbuf_text(&label));
	strbuf_fini(&label);
	*index = row ? sharing->rows->len : 0;
	return row;
}

/*
 * What the samples of an event add up to is not what was counted: of a group that was read, they
 * lack what came after the last ones, and the part of the time in which the counters were others'.
 * Of an event that was sampled on its own they are as good an estimate as chance allows; there the
 * count is parted as the samples are.
 */
static void set_factors(struct sharing *sharing)
{
	struct counts_run *run = &sharing->counts->runs.items[0];

	for (size_t e = 0; e < sharing->counts->events->len; e++) {
		const struct profile_event *event = profile_event(sharing->profile, (uint32_t)e);
		struct recorder_count *count = &run->counts[e];
		double sampled = (double)event->period_total;

		/* Who stops threads has the counters for himself. */
		if (!count->running_ns)
			*count = (struct recorder_count){
				.value = event->period_total, .enabled_ns = 1, .running_ns = 1};
		sharing->left[e] = counts_value(count);
		sharing->factors[e] = event->group  ? counts_scale(count)
				      : sampled > 0 ? sharing->left[e] / sampled
						    : 0;
	}
}

static int share_among_functions(struct sharing *sharing, const struct view *view, struct err *err)
{
	size_t events = sharing->counts->events->len;

	for (size_t i = 0; i < view->count; i++) {
		struct counts_row *row = row_of(sharing, view->rows[i].function, function_label);

		if (!row)
			return err_nomem(err);
		for (size_t e = 0; e < events; e++) {
			double part = (double)view->rows[i].counts[e].self * sharing->factors[e];

			row->values[e] += part;
			sharing->left[e] -= part;
		}
	}
	return 0;
}

static int share_among_threads(struct sharing *sharing, struct err *err)
{
	for (size_t i = 0; i < profile_cell_count(sharing->profile); i++) {
		const struct profile_cell *cell = profile_cell(sharing->profile, i);
		struct counts_row *row;
		double part;

		if (cell->event >= sharing->counts->events->len)
			continue;
		row = row_of(sharing, cell->thread, thread_label);
		if (!row)
			return err_nomem(err);
		part = (double)cell->period * sharing->factors[cell->event];
		row->values[cell->event] += part;
		sharing->left[cell->event] -= part;
	}
	return 0;
}

static int by_count(const void *a, const void *b)
{
	const struct counts_row *x = a, *y = b;

	if (x->values[0] != y->values[0])
		return x->values[0] < y->values[0] ? 1 : -1;
	return strcmp(x->label, y->label);
}

/* Small ones become one row; of those that are left, the metrics are worth something. */
static int fold(struct sharing *sharing, double least, struct err *err)
{
	struct counts_rows *rows = sharing->rows;
	size_t kept = 0, events = sharing->counts->events->len, others;
	struct counts_row rest;
	char label[64];

	while (kept < rows->len && rows->items[kept].values[0] >= least)
		kept++;
	others = rows->len - kept;
	if (others < 2)
		return 0;
	snprintf(label, sizeof(label), "[%zu others]", others);
	if (!counts_new_row(sharing->counts, &rest, label))
		return err_nomem(err);
	for (size_t i = kept; i < rows->len; i++) {
		for (size_t e = 0; e < events; e++)
			rest.values[e] += rows->items[i].values[e];
		counts_row_fini(&rows->items[i]);
	}
	rows->items[kept] = rest;
	rows->len = kept + 1;
	return 0;
}

/* What is in samples without a Python function, and what is in none. */
static int add_rest(struct sharing *sharing, const struct view *view, struct err *err)
{
	struct counts_row *outside = view ? add_row(sharing, "[no Python function]") : NULL,
			  *behind;
	const struct counts *counts = sharing->counts;

	if (view && !outside)
		return err_nomem(err);
	for (size_t e = 0; view && e < counts->events->len; e++) {
		double sampled = (double)view->period_total[e] * sharing->factors[e];
		double in_rows = counts_value(&counts->runs.items[0].counts[e]) - sharing->left[e];

		outside->values[e] = sampled > in_rows ? sampled - in_rows : 0;
		sharing->left[e] -= outside->values[e];
	}
	behind = add_row(sharing, "[after the last samples]");
	if (!behind)
		return err_nomem(err);
	for (size_t e = 0; e < counts->events->len; e++)
		behind->values[e] = sharing->left[e];
	return 0;
}

static int share_out(struct sharing *sharing, const struct stat_setup *setup, struct err *err)
{
	const struct view_filter everything = {0};
	struct counts *counts = sharing->counts;
	struct view *view = NULL;
	int ret = 0;

	set_factors(sharing);
	if (setup->by_thread)
		ret = share_among_threads(sharing, err);
	else
		ret = view_lines(&view, sharing->profile, &everything, UINT32_MAX, 0, err);
	if (!ret && view)
		ret = share_among_functions(sharing, view, err);
	if (!ret && sharing->rows->len)
		qsort(sharing->rows->items, sharing->rows->len, sizeof(*sharing->rows->items),
		      by_count);
	if (!ret && !setup->all)
		ret = fold(sharing, SHOWN_LEAST * counts_value(&counts->runs.items[0].counts[0]),
			   err);
	if (!ret)
		ret = add_rest(sharing, view, err);
	for (size_t i = 0; !ret && i < sharing->rows->len; i++)
		counts_measure(counts, &sharing->rows->items[i]);
	view_free(view);
	return ret;
}

int stat_share(const struct stat_setup *setup, struct counts *counts, struct err *err)
{
	const struct profile_options options = {.by_pmu = true}; /* as they were counted */
	struct sharing sharing = {
		.counts = counts,
		.rows = setup->by_thread ? &counts->threads : &counts->functions,
	};
	struct profile *profile = NULL;
	struct data_file *file = NULL;
	int ret;

	if (setup->memory_fd < 0 || !counts->runs.len)
		return 0;
	sharing.factors = calloc(counts->events->len, sizeof(*sharing.factors));
	sharing.left = calloc(counts->events->len, sizeof(*sharing.left));
	ret = sharing.factors && sharing.left ? data_open(&file, setup->path, err) : err_nomem(err);
	if (!ret)
		ret = profile_load(&profile, file, &options, err);
	sharing.profile = profile;
	if (!ret)
		ret = share_out(&sharing, setup, err);
	profile_free(profile);
	data_close(file);
	map_fini(&sharing.row_of);
	free(sharing.factors);
	free(sharing.left);
	return ret;
}
