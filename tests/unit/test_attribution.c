#include "perfmap/source.h"
#include "profile/measure.h"
#include "tests/unit/counted.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * Recordings with known counts per line: what a profile makes of them is compared with counts, and
 * figures, worked out by hand or added up while the recording was made.
 */
struct made {
	struct profile *profile;
	struct view *lines;
	struct measures measures;
};

static char path[64];

static void made_open(struct made *made)
{
	struct data_file *file;
	struct err err = {0};

	if (data_open(&file, path, &err) < 0 || profile_load(&made->profile, file, NULL, &err) < 0)
		fail_msg("%s", err.text);
	data_close(file);
	unlink(path);
	assert_int_equal(view_lines(&made->lines, made->profile, NULL, UINT32_MAX, 0, &err), 0);
	assert_int_equal(measures_init(&made->measures, made->profile, 0, &err), 0);
}

static void made_close(struct made *made)
{
	view_free(made->lines);
	profile_free(made->profile);
}

/* Ends the recording with what META says, and loads it. */
static void finish(struct made *made, struct counted *c, const char *meta)
{
	if (meta)
		data_writer_section(c->r.writer, DATA_SECTION_META, meta, strlen(meta), NULL);
	assert_int_equal(recording_close(&c->r, NULL), 0);
	made_open(made);
}

static void begin_as(struct counted *c, bool leads, bool inherit)
{
	int fd;

	strcpy(path, "/dev/shm/pyperf-test-XXXXXX"); /* thousands of files */
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	counted_open(c, path, "hot.py", leads, inherit);
}

static void begin(struct counted *c, bool leads)
{
	begin_as(c, leads, true);
}

static const struct view_row *line_row(const struct made *made, unsigned int line)
{
	for (size_t i = 0; i < made->lines->count; i++)
		if (made->lines->rows[i].line == COUNTED_FIRST + line)
			return &made->lines->rows[i];
	fail_msg("line %u has no row", line);
	return NULL;
}

static uint64_t counted_on(const struct made *made, unsigned int line, int event)
{
	return line_row(made, line)->counts[event].self;
}

static struct estimate figure(const struct made *made, unsigned int line, const char *key)
{
	int plan = measures_find(&made->measures, key, strlen(key));

	if (plan < 0)
		fail_msg("no %s", key);
	return measure(&made->measures, (size_t)plan, made->lines, line_row(made, line),
		       MEASURE_SELF);
}

static void near(double value, double want)
{
	if (fabs(value - want) > 1e-9 * (1 + fabs(want)))
		fail_msg("%.12g, not %.12g", value, want);
}

/* The group's running totals, as the next sample reads them. */
static void read_now(struct counted *c, unsigned int line, uint64_t cycles, uint64_t instructions,
		     uint64_t misses)
{
	c->r.time += 1000;
	c->read.enabled += 1000;
	c->read.running += 1000;
	c->read.values[0].value += cycles;
	c->read.values[1].value += instructions;
	c->read.values[2].value += misses;
	counted_sample(c, COUNTED_CYCLES, line, false);
}

/* Every read counts for the line that the sample hits; IPC and its interval are the ratio
 * estimator's of the pairs (100, 50), (100, 150), (200, 200) on line 2. */
