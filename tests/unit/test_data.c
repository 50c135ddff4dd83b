#include "base/bytes.h"
#include "data/data.h"
#include "ring/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Recordings of other machines and versions (counted by perf where perf opens them), and the same
 * cut short and broken everywhere. */

struct fixture {
	const char *name;
	struct {
		const char *event;
		unsigned long samples;
	} events[7];
	unsigned long others; /* records that are no samples; 0: not checked */
	const char *loss;     /* part of it; NULL: the file is sound */
};

static const struct fixture fixtures[] = {
	{.name = "perf.data.busy.0-3.4",
	 .events = {{"cycles", 67},
		    {"instructions", 127},
		    {"cache-references", 135},
		    {"cache-misses", 70},
		    {"branches", 123},
		    {"branch-misses", 106}},
	 .others = 2972 - 628},
	{.name = "perf.data.busy.0-3.8",
	 .events = {{"cycles", 4}, {"instructions", 0}},
	 .others = 2457 - 4},
	{.name = "perf.data.hw_and_sw-3.4",
	 .events = {{"cycles", 207}, {"branch-misses", 0}, {"cpu-clock", 4734}},
	 .others = 7533 - 4941},
	{.name = "perf.data.piped.hw_and_sw-3.4",
	 .events = {{"cycles", 193}, {"branch-misses", 0}, {"cpu-clock", 4082}},
	 .others = 6859 - 4275 - 3},
	{.name = "perf.data.group_desc-4.14",
	 .events = {{"cache-references", 7}, {"branch-misses", 6}},
	 .others = 50 - 13},
	{.name = "perf.data.piped.header_feautres_group_desc-6.8",
	 .events = {{"cycles:u", 11}, {"instructions:u", 10}},
	 .others = 59 - 21 - 2 - 2 - 21},
	{.name = "perf.data.lost_samples-4.4",
	 .events = {{"cycles:pp", 97}, {"instructions:pp", 80}, {"branch-instructions:pp", 14}},
	 .others = 243 - 191},
	{.name = "perf.data.piped.lost_samples-4.4",
	 .events = {{"cycles:pp", 98}, {"instructions:pp", 79}, {"branches:pp", 14}},
	 .others = 246 - 191 - 3},
	{.name = "perf.data.callgraph-3.4", .events = {{"cycles", 1548}}, .others = 4046 - 1548},
	{.name = "perf.data.branch-4.14", .events = {{"cycles:ppp", 13}}, .others = 50 - 13},
	{.name = "perf.data.weight_struct",
	 .events = {{"MEM_TRANS_RETIRED.LOAD_LATENCY:ldlat=64:precise=2:mh:mg:pinned", 14},
		    {"dummy:HG", 0}},
	 .others = 12964 - 14},
	{.name = "perf.data.hybrid_topology",
	 .events = {{"cpu_core/cycles:ppp/", 7}, {"cpu_atom/cycles:ppp/", 0}},
	 .others = 124 - 7 - 2},
	{.name = "perf.data.ctx_switch_namespaces-4.14",
	 .events = {{"cycles", 2}},
	 .others = 42 - 2},
	{.name = "perf.data.piped.ctx_switch_namespaces-4.14",
	 .events = {{"cycles", 7}},
	 .others = 93 - 7 - 1 - 12},
	{.name = "perf.data.intel_pt-4.14",
	 .events = {{"intel_pt//", 0}, {"cycles", 15}, {"dummy:u", 0}},
	 .others = 257 - 15},
	{.name = "perf.data.piped.header_features_aligned-6.12",
	 .events = {{"cycles:u", 9}},
	 .others = 45 - 9 - 1 - 2 - 20},
	{.name = "perf.data.piped.no_attr_ids-4.14",
	 .events = {{"cycles", 7}},
	 .others = 57 - 7 - 1 - 12},
	{.name = "perf.data.proc.map.timeout-3.18", .events = {{"cycles", 8}}, .others = 696 - 8},
	{.name = "perf.data.piped.corrupted.zero_size_sample-3.2",
	 .events = {{"cycles", 0}},
	 .others = 568,
	 .loss = "size 0 at byte 49104"},
	{.name = "sleep.data", .events = {{"cycles:Pu", 7}}},
	{.name = "sleep.compressed.data", .events = {{"cycles:P", 8}}},
	{.name = "sleep.compressed.pipe.data", .events = {{"cycles:P", 8}}},
	{.name = "sleep.compressed2.data", .events = {{"cycles:Pu", 7}}},
	{.name = "sleep.compressed2.pipe.data",
	 .events = {{"cycles:P", 7}},
	 .loss = "its last 143 bytes"},
};
#define FIXTURES (sizeof(fixtures) / sizeof(fixtures[0]))

