#include "profile/store.h"

#include "arch/arch.h"
#include "base/map.h"
#include "base/progress.h"
#include "perfmap/code.h"
#include "perfmap/frames.h"
#include "perfmap/source.h"
#include "process/process.h"
#include "profile/apply.h"
#include "profile/auxtrace.h"
#include "profile/hybrid.h"
#include "profile/objects.h"
#include "profile/pair.h"
#include "profile/phase.h"
#include "profile/shown.h"
#include "profile/spans.h"
#include "ring/order.h"
#include "ring/record.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Reading a file into a profile.
 *
 * A record is handled twice. Intake sees it in the order of the file, which is the order of each
 * CPU's ring: there Python frames are paired with their sample, and losses are counted. What
 * changes or needs the process model is then queued and put in the order of time, and applied
 * (apply.h).
 */
#define DISCARD_BYTES (1u << 20)

/* A record that waits for its turn; its number in the queue is its position for the order. */
struct queued {
	const void *frames; /* of a sample: its Python frames, or NULL */
	uint64_t position;  /* nothing before it is needed by this record */
	uint64_t hash;	    /* of a sample: applier_hash() */
	uint32_t event;
};

struct loader {
	struct profile *profile;
	struct data_file *file;
	const struct profile_options *options;
	struct order *order;
	struct applier applier;
	struct pairing pairing;
	struct auxtrace trace;

	struct queued *queue; /* ring of queue_cap, a power of two */
	uint64_t queue_start, queue_end, queue_cap;
	uint64_t discarded;

	struct {
		VEC_OF(bool)
	} is_frames; /* by event: the walker's */
	struct {
		VEC_OF(uint32_t)
	} homes;		  /* by event: the one that it is shown as */
	struct spans phase, time; /* of the samples that are wanted */
};

