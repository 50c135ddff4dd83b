#include "base/strbuf.h"
#include "data/data.h"
#include "ring/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <cmocka.h>

/*
 * One recording in every form that a perf.data file can take: both byte orders, file and pipe mode,
 * plain and compressed (one zstd stream cut anywhere, as perf does it), attributes of several
 * sizes. Whatever the form, the records that come out are the same bytes.
 *
 * Each field is written in the byte order of the form, so nothing here relies on the reader's
 * turning around.
 */
struct form {
	bool swap, pipe;
	uint32_t compressed; /* 0, 81 or 83 */
	uint32_t attr_size;
	unsigned int odd; /* bytes of padding before the data: records are misaligned */
};

struct out {
	struct strbuf sb;
	bool swap;
	size_t record;
};

static void put(struct out *out, uint64_t v, unsigned int size)
{
	unsigned char bytes[8];

	for (unsigned int i = 0; i < size; i++)
		bytes[out->swap ? size - 1 - i : i] = (unsigned char)(v >> (8 * i));
	strbuf_add(&out->sb, bytes, size);
}

static void put32s(struct out *out, uint32_t a, uint32_t b)
{
	put(out, a, 4);
	put(out, b, 4);
}

static void put64s(struct out *out, unsigned int count, uint64_t first)
{
	for (unsigned int i = 0; i < count; i++)
		put(out, first + i, 8);
}

static void patch16(struct out *out, size_t at, uint16_t v)
{
	size_t len = out->sb.len;
	char bytes[2];

	put(out, v, 2);
	memcpy(bytes, out->sb.buf + len, 2);
	memcpy(out->sb.buf + at, bytes, 2);
	out->sb.len = len;
}

static void begin(struct out *out, uint32_t type, uint16_t misc)
{
	out->record = out->sb.len;
	put(out, type, 4);
	put(out, misc, 2);
	put(out, 0, 2);
}

static void finish(struct out *out)
{
	patch16(out, out->record + 6, (uint16_t)(out->sb.len - out->record));
}

#define BIT(n) (1ull << (n))
#define EVERYTHING                                                                         \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |    \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |     \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | \
	 PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |       \
	 PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |             \
	 PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP)
#define SIMPLE                                                                          \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_CPU)
#define REGS 0x23ull
#define ID_ALL 777u
#define ID_SIMPLE 888u

static void put_attr(struct out *out, const struct form *form, bool all)
{
	size_t start = out->sb.len;
	/* Flags by their order in the struct: disabled 0, freq 10, precise_ip 15 and 16,
	 * sample_id_all 18, use_clockid 25. */
	uint64_t flags = 0;
	const unsigned int set[] = {10, 18};

	for (unsigned int i = 0; i < 2; i++)
		flags |= form->swap ? BIT(63 - set[i]) : BIT(set[i]);
	flags |= form->swap ? 2ull << (63 - 16) : 2ull << 15;
	put32s(out, PERF_TYPE_HARDWARE, form->attr_size);
	put(out, all ? 0 : 3, 8);
	put(out, 999, 8);
	put(out, all ? EVERYTHING : SIMPLE, 8);
	put(out, PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED, 8);
	put(out, flags, 8);
	put32s(out, 1, 0);
	put64s(out, 1, 0x11);
	put64s(out, 1, 0x22);
	put(out, PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX, 8);
	put(out, REGS, 8);
	put32s(out, 512, 1);
	put(out, REGS, 8);
	put(out, 4096, 4);
	put(out, 127, 2);
	put(out, 0, 2);
	put64s(out, 3, 0x5151515151515151);
	strbuf_extend(&out->sb, 64);
	out->sb.len = start + form->attr_size;
}

static void put_trailer(struct out *out, uint64_t time)
{
	put32s(out, 10, 11);
	put(out, time, 8);
	put32s(out, 3, 0);
	put(out, ID_SIMPLE, 8);
}

