#include "data/data.h"
#include "ring/order.h"
#include "ring/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Layouts written out by hand from linux/perf_event.h, every record cut at every word, and real
 * recordings decoded beside `perf script`. */

struct build {
	_Alignas(8) unsigned char bytes[512];
	size_t len;
};

static struct perf_event_header *header(struct build *b)
{
	return (struct perf_event_header *)b->bytes;
}

static void begin(struct build *b, uint32_t type, uint16_t misc)
{
	memset(b, 0, sizeof(*b));
	header(b)->type = type;
	header(b)->misc = misc;
	header(b)->size = (uint16_t)(b->len = 8);
}

static void put(struct build *b, const void *bytes, size_t len)
{
	memcpy(b->bytes + b->len, bytes, len);
	header(b)->size = (uint16_t)(b->len += len);
}

static void put64(struct build *b, uint64_t v)
{
	put(b, &v, 8);
}

static void put32(struct build *b, uint32_t v, uint32_t w)
{
	put(b, &v, 4);
	put(b, &w, 4);
}

static struct perf_event_attr full_attr(void)
{
	return (struct perf_event_attr){
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
			       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
			       PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT_STRUCT |
			       PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |
			       PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		.sample_regs_user = 0x7,
		.sample_regs_intr = 0x3,
		.sample_id_all = 1,
	};
}

static void full_sample(struct build *b)
{
	begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put64(b, 77);	    /* identifier */
	put64(b, 0x401000); /* ip */
	put32(b, 10, 11);
	put64(b, 123456789);
	put64(b, 0xadd7);
	put64(b, 77);
	put64(b, 78);
	put32(b, 3, 0);
	put64(b, 4000);
	put64(b, 2); /* read: nr, enabled, running, 2 * (value, id) */
	for (uint64_t i = 1; i <= 6; i++)
		put64(b, i * 100);
	put64(b, 3);
	put64(b, PERF_CONTEXT_USER);
	put64(b, 0x401000);
	put64(b, 0x402000);
	put32(b, 12, 0x64636261);
	put64(b, 0x6c6b6a6968676665);
	put64(b, 1); /* branches */
	put64(b, 1);
	put64(b, 2);
	put64(b, 3);
	put64(b, 2); /* user registers: abi, 3 words */
	put64(b, 0xa);
	put64(b, 0xb);
	put64(b, 0xc);
	put64(b, 16); /* user stack: size, bytes, dynamic size */
	put64(b, 0x1111);
	put64(b, 0x2222);
	put64(b, 8);
	put64(b, 5ull << 32 | 42);
	put64(b, 0xd5);
	put64(b, 1);
	put64(b, 0); /* no interrupt registers */
	put64(b, 0xfee1);
}

static void test_sample(void **state)
{
	struct perf_event_attr attr = full_attr();
	struct record_read read;
	struct record_sample s;
	struct build b;
	uint64_t id, value;

	(void)state;
	full_sample(&b);
	assert_true(record_decode_sample(header(&b), &attr, &s));
	assert_true(record_identifier(header(&b), attr.sample_type, &id));
	assert_int_equal(id, 77);
	assert_int_equal(s.id.id, 77);
	assert_int_equal(s.ip, 0x401000);
	assert_int_equal(s.id.pid, 10);
	assert_int_equal(s.id.tid, 11);
	assert_int_equal(s.id.time, 123456789);
	assert_int_equal(s.addr, 0xadd7);
	assert_int_equal(s.stream_id, 78);
	assert_int_equal(s.id.cpu, 3);
	assert_int_equal(s.period, 4000);
	assert_int_equal(bytes_left(&s.read), 7 * 8);
	assert_true(record_decode_read(&s, &attr, &read));
	assert_int_equal(read.count, 2);
	assert_int_equal(read.time_enabled, 100);
	assert_int_equal(read.time_running, 200);
	assert_true(record_next_value(&read, &value, &id));
	assert_int_equal(value, 300);
	assert_int_equal(id, 400);
	assert_true(record_next_value(&read, &value, &id));
	assert_int_equal(value, 500);
	assert_int_equal(id, 600);
	assert_false(record_next_value(&read, &value, &id));
	assert_int_equal(s.callchain_len, 3);
	assert_int_equal(s.callchain[2], 0x402000);
	assert_int_equal(s.raw_len, 12);
	assert_memory_equal(s.raw, "abcdefghijkl", 12);
	assert_int_equal(s.regs_user_abi, 2);
	assert_int_equal(s.regs_user[2], 0xc);
	assert_int_equal(s.stack_user_size, 8);
	assert_int_equal(*(const uint64_t *)s.stack_user, 0x1111);
	assert_int_equal(s.weight, 42);
	assert_int_equal(s.data_src, 0xd5);
	assert_int_equal(s.phys_addr, 0xfee1);
	assert_true(s.id.has_id && s.id.has_time && s.id.has_tid && s.id.has_cpu);
}

