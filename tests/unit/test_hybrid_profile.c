#include "profile/measure.h"
#include "tests/unit/recording.h"

#include "perfmap/perfmap.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * Recordings of a hybrid CPU: what its PMUs counted is summed, on request it stays apart. The two
 * groups differ, for the small cores have no cache-misses.
 */
enum { CORE_CYCLES, CORE_INSTRUCTIONS, FRAMES, ATOM_CYCLES, ATOM_INSTRUCTIONS, CORE_MISSES, COUNT };
_Static_assert((int)FRAMES == (int)EVENT_FRAMES, "where the walker's event is");

#define STUB 0x7f2000000000u
#define CORE UINT64_C(0x400000000)
#define ATOM UINT64_C(0xa00000000)
#define LINE 20

static const uint64_t ids[COUNT][1] = {{11}, {12}, {33}, {21}, {22}, {13}};

struct made {
	struct recording r;
	struct recording_read core, atom;
	struct profile *profile;
	struct view *lines;
	struct measures measures;
};

static char path[64];

static struct data_event event(const char *name, uint64_t config, int leader, bool reads)
{
	struct data_event made = {
		.name = name,
		.attr = {.type = PERF_TYPE_HARDWARE,
			 .config = config,
			 .sample_type = RECORDING_COMMON | PERF_SAMPLE_CALLCHAIN,
			 .sample_period = 1000},
		.leader = leader,
	};

	if (reads) {
		made.attr.sample_type |= PERF_SAMPLE_READ;
		made.attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
					PERF_FORMAT_TOTAL_TIME_ENABLED |
					PERF_FORMAT_TOTAL_TIME_RUNNING;
	}
	return made;
}

static void begin(struct made *made, struct data_event *events, size_t count)
{
	static const char map[] = "7f2000000000 40 py::x:y\n";
	struct strbuf section = {0};
	int fd;

	*made = (struct made){0};
	strcpy(path, "/tmp/pyperf-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	recording_open_events(&made->r, path, 0, events, count, ids);
	perfmap_section_add(&section, 100, map, strlen(map));
	data_writer_section(made->r.writer, DATA_SECTION_PERFMAP, section.buf, section.len, NULL);
	strbuf_fini(&section);
	recording_comm(&made->r, "python3", true);
	recording_mmap(&made->r, STUB, 0x1000, 0, "//anon");
	recording_code(&made->r, 1, 0x1000, 0, "hot", "hot.py", LINE, 4);
}

static void frames(struct made *made, unsigned int line)
{
	const struct py_raw_frame frame = {.code = 0x1000,
					   .instr = (line - LINE) * 4 | PY_FRAME_ENTRY};

	made->r.time += 1000;
	recording_frames(&made->r, 1, PY_WALK_OK, &frame, 1);
}

/* The group's PMU counted so much more. */
static void read_now(struct made *made, int leader, unsigned int line, uint64_t cycles,
		     uint64_t instructions, uint64_t misses)
{
	struct recording_read *read = leader == CORE_CYCLES ? &made->core : &made->atom;
	const uint64_t counts[] = {cycles, instructions, misses};

	if (!read->count) {
		read->count = leader == CORE_CYCLES ? 3 : 2;
		read->values[0].id = ids[leader][0];
		read->values[1].id = ids[leader + 1][0];
		read->values[2].id = ids[CORE_MISSES][0];
	}
	read->enabled += 1000;
	read->running += 1000;
	for (size_t i = 0; i < read->count; i++)
		read->values[i].value += counts[i];
	frames(made, line);
	recording_read_sample(&made->r, leader, MISC_USER, STUB, 1000, read);
}

static void sample(struct made *made, int of, unsigned int line)
{
	const uint64_t stub = STUB;

	frames(made, line);
	recording_sample(&made->r, of, 1000, &stub, 1);
}

static void load(struct made *made, bool by_pmu)
{
	const struct profile_options options = {.by_pmu = by_pmu};
	struct data_file *file;
	struct err err = {0};

	if (data_open(&file, path, &err) < 0 ||
	    profile_load(&made->profile, file, &options, &err) < 0)
		fail_msg("%s", err.text);
	data_close(file);
	assert_int_equal(view_lines(&made->lines, made->profile, NULL, UINT32_MAX, 0, &err), 0);
	assert_int_equal(measures_init(&made->measures, made->profile, 0, &err), 0);
}

static void unload(struct made *made)
{
	view_free(made->lines);
	profile_free(made->profile);
}

static const struct view_row *row_of(const struct made *made, unsigned int line)
{
	for (size_t i = 0; i < made->lines->count; i++)
		if (made->lines->rows[i].line == line)
			return &made->lines->rows[i];
	fail_msg("line %u has no row", line);
	return NULL;
}

static struct estimate figure(const struct made *made, unsigned int line, const char *key)
{
	int plan = measures_find(&made->measures, key, strlen(key));

	if (plan < 0)
		fail_msg("no %s", key);
	return measure(&made->measures, (size_t)plan, made->lines, row_of(made, line),
		       MEASURE_SELF);
}

/* "cycles 2500, ..." of the events that views show. */
static void describe(const struct profile *profile, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < profile_event_count(profile); i++) {
		const struct profile_event *shown = profile_event(profile, i);

		if (shown->sampled)
			len += (size_t)snprintf(out + len, size - len, "%s%s %llu", len ? ", " : "",
						shown->name,
						(unsigned long long)shown->period_total);
	}
}

