#include "data/writer.h"
#include "record/attrs.h"
#include "record/traces.h"
#include "ring/spe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * The recorder's end of a trace, on memory that is filled here as a PMU would: no machine of the
 * tests has one that traces.
 */
#define SIZE 4096u

struct area {
	struct perf_event_mmap_page control;
	unsigned char data[SIZE];
	struct aux_area aux;
};

static void open_area(struct area *area)
{
	memset(area, 0, sizeof(*area));
	area->aux = (struct aux_area){.control = &area->control, .data = area->data, .size = SIZE};
}

/* The PMU writes: bytes that tell their place in the stream. */
static void fill(struct area *area, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t at = area->control.aux_head + i;

		area->data[at % SIZE] = (unsigned char)(at / 7);
	}
	area->control.aux_head += len;
}

static void check(const struct area *area, const struct bytes parts[2], uint64_t from, size_t len)
{
	assert_int_equal(area->aux.tail, from);
	assert_int_equal(bytes_left(&parts[0]) + bytes_left(&parts[1]), len);
	for (size_t i = 0; i < len; i++) {
		size_t first = bytes_left(&parts[0]);
		unsigned char byte = i < first ? parts[0].at[i] : parts[1].at[i - first];

		assert_int_equal(byte, (unsigned char)((from + i) / 7));
	}
}

static void an_area_is_read_in_order(void **state)
{
	static const size_t lens[] = {1, 100, 4000, 4096, 63, 4095, 1};
	struct bytes parts[2];
	struct area area;
	uint64_t from = 0;

	open_area(&area);
	assert_false(aux_begin(&area.aux, parts));
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		fill(&area, lens[i]);
		assert_true(aux_begin(&area.aux, parts));
		check(&area, parts, from, lens[i]);
		/* What is written meanwhile is the next batch's. */
		assert_int_equal(area.control.aux_tail, from);
		aux_end(&area.aux);
		from += lens[i];
		assert_int_equal(area.control.aux_tail, from);
		assert_false(aux_begin(&area.aux, parts));
	}
	/* Overwritten, which the kernel does not do here: what is left is the newest. */
	fill(&area, 3 * SIZE);
	assert_true(aux_begin(&area.aux, parts));
	check(&area, parts, from + 2 * SIZE, SIZE);
	aux_end(&area.aux);
	assert_int_equal(area.control.aux_tail, from + 3 * SIZE);
	aux_close(&(struct aux_area){.data = NULL});
}

static void the_clock_is_the_kernels(void **state)
{
	static const uint64_t rates[] = {1000000,  24000000,   25000000,
					 62500000, 1000000000, UINT64_C(4000000000)};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		const uint64_t start = UINT64_C(123456789), ns = UINT64_C(77000000000);
		struct traces_clock clock = traces_clock_of(start, rates[i], ns);

		assert_true(clock.mult && clock.mult <= UINT32_MAX && clock.shift < 64);
		/* An hour later it is off by less than a microsecond. */
		for (uint64_t s = 0; s <= 3600; s += 60) {
			uint64_t ticks = start + s * rates[i];
			uint64_t whole = ticks >> clock.shift;
			uint64_t rest = ticks & ((UINT64_C(1) << clock.shift) - 1);
			uint64_t at = clock.zero + whole * clock.mult +
				      (rest * clock.mult >> clock.shift);

			assert_in_range(at + 1000 - (ns + s * 1000000000), 0, 2000);
		}
	}
}

static void put(struct strbuf *out, unsigned int head, uint64_t value)
{
	strbuf_char(out, (char)head);
	for (unsigned int i = 0; i < 1u << (head >> 4 & 3); i++)
		strbuf_char(out, (char)(value >> 8 * i));
}

static void put_load(struct strbuf *out, unsigned int i, uint64_t time)
{
	put(out, 0xb0, 0x400100);
	put(out, 0x64, 100);
	put(out, 0x49, 0);
	put(out, 0x52, SPE_L1D_ACCESS);
	put(out, 0xb2, 0x7f0000000000 + 64 * i);
	put(out, 0x98, i);
	put(out, 0x71, time);
}

