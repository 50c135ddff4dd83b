#include "base/bytes.h"
#include "data/writer.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Files of ours, read back by our reader and by perf, which knows nothing of us. */

#define EVENTS 4
#define SAMPLE_TYPE                                                                     \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

static const uint64_t ids[EVENTS][2] = {{101, 102}, {201, 202}, {301, 302}, {401, 402}};
static const char *const names[EVENTS] = {"cycles", "cache-misses", "page-faults", "python"};

static void make_events(struct data_event *events)
{
	memset(events, 0, EVENTS * sizeof(*events));
	for (int i = 0; i < EVENTS; i++) {
		struct perf_event_attr *attr = &events[i].attr;

		events[i].name = names[i];
		events[i].ids = ids[i];
		events[i].id_count = 2;
		events[i].leader = i == 1 ? 0 : i; /* {cycles,cache-misses} */
		attr->size = sizeof(*attr);
		attr->type = i < 2 ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
		attr->config = i == 1	? PERF_COUNT_HW_CACHE_MISSES
			       : i == 2 ? PERF_COUNT_SW_PAGE_FAULTS
			       : i == 3 ? PERF_COUNT_SW_BPF_OUTPUT
					: PERF_COUNT_HW_CPU_CYCLES;
		attr->sample_type = SAMPLE_TYPE | (i == 3 ? PERF_SAMPLE_RAW : 0);
		attr->sample_id_all = 1;
		attr->sample_period = 1000;
		attr->use_clockid = 1;
		attr->clockid = 1;
	}
}

struct maker {
	unsigned char buf[1 << 16];
	size_t len;
	uint64_t seed, time;
	unsigned long counts[EVENTS], rounds;
};

static void put64(struct maker *m, uint64_t v)
{
	memcpy(m->buf + m->len, &v, 8);
	m->len += 8;
}

static void put32(struct maker *m, uint32_t v)
{
	memcpy(m->buf + m->len, &v, 4);
	m->len += 4;
}

static uint64_t chance(struct maker *m)
{
	m->seed = m->seed * 6364136223846793005ull + 1442695040888963407ull;
	return m->seed >> 33;
}

static size_t start(struct maker *m, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = {.type = type, .misc = misc};
	size_t at = m->len;

	memcpy(m->buf + m->len, &header, sizeof(header));
	m->len += sizeof(header);
	return at;
}

static void end(struct maker *m, size_t at)
{
	uint16_t size = (uint16_t)(m->len - at);

	memcpy(m->buf + at + 6, &size, 2);
}

static void put_trailer(struct maker *m, int event)
{
	put32(m, 1000);
	put32(m, 1000);
	put64(m, m->time);
	put32(m, 0);
	put32(m, 0);
	put64(m, ids[event][0]);
}

static void put_text(struct maker *m, const char *text)
{
	size_t len = (strlen(text) + 8) & ~7ul;

	memset(m->buf + m->len, 0, len);
	memcpy(m->buf + m->len, text, strlen(text));
	m->len += len;
}

static void put_sample(struct maker *m, int event, bool noise)
{
	uint64_t depth = chance(m) % 12;
	size_t at = start(m, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);

	put64(m, ids[event][chance(m) % 2]);
	put64(m, 0x401000 + chance(m) % 4096);
	put32(m, 1000);
	put32(m, 1000);
	put64(m, m->time);
	put32(m, (uint32_t)(chance(m) % 2));
	put32(m, 0);
	put64(m, 1000);
	put64(m, depth);
	for (uint64_t i = 0; i < depth; i++)
		put64(m, 0x401000 + (noise ? chance(m) << 20 : chance(m) % 64));
	if (event == 3) {
		put32(m, 12);
		put32(m, 1);
		put64(m, 2);
	}
	end(m, at);
	m->counts[event]++;
}