/* Events may appear on the way in pipe mode. */
static int read_events(struct loader *l, struct err *err)
{
	size_t count = data_event_count(l->file);

	while (l->profile->events.len < count) {
		const struct data_event *in = data_event(l->file, l->profile->events.len);
		struct profile_event *event = vec_push(&l->profile->events);
		bool *is_frames = vec_push(&l->is_frames);
		uint32_t *home = vec_push(&l->homes), index = (uint32_t)l->profile->events.len - 1;
		bool software = in->attr.type == PERF_TYPE_SOFTWARE;

		if (!event || !is_frames || !home)
			return err_nomem(err);
		event->name = profile_keep(l->profile, in->name ? in->name : "unknown");
		if (!event->name)
			return err_nomem(err);
		*is_frames = software && in->attr.config == PERF_COUNT_SW_BPF_OUTPUT;
		event->sampled = !*is_frames &&
				 !(software && in->attr.config == PERF_COUNT_SW_DUMMY);
		event->attr = in->attr;
		l->profile->memuse.specific |= software &&
					       (in->attr.config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
						in->attr.config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
		if (in->attr.freq)
			event->frequency = (double)in->attr.sample_freq;
		else
			event->period = in->attr.sample_period;
		*home = l->options->by_pmu ? index : hybrid_home(l->profile, index);
	}
	return 0;
}

/* The event that a record belongs to, or -1. Where ids lie is the same in all events of a file. */
static int event_of(const struct loader *l, const struct perf_event_header *record)
{
	const struct perf_event_attr *attr;
	uint64_t id = 0;

	if (!l->profile->events.len)
		return -1;
	attr = &data_event(l->file, 0)->attr;
	if (l->profile->events.len == 1 ||
	    (record->type != PERF_RECORD_SAMPLE && !attr->sample_id_all) ||
	    !record_identifier(record, attr->sample_type, &id) || id == 0)
		return 0;
	return data_event_by_id(l->file, id);
}

/* When and where a record that is no sample came to be. */
static struct record_id origin_of(const struct loader *l, const struct perf_event_header *record)
{
	struct record_id id = {0};
	int event = event_of(l, record);

	if (event < 0 || !record_decode_id(record, &data_event(l->file, (size_t)event)->attr, &id))
		return (struct record_id){0};
	return id;
}

static bool queue_grow(struct loader *l)
{
	uint64_t cap = l->queue_cap ? l->queue_cap * 2 : 4096;
	struct queued *queue = malloc(cap * sizeof(*queue));

	if (!queue)
		return false;
	for (uint64_t i = l->queue_start; i < l->queue_end; i++)
		queue[i & (cap - 1)] = l->queue[i & (l->queue_cap - 1)];
	free(l->queue);
	l->queue = queue;
	l->queue_cap = cap;
	return true;
}

static int enqueue(struct loader *l, const struct perf_event_header *record, uint64_t time,
		   const struct queued *queued, struct err *err)
{
	if (l->queue_end - l->queue_start == l->queue_cap && !queue_grow(l))
		return err_nomem(err);
	l->queue[l->queue_end & (l->queue_cap - 1)] = *queued;
	return order_add(l->order, record, time, l->queue_end++, err);
}

/* A round ended: memory of the file that nobody will look at again is given back. */
static void discard(struct loader *l, uint64_t position)
{
	uint64_t low = order_low_water(l->order), least;

	l->queue_start = low < l->queue_end ? low : l->queue_end;
	if (position - l->discarded < DISCARD_BYTES)
		return;
	least = pairing_expire(&l->pairing, l->applier.time);
	if (position < least)
		least = position;
	for (uint64_t i = l->queue_start; i < l->queue_end; i++)
		if (l->queue[i & (l->queue_cap - 1)].position < least)
			least = l->queue[i & (l->queue_cap - 1)].position;
	data_discard(l->file, least);
	l->discarded = position;
}

/* Intake: in the order of the file. */

static int take_frames(struct loader *l, const struct record_sample *sample, uint64_t position,
		       struct err *err)
{
	struct pair_frames frames = {
		.payload = sample->raw,
		.len = sample->raw_len,
		.tid = sample->id.tid,
		.cpu = sample->id.cpu,
		.time = sample->id.time,
		.position = position,
	};
	uint32_t magic = 0;
	int rc = 0;

	if (sample->raw && sample->raw_len >= sizeof(magic))
		memcpy(&magic, sample->raw, sizeof(magic));
	if (magic == PY_RAW_CODE)
		rc = py_codes_add_raw(l->profile->codes, bytes_of(sample->raw, sample->raw_len),
				      err);
	else if (!chain_frames_sound(sample->raw, sample->raw_len))
		rc = ERR_CORRUPT;
	else if (!pairing_frames(&l->pairing, &frames))
		return err_nomem(err);
	if (rc == ERR_CORRUPT)
		l->applier.malformed++;
	return rc == ERR_NOMEM ? rc : 0;
}

static bool is_wanted(const struct loader *l, uint64_t time)
{
	return (!l->options->phase || spans_contain(&l->phase, time)) &&
	       (!l->options->time || spans_contain(&l->time, time));
}

static int take_sample(struct loader *l, const struct perf_event_header *record, uint64_t position,
		       struct err *err)
{
	int event = event_of(l, record);
	struct queued queued = {.position = position};
	struct record_sample sample;
	struct pair_frames frames;

	if (event < 0 ||
	    !record_decode_sample(record, &data_event(l->file, (size_t)event)->attr, &sample)) {
		l->applier.malformed++;
		return 0;
	}
	if (l->is_frames.items[event])
		return take_frames(l, &sample, position, err);
	if (!l->profile->events.items[event].sampled)
		return 0;
	frames = pairing_sample(&l->pairing, sample.id.cpu, sample.id.tid, sample.id.time);
	if (!is_wanted(l, sample.id.time))
		return 0;
	if (frames.payload) {
		queued.frames = frames.payload;
		queued.position = frames.position;
	}
	queued.event = (uint32_t)event;
	queued.hash = applier_hash(&l->applier, &sample, record->misc, queued.frames);
	return enqueue(l, record, sample.id.time, &queued, err);
}

static int take_sideband(struct loader *l, const struct perf_event_header *record,
			 uint64_t position, struct err *err)
{
	struct queued queued = {.position = position};

	return enqueue(l, record, origin_of(l, record).time, &queued, err);
}

static int take_lost(struct loader *l, const struct perf_event_header *record, uint64_t position,
		     struct err *err)
{
	struct record_id id = origin_of(l, record);

	pairing_lost(&l->pairing, id.has_cpu ? id.cpu : UINT32_MAX);
	l->profile->summary.lost += record_lost(record);
	return 0;
}

static int take_id_index(struct loader *l, const struct perf_event_header *record,
			 uint64_t position, struct err *err)
{
	account_id_index(&l->applier.account, record);
	return 0;
}

/* Attribution follows who runs where, which nobody else looks at. */
static int take_switch(struct loader *l, const struct perf_event_header *record, uint64_t position,
		       struct err *err)
{
	return l->trace.decodes ? take_sideband(l, record, position, err) : 0;
}

static int take_trace_facts(struct loader *l, const struct perf_event_header *record,
			    uint64_t position, struct err *err)
{
	int rc = auxtrace_note(&l->trace, record, err);

	if (rc >= 0 && l->trace.decodes)
		auxtrace_attr(&l->profile->events.items[l->trace.event].attr);
	return rc;
}

static int take_traced(const struct perf_event_header *record, uint64_t time, void *ctx,
		       struct err *err)
{
	struct loader *l = ctx;
	struct queued queued = {.position = UINT64_MAX, .event = l->trace.event};
	struct record_sample sample;

	if (!is_wanted(l, time))
		return 0;
	if (!record_decode_sample(record, &l->profile->events.items[queued.event].attr, &sample))
		return 0;
	queued.hash = applier_hash(&l->applier, &sample, record->misc, NULL);
	return enqueue(l, record, time, &queued, err);
}

static int take_trace(struct loader *l, const struct perf_event_header *record, uint64_t position,
		      struct err *err)
{
	return auxtrace_read(&l->trace, l->file, record, take_traced, l, err);
}

static int take_round(struct loader *l, const struct perf_event_header *record, uint64_t position,
		      struct err *err)
{
	int rc = auxtrace_unordered(&l->trace) ? 0 : order_round(l->order, err);

	discard(l, position);
	return rc;
}

/* By type; the order of time is the applier's. */
static int (*const takers[])(struct loader *l, const struct perf_event_header *record,
			     uint64_t position, struct err *err) = {
	[PERF_RECORD_MMAP] = take_sideband,
	[PERF_RECORD_MMAP2] = take_sideband,
	[PERF_RECORD_COMM] = take_sideband,
	[PERF_RECORD_FORK] = take_sideband,
	[PERF_RECORD_EXIT] = take_sideband,
	[PERF_RECORD_THROTTLE] = take_sideband,
	[PERF_RECORD_UNTHROTTLE] = take_sideband,
	[PERF_RECORD_LOST] = take_lost,
	[PERF_RECORD_LOST_SAMPLES] = take_lost,
	[PERF_RECORD_SAMPLE] = take_sample,
	[PERF_RECORD_AUX] = take_trace_facts,
	[PERF_RECORD_SWITCH] = take_switch,
	[PERF_RECORD_SWITCH_CPU_WIDE] = take_switch,
	[RECORD_FINISHED_ROUND] = take_round,
	[RECORD_ID_INDEX] = take_id_index,
	[RECORD_AUXTRACE_INFO] = take_trace_facts,
	[RECORD_AUXTRACE] = take_trace,
	[RECORD_TIME_CONV] = take_trace_facts,
};

static int deliver(const struct perf_event_header *record, uint64_t time, uint64_t position,
		   void *ctx, struct err *err)
{
	struct loader *l = ctx;
	const struct queued *queued = &l->queue[position & (l->queue_cap - 1)];
	struct auxtrace_sample traced;
	struct record_id origin;
	int rc;

	l->applier.time = time;
	if (record->type == PERF_RECORD_SAMPLE && l->trace.decodes &&
	    queued->event == l->trace.event) {
		auxtrace_attribute(&l->trace, record, &traced);
		record = &traced.header;
	}
	if (record->type == PERF_RECORD_SAMPLE)
		return applier_sample(&l->applier,
				      &(struct applier_sample){record, queued->event,
							       queued->frames, queued->hash},
				      err);
	origin = origin_of(l, record);
	rc = auxtrace_follow(&l->trace, record, &origin, err);
	return rc < 0 ? rc : applier_record(&l->applier, record, &origin, err);
}

static int read_build_ids(struct loader *l, struct err *err)
{
	const struct data_info *info = data_info(l->file);
	int rc = 0;

	for (size_t i = 0; i < info->build_id_count && rc >= 0; i++)
		rc = process_set_build_id(l->profile->processes, info->build_ids[i].path,
					  info->build_ids[i].id, info->build_ids[i].id_len, err);
	return rc;
}

static int decode_codes(struct loader *l, struct bytes section, struct err *err)
{
	return py_codes_decode(l->profile->codes, section, err);
}

static int decode_bytecode(struct loader *l, struct bytes section, struct err *err)
{
	return py_codes_decode_bytecode(l->profile->codes, section, err);
}

static int decode_sources(struct loader *l, struct bytes section, struct err *err)
{
	return sources_decode(l->profile->sources, section, err);
}

static int decode_maps(struct loader *l, struct bytes section, struct err *err)
{
	return jit_load_maps(&l->profile->jit, section, err);
}

static int decode_dumps(struct loader *l, struct bytes section, struct err *err)
{
	return jit_load_dumps(&l->profile->jit, section, err);
}

static int decode_symbols(struct loader *l, struct bytes section, struct err *err)
{
	return objects_load_saved(l->profile->objects, section, err);
}

/* A section that is broken is counted; what came before the break stays. */
static int decode_phases(struct loader *l, struct bytes section, struct err *err)
{
	return phases_read(l->profile, section, err);
}

static int read_section(struct loader *l, enum data_section id,
			int (*decode)(struct loader *l, struct bytes section, struct err *err),
			struct err *err)
{
	struct bytes section = data_section(l->file, id);
	int rc = bytes_left(&section) ? decode(l, section, err) : 0;

	if (rc == ERR_CORRUPT)
		l->applier.malformed++;
	return rc == ERR_CORRUPT ? 0 : rc;
}

/* Sections and features; in pipe mode they are there only after the last record. */
static int read_side_data(struct loader *l, struct err *err)
{
	struct profile *profile = l->profile;
	int rc = read_build_ids(l, err);

	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_CODE, decode_codes, err);
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_SOURCE, decode_sources, err);
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_PERFMAP, decode_maps, err);
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_JITDUMP, decode_dumps, err);
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_SYMBOL, decode_symbols, err);
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_PHASE, decode_phases, err);
	return rc < 0 ? rc : profile_read_meta(profile, l->file, err);
}