/* One event's value lies before the times; parts that read_format leaves out are not there. */
static void test_reads(void **state)
{
	static const struct {
		uint64_t format, words[6], value, id, enabled, running;
	} cases[] = {
		{0, {7}, 7, 0, 0, 0},
		{PERF_FORMAT_ID, {7, 9}, 7, 9, 0, 0},
		{PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		 {7, 50, 40, 9},
		 7,
		 9,
		 50,
		 40},
		{PERF_FORMAT_GROUP | PERF_FORMAT_ID, {1, 7, 9}, 7, 9, 0, 0},
		{PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_RUNNING, {1, 40, 7}, 7, 0, 0, 40},
	};
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_READ};
	struct record_sample s;
	struct record_read read;
	uint64_t value, id;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct build b;

		attr.read_format = cases[i].format;
		begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
		for (size_t w = 0; w < 6; w++)
			put64(&b, cases[i].words[w]);
		assert_true(record_decode_sample(header(&b), &attr, &s));
		assert_true(record_decode_read(&s, &attr, &read));
		assert_true(record_next_value(&read, &value, &id));
		assert_int_equal(value, cases[i].value);
		assert_int_equal(id, cases[i].id);
		assert_int_equal(read.time_enabled, cases[i].enabled);
		assert_int_equal(read.time_running, cases[i].running);
		assert_false(record_next_value(&read, &value, &id));
	}
	attr.sample_type = 0;
	assert_false(record_decode_read(&s, &attr, &read));
}

/* Every cut is seen; every word that counts something may be any number. */
static void test_bad_samples(void **state)
{
	static const uint64_t bad[] = {UINT64_MAX, 1ull << 63, 1ull << 61, 1ull << 60,
				       1ull << 32, 65536,      100};
	struct perf_event_attr attr = full_attr();
	struct record_sample s;
	struct build b;
	size_t len;

	(void)state;
	full_sample(&b);
	len = b.len;
	for (size_t cut = 8; cut < len; cut++) {
		struct perf_event_header *copy = malloc(cut);

		/* Memory of the exact size: a sanitizer sees a read past it. */
		memcpy(copy, b.bytes, cut);
		copy->size = (uint16_t)cut;
		assert_false(record_decode_sample(copy, &attr, &s));
		free(copy);
	}
	for (size_t at = 1; at < len / 8; at++) {
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			struct perf_event_header *copy = malloc(len);

			memcpy(copy, b.bytes, len);
			memcpy((char *)copy + at * 8, &bad[i], 8);
			if (record_decode_sample(copy, &attr, &s)) {
				const char *end = (const char *)copy + len;

				assert_true(s.callchain_len < 64);
				assert_true((const char *)s.raw + s.raw_len <= end);
				assert_true((const char *)s.stack_user + s.stack_user_size <= end);
			}
			free(copy);
		}
	}
}

static void test_ids(void **state)
{
	struct perf_event_attr attr = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_ID | PERF_SAMPLE_CPU,
		.sample_id_all = 1,
	};
	struct record_id id;
	struct build b;
	uint64_t word;

	(void)state;
	begin(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put32(&b, 10, 11);
	put(&b, "python\0", 8);
	put32(&b, 20, 21); /* trailer: tid, time, id, cpu */
	put64(&b, 555);
	put64(&b, 99);
	put32(&b, 4, 0);
	assert_true(record_decode_id(header(&b), &attr, &id));
	assert_int_equal(id.tid, 21);
	assert_int_equal(id.time, 555);
	assert_int_equal(id.id, 99);
	assert_int_equal(id.cpu, 4);
	assert_true(record_identifier(header(&b), attr.sample_type, &word));
	assert_int_equal(word, 99);
	attr.sample_type |= PERF_SAMPLE_IDENTIFIER;
	put64(&b, 100);
	assert_true(record_identifier(header(&b), attr.sample_type, &word));
	assert_int_equal(word, 100);
	assert_true(record_decode_id(header(&b), &attr, &id));
	assert_int_equal(id.id, 100);
	header(&b)->size = 24; /* shorter than its trailer */
	assert_false(record_decode_id(header(&b), &attr, &id));
	assert_false(record_identifier(header(&b), PERF_SAMPLE_IP, &word));
	header(&b)->size = 8;
	assert_false(record_identifier(header(&b), attr.sample_type, &word));
	attr.sample_id_all = 0;
	assert_true(record_decode_id(header(&b), &attr, &id));
	assert_false(id.has_time || id.has_id);
	/* perf's own records have no trailer. */
	begin(&b, 68, 0);
	attr.sample_id_all = 1;
	assert_true(record_decode_id(header(&b), &attr, &id));
	assert_false(record_identifier(header(&b), attr.sample_type, &word));
}