static void reads_count_for_the_line(void **state)
{
	struct counted c;
	struct made made;
	struct estimate e;

	begin(&c, true);
	read_now(&c, 1, 1000, 3000, 1);
	read_now(&c, 2, 100, 50, 8);
	read_now(&c, 1, 1000, 2000, 0);
	read_now(&c, 2, 100, 150, 0);
	read_now(&c, 2, 200, 200, 0);
	finish(&made, &c, NULL);
	assert_int_equal(counted_on(&made, 1, COUNTED_CYCLES), 2000);
	assert_int_equal(counted_on(&made, 1, COUNTED_INSTRUCTIONS), 5000);
	assert_int_equal(counted_on(&made, 2, COUNTED_CYCLES), 400);
	assert_int_equal(counted_on(&made, 2, COUNTED_INSTRUCTIONS), 400);
	assert_int_equal(counted_on(&made, 2, COUNTED_MISSES), 8);
	assert_int_equal(line_row(&made, 2)->counts[COUNTED_MISSES].self_samples, 1);
	assert_int_equal(line_row(&made, 2)->counts[COUNTED_INSTRUCTIONS].self_samples, 3);
	e = figure(&made, 2, "ipc");
	near(e.value, 1);
	near(e.low, 1 - 4.3027 * sqrt(5000 * 1.5) / 400);
	near(e.high, 1 + 4.3027 * sqrt(5000 * 1.5) / 400);
	near(figure(&made, 1, "ipc").value, 2.5);
	near(figure(&made, 2, "mpki").value, 20);
	assert_true(
		profile_event_counted(profile_event(made.profile, COUNTED_MISSES), COUNTED_MISSES));
	assert_false(
		profile_event_counted(profile_event(made.profile, COUNTED_CYCLES), COUNTED_CYCLES));
	assert_int_equal(profile_event(made.profile, COUNTED_MISSES)->period_total, 9);
	assert_int_equal(profile_event(made.profile, COUNTED_MISSES)->samples, 2);
	assert_int_equal(profile_summary(made.profile)->samples, 5);
	assert_int_equal(profile_summary(made.profile)->python_lines, 5);
	made_close(&made);
}

/* Inherited counters: each thread counts from 0, and so does one that gets an old number. */
static void threads_have_their_own_streams(void **state)
{
	struct counted c;
	struct made made;
	struct recording_read other;

	begin(&c, true);
	other = c.read;
	read_now(&c, 1, 1000, 1000, 0);
	c.r.tid = 101;
	for (int i = 0; i < 2; i++) {
		struct recording_read first = c.read;

		c.read = other;
		read_now(&c, 2, 300, 600, 0);
		read_now(&c, 2, 300, 600, 0);
		c.read = first;
		recording_exit(&c.r);
	}
	c.r.tid = 100;
	read_now(&c, 1, 1000, 1000, 0);
	finish(&made, &c, NULL);
	assert_int_equal(counted_on(&made, 1, COUNTED_CYCLES), 2000);
	assert_int_equal(counted_on(&made, 2, COUNTED_CYCLES), 1200);
	assert_int_equal(counted_on(&made, 2, COUNTED_INSTRUCTIONS), 2400);
	assert_int_equal(profile_summary(made.profile)->reads_dropped, 0);
	made_close(&made);
}

/* perf's recordings of whole CPUs have `inherit` too; ID_INDEX tells that no thread owns the id. */
static void cpus_have_one_stream(void **state)
{
	struct counted c;
	struct made made;
	const uint64_t index[] = {1, 11, 0, 0, UINT64_MAX};

	begin(&c, true);
	recording_begin(&c.r, 69, 0);
	strbuf_add(&c.r.record, index, sizeof(index));
	recording_end(&c.r);
	read_now(&c, 1, 1000, 1000, 0);
	c.r.tid = 101;
	read_now(&c, 2, 300, 600, 0);
	c.r.tid = 100;
	read_now(&c, 1, 1000, 1000, 0);
	finish(&made, &c, NULL);
	assert_int_equal(counted_on(&made, 1, COUNTED_CYCLES), 2000);
	assert_int_equal(counted_on(&made, 2, COUNTED_CYCLES), 300);
	made_close(&made);
}

/* Nothing of a read that goes backwards or too far counts; the next one differs from it. */
static void senseless_reads_are_dropped(void **state)
{
	struct counted c;
	struct made made;

	begin(&c, true);
	read_now(&c, 1, 1000, 1000, 0);
	read_now(&c, 1, 1000, (uint64_t)-500, 0);
	read_now(&c, 1, 1000, 1000, 0);
	read_now(&c, 1, 1ull << 60, 1000, 0);
	read_now(&c, 1, 1000, 1000, 0);
	finish(&made, &c, NULL);
	assert_int_equal(counted_on(&made, 1, COUNTED_CYCLES), 3000);
	assert_int_equal(counted_on(&made, 1, COUNTED_INSTRUCTIONS), 3000);
	assert_int_equal(profile_summary(made.profile)->reads_dropped, 2);
	assert_int_equal(line_row(&made, 1)->counts[COUNTED_CYCLES].self_samples, 5);
	made_close(&made);
}