/* Which samples are wanted must be known before they come. */
static int choose_times(struct loader *l, struct err *err)
{
	const struct data_info *info = data_info(l->file);
	int rc = 0;

	if (l->options->phase && data_is_pipe(l->file))
		return err_set(err, ERR_UNSUPPORTED,
			       "a stream tells its phases at its end: write it to a file first");
	if (l->options->phase)
		rc = phases_select(l->profile, l->options->phase, &l->phase, err);
	if (rc >= 0 && l->options->time)
		rc = spans_parse(&l->time, l->options->time, info->first_sample_time,
				 info->last_sample_time, err);
	return rc;
}

static int read_records(struct loader *l, struct err *err)
{
	struct data_record record;
	uint64_t done, total;
	uint32_t work;
	int rc;

	data_progress(l->file, &done, &total);
	work = progress_start("reading records", PROGRESS_BYTES, total);
	while ((rc = data_next(l->file, &record, err)) > 0) {
		uint32_t type = record.header->type;

		data_progress(l->file, &done, &total);
		progress_at(work, done);
		if (type >= sizeof(takers) / sizeof(takers[0]) || !takers[type])
			continue;
		rc = read_events(l, err);
		l->applier.account.records += type < RECORD_FINISHED_ROUND;
		if (rc >= 0)
			rc = takers[type](l, record.header, record.position, err);
		if (rc < 0)
			break;
	}
	if (rc == 0)
		rc = order_flush(l->order, err);
	progress_end(work);
	return rc;
}

