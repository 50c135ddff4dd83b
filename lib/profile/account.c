#include "profile/account.h"

#include "base/bytes.h"
#include "profile/metric.h"
#include "profile/store.h"

#include <stdio.h>
#include <string.h>

#define GAP_MAX 1.1 /* of a longer time that was throttled too little is left to scale up */

/* "6.12.3-amd64": since 6.16 throttling stops a group as a whole (linux kernel/events/core.c,
 * perf_event_throttle_group()). */
static bool throttles_alone(const char *release)
{
	int major = 0, minor = 0;

	return release && sscanf(release, "%d.%d", &major, &minor) == 2 &&
	       (major < 6 || (major == 6 && minor < 16));
}

void account_init(struct account *account, struct profile *profile, struct account_ids ids,
		  const char *os_release)
{
	*account = (struct account){.profile = profile, .ids = ids};
	account->throttles_alone = throttles_alone(os_release);
	reads_init(&account->reads);
}

void account_fini(struct account *account)
{
	reads_fini(&account->reads);
	vec_fini(&account->groups);
	vec_fini(&account->blocks);
	vec_fini(&account->words);
	map_fini(&account->recent);
	vec_fini(&account->rates);
}

static struct account_recent *recent_of(struct account *account, uint32_t event, uint32_t cpu)
{
	bool added;
	uint64_t *index = map_put(&account->recent, (uint64_t)event << 32 | cpu, &added);

	if (!index)
		return NULL;
	if (added) {
		*index = account->rates.len;
		if (!vec_push(&account->rates))
			return NULL;
	}
	return &account->rates.items[*index];
}

static void note_rate(struct account_recent *recent, uint64_t time, uint64_t period)
{
	unsigned int at = recent->count++ % RECENT;

	recent->times[at] = time;
	recent->periods[at] = period;
}

/* Counts per ns in the last samples; 0 where there are too few. */
static double rate_of(const struct account_recent *recent)
{
	unsigned int have = recent->count < RECENT ? recent->count : RECENT;
	unsigned int oldest = (recent->count - have) % RECENT;
	uint64_t last = recent->times[(recent->count + RECENT - 1) % RECENT], sum = 0;

	if (have < 2 || last <= recent->times[oldest])
		return 0;
	for (unsigned int i = 0; i < have; i++)
		if (i != oldest)
			sum += recent->periods[i];
	return (double)sum / (double)(last - recent->times[oldest]);
}

int account_throttle(struct account *account, const struct perf_event_header *record,
		     const struct record_id *origin, struct err *err)
{
	struct bytes in = bytes_of(record + 1, record->size - sizeof(*record));
	uint64_t time = bytes_u64(&in), id = bytes_u64(&in);
	int event = account->ids.event(account->ids.ctx, id);
	struct account_recent *recent;
	struct profile_event *profiled;

	if (in.bad || event < 0 || (size_t)event >= account->profile->events.len)
		return ERR_CORRUPT;
	recent = recent_of(account, (uint32_t)event, origin->has_cpu ? origin->cpu : 0);
	if (!recent)
		return err_nomem(err);
	profiled = &account->profile->events.items[event];
	if (record->type == PERF_RECORD_THROTTLE) {
		profiled->throttled++;
		if (!recent->throttled_at)
			recent->throttled_at = time;
	} else if (recent->throttled_at && time > recent->throttled_at) {
		uint64_t duration = time - recent->throttled_at;

		profiled->throttled_ns += duration;
		recent->throttled_ns += duration;
		if (!(profiled->attr.sample_type & PERF_SAMPLE_READ))
			profiled->missed += rate_of(recent) * (double)duration;
		recent->throttled_at = 0;
	}
	return 0;
}

int account_exit(struct account *account, uint32_t tid, struct err *err)
{
	return reads_exit(&account->reads, tid) ? 0 : err_nomem(err);
}

void account_id_index(struct account *account, const struct perf_event_header *record)
{
	struct bytes in = bytes_of(record + 1, record->size - sizeof(*record));
	uint64_t count = bytes_u64(&in);

	/* id, idx, cpu, tid: no thread means that the event is a CPU's, whatever `inherit` says. */
	for (uint64_t i = 0; i < count && !in.bad; i++) {
		bytes_take(&in, 24);
		if (bytes_u64(&in) == UINT64_MAX && !in.bad)
			account->reads.by_cpu = true;
	}
}