/* Half of the time on the counters: counts are doubled; none of it: nothing is known. */
static void shared_counters_are_scaled(void **state)
{
	struct counted c;
	struct made made;

	begin_as(&c, true, false);
	read_now(&c, 1, 1000, 1500, 0);
	c.read.enabled += 1000;
	read_now(&c, 2, 1000, 1500, 7);
	c.read.running -= 1000;
	read_now(&c, 3, 0, 0, 0);
	finish(&made, &c, NULL);
	assert_int_equal(counted_on(&made, 1, COUNTED_CYCLES), 1000);
	assert_int_equal(counted_on(&made, 2, COUNTED_CYCLES), 2000);
	assert_int_equal(counted_on(&made, 2, COUNTED_MISSES), 14);
	assert_int_equal(profile_summary(made.profile)->reads_idle, 1);
	assert_int_equal(profile_event(made.profile, COUNTED_MISSES)->enabled_ns, 3000);
	assert_int_equal(profile_event(made.profile, COUNTED_MISSES)->running_ns, 2000);
	made_close(&made);
}

/* Each event by its own samples: sums of periods. */
static void periods_count_for_the_line(void **state)
{
	struct counted c;
	struct made made;
	struct estimate e;

	begin(&c, false);
	for (int i = 0; i < 100; i++)
		counted_sample(&c, COUNTED_CYCLES, 1, false);
	for (int i = 0; i < 40; i++)
		counted_sample(&c, COUNTED_INSTRUCTIONS, 1, false);
	for (int i = 0; i < 100; i++)
		counted_sample(&c, COUNTED_CYCLES, 2, i < 80);
	for (int i = 0; i < 60; i++)
		counted_sample(&c, COUNTED_INSTRUCTIONS, 2, false);
	finish(&made, &c, NULL);
	assert_int_equal(counted_on(&made, 1, COUNTED_CYCLES), 100000000);
	e = figure(&made, 1, "ipc");
	near(e.value, 0.4);
	/* Half of 200 samples: relative variance 0.5/100; 40 of 100: 0.6/40. */
	near(e.high / e.value, exp(1.959963984540054 * sqrt(0.5 / 100 + 0.6 / 40)));
	near(figure(&made, 2, "ipc").value, 0.6);
	near(figure(&made, 2, "kernel").value, 80);
	near(figure(&made, 1, "kernel").value, 0);
	assert_int_equal(measures_find(&made.measures, "mpki", 4), -1);
	made_close(&made);
}

/* The recorder's totals count what no sample stands for: figures of events sampled apart use them.
 */
static void exact_totals_are_used(void **state)
{
	static const char meta[] =
		"{\"counts\": [{\"event\": 0, \"value\": 20000000, \"enabled_ns\": 100, "
		"\"running_ns\": 100}, {\"event\": 1, \"value\": 30000000, \"enabled_ns\": 100, "
		"\"running_ns\": 50}, {\"event\": 77, \"value\": 1}, {\"value\": 2}, 5]}";
	struct counted c;
	struct made made;

	begin(&c, false);
	for (int i = 0; i < 20; i++)
		counted_sample(&c, COUNTED_CYCLES, 1, false);
	for (int i = 0; i < 20; i++)
		counted_sample(&c, COUNTED_INSTRUCTIONS, 1, false);
	finish(&made, &c, meta);
	near(figure(&made, 1, "ipc").value, 3);
	near(profile_event(made.profile, COUNTED_INSTRUCTIONS)->estimated_total, 60000000);
	assert_int_equal(profile_event(made.profile, COUNTED_INSTRUCTIONS)->period_total, 20000000);
	made_close(&made);
}

/* 11 samples 1,000 ns apart, throttled for 4,000 ns: 4 periods are missing. 10 records were lost of
 * those that came. */