static void test_others(void **state)
{
	struct record_mmap mmap;
	struct record_comm comm;
	struct record_task task;
	struct build b;

	(void)state;
	begin(&b, PERF_RECORD_MMAP, PERF_RECORD_MISC_MMAP_DATA);
	put32(&b, 10, 11);
	put64(&b, 0x400000);
	put64(&b, 0x1000);
	put64(&b, 0x2000);
	put(&b, "/bin/sh", 8);
	assert_true(record_decode_mmap(header(&b), &mmap));
	assert_int_equal(mmap.pgoff, 0x2000);
	assert_int_equal(mmap.prot & 4, 0);
	assert_string_equal(mmap.filename, "/bin/sh");
	header(&b)->misc = 0;
	assert_true(record_decode_mmap(header(&b), &mmap));
	assert_int_equal(mmap.prot & 4, 4);
	b.bytes[b.len - 1] = 'x'; /* no end */
	assert_false(record_decode_mmap(header(&b), &mmap));

	begin(&b, PERF_RECORD_MMAP2, 0);
	put32(&b, 10, 11);
	put64(&b, 0x400000);
	put64(&b, 0x1000);
	put64(&b, 0x2000);
	put32(&b, 8, 1);
	put64(&b, 4711);
	put64(&b, 1);
	put32(&b, 5, 2);
	put(&b, "/bin/ls", 8);
	assert_true(record_decode_mmap(header(&b), &mmap));
	assert_int_equal(mmap.maj, 8);
	assert_int_equal(mmap.ino, 4711);
	assert_int_equal(mmap.prot, 5);
	assert_null(mmap.build_id);
	header(&b)->misc = PERF_RECORD_MISC_MMAP_BUILD_ID;
	b.bytes[40] = 20;
	assert_true(record_decode_mmap(header(&b), &mmap));
	assert_ptr_equal(mmap.build_id, b.bytes + 44);
	assert_int_equal(mmap.build_id_len, 20);
	assert_string_equal(mmap.filename, "/bin/ls");
	/* The flag is another event's: these are device, inode and generation. */
	b.bytes[40] = 254;
	assert_true(record_decode_mmap(header(&b), &mmap));
	assert_null(mmap.build_id);
	assert_int_equal(mmap.maj, 254);
	assert_int_equal(mmap.ino, 4711);
	b.bytes[40] = 8;
	assert_true(record_decode_mmap(header(&b), &mmap));
	assert_null(mmap.build_id);
	assert_int_equal(mmap.maj, 8);
	assert_false(record_decode_comm(header(&b), &comm));

	begin(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put32(&b, 10, 11);
	put(&b, "python\0", 8);
	assert_true(record_decode_comm(header(&b), &comm));
	assert_string_equal(comm.comm, "python");
	assert_true(comm.exec);
	header(&b)->size = 16;
	assert_false(record_decode_comm(header(&b), &comm));

	begin(&b, PERF_RECORD_FORK, 0);
	put32(&b, 12, 10);
	put32(&b, 13, 11);
	put64(&b, 5);
	assert_true(record_decode_task(header(&b), &task));
	assert_int_equal(task.ppid, 10);
	assert_int_equal(task.tid, 13);
	assert_int_equal(task.time, 5);

	begin(&b, PERF_RECORD_LOST, 0);
	put64(&b, 1);
	put64(&b, 17);
	assert_int_equal(record_lost(header(&b)), 17);
	begin(&b, PERF_RECORD_LOST_SAMPLES, 0);
	put64(&b, 18);
	assert_int_equal(record_lost(header(&b)), 18);
	assert_string_equal(record_type_name(PERF_RECORD_MMAP2), "MMAP2");
	assert_string_equal(record_type_name(6000), "UNKNOWN");
}

static const char *fixture(const char *name)
{
	const char *env = getenv("PYPERF_FIXTURES");
	static char path[1024];

	snprintf(path, sizeof(path), "%s/perf-data/%s", env ? env : "../shared/fixtures", name);
	return path;
}

/* perf's lines, one per sample: pid/tid time period [addr weight] ip. */
struct script {
	FILE *perf;
	struct data_file *file;
	bool memory;
	unsigned long count;
};

static const struct data_event *event_of(const struct data_file *file,
					 const struct perf_event_header *record)
{
	uint64_t id = 0;

	record_identifier(record, data_event(file, 0)->attr.sample_type, &id);
	return data_event(file, (size_t)data_event_by_id(file, id));
}

static int compare_sample(const struct perf_event_header *record, uint64_t time, uint64_t position,
			  void *ctx, struct err *err)
{
	unsigned long long seconds, ns, period, ip, addr = 0, weight = 0;
	struct script *script = ctx;
	const struct perf_event_attr *attr = &event_of(script->file, record)->attr;
	struct record_sample s;
	int pid, tid, words;

	assert_true(record_decode_sample(record, attr, &s));
	words = fscanf(script->perf, " %d/%d %llu.%llu: %llu", &pid, &tid, &seconds, &ns, &period);
	if (script->memory)
		words += fscanf(script->perf, " %llx %llu", &addr, &weight);
	words += fscanf(script->perf, " %llx", &ip);
	assert_int_equal(words, script->memory ? 8 : 6);
	assert_int_equal((int)s.id.pid, pid);
	assert_int_equal((int)s.id.tid, tid);
	assert_int_equal(s.id.time, seconds * 1000000000 + ns);
	assert_int_equal(s.ip, ip);
	assert_int_equal(attr->sample_type & PERF_SAMPLE_PERIOD ? s.period : attr->sample_period,
			 period);
	if (script->memory) {
		assert_int_equal(s.addr, addr);
		assert_int_equal(s.weight, weight);
	}
	script->count++;
	return 0;
}

/* perf script puts samples into the order of their times, so this checks lib/ring/order.c too. */
static void compare(const char *name, bool memory)
{
	const char *path = fixture(name);
	struct script script = {.memory = memory};
	struct data_record record;
	struct err err = {0};
	struct order *order;
	char command[2048];

	if (access(path, R_OK) != 0 || system("perf --version >/dev/null 2>&1") != 0) {
		print_message("skipped: no %s or no perf to compare with\n", path);
		skip();
	}
	snprintf(command, sizeof(command),
		 "perf script -G --ns -F pid,tid,time,period,ip%s -i %s 2>/dev/null",
		 memory ? ",addr,weight" : "", path);
	script.perf = popen(command, "r");
	order = order_new(compare_sample, &script);
	assert_int_equal(data_open(&script.file, path, &err), 0);
	while (data_next(script.file, &record, &err) > 0) {
		struct record_sample s;

		if (record.header->type != PERF_RECORD_SAMPLE)
			continue;
		assert_true(record_decode_sample(record.header,
						 &event_of(script.file, record.header)->attr, &s));
		assert_int_equal(order_add(order, record.header, s.id.time, record.position, &err),
				 0);
	}
	assert_int_equal(order_flush(order, &err), 0);
	assert_true(script.count > 0);
	order_free(order);
	data_close(script.file);
	pclose(script.perf);
}

static void test_memory_samples(void **state)
{
	(void)state;
	compare("perf.data.weight_struct", true);
}

static void test_group_samples(void **state)
{
	(void)state;
	compare("perf.data.group_desc-4.14", false);
}

static void test_branch_samples(void **state)
{
	(void)state;
	compare("perf.data.branch-4.14", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),	       cmocka_unit_test(test_reads),
		cmocka_unit_test(test_bad_samples),    cmocka_unit_test(test_ids),
		cmocka_unit_test(test_others),	       cmocka_unit_test(test_group_samples),
		cmocka_unit_test(test_branch_samples), cmocka_unit_test(test_memory_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
