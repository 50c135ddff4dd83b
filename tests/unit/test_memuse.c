#include "profile/memuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint64_t source(uint64_t levels, uint64_t number, bool remote, uint64_t tlb)
{
	union perf_mem_data_src src = {.val = 0};

	src.mem_op = PERF_MEM_OP_LOAD;
	src.mem_lvl = levels;
	src.mem_lvl_num = number;
	src.mem_remote = remote;
	src.mem_dtlb = tlb;
	return src.val;
}

/* Both ways in which kernels tell the level; the first two as a Skylake gave them. */
static void levels(void **state)
{
	const uint64_t hit = PERF_MEM_LVL_HIT, miss = PERF_MEM_LVL_MISS;
	const struct {
		uint64_t data_src;
		enum memuse_level level;
	} cases[] = {
		{0x11868100242, MEMUSE_LFB},
		{0x10268100142, MEMUSE_L1},
		{source(hit | PERF_MEM_LVL_L2, 0, false, 0), MEMUSE_L2},
		{source(0, PERF_MEM_LVLNUM_L2, false, 0), MEMUSE_L2},
		{source(hit | PERF_MEM_LVL_L3, PERF_MEM_LVLNUM_L3, false, 0), MEMUSE_L3},
		{source(miss | PERF_MEM_LVL_L3, 0, false, 0), MEMUSE_RAM},
		{source(miss | PERF_MEM_LVL_L1, 0, false, 0), MEMUSE_UNKNOWN},
		{source(miss | PERF_MEM_LVL_L2, 0, false, 0), MEMUSE_UNKNOWN},
		{source(hit | PERF_MEM_LVL_LOC_RAM, 0, false, 0), MEMUSE_RAM},
		{source(0, PERF_MEM_LVLNUM_RAM, false, 0), MEMUSE_RAM},
		{source(0, PERF_MEM_LVLNUM_RAM, true, 0), MEMUSE_REMOTE},
		{source(hit | PERF_MEM_LVL_REM_RAM1, 0, false, 0), MEMUSE_REMOTE},
		{source(0, PERF_MEM_LVLNUM_PMEM, false, 0), MEMUSE_OTHER},
		{source(PERF_MEM_LVL_NA, PERF_MEM_LVLNUM_NA, false, 0), MEMUSE_UNKNOWN},
		{0, MEMUSE_UNKNOWN},
		{~0ull, MEMUSE_REMOTE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (memuse_level_of(cases[i].data_src) != cases[i].level)
			fail_msg("case %zu is %s", i,
				 memuse_level_names[memuse_level_of(cases[i].data_src)]);
}

static void tlb_misses(void **state)
{
	const uint64_t hit = PERF_MEM_TLB_HIT;

	assert_false(memuse_tlb_missed(source(0, 0, false, hit | PERF_MEM_TLB_L1)));
	assert_true(memuse_tlb_missed(source(0, 0, false, hit | PERF_MEM_TLB_L2)));
	/* Intel does not tell the two levels apart. */
	assert_false(
		memuse_tlb_missed(source(0, 0, false, hit | PERF_MEM_TLB_L1 | PERF_MEM_TLB_L2)));
	assert_true(memuse_tlb_missed(source(0, 0, false, PERF_MEM_TLB_MISS | PERF_MEM_TLB_L2)));
	assert_false(memuse_tlb_missed(0));
}

static const struct perf_event_attr faults = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
	.sample_type = PERF_SAMPLE_ADDR,
};

static void fault(struct memuse *memuse, uint32_t pid, uint64_t addr, uint64_t size)
{
	const struct record_sample sample = {
		.id = {.pid = pid, .tid = pid},
		.addr = addr,
		.period = 1,
		.data_page_size = size,
	};

	assert_true(memuse_add(memuse, &faults, &sample, 0, 1));
}

/* A page makes its process grow once, until that runs another program; pages have their size. */
static void pages_grow_once(void **state)
{
	struct memuse memuse;
	const struct memuse_cell *cell;

	memuse_init(&memuse);
	fault(&memuse, 1, 0x1000, 4096);
	fault(&memuse, 1, 0x1fff, 4096);
	fault(&memuse, 1, 0x200000, 1 << 21);
	fault(&memuse, 2, 0x1000, 4096);
	cell = keyed_at(&memuse.cells, 0);
	assert_int_equal(memuse.cells.count, 1);
	assert_int_equal(cell->count.faults, 4);
	assert_int_equal(cell->count.grown, 2 * 4096 + (1 << 21));
	assert_int_equal(cell->count.again, 4096);
	assert_int_equal(cell->count.usage, 4096);
	assert_true(memuse_exec(&memuse, 1));
	fault(&memuse, 1, 0x1000, 4096);
	fault(&memuse, 1, 0x2000, 4096);
	cell = keyed_at(&memuse.cells, 0);
	assert_int_equal(cell->count.usage, 2 * 4096);
	assert_int_equal(cell->count.again, 4096);
	memuse_fini(&memuse);
}

/* Minor and major faults are all faults: those of page-faults beside them are left out. */
static void faults_count_once(void **state)
{
	struct perf_event_attr all = faults;
	const struct record_sample sample = {.period = 1};
	struct memuse memuse;

	all.config = PERF_COUNT_SW_PAGE_FAULTS;
	memuse_init(&memuse);
	memuse.specific = true;
	assert_true(memuse_add(&memuse, &all, &sample, 0, 1));
	assert_int_equal(memuse.cells.count, 0);
	memuse.specific = false;
	assert_true(memuse_add(&memuse, &all, &sample, 0, 1));
	assert_int_equal(memuse.cells.count, 1);
	all.sample_type = 0; /* without an address it says nothing of memory */
	assert_true(memuse_add(&memuse, &all, &sample, 0, 2));
	assert_int_equal(memuse.cells.count, 1);
	memuse_fini(&memuse);
}

/* IBS samples any instruction: those that touched no memory are no accesses. */
static void accesses_are_told_from_others(void **state)
{
	static const struct perf_event_attr attr = {
		.type = 11,
		.sample_type = PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT_STRUCT,
	};
	struct record_sample load = {.period = 1, .weight = 30},
			     other = {.period = 1,
				      .data_src = PERF_MEM_S(OP, NA) | PERF_MEM_S(LVL, NA)};
	const struct memuse_cell *cell;
	struct memuse memuse;

	load.data_src = source(0, PERF_MEM_LVLNUM_L2, false, 0);
	memuse_init(&memuse);
	for (int i = 0; i < 5; i++)
		assert_true(memuse_add(&memuse, &attr, i < 2 ? &load : &other, 0, 1));
	assert_int_equal(memuse.cells.count, 1);
	cell = keyed_at(&memuse.cells, 0);
	assert_int_equal(cell->count.accesses, 2);
	assert_int_equal(cell->count.levels[MEMUSE_L2], 2);
	assert_int_equal(cell->count.weighed, 2);
	assert_int_equal(cell->count.levels[MEMUSE_UNKNOWN], 0);
	memuse_fini(&memuse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels),
		cmocka_unit_test(tlb_misses),
		cmocka_unit_test(pages_grow_once),
		cmocka_unit_test(faults_count_once),
		cmocka_unit_test(accesses_are_told_from_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
