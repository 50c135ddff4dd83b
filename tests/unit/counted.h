#ifndef PYPERF_TEST_COUNTED_H
#define PYPERF_TEST_COUNTED_H

#include "tests/unit/recording.h"

#include "perfmap/perfmap.h"

#include <stdlib.h>

/*
 * Makes recordings of a program that never ran: lines of one Python function that take known
 * cycles, instructions and misses, and counters that overflow as those of a CPU would.
 *
 * Either each event is sampled on its own, at its period, or cycles lead and every sample reads the
 * group. What the lines really counted is added up beside, so that figures and intervals of a
 * profile can be compared with the truth.
 */
enum { COUNTED_CYCLES, COUNTED_INSTRUCTIONS, COUNTED_FRAMES, COUNTED_MISSES, COUNTED_EVENTS };
_Static_assert((int)COUNTED_FRAMES == (int)EVENT_FRAMES, "where the walker's event is");

#define COUNTED_FIRST 10 /* line of the function */
#define COUNTED_LINES 16
#define COUNTED_STUB 0x7f2000000000u
#define COUNTED_KERNEL 0xffffffff81000000u

struct counted_line {
	double share;	  /* of the cycles */
	double ipc, mpki; /* on the average */
	double swing;	  /* how much both change from step to step, relatively */
	double kernel;	  /* share of its time in the kernel */
};

struct counted {
	struct recording r;
	bool leads;
	uint64_t periods[COUNTED_EVENTS]; /* of events sampled on their own */
	int64_t left[COUNTED_EVENTS];	  /* until the next sample */
	struct recording_read read;
	double truth[COUNTED_LINES][COUNTED_EVENTS];
	/* Events that share one counter: each has it for `turn` ns, then the next; 0: they do not.
	 * What each counted, and for how long. */
	uint64_t turn, counted[COUNTED_EVENTS], enabled[COUNTED_EVENTS], running[COUNTED_EVENTS];
	uint64_t random;
};

static const uint64_t counted_ids[COUNTED_EVENTS][1] = {{11}, {44}, {33}, {55}};

static inline double counted_uniform(struct counted *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return (double)(c->random >> 11) * 0x1p-53;
}

static inline struct data_event counted_event(const char *name, uint64_t config, uint64_t period,
					      int leader, bool leads, bool inherit)
{
	struct data_event event = {
		.name = name,
		.attr = {.type = PERF_TYPE_HARDWARE,
			 .config = config,
			 .sample_type = RECORDING_COMMON | PERF_SAMPLE_CALLCHAIN,
			 .sample_period = period,
			 .inherit = inherit},
		.leader = leader,
	};

	if (leads) {
		event.attr.sample_type |= PERF_SAMPLE_READ;
		event.attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
					 PERF_FORMAT_TOTAL_TIME_ENABLED |
					 PERF_FORMAT_TOTAL_TIME_RUNNING;
	}
	return event;
}

/* `leads`: cycles lead, the others are counted along; `inherit`: each thread counts for itself. */
static inline void counted_open(struct counted *c, const char *path, const char *file, bool leads,
				bool inherit)
{
	static const char map[] = "7f2000000000 40 py::x:y\n";
	const uint64_t periods[] = {1000000, leads ? 0 : 1000000, 1, leads ? 0 : 2000};
	struct data_event events[COUNTED_EVENTS] = {
		counted_event("cycles", PERF_COUNT_HW_CPU_CYCLES, periods[0], 0, leads, inherit),
		counted_event("instructions", PERF_COUNT_HW_INSTRUCTIONS, periods[1],
			      leads ? 0 : COUNTED_INSTRUCTIONS, leads, inherit),
		recording_frames_event(),
		counted_event("cache-misses", PERF_COUNT_HW_CACHE_MISSES, periods[3],
			      leads ? 0 : COUNTED_MISSES, leads, inherit),
	};
	struct strbuf section = {0};

	*c = (struct counted){.leads = leads, .random = 0x9e3779b97f4a7c15};
	memcpy(c->periods, periods, sizeof(periods));
	recording_open_events(&c->r, path, 3, events, COUNTED_EVENTS, counted_ids);
	perfmap_section_add(&section, 100, map, strlen(map));
	data_writer_section(c->r.writer, DATA_SECTION_PERFMAP, section.buf, section.len, NULL);
	strbuf_fini(&section);
	c->read = (struct recording_read){.count = 3, .values = {{0, 11}, {0, 44}, {0, 55}}};
	for (int e = 0; e < COUNTED_EVENTS; e++)
		c->left[e] = (int64_t)(counted_uniform(c) * (double)c->periods[e]);
	recording_comm(&c->r, "python3", true);
	recording_mmap(&c->r, COUNTED_STUB, 0x1000, 0, "//anon");
	recording_code(&c->r, 1, 0x1000, 0, "hot", file, COUNTED_FIRST, COUNTED_LINES);
}