static void expect(const struct made *made, const char *want)
{
	char got[512];

	describe(made->profile, got, sizeof(got));
	assert_string_equal(got, want);
}

static void near(double value, double want)
{
	if (fabs(value - want) > 1e-9 * (1 + fabs(want)))
		fail_msg("%.12g, not %.12g", value, want);
}

static void groups_are_summed(void **state)
{
	struct data_event events[COUNT] = {
		event("cpu_core/cycles/", CORE | PERF_COUNT_HW_CPU_CYCLES, CORE_CYCLES, true),
		event("cpu_core/instructions/", CORE | PERF_COUNT_HW_INSTRUCTIONS, CORE_CYCLES,
		      true),
		recording_frames_event(),
		event("cpu_atom/cycles/", ATOM | PERF_COUNT_HW_CPU_CYCLES, ATOM_CYCLES, true),
		event("cpu_atom/instructions/", ATOM | PERF_COUNT_HW_INSTRUCTIONS, ATOM_CYCLES,
		      true),
		event("cpu_core/cache-misses/", CORE | PERF_COUNT_HW_CACHE_MISSES, CORE_CYCLES,
		      true),
	};
	static const char meta[] =
		"{\"counts\": [{\"event\": 0, \"value\": 2500, \"enabled_ns\": 100, "
		"\"running_ns\": 100}, {\"event\": 3, \"value\": 1000, \"enabled_ns\": 50, "
		"\"running_ns\": 50}]}";
	const double r = 5400. / 2500;
	double residues, half;
	struct made made;

	begin(&made, events, COUNT);
	read_now(&made, ATOM_CYCLES, LINE + 2, 100, 100, 0);
	read_now(&made, CORE_CYCLES, LINE + 1, 1000, 3000, 10);
	read_now(&made, CORE_CYCLES, LINE + 1, 1000, 2000, 0);
	read_now(&made, ATOM_CYCLES, LINE + 1, 500, 400, 0);
	read_now(&made, CORE_CYCLES, LINE + 2, 100, 300, 4);
	data_writer_section(made.r.writer, DATA_SECTION_META, meta, strlen(meta), NULL);
	assert_int_equal(recording_close(&made.r, NULL), 0);

	load(&made, false);
	expect(&made, "cycles 2700, instructions 5800, cpu_core/cache-misses/ 14");
	assert_int_equal(row_of(&made, LINE + 1)->counts[CORE_CYCLES].self, 2500);
	assert_int_equal(row_of(&made, LINE + 1)->counts[CORE_CYCLES].self_samples, 3);
	assert_int_equal(row_of(&made, LINE + 1)->counts[CORE_INSTRUCTIONS].self, 5400);
	assert_int_equal(row_of(&made, LINE + 1)->counts[CORE_MISSES].self, 10);
	assert_int_equal(row_of(&made, LINE + 2)->counts[CORE_INSTRUCTIONS].self, 400);
	/* The pairs (1000, 3000), (1000, 2000) and (500, 400), whichever PMU they are of. */
	residues = pow(3000 - r * 1000, 2) + pow(2000 - r * 1000, 2) + pow(400 - r * 500, 2);
	half = 4.3027 * sqrt(residues * 1.5) / 2500;
	near(figure(&made, LINE + 1, "ipc").value, r);
	near(figure(&made, LINE + 1, "ipc").high, r + half);
	near(profile_event(made.profile, CORE_CYCLES)->estimated_total, 3500);
	assert_true(profile_event_counted(profile_event(made.profile, CORE_INSTRUCTIONS),
					  CORE_INSTRUCTIONS));
	assert_int_equal(profile_summary(made.profile)->samples, 5);
	unload(&made);

	load(&made, true);
	expect(&made, "cpu_core/cycles/ 2100, cpu_core/instructions/ 5300, cpu_atom/cycles/ 600, "
		      "cpu_atom/instructions/ 500, cpu_core/cache-misses/ 14");
	assert_int_equal(row_of(&made, LINE + 1)->counts[ATOM_CYCLES].self, 500);
	/* The formula adds the PMUs up all the same. */
	near(figure(&made, LINE + 1, "ipc").value, r);
	unload(&made);
	unlink(path);
}

