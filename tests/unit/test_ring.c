#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "ring/ring.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING_BYTES 256u

/* A ring in plain memory, written by the test in the kernel's place. */
struct fake {
	struct perf_event_mmap_page control;
	unsigned char data[RING_BYTES];
	unsigned char wrapped[1 << 16];
	struct ring ring;
};

static struct fake *fake_new(uint64_t start)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	fake->control.data_head = fake->control.data_tail = start;
	fake->ring = (struct ring){
		.control = &fake->control,
		.data = fake->data,
		.size = RING_BYTES,
		.wrapped = fake->wrapped,
	};
	return fake;
}

static void put_bytes(struct fake *fake, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		fake->data[(fake->control.data_head + i) % RING_BYTES] =
			((const unsigned char *)bytes)[i];
	fake->control.data_head += len;
}

/* A record whose body counts up from `seed`. */
static void put(struct fake *fake, uint32_t type, uint16_t size, unsigned char seed)
{
	struct perf_event_header header = {.type = type, .size = size};
	unsigned char body[RING_BYTES];

	put_bytes(fake, &header, sizeof(header));
	for (size_t i = 0; i + sizeof(header) < size; i++)
		body[i] = (unsigned char)(seed + i);
	put_bytes(fake, body, size - sizeof(header));
}

static void expect(struct fake *fake, uint32_t type, uint16_t size, unsigned char seed)
{
	int corrupt = 0;
	const struct perf_event_header *header = ring_next(&fake->ring, &corrupt);
	const unsigned char *body = (const unsigned char *)(header + 1);

	assert_non_null(header);
	assert_int_equal(corrupt, 0);
	assert_int_equal(header->type, type);
	assert_int_equal(header->size, size);
	for (size_t i = 0; i + sizeof(*header) < size; i++)
		assert_int_equal(body[i], (unsigned char)(seed + i));
}

static void expect_end(struct fake *fake, int want_corrupt)
{
	int corrupt = 0;

	assert_null(ring_next(&fake->ring, &corrupt));
	assert_int_equal(corrupt, want_corrupt);
}

static void test_empty(void **state)
{
	struct fake *fake = fake_new(0);

	assert_int_equal(ring_pending(&fake->ring), 0);
	ring_begin(&fake->ring);
	expect_end(fake, 0);
	ring_end(&fake->ring);
	assert_int_equal(fake->control.data_tail, 0);
	free(fake);
}

static void test_batches(void **state)
{
	struct fake *fake = fake_new(0);

	put(fake, 9, 24, 1);
	put(fake, 3, 40, 7);
	assert_int_equal(ring_pending(&fake->ring), 64);
	ring_begin(&fake->ring);
	expect(fake, 9, 24, 1);
	/* What comes now belongs to the next batch, and no space is given back yet. */
	put(fake, 4, 16, 9);
	assert_int_equal(fake->control.data_tail, 0);
	expect(fake, 3, 40, 7);
	expect_end(fake, 0);
	ring_end(&fake->ring);
	assert_int_equal(fake->control.data_tail, 64);
	assert_int_equal(ring_pending(&fake->ring), 16);
	ring_begin(&fake->ring);
	expect(fake, 4, 16, 9);
	expect_end(fake, 0);
	ring_end(&fake->ring);
	assert_int_equal(ring_pending(&fake->ring), 0);
	free(fake);
}

/* A batch that is left early gives back only what was read. */
static void test_partial_batch(void **state)
{
	struct fake *fake = fake_new(0);

	put(fake, 1, 16, 0);
	put(fake, 2, 16, 0);
	ring_begin(&fake->ring);
	expect(fake, 1, 16, 0);
	ring_end(&fake->ring);
	ring_begin(&fake->ring);
	expect(fake, 2, 16, 0);
	expect_end(fake, 0);
	free(fake);
}

/* Every place where a record can cross the end, the header on the very edge included, and a full
 * ring; at a head that is about to overflow 64 bits as well. */
static void test_wrap(void **state)
{
	static const uint64_t bases[] = {0, (uint64_t)0 - RING_BYTES};

	for (size_t b = 0; b < 2; b++) {
		for (uint64_t start = 0; start < RING_BYTES; start += 8) {
			struct fake *fake = fake_new(bases[b] + start);

			put(fake, 9, 104, 5);
			put(fake, 10, 8, 0);
			put(fake, 9, 144, 50);
			assert_int_equal(ring_pending(&fake->ring), RING_BYTES);
			ring_begin(&fake->ring);
			expect(fake, 9, 104, 5);
			expect(fake, 10, 8, 0);
			expect(fake, 9, 144, 50);
			expect_end(fake, 0);
			ring_end(&fake->ring);
			assert_int_equal(ring_pending(&fake->ring), 0);
			free(fake);
		}
	}
}