static void throttled_and_lost_are_estimated(void **state)
{
	struct counted c;
	struct made made;
	const struct profile_event *cycles;
	double records;

	begin(&c, false);
	for (int i = 0; i < 11; i++) {
		c.r.time += 1000;
		counted_sample(&c, COUNTED_CYCLES, 1, false);
	}
	recording_throttle(&c.r, COUNTED_CYCLES, true);
	c.r.time += 4000;
	recording_throttle(&c.r, COUNTED_CYCLES, false);
	finish(&made, &c, NULL);
	cycles = profile_event(made.profile, COUNTED_CYCLES);
	assert_int_equal(cycles->throttled, 1);
	assert_int_equal(cycles->throttled_ns, 4000);
	assert_int_equal(cycles->period_total, 11000000);
	near(cycles->estimated_total, 15000000);
	made_close(&made);

	begin(&c, false);
	for (int i = 0; i < 20; i++)
		counted_sample(&c, COUNTED_CYCLES, 1, false);
	recording_lost(&c.r, 11);
	finish(&made, &c, NULL);
	records = 3 + 20 * 2 + 1; /* comm, mmap, code; frames and samples; the loss itself */
	near(profile_event(made.profile, COUNTED_CYCLES)->estimated_total,
	     20000000 * (1 + 11 / records));
	made_close(&made);
}

/* While its leader was throttled a group of an old kernel went on: the leader's count is scaled up
 * by the time that it stood still; in a new one all stand still. Of nearly no time nothing is told.
 */
static void reads_across_throttling_are_scaled(void **state)
{
	static const struct {
		const char *release;
		uint64_t instructions;
	} kernels[] = {{"6.12.3-amd64", 9000}, {"6.16.0", 9000 * 4}};

	for (size_t i = 0; i < 2; i++) {
		const struct data_info info = {.os_release = kernels[i].release};
		struct counted c;
		struct made made;

		begin(&c, true);
		read_now(&c, 1, 1000, 1000, 0);
		recording_throttle(&c.r, COUNTED_CYCLES, true);
		c.r.time += 3000;
		recording_throttle(&c.r, COUNTED_CYCLES, false);
		c.read.enabled += 3000;
		c.read.running += 3000;
		read_now(&c, 2, 1000, 9000, 0); /* 3,000 of 4,000 ns throttled */
		recording_throttle(&c.r, COUNTED_CYCLES, true);
		c.r.time += 100000;
		recording_throttle(&c.r, COUNTED_CYCLES, false);
		c.read.enabled += 100000;
		c.read.running += 100000;
		read_now(&c, 3, 1000, 9000, 0);
		assert_int_equal(recording_close(&c.r, &info), 0);
		made_open(&made);
		assert_int_equal(counted_on(&made, 1, COUNTED_CYCLES), 1000);
		assert_int_equal(counted_on(&made, 2, COUNTED_CYCLES), 4000);
		assert_int_equal(counted_on(&made, 2, COUNTED_INSTRUCTIONS),
				 kernels[i].instructions);
		assert_int_equal(counted_on(&made, 3, COUNTED_CYCLES), 0);
		assert_int_equal(profile_summary(made.profile)->reads_throttled, 1);
		assert_int_equal(profile_event(made.profile, COUNTED_CYCLES)->throttled, 2);
		made_close(&made);
	}
}

/* As the lines of tests/data/hot.py might do. */
static const struct counted_line program[COUNTED_LINES] = {
	{0.0005, 1.00, 1, 0.5, 0}, {0.005, 1.20, 5, 0.5, 0.3},
	{0.10, 1.10, 4, 0.5, 0},   {0.30, 0.40, 38, 0.3, 0},
	{0.08, 0.50, 20, 0.1, 0},  {0.07, 0.90, 2, 0.9, 0},
	{0.20, 2.80, 0.2, 0.2, 0}, {0.05, 1.60, 9, 0.5, 0},
	{0.04, 3.10, 0.5, 0.5, 0}, {0.02, 1.00, 3, 0.5, 0},
	{0, 1, 1, 0, 0},	   {0.02, 2.20, 6, 0.5, 0},
	{0.03, 1.50, 12, 0.5, 0},  {0.03, 1.97, 1, 0.5, 0.9},
	{0.05, 0.70, 8, 0.5, 0.5}, {0.0045, 0.9, 30, 0.5, 0},
};

struct score {
	unsigned int told, held;
};

