#include "ring/spe.h"

#include "base/strbuf.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Heads of packets, with the size that belongs to them. */
enum {
	PAD = 0x00,
	END = 0x01,
	OTHER = 0x48,
	LOAD_STORE = 0x49,
	EVENTS8 = 0x42,
	EVENTS16 = 0x52,
	SOURCE = 0x43,
	CONTEXT = 0x64,
	TIME = 0x71,
	TOTAL = 0x98,
	ISSUE = 0x99,
	PC = 0xb0,
	TARGET = 0xb1,
	DATA = 0xb2,
};

#define KERNEL (UINT64_C(1) << 63 | UINT64_C(1) << 61) /* nonsecure, EL1 */
#define NEOVERSE_N1 0x413fd0c1u
#define AMPEREONE 0xc00fac40u

static void put(struct strbuf *out, unsigned int head, uint64_t value)
{
	unsigned int size = 1u << (head >> 4 & 3);

	strbuf_char(out, (char)head);
	for (unsigned int i = 0; head != PAD && head != END && i < size; i++)
		strbuf_char(out, (char)(value >> 8 * i));
}

static void put_load(struct strbuf *out, uint64_t pc, uint64_t addr, unsigned int latency)
{
	put(out, PC, pc);
	put(out, ISSUE, 3);
	put(out, TOTAL, latency);
	put(out, EVENTS16, SPE_L1D_ACCESS);
	put(out, LOAD_STORE, 0);
	put(out, DATA, addr);
	put(out, SOURCE, 0);
	put(out, PAD, 0);
	put(out, END, 0);
}

/* All records of a buffer in one piece. */
static size_t decode(const struct strbuf *in, struct spe_record *records, size_t max,
		     uint64_t *broken)
{
	struct bytes bytes = bytes_of(in->buf, in->len);
	struct spe_decoder decoder = {.offset = 0};
	struct spe_record record;
	size_t count = 0;

	spe_begin(&decoder, 0);
	while (spe_next(&decoder, &bytes, &record)) {
		assert_true(count < max);
		records[count++] = record;
	}
	spe_end(&decoder, bytes_left(&bytes));
	spe_finish(&decoder);
	*broken = decoder.broken;
	return count;
}

static void a_record_is_what_its_packets_say(void **state)
{
	struct strbuf in = {0};
	struct spe_record r[4];
	uint64_t broken;

	put(&in, PC, 0x400100);
	put(&in, CONTEXT, 4711);
	put(&in, LOAD_STORE, 1);
	put(&in, EVENTS16, SPE_L1D_ACCESS | SPE_LLC_MISS);
	put(&in, DATA, UINT64_C(0x5a007f0000000040)); /* with a tag */
	put(&in, TOTAL, 200);
	put(&in, SOURCE, 0xe);
	put(&in, TIME, 123456789);
	put(&in, PC, KERNEL | UINT64_C(0xff800000001000));
	put(&in, OTHER, 0);
	put(&in, TARGET, 0x400200);
	put(&in, END, 0);
	put_load(&in, 0x400100, UINT64_C(0xff800000002000), 4); /* the kernel's */
	assert_int_equal(decode(&in, r, 4, &broken), 3);
	assert_int_equal(broken, 0);
	assert_int_equal(r[0].pc, 0x400100);
	assert_true(r[0].has_context);
	assert_int_equal(r[0].context, 4711);
	assert_int_equal(r[0].operation, SPE_STORE);
	assert_int_equal(r[0].events, SPE_L1D_ACCESS | SPE_LLC_MISS);
	assert_int_equal(r[0].addr, 0x7f0000000040);
	assert_int_equal(r[0].latency, 200);
	assert_int_equal(r[0].source, 0xe);
	assert_int_equal(r[0].time, 123456789);
	assert_int_equal(r[1].pc, UINT64_C(0xffff800000001000));
	assert_int_equal(r[1].operation, SPE_OTHER);
	assert_int_equal(r[1].addr, 0);
	assert_int_equal(r[1].time, 0);
	assert_false(r[1].has_context);
	assert_int_equal(r[2].addr, UINT64_C(0xffff800000002000));
	assert_int_equal(r[2].latency, 4);
	strbuf_fini(&in);
}