static void test_corrupt_sizes(void **state)
{
	/* Zero, less than a header, no multiple of 8, beyond the head. */
	static const uint16_t sizes[] = {0, 4, 7, 20, 64, 0xfff8, 0xffff};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct fake *fake = fake_new(RING_BYTES - 8);
		struct perf_event_header bad = {.type = 9, .size = sizes[i]};
		unsigned char rest[24] = {0};

		put(fake, 9, 16, 3);
		put_bytes(fake, &bad, sizeof(bad));
		put_bytes(fake, rest, sizeof(rest));
		ring_begin(&fake->ring);
		expect(fake, 9, 16, 3);
		expect_end(fake, 1);
		/* The batch is over; the next one starts in step with the kernel. */
		expect_end(fake, 0);
		ring_end(&fake->ring);
		put(fake, 5, 24, 8);
		ring_begin(&fake->ring);
		expect(fake, 5, 24, 8);
		expect_end(fake, 0);
		free(fake);
	}
}

static void test_corrupt_head(void **state)
{
	struct fake *fake = fake_new(0);

	/* More than the ring holds. */
	fake->control.data_head = RING_BYTES + 8;
	assert_int_equal(ring_pending(&fake->ring), RING_BYTES);
	ring_begin(&fake->ring);
	expect_end(fake, 1);
	/* Less than a header. */
	fake->control.data_tail = 0;
	fake->control.data_head = 4;
	ring_begin(&fake->ring);
	expect_end(fake, 1);
	/* Behind the tail. */
	fake->control.data_tail = 64;
	fake->control.data_head = 32;
	ring_begin(&fake->ring);
	expect_end(fake, 1);
	/* A tail in the middle of nowhere. */
	fake->control.data_tail = 3;
	fake->control.data_head = 67;
	ring_begin(&fake->ring);
	expect_end(fake, 1);
	free(fake);
}

