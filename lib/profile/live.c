#include "profile/live.h"

#include "perfmap/code.h"
#include "profile/apply.h"
#include "profile/hybrid.h"
#include "profile/objects.h"
#include "profile/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/*
 * The cells of the profile hold the counts of the interval at hand while samples come, and those
 * that are shown while they are looked at. collect() takes them out: they go into the list of their
 * interval, of which the window is made, and into the sums of all. So each figure is a sum of whole
 * numbers, and what leaves the window leaves no trace.
 *
 * The parts of an event that a hybrid CPU's PMUs count are taken in apart, and shown as their sum.
 */
#define STACKS_MAX (1u << 19) /* nodes of the tree of stacks */
#define TABLE_MAX (1u << 17)  /* rows of any other table */
#define PAGES_MAX (1u << 21)  /* that faulted */
#define PROCESS_RECORDS_MAX (1u << 20)

struct sums {
	uint64_t samples, period;
	double square;
};

struct interval {
	uint64_t begin, samples;
	struct {
		VEC_OF(struct cell_delta)
	} cells;
	struct {
		VEC_OF(struct product_delta)
	} products;
};
struct cell_delta {
	uint32_t cell;
	struct sums sums;
};
struct product_delta {
	uint32_t product;
	double sum;
};

struct live {
	struct live_options options;
	struct profile *profile;
	struct applier applier;
	struct resolver *resolver;
	uint32_t *homes;	    /* by event: the one that it is shown as */
	struct interval *intervals; /* ring of options.window; that of `turn` is the one at hand */
	uint32_t turn;
	struct {
		VEC_OF(struct sums)
	} all; /* by cell */
	struct {
		VEC_OF(double)
	} all_products;
	struct map seen; /* tid -> turn << 32 | stack of its last sample */
	uint64_t begin, samples;
	uint64_t process_records;
	unsigned int renewals;
	bool shown; /* the cells hold what live_profile() put there */
};

static struct interval *interval_at(const struct live *live, uint32_t turn)
{
	return &live->intervals[turn % live->options.window];
}

static void interval_clear(struct interval *interval, uint64_t begin)
{
	interval->cells.len = interval->products.len = 0;
	interval->samples = 0;
	interval->begin = begin;
}

/* Kept beside the cell's counts: only where the thread is now. */
static int note_seen(const struct profile_sample *sample, void *ctx, struct err *err)
{
	struct live *live = ctx;
	uint32_t tid = profile_thread(live->profile, sample->thread)->tid;
	uint64_t *seen = map_put(&live->seen, tid, NULL);

	if (!seen)
		return err_nomem(err);
	*seen = (uint64_t)live->turn << 32 | sample->stack;
	return 0;
}

static int add_events(struct live *live, struct err *err)
{
	for (size_t i = 0; i < live->options.event_count; i++) {
		const struct live_event *from = &live->options.events[i];
		struct profile_event *event = vec_push(&live->profile->events);

		if (!event)
			return err_nomem(err);
		event->name = profile_keep(live->profile, from->name);
		event->attr = *from->attr;
		event->sampled = true;
		if (from->attr->freq)
			event->frequency = (double)from->attr->sample_freq;
		else
			event->period = from->attr->sample_period;
		if (!event->name)
			return err_nomem(err);
	}
	for (uint32_t i = 0; i < live->options.event_count; i++)
		live->homes[i] = hybrid_home(live->profile, i);
	return 0;
}

static int begin_profile(struct live *live, struct err *err)
{
	struct utsname host = {0};
	struct data_info info = {.hostname = host.nodename, .os_release = host.release};
	const struct applier_options options = {
		.native = live->options.native,
		.os_release = host.release,
		.ids = {live->options.event_of, live->options.ctx},
		.on_sample = note_seen,
		.ctx = live,
	};

	uname(&host);
	live->profile = profile_new();
	if (!live->profile)
		return err_nomem(err);
	live->profile->objects = objects_new(live->profile->processes, &info);
	live->profile->jit.live = live->profile->jit.timed = true;
	live->profile->jit.maps_live = live->profile->jit.maps_grow = true;
	live->resolver = resolver_new(live->profile, false);
	if (!live->profile->objects || !live->resolver ||
	    applier_init(&live->applier, live->profile, &options) < 0)
		return err_nomem(err);
	return add_events(live, err);
}

static void end_profile(struct live *live)
{
	resolver_free(live->resolver);
	applier_fini(&live->applier);
	profile_free(live->profile);
	live->resolver = NULL;
	live->profile = NULL;
	live->applier = (struct applier){0};
}