static void what_is_cut_or_unknown_is_counted(void **state)
{
	struct strbuf in = {0};
	struct spe_record r[8];
	uint64_t broken;

	put(&in, TOTAL, 9); /* the end of a record whose beginning is missing */
	put(&in, END, 0);
	put_load(&in, 0x100, 0x1000, 1);
	put(&in, PC, 0x200); /* its end is missing */
	put(&in, TOTAL, 2);
	put_load(&in, 0x300, 0x3000, 3);
	put(&in, PC, 0x400);
	put(&in, 0xff, 0); /* no packet; and what follows is lost, too */
	put(&in, LOAD_STORE, 0);
	put(&in, DATA, 0x4000);
	put(&in, END, 0);
	put_load(&in, 0x500, 0x5000, 5);
	put(&in, PC, 0x600);
	put(&in, 0x4b, 0); /* no class of operations */
	put_load(&in, 0x700, 0x7000, 7);
	put(&in, PC, 0x800);
	in.len -= 3; /* within a packet */
	assert_int_equal(decode(&in, r, 8, &broken), 4);
	assert_int_equal(broken, 5);
	for (unsigned int i = 0; i < 4; i++) {
		const unsigned int nth[] = {1, 3, 5, 7};

		assert_int_equal(r[i].pc, nth[i] * 0x100);
		assert_int_equal(r[i].addr, nth[i] * 0x1000);
		assert_int_equal(r[i].latency, nth[i]);
	}
	strbuf_fini(&in);
}

/* A record goes on in the next piece, but no packet does. */
static void records_span_pieces(void **state)
{
	struct spe_decoder decoder = {.offset = 0};
	struct strbuf in = {0};
	struct spe_record record;
	struct bytes piece;

	put_load(&in, 0x100, 0x1000, 1);
	for (size_t cut = 0; cut <= in.len; cut++) {
		size_t whole = cut == in.len, left;

		spe_begin(&decoder, 0);
		piece = bytes_of(in.buf, cut);
		assert_int_equal(spe_next(&decoder, &piece, &record), whole);
		left = bytes_left(&piece);
		assert_true(left < SPE_PACKET_MAX);
		piece = bytes_of(in.buf + cut - left, in.len - cut + left);
		if (!whole)
			assert_true(spe_next(&decoder, &piece, &record));
		assert_int_equal(record.addr, 0x1000);
		assert_int_equal(bytes_left(&piece), 0);
	}
	spe_finish(&decoder);
	assert_int_equal(decoder.broken, 0);
	piece = bytes_of(in.buf, 5);
	assert_false(spe_next(&decoder, &piece, &record));
	spe_end(&decoder, bytes_left(&piece));
	piece = bytes_of(in.buf, in.len);
	assert_true(spe_next(&decoder, &piece, &record));
	spe_finish(&decoder);
	assert_int_equal(decoder.broken, 1);
	strbuf_fini(&in);
}

static void long_headers_and_alignment(void **state)
{
	static const char garbage[] = {(char)0xff, (char)0xff, (char)0xff};
	struct strbuf in = {0};
	struct spe_record r[2];
	uint64_t broken;

	put(&in, PC, 0x100);
	strbuf_char(&in, 0x21); /* counter 8: none that is known */
	put(&in, TOTAL, 77);
	strbuf_char(&in, 0x20); /* counter 0 */
	put(&in, TOTAL, 5);
	put(&in, END, 0);
	strbuf_char(&in, 0x20); /* up to a multiple of 2 << 4 */
	strbuf_char(&in, 0x04);
	assert_int_equal(in.len, 20);
	for (int i = 0; i < 4; i++)
		strbuf_add(&in, garbage, sizeof(garbage));
	put_load(&in, 0x200, 0x2000, 2);
	assert_int_equal(decode(&in, r, 2, &broken), 2);
	assert_int_equal(broken, 0);
	assert_int_equal(r[0].latency, 5);
	assert_int_equal(r[1].pc, 0x200);
	strbuf_fini(&in);
}