/* Do the lines' intervals hold what is true of them? */
static void compare(const struct made *made, const struct counted *c, const char *key,
		    struct score *score)
{
	int plan = measures_find(&made->measures, key, strlen(key));
	bool ipc = strcmp(key, "ipc") == 0;

	assert_true(plan >= 0);
	for (size_t i = 0; i < made->lines->count; i++) {
		const struct view_row *row = &made->lines->rows[i];
		unsigned int line = row->line - COUNTED_FIRST;
		const double *counts = c->truth[line];
		double truth = ipc ? counts[COUNTED_INSTRUCTIONS] / counts[COUNTED_CYCLES]
				   : 1000 * counts[COUNTED_MISSES] / counts[COUNTED_INSTRUCTIONS];
		struct estimate e = measure(&made->measures, (size_t)plan, made->lines, row,
					    MEASURE_SELF);

		/* A group's counts are all there; left to chance is what the line did in this run.
		 */
		if (c->leads)
			truth = ipc ? program[line].ipc : program[line].mpki;
		if (!metric_is_sure(made->measures.plans[plan].metric, &e))
			continue;
		score->told++;
		score->held += e.low <= truth && truth <= e.high;
	}
}

/* What the recorder would have read of the kernel in the end. */
static char *meta_of(const struct counted *c)
{
	struct strbuf meta = {0};

	strbuf_str(&meta, "{\"counts\": [");
	for (int e = 0; e < COUNTED_EVENTS; e++)
		strbuf_printf(&meta,
			      "%s{\"event\": %d, \"value\": %llu, \"enabled_ns\": %llu, "
			      "\"running_ns\": %llu}",
			      e ? ", " : "", e, (unsigned long long)c->counted[e],
			      (unsigned long long)c->enabled[e], (unsigned long long)c->running[e]);
	strbuf_str(&meta, "]}");
	return strbuf_detach(&meta, NULL);
}

struct plan {
	const char *what;
	bool leads;
	uint64_t turn; /* ns: instructions and misses share a counter */
	unsigned int runs, steps;
};

/* A program of 16 lines, run so often: the intervals on its lines hold the truth in 95% of all
 * cases. 1,000 independent ones would lie within 927 and 973 but for one time in a thousand; lines
 * of one run are not quite independent, and intervals may be a little careful. */
static void intervals_hold(const struct plan *plan)
{
	struct score score = {0};
	double held;

	for (uint64_t run = 1; run <= plan->runs; run++) {
		struct counted c;
		struct made made;
		char *meta;

		begin(&c, plan->leads);
		c.random = run * 0x2545f4914f6cdd1d;
		c.turn = plan->turn;
		counted_run(&c, program, COUNTED_LINES, plan->steps, 50000);
		meta = plan->turn ? meta_of(&c) : NULL;
		finish(&made, &c, meta);
		free(meta);
		compare(&made, &c, "ipc", &score);
		compare(&made, &c, "mpki", &score);
		made_close(&made);
	}
	held = (double)score.held / score.told;
	print_message("%s: %u of %u intervals hold, %.1f%%\n", plan->what, score.held, score.told,
		      100 * held);
	assert_true(score.told >= plan->runs);
	if (held < 0.935 || held > 0.985)
		fail_msg("%s: %.1f%% of the intervals hold", plan->what, 100 * held);
}

static void intervals_of_a_thousand_runs(void **state)
{
	static const struct plan plans[] = {
		{"each event on its own", false, 0, 1000, 4000},
		{"groups", true, 0, 1000, 150},
		{"a shared counter", false, 400000, 250, 6000},
	};

	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		intervals_hold(&plans[i]);
}