static const char *folder(void)
{
	const char *env = getenv("PYPERF_FIXTURES");
	static char path[1024];

	snprintf(path, sizeof(path), "%s/perf-data", env ? env : "../shared/fixtures");
	if (access(path, R_OK) == 0)
		return path;
	print_message("skipped: no recordings in %s (set PYPERF_FIXTURES)\n", path);
	return NULL;
}

struct counts {
	unsigned long samples[16], others, unknown, undecoded;
	uint64_t periods;
	char loss[256];
	bool pipe;
};

/* Reads to the end. Negative when it does not open. */
static int count_path(const char *path, struct counts *counts, uint64_t keep)
{
	struct data_record record;
	struct data_file *file;
	struct err err = {0};
	uint64_t last = 0;
	int rc;

	memset(counts, 0, sizeof(*counts));
	rc = data_open(&file, path, &err);
	if (rc < 0) {
		assert_true(err.text[0] != '\0');
		return rc;
	}
	while ((rc = data_next(file, &record, &err)) > 0) {
		const struct data_event *event = data_event(file, 0);
		struct record_sample sample;
		uint64_t id = 0;
		int index = 0;

		assert_int_equal((uintptr_t)record.header % 8, 0);
		assert_true(!last || record.position > last);
		last = record.position;
		if (last > keep)
			data_discard(file, last - keep);
		if (!event)
			continue;
		if (record.header->type != PERF_RECORD_SAMPLE) {
			counts->others++;
			continue;
		}
		record_identifier(record.header, event->attr.sample_type, &id);
		index = data_event_by_id(file, id);
		if (index < 0 || index >= 16) {
			counts->unknown++;
			continue;
		}
		counts->samples[index]++;
		if (record_decode_sample(record.header, &data_event(file, (size_t)index)->attr,
					 &sample))
			counts->periods += sample.period;
		else
			counts->undecoded++;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(data_next(file, &record, &err), 0);
	snprintf(counts->loss, sizeof(counts->loss), "%s", data_loss(file) ? data_loss(file) : "");
	counts->pipe = data_is_pipe(file);
	data_close(file);
	return 0;
}

static void check_counts(const struct fixture *fixture, const struct counts *counts)
{
	for (size_t j = 0; fixture->events[j].event; j++)
		if (counts->samples[j] != fixture->events[j].samples)
			fail_msg("%s: %s has %lu samples", fixture->name, fixture->events[j].event,
				 counts->samples[j]);
	if (fixture->others && counts->others != fixture->others)
		fail_msg("%s: %lu other records, not %lu", fixture->name, counts->others,
			 fixture->others);
	if (counts->unknown || counts->undecoded)
		fail_msg("%s: %lu without event, %lu not decoded", fixture->name, counts->unknown,
			 counts->undecoded);
	if (fixture->loss ? !strstr(counts->loss, fixture->loss) : counts->loss[0])
		fail_msg("%s: loss \"%s\"", fixture->name, counts->loss);
	assert_int_equal(counts->pipe, strstr(fixture->name, "pipe") != NULL);
}

static void test_fixtures(void **state)
{
	const char *dir = folder();

	(void)state;
	if (!dir)
		skip();
	for (size_t i = 0; i < FIXTURES; i++) {
		struct data_file *file;
		struct counts counts;
		struct err err = {0};
		char path[2048];

		snprintf(path, sizeof(path), "%s/%s", dir, fixtures[i].name);
		if (count_path(path, &counts, 0) < 0)
			fail_msg("%s does not open", fixtures[i].name);
		check_counts(&fixtures[i], &counts);
		assert_int_equal(data_open(&file, path, &err), 0);
		for (size_t j = 0; fixtures[i].events[j].event; j++)
			assert_string_equal(data_event(file, j)->name, fixtures[i].events[j].event);
		data_close(file);
	}
}

/* Writes bytes into a pipe from a child, `chunk` at a time; the path of the reading end. */
static pid_t feed_pipe(const void *bytes, size_t len, size_t chunk, char *path, size_t size,
		       int *fd)
{
	int pipes[2];
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		const char *at = bytes;

		close(pipes[0]);
		while (len) {
			ssize_t n = write(pipes[1], at, len < chunk ? len : chunk);

			if (n <= 0)
				break;
			at += n;
			len -= (size_t)n;
		}
		_exit(0);
	}
	close(pipes[1]);
	*fd = pipes[0];
	snprintf(path, size, "/proc/self/fd/%d", pipes[0]);
	return pid;
}