static void sources_are_told_by_number_or_by_events(void **state)
{
	const uint64_t walk = SPE_TLB_ACCESS | SPE_TLB_WALK;
	const struct {
		uint64_t midr;
		enum spe_operation operation;
		uint16_t source;
		uint64_t events;
		union perf_mem_data_src is;
	} rows[] = {
		{0,
		 SPE_LOAD,
		 0xe,
		 SPE_L1D_ACCESS,
		 {.mem_op = PERF_MEM_OP_LOAD, .mem_lvl = PERF_MEM_LVL_L1 | PERF_MEM_LVL_HIT}},
		{0,
		 SPE_STORE,
		 0,
		 SPE_L1D_ACCESS | SPE_L1D_REFILL,
		 {.mem_op = PERF_MEM_OP_STORE, .mem_lvl = PERF_MEM_LVL_L1 | PERF_MEM_LVL_MISS}},
		{0,
		 SPE_LOAD,
		 0,
		 SPE_L1D_REFILL | SPE_LLC_ACCESS | SPE_LLC_MISS | walk,
		 {.mem_op = PERF_MEM_OP_LOAD,
		  .mem_lvl = PERF_MEM_LVL_L3 | PERF_MEM_LVL_MISS,
		  .mem_dtlb = PERF_MEM_TLB_WK | PERF_MEM_TLB_MISS}},
		{0,
		 SPE_LOAD,
		 0,
		 SPE_LLC_ACCESS | SPE_REMOTE_ACCESS | SPE_TLB_ACCESS,
		 {.mem_op = PERF_MEM_OP_LOAD,
		  .mem_lvl = PERF_MEM_LVL_L3 | PERF_MEM_LVL_HIT | PERF_MEM_LVL_REM_CCE1,
		  .mem_dtlb = PERF_MEM_TLB_WK | PERF_MEM_TLB_HIT}},
		{NEOVERSE_N1,
		 SPE_LOAD,
		 0xe,
		 SPE_L1D_ACCESS,
		 {.mem_op = PERF_MEM_OP_LOAD,
		  .mem_lvl = PERF_MEM_LVL_LOC_RAM | PERF_MEM_LVL_HIT,
		  .mem_lvl_num = PERF_MEM_LVLNUM_RAM,
		  .mem_snoop = PERF_MEM_SNOOP_NONE}},
		{NEOVERSE_N1,
		 SPE_STORE,
		 0xe,
		 SPE_L1D_ACCESS,
		 {.mem_op = PERF_MEM_OP_STORE,
		  .mem_lvl = PERF_MEM_LVL_NA,
		  .mem_lvl_num = PERF_MEM_LVLNUM_NA,
		  .mem_snoop = PERF_MEM_SNOOP_NA}},
		{NEOVERSE_N1, SPE_LOAD, 0x5, SPE_L1D_ACCESS, {.mem_op = PERF_MEM_OP_LOAD}},
		{AMPEREONE,
		 SPE_LOAD,
		 0x5,
		 0,
		 {.mem_op = PERF_MEM_OP_LOAD,
		  .mem_lvl = PERF_MEM_LVL_REM_CCE1,
		  .mem_lvl_num = PERF_MEM_LVLNUM_ANY_CACHE,
		  .mem_remote = PERF_MEM_REMOTE_REMOTE,
		  .mem_snoopx = PERF_MEM_SNOOPX_PEER}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct spe_record record = {.operation = rows[i].operation,
						  .source = rows[i].source,
						  .events = rows[i].events};

		assert_int_equal(spe_data_source(&record, rows[i].midr), rows[i].is.val);
	}
	assert_int_equal(spe_data_source(&(struct spe_record){.pc = 1}, 0) & 0x1f, PERF_MEM_OP_NA);
}

/* FUZZ_SEEDS=FOLDER writes what the fuzzer starts from. */
static void write_seed(const char *folder)
{
	struct strbuf in = {0};
	char path[1024];
	FILE *out;

	for (unsigned int i = 1; i < 4; i++) {
		put_load(&in, 0x100 * i, 0x1000 * i, i);
		put(&in, PC, KERNEL | 0x100 * i);
		put(&in, CONTEXT, i);
		put(&in, 0x4a, 0); /* a branch */
		put(&in, TARGET, 0x100);
		put(&in, EVENTS8, 2);
		strbuf_char(&in, 0x20);
		put(&in, TOTAL, i);
		put(&in, TIME, 1000 * i);
		strbuf_char(&in, 0x20);
		strbuf_char(&in, 0x05);
		while (in.len % 64)
			put(&in, PAD, 0);
	}
	snprintf(path, sizeof(path), "%s/records", folder);
	out = fopen(path, "w");
	if (!out || fwrite(in.buf, 1, in.len, out) != in.len || fclose(out))
		abort();
	strbuf_fini(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_what_its_packets_say),
		cmocka_unit_test(what_is_cut_or_unknown_is_counted),
		cmocka_unit_test(records_span_pieces),
		cmocka_unit_test(long_headers_and_alignment),
		cmocka_unit_test(sources_are_told_by_number_or_by_events),
	};
	const char *folder = getenv("FUZZ_SEEDS");

	if (folder) {
		write_seed(folder);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