/* One sample of the event on the line, after its frames. */
static inline void counted_sample(struct counted *c, int event, unsigned int line, bool kernel)
{
	const struct py_raw_frame frame = {.code = 0x1000, .instr = line * 4 | PY_FRAME_ENTRY};
	const uint64_t stub = COUNTED_STUB;

	recording_frames(&c->r, 1, PY_WALK_OK, &frame, 1);
	if (c->leads)
		recording_read_sample(&c->r, event, kernel ? MISC_KERNEL : MISC_USER,
				      kernel ? COUNTED_KERNEL : stub, c->periods[event], &c->read);
	else if (kernel)
		recording_kernel_sample(&c->r, event, c->periods[event], COUNTED_KERNEL, &stub, 1);
	else
		recording_sample(&c->r, event, c->periods[event], &stub, 1);
}

static inline bool counted_has_turn(const struct counted *c, int event, uint64_t ns)
{
	return !c->turn || event == COUNTED_CYCLES ||
	       (ns / c->turn % 2 == 0) == (event == COUNTED_INSTRUCTIONS);
}

/* The line runs and counts; samples come where counters overflow. A nanosecond has 3 cycles. */
static inline void counted_step(struct counted *c, unsigned int line, bool kernel, uint64_t cycles,
				uint64_t instructions, uint64_t misses)
{
	const uint64_t counts[COUNTED_EVENTS] = {cycles, instructions, 0, misses};
	uint64_t start = c->r.time;

	c->r.time += cycles / 3;
	c->read.enabled += cycles / 3;
	c->read.running += cycles / 3;
	c->read.values[0].value += cycles;
	c->read.values[1].value += instructions;
	c->read.values[2].value += misses;
	for (int e = 0; e < COUNTED_EVENTS; e++) {
		c->truth[line][e] += (double)counts[e];
		c->enabled[e] += cycles / 3;
		if (e == COUNTED_FRAMES || !c->periods[e] || !counted_has_turn(c, e, start))
			continue;
		c->running[e] += cycles / 3;
		c->counted[e] += counts[e];
		for (c->left[e] -= (int64_t)counts[e]; c->left[e] <= 0;
		     c->left[e] += (int64_t)c->periods[e])
			counted_sample(c, e, line, kernel);
	}
}

/* Runs for so many steps: each is about `step` cycles on one line, chosen by the lines' shares;
 * where cycles lead, just as long as from one sample to the next. */
static inline void counted_run(struct counted *c, const struct counted_line *lines, size_t count,
			       unsigned int steps, double step)
{
	for (unsigned int i = 0; i < steps; i++) {
		double at = counted_uniform(c), instructions, misses;
		double cycles = c->leads ? (double)c->periods[COUNTED_CYCLES]
					 : step * (0.5 + counted_uniform(c));
		unsigned int line = 0;

		while (line + 1 < count && at >= lines[line].share)
			at -= lines[line++].share;
		instructions = cycles * lines[line].ipc *
			       (1 + lines[line].swing * (2 * counted_uniform(c) - 1));
		misses = instructions / 1000 * lines[line].mpki *
			 (1 + lines[line].swing * (2 * counted_uniform(c) - 1));
		/* What is less than one miss happens now and then. */
		misses += counted_uniform(c);
		counted_step(c, line, counted_uniform(c) < lines[line].kernel, (uint64_t)cycles,
			     (uint64_t)instructions, (uint64_t)misses);
	}
}

#endif