#define LOADS 20
#define LOAD_BYTES 40
#define CUT_BYTES 13

static size_t piece_len(unsigned int round)
{
	return LOADS * LOAD_BYTES - round % 2 * CUT_BYTES;
}

static int record_to(const struct outlet *out, const struct perf_event_header *record,
		     struct err *err)
{
	return data_write(out->writer, record, record->size, err);
}

/* What the recorder writes of two CPUs' areas, with maps and names left out. */
static void write_recording(const char *path, int level)
{
	static const uint64_t ids[2][1] = {{77}, {78}};
	const uint64_t type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			      PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_DATA_SRC;
	struct data_event events[2] = {
		{.name = "arm_spe_0//", .attr = {.type = 12, .sample_period = 4096}},
		{.name = "dummy",
		 .attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY},
		 .leader = 1}};
	const struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		char name[8];
		uint32_t by[2];
		uint64_t time;
		uint32_t cpu[2];
		uint64_t id;
	} comm = {{PERF_RECORD_COMM, 0, sizeof(comm)},
		  100,
		  100,
		  "hot",
		  {100, 100},
		  1000000000,
		  {0, 0},
		  78};
	struct data_writer_options options = {.zstd_level = level, .mmap_len = 1 << 19};
	struct channel channel[2] = {{.cpu = 0}, {.cpu = 1}};
	struct channels channels = {.items = channel, .len = 2};
	static struct area areas[2];
	/* 25 MHz, and 1 s on both at once. */
	const struct traces_clock clock = traces_clock_of(25000000, 25000000, 1000000000);
	uint64_t bytes = 0, total = 0;
	size_t len;
	struct outlet out = {.record = record_to};
	struct strbuf trace = {0};

	for (size_t i = 0; i < 2; i++) {
		events[i].attr.size = PERF_ATTR_SIZE_VER7;
		events[i].attr.sample_type = type;
		events[i].attr.sample_id_all = 1;
		events[i].ids = ids[i];
		events[i].id_count = 1;
		open_area(&areas[i]);
		channel[i].aux = areas[i].aux;
	}
	assert_int_equal(data_writer_open(&out.writer, path, events, 2, &options, NULL), 0);
	assert_int_equal(traces_tell(&out, 12, &clock, NULL), 0);
	assert_int_equal(data_write(out.writer, &comm, sizeof(comm), NULL), 0);
	for (unsigned int round = 0; round < 10; round++) {
		for (size_t c = 0; c < 2; c++) {
			strbuf_reset(&trace);
			for (unsigned int i = 0; i < LOADS; i++)
				put_load(&trace, i, 25000000 + 1000 * round + 25 * i);
			/* Crosses the area's end, and every other time a record is cut. */
			len = piece_len(round);
			for (size_t i = 0; i < len; i++)
				areas[c].data[(areas[c].control.aux_head + i) % SIZE] =
					(unsigned char)trace.buf[i];
			areas[c].control.aux_head += len;
			total += len;
			assert_int_equal(traces_take(&channels, c, 100, out.writer, &bytes, NULL),
					 0);
		}
		assert_int_equal(data_write_round(out.writer, NULL), 0);
	}
	assert_int_equal(bytes, total);
	assert_int_equal(data_writer_close(out.writer,
					   &(struct data_info){.arch = "aarch64",
							       .cpuid = "0x00000000413fd0c1"},
					   NULL),
			 0);
	strbuf_fini(&trace);
}