/* `n` samples, a round every 500, and what a process needs. */
static void write_records(struct data_writer *writer, struct maker *m, unsigned long n, bool noise)
{
	struct err err = {0};
	size_t at;

	m->time = 5000000000ull;
	at = start(m, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put32(m, 1000);
	put32(m, 1000);
	put_text(m, "program");
	put_trailer(m, 0);
	end(m, at);
	at = start(m, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	put32(m, 1000);
	put32(m, 1000);
	put64(m, 0x400000);
	put64(m, 0x10000);
	put64(m, 0);
	put32(m, 8);
	put32(m, 1);
	put64(m, 4711);
	put64(m, 0);
	put32(m, 5);
	put32(m, 2);
	put_text(m, "/usr/bin/program");
	put_trailer(m, 0);
	end(m, at);
	for (unsigned long i = 0; i < n; i++) {
		m->time += 1 + chance(m) % 1000000;
		data_writer_time(writer, m->time);
		put_sample(m, (int)(chance(m) % EVENTS), noise);
		if (m->len > 40000 || i + 1 == n || i % 500 == 499) {
			int rc = data_write(writer, m->buf, m->len, &err);

			m->len = 0;
			if (rc < 0)
				return;
		}
		if (i % 500 == 499) {
			m->rounds++;
			if (data_write_round(writer, &err) < 0)
				return;
		}
	}
}

static char path[64];

static int make_path(void **state)
{
	(void)state;
	strcpy(path, "/tmp/pyperf-test-XXXXXX");
	close(mkstemp(path));
	return 0;
}

static int remove_path(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static const char *const cmdline[] = {"/usr/bin/pyperf", "record", "--", "program"};
static const struct data_info facts = {
	.hostname = "host",
	.os_release = "6.1.0",
	.perf_version = "pyperf 0",
	.arch = "x86_64",
	.cpu_desc = "A CPU",
	.cpuid = "Genuine,6,85,4",
	.cpus_available = 8,
	.cpus_online = 6,
	.total_memory_kb = 123456,
	.cmdline = cmdline,
	.cmdline_len = 4,
	.has_clockid = true,
	.clockid = 1,
	.clock_resolution_ns = 1,
	.has_clock_data = true,
	.clock_wall_ns = 1700000000000000000ull,
	.clock_ns = 5000000000ull,
};
static const uint8_t build_id[20] = {0xde, 0xad, 0xbe, 0xef, 5,	 6,  7,	 8,  9,	 10,
				     11,   12,	 13,   14,   15, 16, 17, 18, 19, 20};

static struct maker *write_file(int level, unsigned long n, bool noise)
{
	struct data_writer_options options = {.zstd_level = level, .mmap_len = 512 << 10};
	struct maker *m = calloc(1, sizeof(*m));
	struct data_event events[EVENTS];
	struct data_writer *writer;
	struct err err = {0};

	make_events(events);
	assert_int_equal(data_writer_open(&writer, path, events, EVENTS, &options, &err), 0);
	write_records(writer, m, n, noise);
	assert_int_equal(
		data_writer_section(writer, DATA_SECTION_SOURCE, "def f(): pass\n", 14, &err), 0);
	assert_int_equal(data_writer_section(writer, DATA_SECTION_META, "{\"a\":1}", 7, &err), 0);
	for (int i = 0; i < 2; i++) /* the second is dropped */
		assert_int_equal(
			data_writer_build_id(writer, -1, 2, "/usr/bin/program", build_id, 20, &err),
			0);
	assert_int_equal(data_writer_build_id(writer, -1, 2, "/usr/lib/short", build_id, 16, &err),
			 0);
	assert_int_equal(data_writer_close(writer, &facts, &err), 0);
	return m;
}

static void count_file(unsigned long *counts, unsigned long *rounds, char *loss, size_t size)
{
	struct data_record record;
	struct data_file *file;
	struct err err = {0};
	int rc;

	assert_int_equal(data_open(&file, path, &err), 0);
	assert_int_equal(data_event_count(file), EVENTS);
	while ((rc = data_next(file, &record, &err)) > 0) {
		if (record.header->type == PERF_RECORD_SAMPLE) {
			uint64_t id;
			int index;

			memcpy(&id, record.header + 1, sizeof(id));
			index = data_event_by_id(file, id);
			assert_in_range(index, 0, EVENTS - 1);
			counts[index]++;
		} else if (record.header->type == 68) {
			++*rounds;
		}
		if (record.position % 64 == 0)
			data_discard(file, record.position);
	}
	assert_int_equal(rc, 0);
	snprintf(loss, size, "%s", data_loss(file) ? data_loss(file) : "");
	data_close(file);
}

static void check_facts(void)
{
	const struct data_info *info;
	const struct data_event *event;
	struct data_record record;
	struct data_file *file;
	struct err err = {0};
	struct bytes section;

	assert_int_equal(data_open(&file, path, &err), 0);
	info = data_info(file);
	assert_string_equal(info->hostname, "host");
	assert_string_equal(info->perf_version, "pyperf 0");
	assert_string_equal(info->cpuid, "Genuine,6,85,4");
	assert_int_equal(info->cpus_available, 8);
	assert_int_equal(info->cpus_online, 6);
	assert_int_equal(info->total_memory_kb, 123456);
	assert_int_equal(info->cmdline_len, 4);
	assert_string_equal(info->cmdline[3], "program");
	assert_true(info->has_clock_data && info->clock_wall_ns == facts.clock_wall_ns);
	assert_true(info->first_sample_time > 5000000000ull);
	assert_true(info->last_sample_time > info->first_sample_time);
	assert_int_equal(info->build_id_count, 2);
	assert_string_equal(info->build_ids[0].path, "/usr/bin/program");
	assert_int_equal(info->build_ids[0].id_len, 20);
	assert_int_equal(info->build_ids[1].id_len, 16);
	assert_memory_equal(info->build_ids[0].id, build_id, 20);
	section = data_section(file, DATA_SECTION_SOURCE);
	assert_int_equal(bytes_left(&section), 14);
	assert_memory_equal(section.at, "def f(): pass\n", 14);
	section = data_section(file, DATA_SECTION_META);
	assert_int_equal(bytes_left(&section), 7);
	section = data_section(file, DATA_SECTION_CODE);
	assert_int_equal(bytes_left(&section), 0);
	for (int i = 0; i < EVENTS; i++) {
		event = data_event(file, (size_t)i);
		assert_string_equal(event->name, names[i]);
		assert_int_equal(event->leader, i == 1 ? 0 : i);
		assert_int_equal(event->id_count, 2);
		assert_int_equal(event->ids[1], ids[i][1]);
	}
	assert_int_equal(data_next(file, &record, &err), 1);
	assert_int_equal(record.header->type, PERF_RECORD_COMM);
	data_close(file);
}

static bool have_perf(void)
{
	if (system("perf --version >/dev/null 2>&1") == 0)
		return true;
	print_message("skipped: perf is not installed\n");
	return false;
}

/* What perf prints for a command on the file. */
static char *perf(const char *command)
{
	char line[256];
	char *text = malloc(16 << 20);
	size_t len;
	FILE *pipe;

	snprintf(line, sizeof(line), "perf %s -i %s 2>&1", command, path);
	pipe = popen(line, "r");
	assert_non_null(pipe);
	len = fread(text, 1, (16 << 20) - 1, pipe);
	text[len] = '\0';
	pclose(pipe);
	return text;
}

static void check_stats(const struct maker *m)
{
	char *text = perf("report --stats"), *at;

	for (int i = 0; i < EVENTS; i++) {
		unsigned long count = 0;
		char head[64];

		snprintf(head, sizeof(head), "%s stats:", names[i]);
		at = strstr(text, head);
		if (!at)
			fail_msg("perf does not name %s:\n%.2000s", names[i], text);
		at = strstr(at, "SAMPLE events:");
		assert_non_null(at);
		sscanf(at, "SAMPLE events: %lu", &count);
		assert_int_equal(count, m->counts[i]);
	}
	assert_null(strstr(text, "rror"));
	free(text);
}

static void check_with_perf(const struct maker *m)
{
	unsigned long total = 0, lines = 0;
	char *text;

	if (!have_perf())
		skip();
	check_stats(m);
	text = perf("script -F event,time,ip");
	for (char *at = text; (at = strstr(at, "cache-misses:")); at++)
		lines++;
	total = m->counts[1];
	assert_int_equal(lines, total);
	free(text);
	text = perf("report --header-only");
	assert_non_null(strstr(text, "# hostname : host"));
	assert_non_null(strstr(text, "# nrcpus online : 6"));
	assert_non_null(strstr(text, "# nrcpus avail : 8"));
	assert_non_null(strstr(text, "# cmdline : /usr/bin/pyperf record -- program"));
	assert_non_null(strstr(text, "# group: {cycles,cache-misses}"));
	assert_non_null(strstr(text, "# clockid: monotonic"));
	free(text);
	text = perf("buildid-list");
	assert_non_null(strstr(text, "deadbeef05060708090a0b0c0d0e0f1011121314 /usr/bin/program"));
	free(text);
}

static void check_level(int level, unsigned long n, bool noise)
{
	struct maker *m = write_file(level, n, noise);
	unsigned long counts[EVENTS] = {0}, rounds = 0;
	char loss[256];

	count_file(counts, &rounds, loss, sizeof(loss));
	assert_memory_equal(counts, m->counts, sizeof(counts));
	assert_int_equal(rounds, m->rounds);
	assert_string_equal(loss, "");
	check_facts();
	check_with_perf(m);
	free(m);
}

static void test_plain(void **state)
{
	(void)state;
	check_level(0, 20000, false);
}

static void test_compressed(void **state)
{
	(void)state;
	check_level(1, 60000, false);
}

/* Callchains of random words hardly compress: frames shrink. */
static void test_incompressible(void **state)
{
	(void)state;
	check_level(3, 20000, true);
}

static void test_no_samples(void **state)
{
	unsigned long counts[EVENTS] = {0}, rounds = 0;
	struct data_writer_options options = {.zstd_level = 1};
	struct data_event events[EVENTS];
	struct data_writer *writer;
	struct err err = {0};
	char loss[256];

	(void)state;
	make_events(events);
	assert_int_equal(data_writer_open(&writer, path, events, EVENTS, &options, &err), 0);
	assert_int_equal(data_writer_close(writer, &facts, &err), 0);
	count_file(counts, &rounds, loss, sizeof(loss));
	assert_int_equal(counts[0], 0);
	assert_string_equal(loss, "");
}

/* A writer that was killed never completed the header. */
static void test_killed(void **state)
{
	struct data_writer_options options = {.zstd_level = 1};
	unsigned long counts[EVENTS] = {0}, rounds = 0, made = 0, read = 0;
	struct data_event events[EVENTS];
	struct maker *m = calloc(1, sizeof(*m));
	struct data_writer *writer;
	struct err err = {0};
	char loss[256];

	(void)state;
	make_events(events);
	assert_int_equal(data_writer_open(&writer, path, events, EVENTS, &options, &err), 0);
	write_records(writer, m, 60000, false);
	assert_true(data_writer_bytes(writer) > 1000);
	count_file(counts, &rounds, loss, sizeof(loss));
	for (int i = 0; i < EVENTS; i++) {
		made += m->counts[i];
		read += counts[i];
	}
	/* A second's worth may be missing; a sample takes half a millisecond here. */
	assert_in_range(read, made - 5000, made);
	assert_non_null(strstr(loss, "cut off"));
	data_writer_close(writer, &facts, &err);
	free(m);
}

/* RLIMIT_FSIZE stands for a full disk: writes beyond it fail from then on. */
static void test_full_disk(void **state)
{
	struct data_writer_options options = {.zstd_level = 1};
	unsigned long counts[EVENTS] = {0}, rounds = 0, made = 0, read = 0;
	struct rlimit limit = {.rlim_cur = 1000000, .rlim_max = RLIM_INFINITY};
	struct data_event events[EVENTS];
	struct maker *m = calloc(1, sizeof(*m));
	struct data_writer *writer;
	struct err err = {0};
	struct bytes section;
	struct data_file *file;
	char *big = calloc(1, 200000);
	char loss[256];

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	make_events(events);
	assert_int_equal(data_writer_open(&writer, path, events, EVENTS, &options, &err), 0);
	setrlimit(RLIMIT_FSIZE, &limit);
	write_records(writer, m, 60000, true);
	assert_true(data_write_round(writer, &err) < 0);
	assert_non_null(strstr(err.text, "cannot write the recording"));
	assert_int_equal(data_writer_section(writer, DATA_SECTION_CODE, big, 200000, &err), 0);
	assert_true(data_writer_close(writer, &facts, &err) < 0);
	limit.rlim_cur = RLIM_INFINITY;
	setrlimit(RLIMIT_FSIZE, &limit);
	count_file(counts, &rounds, loss, sizeof(loss));
	for (int i = 0; i < EVENTS; i++) {
		made += m->counts[i];
		read += counts[i];
	}
	assert_in_range(read, made / 4, made);
	assert_string_equal(loss, "");
	assert_int_equal(data_open(&file, path, &err), 0);
	section = data_section(file, DATA_SECTION_CODE);
	assert_int_equal(bytes_left(&section), 200000);
	assert_string_equal(data_info(file)->hostname, "host");
	data_close(file);
	free(big);
	memcpy(m->counts, counts, sizeof(counts));
	if (have_perf())
		check_stats(m);
	free(m);
}

static void test_bad_paths(void **state)
{
	struct data_writer_options options = {.zstd_level = 1};
	struct data_event events[EVENTS];
	struct data_writer *writer;
	struct err err = {0};

	(void)state;
	make_events(events);
	assert_int_equal(
		data_writer_open(&writer, "/nowhere/at/all", events, EVENTS, &options, &err),
		ERR_NOT_FOUND);
	assert_null(writer);
	assert_int_equal(data_writer_close(NULL, NULL, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_plain, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_compressed, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_incompressible, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_no_samples, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_killed, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_full_disk, make_path, remove_path),
		cmocka_unit_test(test_bad_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