static char *slurp(const char *dir, const char *name, size_t *len)
{
	char path[2048], *bytes = malloc(4 << 20);
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	in = fopen(path, "rb");
	assert_non_null(in);
	*len = fread(bytes, 1, 4 << 20, in);
	fclose(in);
	return bytes;
}

/* Every fixture as a stream, in file mode too (spooled), in odd pieces. */
static void test_streams(void **state)
{
	const char *dir = folder();

	(void)state;
	if (!dir)
		skip();
	for (size_t i = 0; i < FIXTURES; i++) {
		struct counts counts;
		char path[64];
		size_t len;
		char *bytes = slurp(dir, fixtures[i].name, &len);
		int fd;
		pid_t pid = feed_pipe(bytes, len, 1009, path, sizeof(path), &fd);

		assert_int_equal(count_path(path, &counts, 1 << 16), 0);
		check_counts(&fixtures[i], &counts);
		close(fd);
		waitpid(pid, NULL, 0);
		free(bytes);
	}
}

static int count_bytes(const void *bytes, size_t len, struct counts *counts)
{
	int fd = memfd_create("recording", MFD_CLOEXEC), rc;
	char path[64];

	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = count_path(path, counts, 4096);
	close(fd);
	return rc;
}

/* Cut anywhere: what comes before the cut is there, never more, and the loss is said. */
static void test_truncated(void **state)
{
	const char *dir = folder();

	(void)state;
	if (!dir)
		skip();
	for (size_t i = 0; i < FIXTURES; i++) {
		size_t len, step;
		char *bytes = slurp(dir, fixtures[i].name, &len);
		unsigned long before = 0;

		step = len / 97 + 1;
		for (size_t cut = 0; cut < len; cut += step) {
			struct counts counts;
			unsigned long all = 0;

			if (count_bytes(bytes, cut, &counts) < 0) {
				assert_true(cut < 4096);
				continue;
			}
			for (int j = 0; j < 16; j++)
				all += counts.samples[j];
			all += counts.others;
			if (all < before)
				fail_msg("%s cut at %zu has fewer records", fixtures[i].name, cut);
			before = all;
			if (!counts.pipe && !counts.loss[0])
				fail_msg("%s cut at %zu: no loss", fixtures[i].name, cut);
		}
		free(bytes);
	}
}

static void test_broken(void **state)
{
	const char *dir = folder();
	uint64_t seed = 42;

	(void)state;
	if (!dir)
		skip();
	for (size_t i = 0; i < FIXTURES; i++) {
		size_t len;
		char *bytes = slurp(dir, fixtures[i].name, &len);

		for (int round = 0; round < 60; round++) {
			size_t at[4];
			char was[4];
			struct counts counts;

			/* Half of them in the first bytes, where the header and sizes are. */
			for (int j = 0; j < 4; j++) {
				seed = seed * 6364136223846793005ull + 1442695040888963407ull;
				at[j] = (seed >> 20) % (round % 2 ? len : 1024);
				was[j] = bytes[at[j]];
				bytes[at[j]] = (char)(seed >> 50);
			}
			count_bytes(bytes, len, &counts);
			for (int j = 4; j-- > 0;)
				bytes[at[j]] = was[j];
		}
		free(bytes);
	}
}

static void test_no_recordings(void **state)
{
	struct data_file *file;
	struct counts counts;
	struct err err = {0};

	(void)state;
	assert_int_equal(data_open(&file, "/nowhere/perf.data", &err), ERR_NOT_FOUND);
	assert_null(file);
	assert_int_equal(data_open(&file, "tests", &err), ERR_UNSUPPORTED);
	assert_int_equal(data_open(&file, "Makefile", &err), ERR_CORRUPT);
	assert_non_null(strstr(err.text, "Makefile: this is no perf.data file"));
	assert_int_equal(count_bytes("", 0, &counts), ERR_CORRUPT);
	assert_int_equal(count_bytes("PERFILE2", 8, &counts), ERR_CORRUPT);
	data_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixtures),      cmocka_unit_test(test_streams),
		cmocka_unit_test(test_truncated),     cmocka_unit_test(test_broken),
		cmocka_unit_test(test_no_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