int live_new(struct live **result, const struct live_options *options, uint64_t now,
	     struct err *err)
{
	struct live *live = calloc(1, sizeof(*live));
	int ret;

	if (!live)
		return err_nomem(err);
	live->options = *options;
	live->intervals = calloc(options->window, sizeof(*live->intervals));
	live->homes = calloc(options->event_count + 1, sizeof(*live->homes));
	ret = live->intervals && live->homes ? begin_profile(live, err) : err_nomem(err);
	if (ret) {
		live_free(live);
		return ret;
	}
	live_reset(live, now);
	*result = live;
	return 0;
}

void live_free(struct live *live)
{
	if (!live)
		return;
	end_profile(live);
	for (unsigned int i = 0; live->intervals && i < live->options.window; i++) {
		vec_fini(&live->intervals[i].cells);
		vec_fini(&live->intervals[i].products);
	}
	free(live->intervals);
	free(live->homes);
	vec_fini(&live->all);
	vec_fini(&live->all_products);
	map_fini(&live->seen);
	free(live);
}

struct py_codes *live_codes(struct live *live)
{
	return live->profile->codes;
}

static void clear_cells(struct live *live)
{
	struct profile *profile = live->profile;

	for (uint32_t i = 0; i < profile->cells.count; i++) {
		struct profile_cell *cell = keyed_at(&profile->cells, i);

		cell->samples = cell->period = 0;
		cell->square = 0;
	}
	for (uint32_t i = 0; i < profile->products.count; i++)
		((struct profile_product *)keyed_at(&profile->products, i))->sum = 0;
	live->shown = false;
}

int live_sample(struct live *live, const struct perf_event_header *record, uint32_t event,
		const void *frames, size_t frames_len, struct err *err)
{
	struct applier_sample in = {.record = record, .event = event};
	struct record_sample sample;

	if (event >= live->options.event_count ||
	    !record_decode_sample(record, live->options.events[event].attr, &sample))
		return 0;
	if (live->shown)
		clear_cells(live);
	if (frames && chain_frames_sound(frames, frames_len))
		in.frames = frames;
	in.hash = applier_hash(&live->applier, &sample, record->misc, in.frames);
	live->applier.time = sample.id.time;
	live->samples++;
	interval_at(live, live->turn)->samples++;
	return applier_sample(&live->applier, &in, err);
}

int live_sideband(struct live *live, const struct perf_event_header *record, struct err *err)
{
	struct record_id origin = {0};

	live->process_records++;
	if (live->options.event_count)
		record_decode_id(record, live->options.events[0].attr, &origin);
	live->applier.time = origin.time;
	return applier_record(&live->applier, record, &origin, err);
}

static void add(struct sums *to, const struct sums *from)
{
	to->samples += from->samples;
	to->period += from->period;
	to->square += from->square;
}

/* All items up to the count, zeroed; false when memory ran out. */
static bool cover(struct live *live)
{
	while (live->all.len < live->profile->cells.count)
		if (!vec_push(&live->all))
			return false;
	while (live->all_products.len < live->profile->products.count)
		if (!vec_push(&live->all_products))
			return false;
	return true;
}

/* What was counted since the last time. */
static int collect(struct live *live, struct err *err)
{
	struct profile *profile = live->profile;
	struct interval *interval = interval_at(live, live->turn);

	if (live->shown)
		return 0;
	if (account_settle(&live->applier.account, err) < 0 || !cover(live))
		return err_nomem(err);
	for (uint32_t i = 0; i < profile->cells.count; i++) {
		const struct profile_cell *cell = keyed_at(&profile->cells, i);
		const struct sums sums = {cell->samples, cell->period, cell->square};
		struct cell_delta *delta;

		if (!sums.samples && !sums.period)
			continue;
		delta = vec_push(&interval->cells);
		if (!delta)
			return err_nomem(err);
		*delta = (struct cell_delta){i, sums};
		add(&live->all.items[i], &sums);
	}
	for (uint32_t i = 0; i < profile->products.count; i++) {
		double sum = ((const struct profile_product *)keyed_at(&profile->products, i))->sum;
		struct product_delta *delta = sum > 0 ? vec_push(&interval->products) : NULL;

		if (sum > 0 && !delta)
			return err_nomem(err);
		if (!delta)
			continue;
		*delta = (struct product_delta){i, sum};
		live->all_products.items[i] += sum;
	}
	clear_cells(live);
	return 0;
}

static void show(struct live *live, uint32_t cell, const struct sums *sums)
{
	struct profile_cell *shown = keyed_at(&live->profile->cells, cell);
	uint32_t home = live->homes[shown->event];

	if (home != shown->event) {
		uint32_t id = profile_add_cell(live->profile, shown->thread, shown->stack, home);

		if (id == KEYED_NONE)
			return;
		shown = keyed_at(&live->profile->cells, id);
	}
	shown->samples += sums->samples;
	shown->period += sums->period;
	shown->square += sums->square;
}