/* The event's place in the group, or -1: then its counts are left out. */
static int member_of(struct account *account, struct account_group *group, uint64_t id, bool first)
{
	int event = account->ids.event(account->ids.ctx, id);

	if (event < 0 || (size_t)event >= account->profile->events.len)
		return -1;
	for (unsigned int i = 0; i < group->count; i++)
		if (group->members[i] == (uint32_t)event)
			return (int)i;
	if (!first)
		return -1;
	group->members[group->count] = (uint32_t)event;
	group->plays[group->count] = metric_role_of(account->profile->events.items[event].name,
						    &account->profile->events.items[event].attr) !=
				     ROLE_NONE;
	return (int)group->count++;
}

/* Of each event the sum and the number of samples, then the products. */
static size_t block_size(const struct account_group *group)
{
	return 2 * group->count + group->count * (group->count + 1) / 2;
}

/* The words of the cell's block, or NULL. */
static union account_word *block_of(struct account *account, uint32_t cell,
				    const struct account_group *group)
{
	size_t size = block_size(group), start = account->words.len;

	while (account->blocks.len <= cell)
		if (!vec_push(&account->blocks))
			return NULL;
	if (account->blocks.items[cell])
		return &account->words.items[account->blocks.items[cell] - 1];
	if (start + size > account->words.cap &&
	    !vec_reserve(&account->words, start + size + account->words.cap / 2))
		return NULL;
	account->words.len += size;
	memset(&account->words.items[start], 0, size * sizeof(account->words.items[0]));
	account->blocks.items[cell] = start + 1;
	return &account->words.items[start];
}

/* Adds counts, and the product of each two of them, in the order 00 01 11 02 12 22 ... */
static void add_block(union account_word *block, const uint64_t *counts, unsigned int n)
{
	union account_word *product = block + 2 * n;

	for (unsigned int j = 0; j < n; j++) {
		block[2 * j].count += counts[j];
		block[2 * j + 1].count += counts[j] != 0;
		for (unsigned int i = 0; i <= j; i++)
			(product++)->product += (double)counts[i] * (double)counts[j];
	}
}

/* By how much counts are to be scaled up that stood still for a part of the time; 0: too long. */
static double gap_factor(const struct account_recent *recent, const struct read_counts *read)
{
	double ran = (double)read->ran, still = (double)recent->throttled_ns;

	if (!recent->throttled_ns || !read->ran)
		return 1;
	return ran > GAP_MAX * still ? ran / (ran - still) : 0;
}

/* A read that is good: *own is what it says of the sampled event itself. */
static int take_counts(struct account *account, uint32_t cell, uint32_t event,
		       const struct read_counts *read, double factor, uint64_t *own,
		       struct err *err)
{
	struct account_group *group;
	uint64_t counts[READ_VALUES_MAX] = {0};
	union account_word *block;
	bool first;

	while (account->groups.len <= event)
		if (!vec_push(&account->groups))
			return err_nomem(err);
	group = &account->groups.items[event];
	first = group->count == 0;
	for (unsigned int i = 0; i < read->count; i++) {
		int member = member_of(account, group, read->values[i].id, first);
		struct profile_event *profiled;

		if (member < 0)
			continue;
		profiled = &account->profile->events.items[group->members[member]];
		profiled->enabled_ns += read->enabled;
		profiled->running_ns += read->running;
		if (first && !profiled->group)
			profiled->group = event + 1;
		counts[member] = read->values[i].count;
		if (group->members[member] == event || !account->throttles_alone)
			counts[member] = (uint64_t)((double)counts[member] * factor + 0.5);
		if (group->members[member] == event)
			*own = counts[member];
	}
	block = block_of(account, cell, group);
	if (!block)
		return err_nomem(err);
	add_block(block, counts, group->count);
	for (unsigned int i = 0; i < group->count; i++) {
		struct profile_event *profiled = &account->profile->events.items[group->members[i]];

		if (group->members[i] == event)
			continue;
		profiled->samples += counts[i] != 0;
		profiled->period_total += counts[i];
	}
	return 0;
}

static uint64_t period_of(const struct perf_event_attr *attr, const struct record_sample *sample)
{
	if (attr->sample_type & PERF_SAMPLE_PERIOD)
		return sample->period;
	return attr->freq ? 1 : attr->sample_period;
}