static void put_simple(struct out *out, uint64_t i)
{
	begin(out, PERF_RECORD_SAMPLE, 2);
	put(out, ID_SIMPLE, 8);
	put(out, 0x1000 + i, 8);
	put32s(out, 10, 11);
	put(out, 1000 + i, 8);
	put32s(out, (uint32_t)(i & 3), 0);
	finish(out);
}

static void put_everything(struct out *out, uint64_t time)
{
	begin(out, PERF_RECORD_SAMPLE, 2);
	put(out, ID_ALL, 8);
	put(out, 0x401234, 8);
	put32s(out, 10, 11);
	put(out, time, 8);
	put(out, 0xaddee55, 8);
	put(out, ID_ALL, 8);
	put(out, 66, 8);
	put32s(out, 3, 0);
	put(out, 12345, 8);
	put(out, 2, 8); /* read: two of a group, time enabled */
	put64s(out, 5, 900);
	put(out, 3, 8); /* callchain */
	put64s(out, 3, 0x500);
	put(out, 12, 4); /* raw */
	strbuf_add(&out->sb, "raw bytes!!!", 12);
	put(out, 2, 8); /* branches, hw_idx */
	put(out, 7, 8);
	for (int i = 0; i < 2; i++) {
		put64s(out, 2, 0x700);
		/* mispred 0, cycles 4 to 19: bit fields, as the compiler lays them out. */
		put(out, out->swap ? BIT(63) | 9ull << (63 - 19) : BIT(0) | 9ull << 4, 8);
	}
	put(out, 2, 8); /* user registers */
	put64s(out, 3, 0x8000);
	put(out, 16, 8); /* user stack */
	strbuf_add(&out->sb, "0123456789abcdef", 16);
	put(out, 8, 8);
	put(out, 42, 8);     /* weight */
	put(out, 0xd5d5, 8); /* data_src */
	put(out, 1, 8);
	put(out, 1, 8); /* interrupt registers */
	put64s(out, 3, 0x9000);
	put(out, 0xfee1, 8);
	put(out, 4, 8);
	finish(out);
}