static void show_product(struct live *live, uint32_t product, double sum)
{
	struct profile_product *shown = keyed_at(&live->profile->products, product);
	const struct profile_pair *pair = keyed_at(&live->profile->pairs, shown->pair);
	uint32_t a = live->homes[pair->a], b = live->homes[pair->b];

	if (a != pair->a || b != pair->b)
		profile_add_product(live->profile, shown->thread, shown->stack, a, b, sum);
	else
		shown->sum += sum;
}

struct profile *live_profile(struct live *live, bool all)
{
	/* Short of memory, what is there is shown. */
	collect(live, NULL);
	hybrid_join_events(live->profile, live->homes, NULL);
	resolver_run(live->resolver, NULL);
	clear_cells(live);
	for (uint32_t i = 0; all && i < live->all.len; i++)
		show(live, i, &live->all.items[i]);
	for (uint32_t i = 0; all && i < live->all_products.len; i++)
		show_product(live, i, live->all_products.items[i]);
	for (unsigned int w = 0; !all && w < live->options.window; w++) {
		const struct interval *interval = &live->intervals[w];

		for (size_t i = 0; i < interval->cells.len; i++)
			show(live, interval->cells.items[i].cell, &interval->cells.items[i].sums);
		for (size_t i = 0; i < interval->products.len; i++)
			show_product(live, interval->products.items[i].product,
				     interval->products.items[i].sum);
	}
	live->shown = true;
	return live->profile;
}

int live_turn(struct live *live, uint64_t now, struct err *err)
{
	int ret = collect(live, err);

	if (!ret)
		ret = resolver_run(live->resolver, err);
	live->turn++;
	interval_clear(interval_at(live, live->turn), now);
	return ret;
}

void live_reset(struct live *live, uint64_t now)
{
	collect(live, NULL);
	for (unsigned int i = 0; i < live->options.window; i++)
		interval_clear(&live->intervals[i], now);
	live->all.len = live->all_products.len = 0;
	live->begin = now;
	live->samples = 0;
	clear_cells(live);
}

bool live_is_full(const struct live *live)
{
	const struct profile *profile = live->profile;

	return profile->stacks.nodes.len > STACKS_MAX || profile->cells.count > TABLE_MAX ||
	       profile->frames.count > TABLE_MAX || profile->functions.count > TABLE_MAX ||
	       profile->codes_seen.count > TABLE_MAX ||
	       py_codes_count(profile->codes) > TABLE_MAX || profile->threads.count > TABLE_MAX ||
	       live->applier.task_list.len > TABLE_MAX || profile->memuse.pages.count > PAGES_MAX ||
	       live->process_records > PROCESS_RECORDS_MAX;
}

int live_renew(struct live *live, uint64_t now, struct err *err)
{
	struct reads reads = live->applier.account.reads;
	int ret;

	/* Counters go on from where they are. */
	live->applier.account.reads = (struct reads){0};
	end_profile(live);
	map_fini(&live->seen);
	live->process_records = 0;
	live->renewals++;
	ret = begin_profile(live, err);
	if (ret) {
		reads_fini(&reads);
		return ret;
	}
	reads_fini(&live->applier.account.reads);
	live->applier.account.reads = reads;
	live_reset(live, now);
	return 0;
}

unsigned int live_renewals(const struct live *live)
{
	return live->renewals;
}

uint64_t live_since(const struct live *live, bool all)
{
	uint64_t since = interval_at(live, live->turn)->begin;

	for (unsigned int i = 0; i < live->options.window; i++)
		if (live->intervals[i].begin < since)
			since = live->intervals[i].begin;
	return all ? live->begin : since;
}

uint64_t live_samples(const struct live *live, bool all)
{
	uint64_t samples = 0;

	for (unsigned int i = 0; i < live->options.window; i++)
		samples += live->intervals[i].samples;
	return all ? live->samples : samples;
}

uint32_t live_function_of(const struct live *live, uint32_t tid, uint32_t *line)
{
	const uint64_t *seen = map_get(&live->seen, tid);
	uint32_t stack = seen ? (uint32_t)*seen : 0;
	const struct profile_frame *frame;

	*line = 0;
	if (!stack || (uint32_t)(*seen >> 32) + 1 < live->turn)
		return UINT32_MAX;
	frame = profile_frame(live->profile, profile_stack(live->profile, stack)->frame);
	*line = frame->line;
	return frame->function;
}