int account_sample(struct account *account, uint32_t cell_id, uint32_t event,
		   struct record_sample *sample, struct err *err)
{
	struct profile_event *profiled = &account->profile->events.items[event];
	const struct perf_event_attr *attr = &profiled->attr;
	struct account_recent *recent = recent_of(account, event,
						  sample->id.has_cpu ? sample->id.cpu : 0);
	uint64_t period = period_of(attr, sample), own = 0;
	struct read_counts read;
	struct profile_cell *cell;
	int rc = 0;

	if (!recent)
		return err_nomem(err);
	note_rate(recent, sample->id.time, period);
	if (attr->sample_type & PERF_SAMPLE_READ) {
		enum read_fate fate = reads_take(&account->reads, sample, attr, &read);
		double factor = fate == READ_GOOD ? gap_factor(recent, &read) : 0;

		if (fate == READ_NOMEM)
			return err_nomem(err);
		if (factor > 0)
			rc = take_counts(account, cell_id, event, &read, factor, &own, err);
		if (rc < 0)
			return rc;
		account->profile->summary.reads_idle += fate == READ_IDLE;
		account->profile->summary.reads_dropped += fate == READ_BACKWARDS ||
							   fate == READ_NONE;
		account->profile->summary.reads_throttled += fate == READ_GOOD && factor == 0;
		recent->throttled_ns = 0;
		period = own;
	}
	sample->period = period;
	cell = keyed_at(&account->profile->cells, cell_id);
	cell->samples++;
	cell->period += period;
	cell->square += (double)period * (double)period;
	profiled->samples++;
	profiled->period_total += period;
	return memuse_add(&account->profile->memuse, attr, sample, cell->thread, cell->stack)
		       ? 0
		       : err_nomem(err);
}

/* Turns a cell's block into cells of the group's other events, and products. */
static int spread(struct account *account, uint32_t cell_id, struct err *err)
{
	const struct profile_cell from = *(const struct profile_cell *)keyed_at(
		&account->profile->cells, cell_id);
	const struct account_group *group = &account->groups.items[from.event];
	const union account_word *block = &account->words.items[account->blocks.items[cell_id] - 1];
	const union account_word *product = block + 2 * group->count;

	for (unsigned int j = 0; j < group->count; j++) {
		for (unsigned int i = 0; i < j; i++, product++)
			if (group->plays[i] && group->plays[j] &&
			    !profile_add_product(account->profile, from.thread, from.stack,
						 group->members[i], group->members[j],
						 product->product))
				return err_nomem(err);
		if (group->members[j] != from.event && block[2 * j + 1].count) {
			uint32_t id = profile_add_cell(account->profile, from.thread, from.stack,
						       group->members[j]);
			struct profile_cell *cell;

			if (id == KEYED_NONE)
				return err_nomem(err);
			cell = keyed_at(&account->profile->cells, id);
			cell->samples += block[2 * j + 1].count;
			cell->period += block[2 * j].count;
			cell->square += product->product;
		}
		product++;
	}
	return 0;
}

/* What the event counted in all: as the recorder read it, or with what is known to be missing. */
static double estimate_total(const struct account *account, const struct profile_event *event)
{
	double total = (double)event->period_total + event->missed;

	/* An event that is throttled does not count, though its time goes on. */
	if (event->exact && event->running_ns > event->throttled_ns)
		return event->exact_total * (double)event->running_ns /
		       (double)(event->running_ns - event->throttled_ns);
	if (event->exact)
		return event->exact_total;
	/* Reads are differences: what lost samples stand for is in the next one's. */
	if (!event->group && account->records)
		total *= 1 + (double)account->profile->summary.lost / (double)account->records;
	return total;
}

int account_settle(struct account *account, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < account->blocks.len && !rc; i++)
		if (account->blocks.items[i])
			rc = spread(account, (uint32_t)i, err);
	if (account->words.len)
		memset(account->words.items, 0,
		       account->words.len * sizeof(account->words.items[0]));
	for (size_t i = 0; i < account->profile->events.len; i++) {
		struct profile_event *event = &account->profile->events.items[i];

		event->estimated_total = estimate_total(account, event);
	}
	return rc;
}