static int open_event(uint64_t config, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_TID,
		.exclude_kernel = 1,
		.comm = 1,
		.disabled = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static void test_live(void **state)
{
	int fd = open_event(PERF_COUNT_SW_CPU_CLOCK, 100000), corrupt = 0;
	const struct perf_event_header *header;
	unsigned int samples = 0, comms = 0;
	struct err err = {0};
	struct ring ring;

	if (fd < 0) {
		printf("no perf events here: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(ring_open(&ring, fd, 1, &err), 0);
	assert_int_equal(ring.size, (size_t)sysconf(_SC_PAGESIZE));
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	/* Batches of a ring of one page, so that it wraps many times. */
	for (int batch = 0; batch < 40; batch++) {
		prctl(PR_SET_NAME, batch & 1 ? "odd" : "even");
		for (volatile int i = 0; i < 1000000; i++)
			;
		ring_begin(&ring);
		while ((header = ring_next(&ring, &corrupt))) {
			if (header->type == PERF_RECORD_SAMPLE) {
				const uint32_t *ids = (const uint32_t *)(header + 1);

				assert_int_equal(header->size, 16);
				assert_int_equal(ids[0], getpid());
				samples++;
			} else if (header->type == PERF_RECORD_COMM) {
				const char *comm = (const char *)(header + 1) + 8;

				assert_string_equal(comm, batch & 1 ? "odd" : "even");
				comms++;
			}
		}
		assert_int_equal(corrupt, 0);
		ring_end(&ring);
	}
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	assert_int_equal(comms, 40);
	assert_true(samples > 40);
	ring_close(&ring);
	ring_close(&ring); /* a closed ring is a valid one to close */
	close(fd);
}

static void test_open_errors(void **state)
{
	int pipes[2], fd;
	struct err err = {0};
	struct ring ring;

	assert_int_equal(ring_open(&ring, -1, 0, &err), ERR_USAGE);
	assert_int_equal(ring_open(&ring, -1, 3, &err), ERR_USAGE);
	assert_int_equal(ring_open(&ring, -1, SIZE_MAX / 2 + 1, &err), ERR_USAGE);
	assert_int_equal(pipe(pipes), 0);
	assert_true(ring_open(&ring, pipes[0], 1, &err) < 0);
	assert_null(ring.control);
	close(pipes[0]);
	close(pipes[1]);

	/* As an ordinary user with no budget to lock. */
	fd = open_event(PERF_COUNT_SW_DUMMY, 0);
	if (fd < 0 || geteuid() != 0) {
		printf("needs root to become an ordinary user\n");
		skip();
	}
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct rlimit none = {0, 0};
		bool ok = setrlimit(RLIMIT_MEMLOCK, &none) == 0 &&
			  setresuid(65534, 65534, 65534) == 0;

		ok = ok && ring_open(&ring, fd, 1 << 14, &err) == ERR_PERMISSION &&
		     strstr(err.text, "perf_event_mlock_kb") &&
		     strstr(err.text, "RLIMIT_MEMLOCK") && strstr(err.hint, "-m");
		if (!ok)
			fprintf(stderr, "%s / %s\n", err.text, err.hint);
		_exit(ok ? 0 : 1);
	}
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fd);
}

static void test_arch(void **state)
{
	static const char *const names[] = {"x86_64", "aarch64", "riscv64"};
	struct utsname uts;

	assert_int_equal(uname(&uts), 0);
	assert_string_equal(arch_host()->name, uts.machine);
	assert_null(arch_by_name("pdp11"));
	assert_null(arch_by_machine(EM_PDP11));
	for (size_t i = 0; i < 3; i++) {
		const struct arch *arch = arch_by_name(names[i]);
		uint64_t seen = 0;

		assert_non_null(arch);
		assert_ptr_equal(arch_by_machine(arch->elf_machine), arch);
		/* Every register of the mask has a row; each DWARF number occurs once. */
		assert_true(arch->perf_regs == 64 || !(arch->perf_regs_mask >> arch->perf_regs));
		assert_true(arch->perf_regs_mask >> arch->perf_ip & 1);
		assert_true(arch->perf_regs_mask >> arch->perf_sp & 1);
		for (unsigned int r = 0; r < arch->perf_regs; r++) {
			int dwarf = arch->perf_to_dwarf[r];

			if (dwarf < 0)
				continue;
			assert_true(dwarf < 64);
			assert_false(seen >> dwarf & 1);
			seen |= (uint64_t)1 << dwarf;
		}
		assert_int_equal(arch->perf_to_dwarf[arch->perf_sp], arch->dwarf_sp);
		for (size_t t = 0; t < arch->trampoline_count; t++) {
			const struct arch_code *code = &arch->trampolines[t];

			/* Rows in order, from the first byte on. */
			assert_true(code->len >= 8 && code->len <= sizeof(code->bytes));
			assert_int_equal(code->rows[0].from, 0);
			for (size_t r = 1; r < code->row_count; r++)
				assert_true(code->rows[r].from > code->rows[r - 1].from);
		}
		/* PERF_CONTEXT markers and the kernel's text lie above, user code below. */
		assert_true(arch->kernel_start <= 0xffffffc000000000);
		assert_true(arch->kernel_start > (uint64_t)1 << 56);
	}
	assert_true((uint64_t)(uintptr_t)&uts < arch_host()->kernel_start);
	/* From the psABI of each: the stack pointer. */
	assert_int_equal(arch_by_name("x86_64")->perf_to_dwarf[7], 7);
	assert_int_equal(arch_by_name("aarch64")->perf_to_dwarf[31], 31);
	assert_int_equal(arch_by_name("riscv64")->perf_to_dwarf[2], 2);
}

/* The kernel takes the mask of this machine. */
static void test_arch_mask(void **state)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
		.sample_type = PERF_SAMPLE_REGS_USER,
		.sample_regs_user = arch_host()->perf_regs_mask,
		.exclude_kernel = 1,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd < 0 && errno != EINVAL) {
		printf("no perf events here: %s\n", strerror(errno));
		skip();
	}
	assert_true(fd >= 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),	      cmocka_unit_test(test_batches),
		cmocka_unit_test(test_partial_batch), cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_corrupt_sizes), cmocka_unit_test(test_corrupt_head),
		cmocka_unit_test(test_live),	      cmocka_unit_test(test_open_errors),
		cmocka_unit_test(test_arch),	      cmocka_unit_test(test_arch_mask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