/* Dumps have the times of CLOCK_MONOTONIC. */
static bool has_dump_clock(const struct data_file *file)
{
	const struct perf_event_attr *attr = data_event_count(file) ? &data_event(file, 0)->attr
								    : NULL;

	return attr && attr->use_clockid && attr->clockid == CLOCK_MONOTONIC;
}

static bool is_ours(const struct data_file *file)
{
	struct bytes meta = data_section(file, DATA_SECTION_META);

	return bytes_left(&meta) > 0;
}

static int tell_sample(const struct profile_sample *sample, void *ctx, struct err *err)
{
	const struct loader *l = ctx;
	struct profile_sample shown = *sample;

	shown.event = l->homes.items[sample->event];
	return l->options->on_sample(&shown, l->options->ctx, err);
}

static int event_by_id(const void *file, uint64_t id)
{
	return data_event_by_id(file, id);
}

static int loader_init(struct loader *l, struct err *err)
{
	const struct data_info *info = data_info(l->file);
	const struct applier_options options = {
		.arch = info->arch ? arch_by_name(info->arch) : NULL,
		.expand = !l->options->no_inline && !l->options->no_symbols,
		.native = l->options->native,
		.os_release = info->os_release,
		.ids = {event_by_id, l->file},
		.on_sample = l->options->on_sample ? tell_sample : NULL,
		.ctx = l,
	};

	l->order = order_new(deliver, l);
	l->profile->objects = objects_new(l->profile->processes, info);
	if (!l->order || !l->profile->objects ||
	    applier_init(&l->applier, l->profile, &options) < 0)
		return err_nomem(err);
	l->profile->jit.live = objects_same_host(l->profile->objects);
	/* Our own recordings have all the maps that there were. */
	l->profile->jit.maps_live = l->profile->jit.live && !is_ours(l->file);
	l->applier.account.reads.unscaled = is_ours(l->file);
	l->profile->jit.timed = has_dump_clock(l->file);
	return read_events(l, err);
}

