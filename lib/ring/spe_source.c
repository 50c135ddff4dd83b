#include "ring/spe.h"

#include <linux/perf_event.h>
#include <stddef.h>

/*
 * Where the data of a record was, in the words of perf_mem_data_src.
 *
 * The source packet has it, in numbers that each CPU gives a meaning of its own: those of Arm's own
 * cores and of AmpereOne are known from their manuals, and are said here in the same words as linux
 * tools/perf has for them (arm-spe.c). For other cores there are the events: whether the first and
 * the last level of the caches were asked, and had it.
 */
struct source {
	uint16_t number;
	union perf_mem_data_src is;
};

#define HIT(level) \
	.mem_lvl = PERF_MEM_LVL_HIT | PERF_MEM_LVL_##level, .mem_lvl_num = PERF_MEM_LVLNUM_##level
#define LOCAL_RAM \
	.mem_lvl = PERF_MEM_LVL_HIT | PERF_MEM_LVL_LOC_RAM, .mem_lvl_num = PERF_MEM_LVLNUM_RAM
#define REMOTE_CACHE                                                                \
	.mem_lvl = PERF_MEM_LVL_REM_CCE1, .mem_lvl_num = PERF_MEM_LVLNUM_ANY_CACHE, \
	.mem_remote = PERF_MEM_REMOTE_REMOTE

/* The system's cache is the third level in all machines that are known. */
static const struct source arm_sources[] = {
	{0x0, {HIT(L1), .mem_snoop = PERF_MEM_SNOOP_NONE}},
	{0x8, {HIT(L2), .mem_snoop = PERF_MEM_SNOOP_NONE}},
	{0x9, {HIT(L2), .mem_snoopx = PERF_MEM_SNOOPX_PEER}}, /* another core's */
	{0xa, {HIT(L3), .mem_snoopx = PERF_MEM_SNOOPX_PEER}}, /* of the cluster */
	{0xb, {HIT(L3), .mem_snoop = PERF_MEM_SNOOP_HIT}},
	{0xc, {HIT(L3), .mem_snoopx = PERF_MEM_SNOOPX_PEER}}, /* of another cluster */
	{0xd, {REMOTE_CACHE, .mem_snoopx = PERF_MEM_SNOOPX_PEER}},
	{0xe, {LOCAL_RAM, .mem_snoop = PERF_MEM_SNOOP_NONE}},
	{0, {.val = 0}},
};

static const struct source ampere_sources[] = {
	{0x8, {HIT(L1), .mem_snoop = PERF_MEM_SNOOP_NONE}},
	{0x9, {HIT(L2), .mem_snoop = PERF_MEM_SNOOP_NONE}},
	{0x0, {HIT(L2), .mem_snoopx = PERF_MEM_SNOOPX_PEER}},
	{0x3, {HIT(L3), .mem_snoop = PERF_MEM_SNOOP_HIT}},
	{0x5, {REMOTE_CACHE, .mem_snoopx = PERF_MEM_SNOOPX_PEER}},
	{0x7, {LOCAL_RAM, .mem_snoop = PERF_MEM_SNOOP_NONE}},
	{0, {.val = 0}},
};

/* MIDR: who designed it in the top byte, an architecture of 0xf, the part number above the
 * revision. */
#define MIDR(implementer, part) ((implementer) << 24 | 0xfu << 16 | (part) << 4)
#define MIDR_MODEL 0xff0ffff0u

static const struct {
	uint32_t midr;
	const struct source *sources;
} cpus[] = {
	{MIDR(0x41u, 0xd0cu), arm_sources},    /* Neoverse N1 */
	{MIDR(0x41u, 0xd49u), arm_sources},    /* N2 */
	{MIDR(0x41u, 0xd40u), arm_sources},    /* V1 */
	{MIDR(0x41u, 0xd4fu), arm_sources},    /* V2 */
	{MIDR(0x41u, 0xd4cu), arm_sources},    /* Cortex X1C */
	{MIDR(0x41u, 0xd4eu), arm_sources},    /* X3 */
	{MIDR(0x41u, 0xd85u), arm_sources},    /* X925 */
	{MIDR(0x41u, 0xd81u), arm_sources},    /* A720 */
	{MIDR(0x41u, 0xd87u), arm_sources},    /* A725 */
	{MIDR(0xc0u, 0xac4u), ampere_sources}, /* AmpereOne */
};

static const struct source *sources_of(uint64_t midr)
{
	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++)
		if ((midr & MIDR_MODEL) == cpus[i].midr)
			return cpus[i].sources;
	return NULL;
}

/* Stores go to no level that these cores tell. */
static union perf_mem_data_src by_number(const struct spe_record *record,
					 const struct source *sources)
{
	if (record->operation == SPE_STORE)
		return (union perf_mem_data_src){.mem_lvl = PERF_MEM_LVL_NA,
						 .mem_lvl_num = PERF_MEM_LVLNUM_NA,
						 .mem_snoop = PERF_MEM_SNOOP_NA};
	while (sources->is.val && sources->number != record->source)
		sources++;
	return sources->is;
}

static union perf_mem_data_src by_events(uint64_t events)
{
	union perf_mem_data_src is = {.val = 0};

	if (events & (SPE_LLC_ACCESS | SPE_LLC_MISS))
		is.mem_lvl = PERF_MEM_LVL_L3 |
			     (events & SPE_LLC_MISS ? PERF_MEM_LVL_MISS : PERF_MEM_LVL_HIT);
	else if (events & (SPE_L1D_ACCESS | SPE_L1D_REFILL))
		is.mem_lvl = PERF_MEM_LVL_L1 |
			     (events & SPE_L1D_REFILL ? PERF_MEM_LVL_MISS : PERF_MEM_LVL_HIT);
	if (events & SPE_REMOTE_ACCESS)
		is.mem_lvl |= PERF_MEM_LVL_REM_CCE1;
	return is;
}

uint64_t spe_data_source(const struct spe_record *record, uint64_t midr)
{
	const struct source *sources = sources_of(midr);
	union perf_mem_data_src is;

	if (record->operation == SPE_OTHER)
		return PERF_MEM_S(OP, NA) | PERF_MEM_S(LVL, NA) | PERF_MEM_S(SNOOP, NA) |
		       PERF_MEM_S(LOCK, NA) | PERF_MEM_S(TLB, NA);
	is = sources ? by_number(record, sources) : by_events(record->events);
	is.mem_op = record->operation == SPE_LOAD ? PERF_MEM_OP_LOAD : PERF_MEM_OP_STORE;
	if (record->events & (SPE_TLB_ACCESS | SPE_TLB_WALK))
		is.mem_dtlb = PERF_MEM_TLB_WK | (record->events & SPE_TLB_WALK ? PERF_MEM_TLB_MISS
									       : PERF_MEM_TLB_HIT);
	return is.val;
}