/* The readings' thresholds, one by one: what lies beyond has the name, what touches has not. */
static void readings_by_threshold(void **state)
{
	struct measures m = {.count = 6};
	const char *keys[] = {"ipc", "mpki", "br-mpki", "tlb-mpki", "kernel", "ns"};
	const struct {
		double ipc, mpki, branch, tlb, kernel;
		const char *name, *why;
	} cases[] = {
		{0.99, 10, 1, 1, 10, "memory-bound", "IPC 0.99, 10.0 MPKI"},
		{0.41, 38.2, 50, 50, 49, "memory-bound", "IPC 0.41, 38.2 MPKI"},
		{1, 10, 1, 1, 10, NULL, ""},
		{0.99, 9.9, 1, 1, 10, NULL, ""},
		{0.99, 9.9, 1, 10, 10, "TLB-bound", "IPC 0.99, 10.0 tlbMPKI"},
		{1.99, 1, 10, 1, 10, "branch-bound", "IPC 1.99, 10.0 brMPKI"},
		{2, 1, 10, 1, 10, "compute-bound", "IPC 2.00"},
		{1.99, 1, 9.9, 1, 10, NULL, ""},
		{0.69, 2.9, 4.9, 1, 10, "stalled", "IPC 0.69, 2.9 MPKI, 4.9 brMPKI"},
		{0.7, 2.9, 4.9, 1, 10, NULL, ""},
		{0.69, 3, 4.9, 1, 10, NULL, ""},
		{3, 1, 1, 1, 50, "kernel-bound", "50.0% kernel"},
		{3, 1, 1, 1, 49.9, "compute-bound", "IPC 3.00"},
	};

	for (size_t i = 0; i < m.count; i++)
		m.plans[i].metric = metric_find(keys[i], strlen(keys[i]));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const double values[] = {cases[i].ipc, cases[i].mpki,	cases[i].branch,
					 cases[i].tlb, cases[i].kernel, 0};
		struct estimate figures[6];
		struct strbuf why = {0};
		const struct reading *reading;

		for (size_t f = 0; f < m.count; f++)
			figures[f] = (struct estimate){values[f], values[f], values[f],
						       .known = true};
		reading = measure_reading(&m, figures, &why);
		if (!reading != !cases[i].name || (reading && strcmp(reading->name, cases[i].name)))
			fail_msg("case %zu reads %s", i, reading ? reading->name : "nothing");
		assert_string_equal(strbuf_text(&why), cases[i].why);
		strbuf_fini(&why);
		/* An interval that reaches over a threshold is no evidence. */
		for (size_t f = 0; f < m.count; f++)
			figures[f] = (struct estimate){values[f], 0, 1e9, .known = true};
		assert_null(measure_reading(&m, figures, NULL));
	}
}

/* Writes a recording for the tests of the command line: its lines are those of the text at hand. */
static int write_for_others(const char *out, const char *file, const char *how)
{
	struct sources *sources = sources_new();
	struct strbuf section = {0};
	char folder[4096], *meta = NULL;
	struct counted c;
	int rc;

	if (!sources || !getcwd(folder, sizeof(folder)))
		return 1;
	counted_open(&c, out, file, strcmp(how, "group") == 0, true);
	c.turn = strcmp(how, "shared") == 0 ? 1000000 : 0;
	counted_run(&c, program, COUNTED_LINES, 20000, 100000);
	if (c.turn)
		meta = meta_of(&c);
	if (meta)
		data_writer_section(c.r.writer, DATA_SECTION_META, meta, strlen(meta), NULL);
	if (sources_read(sources, file, "", folder, NULL) > 0 &&
	    sources_encode(sources, &section) >= 0)
		data_writer_section(c.r.writer, DATA_SECTION_SOURCE, section.buf, section.len,
				    NULL);
	rc = recording_close(&c.r, NULL);
	strbuf_fini(&section);
	sources_free(sources);
	free(meta);
	return rc < 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_count_for_the_line),
		cmocka_unit_test(threads_have_their_own_streams),
		cmocka_unit_test(cpus_have_one_stream),
		cmocka_unit_test(senseless_reads_are_dropped),
		cmocka_unit_test(shared_counters_are_scaled),
		cmocka_unit_test(periods_count_for_the_line),
		cmocka_unit_test(exact_totals_are_used),
		cmocka_unit_test(throttled_and_lost_are_estimated),
		cmocka_unit_test(reads_across_throttling_are_scaled),
		cmocka_unit_test(intervals_of_a_thousand_runs),
		cmocka_unit_test(readings_by_threshold),
	};

	if (argc == 4)
		return write_for_others(argv[1], argv[2], argv[3]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