static void loader_fini(struct loader *l)
{
	order_free(l->order);
	applier_fini(&l->applier);
	pairing_fini(&l->pairing);
	auxtrace_fini(&l->trace);
	free(l->queue);
	vec_fini(&l->is_frames);
	vec_fini(&l->homes);
	spans_fini(&l->phase);
	spans_fini(&l->time);
}

static int load(struct loader *l, struct err *err)
{
	struct profile_summary *summary = &l->profile->summary;
	int rc = loader_init(l, err);

	if (rc >= 0 && !data_is_pipe(l->file))
		rc = read_side_data(l, err);
	if (rc >= 0)
		rc = choose_times(l, err);
	if (rc >= 0)
		rc = read_records(l, err);
	if (rc >= 0 && data_is_pipe(l->file))
		rc = read_side_data(l, err);
	/* Of code objects that the records told. */
	if (rc >= 0)
		rc = read_section(l, DATA_SECTION_BYTECODE, decode_bytecode, err);
	if (rc < 0)
		return rc;
	pairing_lost(&l->pairing, UINT32_MAX);
	summary->unpaired = l->pairing.unpaired;
	summary->malformed += l->applier.malformed;
	summary->jit_skipped = l->profile->jit.skipped;
	summary->late = order_late(l->order);
	auxtrace_finish(&l->trace);
	summary->trace_broken = l->trace.broken;
	summary->trace_truncated = l->trace.truncated;
	summary->trace_gaps = l->trace.gaps;
	summary->trace_collisions = l->trace.collisions;
	summary->trace = data_trace(l->file, &summary->trace_bytes);
	if (data_loss(l->file)) {
		summary->loss = profile_keep(l->profile, data_loss(l->file));
		if (!summary->loss)
			return err_nomem(err);
	}
	rc = profile_resolve(l->profile, l->options->no_symbols, err);
	if (rc >= 0)
		rc = profile_summarise(l->profile, err);
	if (rc >= 0)
		rc = profile_show(l->profile, &l->options->shown, err);
	if (rc >= 0)
		rc = account_settle(&l->applier.account, err);
	return rc < 0 ? rc : hybrid_join(l->profile, l->homes.items, err);
}

int profile_load(struct profile **profile, struct data_file *file,
		 const struct profile_options *options, struct err *err)
{
	static const struct profile_options defaults = {0};
	struct loader l = {.file = file, .options = options ? options : &defaults};
	int rc;

	*profile = NULL;
	l.profile = profile_new();
	if (!l.profile)
		return err_nomem(err);
	auxtrace_init(&l.trace, file);
	rc = load(&l, err);
	loader_fini(&l);
	if (rc < 0) {
		profile_free(l.profile);
		return rc;
	}
	*profile = l.profile;
	return 0;
}