/* Every record type that has fields to turn, then samples. */
static void put_records(struct out *out, unsigned int samples)
{
	begin(out, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put32s(out, 10, 11);
	strbuf_add(&out->sb, "python\0", 8);
	put_trailer(out, 1);
	finish(out);
	begin(out, PERF_RECORD_MMAP, 2);
	put32s(out, 10, 11);
	put64s(out, 3, 0x400000);
	strbuf_add(&out->sb, "/bin/sh", 8);
	put_trailer(out, 2);
	finish(out);
	begin(out, PERF_RECORD_MMAP2, 2);
	put32s(out, 10, 11);
	put64s(out, 3, 0x500000);
	put32s(out, 8, 1);
	put64s(out, 2, 4711);
	put32s(out, 5, 2);
	strbuf_add(&out->sb, "/bin/ls", 8);
	put_trailer(out, 3);
	finish(out);
	begin(out, PERF_RECORD_MMAP2, 2 | PERF_RECORD_MISC_MMAP_BUILD_ID);
	put32s(out, 10, 11);
	put64s(out, 3, 0x600000);
	strbuf_add(&out->sb, "\x14\0\0\0abcdefghijklmnopqrst", 24);
	put32s(out, 5, 2);
	strbuf_add(&out->sb, "/bin/id", 8);
	put_trailer(out, 4);
	finish(out);
	begin(out, PERF_RECORD_FORK, 0);
	put32s(out, 12, 10);
	put32s(out, 12, 11);
	put(out, 5, 8);
	put_trailer(out, 5);
	finish(out);
	begin(out, PERF_RECORD_LOST, 0);
	put64s(out, 2, ID_SIMPLE);
	put_trailer(out, 6);
	finish(out);
	begin(out, PERF_RECORD_THROTTLE, 0);
	put64s(out, 3, 7);
	put_trailer(out, 7);
	finish(out);
	begin(out, PERF_RECORD_NAMESPACES, 0);
	put32s(out, 10, 11);
	put(out, 2, 8);
	put64s(out, 4, 0xf0000000);
	put_trailer(out, 8);
	finish(out);
	begin(out, PERF_RECORD_KSYMBOL, 0);
	put(out, 0xffffffff81000000, 8);
	put(out, 64, 4);
	put(out, 1, 2);
	put(out, 0, 2);
	strbuf_add(&out->sb, "bpf_fn\0", 8);
	put_trailer(out, 9);
	finish(out);
	begin(out, PERF_RECORD_BPF_EVENT, 0);
	put(out, 1, 2);
	put(out, 0, 2);
	put(out, 99, 4);
	strbuf_add(&out->sb, "tagtagta", 8);
	put_trailer(out, 10);
	finish(out);
	begin(out, PERF_RECORD_CGROUP, 0);
	put(out, 17, 8);
	strbuf_add(&out->sb, "/cgroup", 8);
	put_trailer(out, 11);
	finish(out);
	begin(out, PERF_RECORD_TEXT_POKE, 0);
	put(out, 0xffffffff81000000, 8);
	put(out, 2, 2);
	put(out, 2, 2);
	strbuf_add(&out->sb, "\x66\x90\xeb\x02", 4);
	put_trailer(out, 12);
	finish(out);
	begin(out, PERF_RECORD_SWITCH_CPU_WIDE, 0);
	put32s(out, 10, 11);
	put_trailer(out, 13);
	finish(out);
	begin(out, PERF_RECORD_SWITCH, 0);
	put_trailer(out, 14);
	finish(out);
	begin(out, PERF_RECORD_AUX, 0);
	put64s(out, 3, 0);
	put_trailer(out, 15);
	finish(out);
	begin(out, PERF_RECORD_LOST_SAMPLES, 0);
	put(out, 5, 8);
	put_trailer(out, 16);
	finish(out);
	put_everything(out, 17);
	for (unsigned int i = 0; i < samples; i++)
		put_simple(out, i);
}

static void put_round(struct out *out)
{
	begin(out, 68, 0);
	finish(out);
}

/* One zstd stream over all records, cut every few thousand bytes, rounds between the pieces. */
static void put_compressed(struct out *out, const struct strbuf *records, uint32_t type)
{
	ZSTD_CStream *stream = ZSTD_createCStream();
	size_t at = 0, piece = 0;
	char bytes[20000];

	ZSTD_initCStream(stream, 3);
	while (at < records->len) {
		size_t len = 1 + (piece++ * 7919) % 9000;
		ZSTD_outBuffer to = {.dst = bytes, .size = sizeof(bytes)};
		ZSTD_inBuffer from = {.src = records->buf + at};

		from.size = len < records->len - at ? len : records->len - at;
		assert_int_equal(ZSTD_compressStream(stream, &to, &from) > 1u << 30, 0);
		assert_int_equal(ZSTD_flushStream(stream, &to), 0);
		assert_int_equal(from.pos, from.size);
		at += from.size;
		begin(out, type, 0);
		if (type == 83)
			put(out, to.pos, 8);
		strbuf_add(&out->sb, bytes, to.pos);
		if (type == 83)
			strbuf_pad(&out->sb, 8);
		finish(out);
		put_round(out);
	}
	ZSTD_freeCStream(stream);
}

static struct strbuf build(const struct form *form, unsigned int samples)
{
	struct out out = {.swap = form->swap}, records = {.swap = form->swap};
	size_t header_at[4] = {0};

	put_records(&records, samples);
	put(&out, 0x32454c4946524550, 8);
	if (form->pipe) {
		put(&out, 16, 8);
		for (int i = 0; i < 2; i++) {
			begin(&out, 64, 0);
			put_attr(&out, form, i == 0);
			put(&out, i ? ID_SIMPLE : ID_ALL, 8);
			finish(&out);
		}
		begin(&out, 80, 0); /* HOSTNAME */
		put(&out, 3, 8);
		put(&out, 64, 4);
		strbuf_add(&out.sb, "host", 4);
		strbuf_extend(&out.sb, 64);
		finish(&out);
	} else {
		uint64_t attrs = 104 + 16, data = attrs + 2 * (form->attr_size + 16) + form->odd;

		put(&out, 104, 8);
		put(&out, form->attr_size + 16, 8);
		put(&out, attrs, 8);
		put(&out, 2 * (form->attr_size + 16), 8);
		put(&out, data, 8);
		header_at[0] = out.sb.len; /* the size of the data, completed below */
		put64s(&out, 1, 0);
		put(&out, 0, 8);
		put(&out, 0, 8);
		put(&out, BIT(3), 8); /* HOSTNAME */
		put(&out, 0, 8);
		put(&out, 0, 8);
		put(&out, 0, 8);
		put(&out, ID_ALL, 8);
		put(&out, ID_SIMPLE, 8);
		for (unsigned int i = 0; i < 2; i++) {
			put_attr(&out, form, i == 0);
			put(&out, 104 + 8 * i, 8);
			put(&out, 8, 8);
		}
		strbuf_extend(&out.sb, form->odd);
		assert_int_equal(out.sb.len, data);
		header_at[1] = data;
	}
	if (form->compressed)
		put_compressed(&out, &records.sb, form->compressed);
	else
		strbuf_add(&out.sb, records.sb.buf, records.sb.len);
	if (!form->pipe) {
		size_t end = out.sb.len;

		put(&out, end - header_at[1], 8);
		memcpy(out.sb.buf + header_at[0], out.sb.buf + end, 8);
		out.sb.len = end;
		put(&out, end + 16, 8);
		put(&out, 4 + 64, 8);
		put(&out, 64, 4);
		strbuf_add(&out.sb, "host", 4);
		strbuf_extend(&out.sb, 60);
	}
	assert_false(strbuf_failed(&out.sb));
	strbuf_fini(&records.sb);
	return out.sb;
}

/* All records that come out, rounds left away, behind each other. */
static void read_form(const struct form *form, const struct strbuf *file_bytes, struct strbuf *all)
{
	int fd = memfd_create("form", MFD_CLOEXEC), rc;
	struct data_record record;
	struct data_file *file;
	struct err err = {0};
	char path[64];

	assert_int_equal(write(fd, file_bytes->buf, file_bytes->len), (ssize_t)file_bytes->len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(data_open(&file, path, &err), 0);
	assert_int_equal(data_event_count(file), 2);
	assert_int_equal(data_is_pipe(file), form->pipe);
	for (unsigned int i = 0; i < 2; i++) {
		const struct perf_event_attr *attr = &data_event(file, i)->attr;

		assert_int_equal(attr->sample_type, i ? SIMPLE : EVERYTHING);
		assert_int_equal(attr->freq, 1);
		assert_int_equal(attr->precise_ip, 2);
		assert_int_equal(attr->sample_id_all, 1);
		assert_int_equal(attr->inherit, 0);
		assert_int_equal(attr->sample_regs_user, form->attr_size >= 96 ? REGS : 0);
		assert_int_equal(attr->sample_stack_user, form->attr_size >= 96 ? 512 : 0);
		assert_int_equal(attr->sample_max_stack, form->attr_size >= 112 ? 127 : 0);
		assert_string_equal(data_event(file, i)->name, i ? "cache-misses:pp" : "cycles:pp");
		assert_int_equal(data_event_by_id(file, i ? ID_SIMPLE : ID_ALL), i);
	}
	assert_int_equal(data_event_by_id(file, 5), -1);
	assert_string_equal(data_info(file)->hostname, "host");
	while ((rc = data_next(file, &record, &err)) > 0) {
		if (record.header->type != 68)
			strbuf_add(all, record.header, record.header->size);
		data_discard(file, record.position);
	}
	assert_int_equal(rc, 0);
	assert_null(data_loss(file));
	data_close(file);
	close(fd);
}

static void test_forms(void **state)
{
	static const uint32_t sizes[] = {112, 120, 128, 136, 144};
	static const uint32_t compressed[] = {0, 81, 83};
	unsigned int samples = 3000;
	struct out expected = {0};

	(void)state;
	put_records(&expected, samples);
	for (unsigned int i = 0; i < 2 * 2 * 3 * 5 * 2; i++) {
		struct form form = {.swap = i & 1,
				    .pipe = i >> 1 & 1,
				    .odd = i >> 2 & 1 ? 4 : 0,
				    .compressed = compressed[(i >> 3) % 3],
				    .attr_size = sizes[(i >> 3) / 3]};
		struct strbuf bytes = build(&form, samples), all = {0};

		read_form(&form, &bytes, &all);
		if (all.len != expected.sb.len || memcmp(all.buf, expected.sb.buf, all.len) != 0) {
			size_t at = 0;

			while (at < all.len && at < expected.sb.len &&
			       all.buf[at] == expected.sb.buf[at])
				at++;
			fail_msg(
				"form swap %d pipe %d odd %u compressed %u size %u: %zu bytes, not "
				"%zu; differs at %zu",
				form.swap, form.pipe, form.odd, form.compressed, form.attr_size,
				all.len, expected.sb.len, at);
		}
		strbuf_fini(&bytes);
		strbuf_fini(&all);
	}
	strbuf_fini(&expected.sb);
}

/* Larger than many blocks, in every form but the plain one. */
static void test_large(void **state)
{
	unsigned int samples = 100000;
	struct out expected = {0};

	(void)state;
	put_records(&expected, samples);
	for (unsigned int i = 1; i < 8; i++) {
		struct form form = {.swap = i & 1,
				    .pipe = i >> 1 & 1,
				    .compressed = i >> 2 ? 81 : 0,
				    .attr_size = 120};
		struct strbuf bytes = build(&form, samples), all = {0};

		read_form(&form, &bytes, &all);
		assert_int_equal(all.len, expected.sb.len);
		assert_memory_equal(all.buf, expected.sb.buf, all.len);
		strbuf_fini(&bytes);
		strbuf_fini(&all);
	}
	strbuf_fini(&expected.sb);
}

static int open_bytes(const struct strbuf *bytes, struct data_file **file)
{
	int fd = memfd_create("bomb", MFD_CLOEXEC), rc;
	struct err err = {0};
	char path[64];

	assert_int_equal(write(fd, bytes->buf, bytes->len), (ssize_t)bytes->len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = data_open(file, path, &err);
	close(fd);
	return rc;
}

/* A gigabyte of equal records in a few dozen kilobytes. */
static void test_bomb(void **state)
{
	static const struct perf_event_header round = {.type = 68, .size = 8};
	struct form form = {.pipe = true, .attr_size = 120};
	struct strbuf bytes = build(&form, 0);
	struct out out = {.sb = bytes};
	ZSTD_CStream *stream = ZSTD_createCStream();
	size_t len = 1 << 20;
	uint64_t total = 0;
	struct data_record record;
	struct data_file *file;
	struct err err = {0};
	char *same = malloc(len), piece[60000];
	int rc;

	(void)state;
	for (size_t i = 0; i < len; i += sizeof(round))
		memcpy(same + i, &round, sizeof(round));
	ZSTD_initCStream(stream, 19);
	for (unsigned int i = 0; i < 1024; i++) {
		ZSTD_outBuffer to = {.dst = piece, .size = sizeof(piece)};
		ZSTD_inBuffer from = {.src = same, .size = len};

		ZSTD_compressStream(stream, &to, &from);
		ZSTD_flushStream(stream, &to);
		begin(&out, 81, 0);
		strbuf_add(&out.sb, piece, to.pos);
		finish(&out);
	}
	ZSTD_freeCStream(stream);
	assert_int_equal(open_bytes(&out.sb, &file), 0);
	while ((rc = data_next(file, &record, &err)) > 0)
		total += record.header->size;
	assert_int_equal(rc, 0);
	assert_true(total < 300u << 20);
	assert_non_null(strstr(data_loss(file), "expands more than"));
	data_close(file);
	strbuf_fini(&out.sb);
	free(same);
}

/* What lies behind an AUXTRACE record, a piece at a time; how much there was. */
static uint64_t take_payload(struct data_file *file, uint64_t of)
{
	uint64_t total = 0, word;
	struct bytes shown;

	for (;;) {
		assert_int_equal(data_payload(file, 1000, &shown, NULL), 0);
		if (!bytes_left(&shown))
			return total;
		assert_int_equal(bytes_left(&shown), total < 4000 ? 1000 : 96);
		memcpy(&word, shown.at, sizeof(word));
		assert_int_equal(word, of);
		/* What is not taken is shown again. */
		data_payload_take(file, 96);
		assert_int_equal(data_payload(file, 8, &shown, NULL), 0);
		assert_int_equal(bytes_left(&shown), total < 4000 ? 8 : 0);
		data_payload_take(file, total < 4000 ? 904 : 0);
		total += total < 4000 ? 1000 : 96;
	}
}

/* Two buffers of Arm SPE, as perf lays them between the records: taken, or skipped and counted. */
static void test_trace(void **state)
{
	for (int variant = 0; variant < 4; variant++) {
		const uint64_t word = UINT64_C(0x1000000000001); /* no record header */
		bool swap = variant & 1, taken = variant & 2;
		struct form form = {.pipe = true, .swap = swap, .attr_size = 120};
		struct out out = {.sb = build(&form, 0), .swap = swap};
		struct data_record record;
		struct data_file *file;
		struct err err = {0};
		uint64_t bytes;
		int rc;

		begin(&out, 70, 0); /* AUXTRACE_INFO: type, reserved, its own words */
		put32s(&out, 4, 0);
		put64s(&out, 2, 13);
		finish(&out);
		for (uint64_t i = 0; i < 2; i++) {
			begin(&out, 71, 0); /* AUXTRACE: size, offset, reference, idx, tid, cpu */
			put(&out, 4096, 8);
			put64s(&out, 2, 4096 * i);
			put32s(&out, 0, 11);
			put32s(&out, 2, 0);
			finish(&out);
			for (int k = 0; k < 512; k++)
				put(&out, word, 8);
		}
		put_simple(&out, 5);
		assert_int_equal(open_bytes(&out.sb, &file), 0);
		while ((rc = data_next(file, &record, &err)) > 0)
			if (taken && record.header->type == 71)
				assert_int_equal(
					take_payload(file, swap ? __builtin_bswap64(word) : word),
					4096);
		assert_int_equal(rc, 0);
		assert_null(data_loss(file));
		if (taken)
			assert_null(data_trace(file, &bytes));
		else
			assert_string_equal(data_trace(file, &bytes), "Arm SPE");
		assert_int_equal(bytes, taken ? 0 : 8192);
		data_close(file);
		strbuf_fini(&out.sb);
	}
}

/* FUZZ_SEEDS=FOLDER writes the forms that the fuzzer starts from. */
static void write_seeds(const char *folder)
{
	static const struct form forms[] = {
		{.attr_size = 128},
		{.swap = true, .attr_size = 112},
		{.compressed = 83, .attr_size = 144},
		{.pipe = true, .compressed = 81, .attr_size = 136},
		{.pipe = true, .swap = true, .attr_size = 120},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct strbuf bytes = build(&forms[i], 4);
		char path[1024];
		FILE *out;

		snprintf(path, sizeof(path), "%s/%s%s%u", folder, forms[i].pipe ? "pipe-" : "file-",
			 forms[i].swap ? "big-" : "", forms[i].compressed);
		out = fopen(path, "wb");
		if (out) {
			fwrite(bytes.buf, 1, bytes.len, out);
			fclose(out);
		}
		strbuf_fini(&bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_trace),
	};

	if (getenv("FUZZ_SEEDS"))
		write_seeds(getenv("FUZZ_SEEDS"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