/* As perf before 6.5 writes names, each event sampled on its own. */
static void samples_are_summed(void **state)
{
	struct data_event events[] = {
		event("cpu_core/cycles:u/", CORE | PERF_COUNT_HW_CPU_CYCLES, 0, false),
		event("cpu_core/instructions:u/", CORE | PERF_COUNT_HW_INSTRUCTIONS, 1, false),
		recording_frames_event(),
		event("cpu_atom/cycles:u/", ATOM | PERF_COUNT_HW_CPU_CYCLES, 3, false),
		event("cpu_atom/instructions:u/", ATOM | PERF_COUNT_HW_INSTRUCTIONS, 4, false),
	};
	struct made made;

	begin(&made, events, 5);
	for (int i = 0; i < 10; i++)
		sample(&made, i < 6 ? CORE_CYCLES : ATOM_CYCLES, LINE + 1);
	for (int i = 0; i < 20; i++)
		sample(&made, i < 15 ? CORE_INSTRUCTIONS : ATOM_INSTRUCTIONS, LINE + 1);
	assert_int_equal(recording_close(&made.r, NULL), 0);
	load(&made, false);
	expect(&made, "cycles:u 10000, instructions:u 20000");
	near(figure(&made, LINE + 1, "ipc").value, 2);
	assert_int_equal(row_of(&made, LINE + 1)->counts[CORE_CYCLES].self_samples, 10);
	unload(&made);
	unlink(path);
}

/* What has a name alike by chance, or is counted in other modes, is no part. */
static void others_stay_apart(void **state)
{
	struct data_event events[] = {
		event("cpu_core/cycles/", CORE | PERF_COUNT_HW_CPU_CYCLES, 0, false),
		event("cycles", PERF_COUNT_HW_CPU_CYCLES, 1, false),
		recording_frames_event(),
		event("cpu_atom/cycles/", ATOM | PERF_COUNT_HW_CPU_CYCLES, 3, false),
		event("cpu_core/event=0x3c/", 0x3c, 4, false),
		event("cpu_atom/event=0x3c/", 0x3c, 5, false),
	};
	struct made made;

	events[3].attr.exclude_kernel = 1;
	events[4].attr.type = 4;
	events[5].attr.type = 10;
	begin(&made, events, 6);
	for (int i = 0; i < 6; i++)
		if (i != FRAMES)
			sample(&made, i, LINE);
	assert_int_equal(recording_close(&made.r, NULL), 0);
	load(&made, false);
	expect(&made, "cpu_core/cycles/ 1000, cycles 1000, cpu_atom/cycles/ 1000, "
		      "cpu_core/event=0x3c/ 1000, cpu_atom/event=0x3c/ 1000");
	unload(&made);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_summed),
		cmocka_unit_test(samples_are_summed),
		cmocka_unit_test(others_stay_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