static void what_is_written_is_read(void **state)
{
	for (int level = 0; level < 2; level++) {
		char path[] = "/tmp/pyperf-test-XXXXXX";
		uint64_t offsets[2] = {0, 0};
		unsigned int pieces = 0, infos = 0, comms = 0;
		struct data_record record;
		struct data_file *file;
		int fd = mkstemp(path);

		assert_true(fd >= 0);
		close(fd);
		write_recording(path, level);
		assert_int_equal(data_open(&file, path, NULL), 0);
		unlink(path);
		assert_string_equal(data_info(file)->cpuid, "0x00000000413fd0c1");
		while (data_next(file, &record, NULL) > 0) {
			struct bytes body = bytes_of(record.header + 1,
						     record.header->size - sizeof(*record.header));
			uint64_t size = bytes_u64(&body), offset = bytes_u64(&body);
			struct bytes shown;
			uint32_t cpu;

			comms += record.header->type == PERF_RECORD_COMM;
			infos += record.header->type == 70;
			if (record.header->type != 71)
				continue;
			bytes_u64(&body);
			bytes_u32(&body);
			assert_int_equal(bytes_u32(&body), 100);
			cpu = bytes_u32(&body);
			assert_true(cpu < 2);
			assert_int_equal(offset, offsets[cpu]);
			assert_int_equal(data_payload(file, SIZE, &shown, NULL), 0);
			assert_int_equal(bytes_left(&shown), size);
			assert_int_equal(size, (piece_len(pieces / 2) + 7) & ~7u);
			assert_int_equal(shown.at[0], 0xb0);
			offsets[cpu] += piece_len(pieces++ / 2);
		}
		assert_null(data_loss(file));
		assert_int_equal(pieces, 20);
		assert_int_equal(infos, 1);
		assert_int_equal(comms, 1);
		data_close(file);
	}
}

static struct event_spec spec(const char *name, bool traces)
{
	return (struct event_spec){.name = (char *)name, .traces = traces, .leader = true};
}

static void attributes_ask_for_a_trace(void **state)
{
	struct recorder_options options = {.frequency = 999, .chain = RECORDER_CHAIN_FP};
	struct event_spec traced = spec("arm_spe_0//", true);
	struct perf_event_attr attr;

	traced.attr.config = 1;
	attr_sampled(&attr, &traced, &options, RECORDER_COMMAND, NULL);
	/* The driver refuses a rate, and what is no record of its own is nobody's. */
	assert_int_equal(attr.freq, 0);
	assert_int_equal(attr.sample_period, 4096);
	assert_int_equal(attr.config, 1);
	assert_false(attr.sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_PERIOD));
	assert_true(attr.sample_type & PERF_SAMPLE_TIME);
	assert_true(attr.sample_type & PERF_SAMPLE_CPU);
	assert_true(attr.context_switch && attr.sample_id_all && attr.inherit &&
		    !attr.exclude_idle);
	options.period = 1000;
	attr_sampled(&attr, &traced, &options, RECORDER_COMMAND, NULL);
	assert_int_equal(attr.sample_period, 1000);
	traced.attr.sample_period = 2000; /* its own terms say so */
	attr_sampled(&attr, &traced, &options, RECORDER_COMMAND, NULL);
	assert_int_equal(attr.sample_period, 2000);
}

static void what_cannot_be_recorded_is_said(void **state)
{
	struct event_spec specs[] = {spec("cycles", false), spec("arm_spe_0//", true),
				     spec("arm_spe_1//", true)};
	struct event_list list = {.items = specs, .len = 1};
	struct recorder_options options = {.events = &list};
	const struct event_spec *traced;
	struct err err = {0};

	assert_int_equal(traces_find(&traced, &options, NULL, &err), 0);
	assert_null(traced);
	list.len = 2;
	options.counting = true;
	assert_int_equal(traces_find(&traced, &options, NULL, &err), ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "counts nothing"));
	options.counting = false;
	list.len = 3;
	assert_int_equal(traces_find(&traced, &options, NULL, &err), ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "one at a time"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_area_is_read_in_order),
		cmocka_unit_test(the_clock_is_the_kernels),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(attributes_ask_for_a_trace),
		cmocka_unit_test(what_cannot_be_recorded_is_said),
	};

	/* For who wants to look at one with other tools. */
	if (getenv("TRACE_RECORDING")) {
		write_recording(getenv("TRACE_RECORDING"), 1);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
