#include "profile/memuse.h"

#include "profile/match.h"
#include "profile/store.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_DEFAULT 4096u

const char *const memuse_level_names[MEMUSE_LEVELS] = {
	[MEMUSE_L1] = "L1",	  [MEMUSE_LFB] = "LFB",		[MEMUSE_L2] = "L2",
	[MEMUSE_L3] = "L3",	  [MEMUSE_RAM] = "RAM",		[MEMUSE_REMOTE] = "remote",
	[MEMUSE_OTHER] = "other", [MEMUSE_UNKNOWN] = "unknown",
};

/* Numbers of mem_lvl_num; newer ones are "other" until they have a column. */
static const enum memuse_level by_number[16] = {
	[0] = MEMUSE_UNKNOWN,
	[PERF_MEM_LVLNUM_L1] = MEMUSE_L1,
	[PERF_MEM_LVLNUM_L2] = MEMUSE_L2,
	[PERF_MEM_LVLNUM_L3] = MEMUSE_L3,
	[PERF_MEM_LVLNUM_L4] = MEMUSE_L3,
	[5 ... 0xb] = MEMUSE_OTHER,
	[PERF_MEM_LVLNUM_LFB] = MEMUSE_LFB,
	[PERF_MEM_LVLNUM_RAM] = MEMUSE_RAM,
	[PERF_MEM_LVLNUM_PMEM] = MEMUSE_OTHER,
	[PERF_MEM_LVLNUM_NA] = MEMUSE_UNKNOWN,
};

/* Bits of mem_lvl, which is older: a miss in a cache says nothing of where the data was. */
static const struct {
	uint64_t bits;
	enum memuse_level level;
} by_bit[] = {
	{PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2 | PERF_MEM_LVL_REM_CCE1 |
		 PERF_MEM_LVL_REM_CCE2,
	 MEMUSE_REMOTE},
	{PERF_MEM_LVL_LOC_RAM, MEMUSE_RAM},
	{PERF_MEM_LVL_L3, MEMUSE_L3},
	{PERF_MEM_LVL_L2, MEMUSE_L2},
	{PERF_MEM_LVL_LFB, MEMUSE_LFB},
	{PERF_MEM_LVL_L1, MEMUSE_L1},
	{PERF_MEM_LVL_IO | PERF_MEM_LVL_UNC, MEMUSE_OTHER},
};

/* What had the data that this level had not: only the last one tells. */
static enum memuse_level behind(enum memuse_level level)
{
	if (level == MEMUSE_L3)
		return MEMUSE_RAM;
	return level == MEMUSE_L1 || level == MEMUSE_L2 ? MEMUSE_UNKNOWN : level;
}

enum memuse_level memuse_level_of(uint64_t data_src)
{
	union perf_mem_data_src src = {.val = data_src};
	enum memuse_level level;

	if (src.mem_remote)
		return MEMUSE_REMOTE;
	level = by_number[src.mem_lvl_num];
	if (level != MEMUSE_UNKNOWN)
		return level;
	for (size_t i = 0; i < sizeof(by_bit) / sizeof(by_bit[0]); i++)
		if (src.mem_lvl & by_bit[i].bits)
			return src.mem_lvl & PERF_MEM_LVL_MISS ? behind(by_bit[i].level)
							       : by_bit[i].level;
	return MEMUSE_UNKNOWN;
}

bool memuse_tlb_missed(uint64_t data_src)
{
	union perf_mem_data_src src = {.val = data_src};

	return src.mem_dtlb & PERF_MEM_TLB_MISS ||
	       (src.mem_dtlb & PERF_MEM_TLB_HIT && src.mem_dtlb & PERF_MEM_TLB_L2 &&
		!(src.mem_dtlb & PERF_MEM_TLB_L1));
}

void memuse_init(struct memuse *memuse)
{
	*memuse = (struct memuse){0};
	keyed_init(&memuse->cells, sizeof(struct memuse_cell), 2 * sizeof(uint32_t));
	keyed_init(&memuse->pages, 2 * sizeof(uint64_t), 2 * sizeof(uint64_t));
}

void memuse_fini(struct memuse *memuse)
{
	keyed_fini(&memuse->cells);
	keyed_fini(&memuse->pages);
	map_fini(&memuse->grown);
}

/* A process is its pid and how many programs it has begun before; the latter in the upper half. */
static uint64_t process_of(struct memuse *memuse, uint32_t pid)
{
	const uint64_t *programs = map_get(&memuse->grown, (uint64_t)UINT32_MAX << 32 | pid);

	return (programs ? *programs << 32 : 0) | pid;
}

bool memuse_exec(struct memuse *memuse, uint32_t pid)
{
	uint64_t *programs;

	if (!memuse->pages.count)
		return true;
	programs = map_put(&memuse->grown, (uint64_t)UINT32_MAX << 32 | pid, NULL);
	if (programs)
		++*programs;
	return programs != NULL;
}

static bool is_fault(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && attr->sample_type & PERF_SAMPLE_ADDR &&
	       (attr->config == PERF_COUNT_SW_PAGE_FAULTS ||
		attr->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
		attr->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
}

static bool add_fault(struct memuse *memuse, const struct record_sample *sample,
		      struct memuse_count *count)
{
	uint64_t size = sample->data_page_size ? sample->data_page_size : PAGE_DEFAULT;
	uint64_t process = process_of(memuse, sample->id.pid), bytes = sample->period * size;
	const uint64_t key[] = {process, sample->addr - sample->addr % size};
	uint64_t *grown = map_put(&memuse->grown, process, NULL);
	bool first;

	if (!grown || keyed_add(&memuse->pages, key, &first) == KEYED_NONE)
		return false;
	*(sample->data_page_size ? &memuse->sized : &memuse->unsized) += sample->period;
	count->faults += sample->period;
	*(first ? &count->grown : &count->again) += bytes;
	*grown += first ? bytes : 0;
	count->usage = *grown;
	count->last = sample->id.time;
	return true;
}

static void add_access(const struct perf_event_attr *attr, const struct record_sample *sample,
		       struct memuse_count *count)
{
	double weight = (double)sample->weight;

	count->accesses++;
	if (attr->sample_type & PERF_SAMPLE_DATA_SRC) {
		count->levels[memuse_level_of(sample->data_src)]++;
		count->tlb_misses += memuse_tlb_missed(sample->data_src);
	} else {
		count->levels[MEMUSE_UNKNOWN]++;
	}
	/* Stores, and loads that were not followed to their end, have none. */
	if (!sample->weight)
		return;
	count->weighed++;
	count->weight += weight;
	count->weight_square += weight * weight;
}

/* AMD's IBS samples instructions of all kinds, and `perf record -d` asks any event for a source:
 * the kernel marks what neither loaded nor stored (PERF_MEM_NA). Linux before 6.1 marks so all that
 * IBS samples. */
static bool is_access(const struct perf_event_attr *attr, const struct record_sample *sample)
{
	union perf_mem_data_src src = {.val = sample->data_src};

	if (attr->sample_type & PERF_SAMPLE_DATA_SRC)
		return src.mem_op != PERF_MEM_OP_NA;
	return attr->sample_type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT);
}

bool memuse_add(struct memuse *memuse, const struct perf_event_attr *attr,
		const struct record_sample *sample, uint32_t thread, uint32_t stack)
{
	const uint32_t key[] = {thread, stack};
	struct memuse_cell *cell;
	bool fault = is_fault(attr);
	uint32_t id;

	if (fault && attr->config == PERF_COUNT_SW_PAGE_FAULTS && memuse->specific)
		return true;
	if (!fault && !is_access(attr, sample))
		return true;
	id = keyed_add(&memuse->cells, key, NULL);
	if (id == KEYED_NONE)
		return false;
	cell = keyed_at(&memuse->cells, id);
	if (fault)
		return add_fault(memuse, sample, &cell->count);
	add_access(attr, sample, &cell->count);
	return true;
}

static void add_count(struct memuse_count *to, const struct memuse_count *from)
{
	to->accesses += from->accesses;
	to->tlb_misses += from->tlb_misses;
	for (size_t i = 0; i < MEMUSE_LEVELS; i++)
		to->levels[i] += from->levels[i];
	to->weighed += from->weighed;
	to->weight += from->weight;
	to->weight_square += from->weight_square;
	to->faults += from->faults;
	to->grown += from->grown;
	to->again += from->again;
	if (from->last >= to->last && from->faults) {
		to->usage = from->usage;
		to->last = from->last;
	}
}

struct summing {
	const struct profile *profile;
	uint32_t function; /* UINT32_MAX: all */
	struct {
		VEC_OF(struct memuse_row)
	} rows;
	struct map by_key;
	struct {
		VEC_OF(uint64_t)
	} stamps; /* by row: the last cell that it counted */
};

/* Counts a cell for a row, once; -1 when memory ran out. */
static int count_row(struct summing *s, uint32_t function, uint32_t line,
		     const struct memuse_cell *cell, uint64_t stamp, bool self)
{
	bool added;
	uint64_t *at = map_put(&s->by_key, (uint64_t)function << 32 | line, &added);
	struct memuse_row *row;

	if (!at)
		return -1;
	if (added) {
		*at = s->rows.len;
		row = vec_push(&s->rows);
		if (!row || !vec_push(&s->stamps))
			return -1;
		row->function = function;
		row->line = line;
	}
	row = &s->rows.items[*at];
	if (self)
		add_count(&row->self, &cell->count);
	if (s->stamps.items[*at] != stamp)
		add_count(&row->total, &cell->count);
	s->stamps.items[*at] = stamp;
	return 0;
}

/* From the leaf to the root: the first frame of its kind has the self. */
static int count_cell(struct summing *s, const struct memuse_cell *cell, uint64_t stamp)
{
	bool self = true;

	for (uint32_t at = cell->stack; at; at = profile_stack(s->profile, at)->parent) {
		const struct profile_frame *frame = profile_frame(
			s->profile, profile_stack(s->profile, at)->frame);
		bool lines = s->function != UINT32_MAX;

		if (lines && profile_function(s->profile, frame->function)->kind != FRAME_PYTHON)
			continue;
		if ((!lines || frame->function == s->function) &&
		    count_row(s, frame->function, lines ? frame->line : 0, cell, stamp, self))
			return -1;
		self = false;
	}
	return 0;
}

static int by_line(const void *a, const void *b)
{
	const struct memuse_row *x = a, *y = b;

	return (x->line > y->line) - (x->line < y->line);
}

static int by_weight(const void *a, const void *b)
{
	const struct memuse_row *x = a, *y = b;

	if (x->self.grown != y->self.grown)
		return x->self.grown < y->self.grown ? 1 : -1;
	if (x->self.accesses != y->self.accesses)
		return x->self.accesses < y->self.accesses ? 1 : -1;
	if (x->total.grown != y->total.grown)
		return x->total.grown < y->total.grown ? 1 : -1;
	return (x->function > y->function) - (x->function < y->function);
}

int memuse_view(struct memuse_view **out, const struct profile *profile,
		const struct view_filter *filter, uint32_t function, struct err *err)
{
	const struct memuse *memuse = &profile->memuse;
	struct summing s = {.profile = profile, .function = function};
	struct memuse_view *view = calloc(1, sizeof(*view));
	struct view_matcher *matcher = NULL;
	int rc = view ? view_matcher_new(&matcher, profile, filter, err) : err_nomem(err);

	*out = NULL;
	for (uint32_t i = 0; i < memuse->cells.count && !rc; i++) {
		const struct memuse_cell *cell = keyed_at(&memuse->cells, i);

		if (!view_matches(matcher, cell->thread, cell->stack))
			continue;
		add_count(&view->whole, &cell->count);
		if (count_cell(&s, cell, i + 1))
			rc = err_nomem(err);
	}
	if (!rc) {
		if (s.rows.len)
			qsort(s.rows.items, s.rows.len, sizeof(*s.rows.items),
			      function == UINT32_MAX ? by_weight : by_line);
		view->rows = s.rows.items;
		view->count = s.rows.len;
		view->sizes_known = memuse->unsized <= memuse->sized / 100;
		s.rows.items = NULL;
		*out = view;
		view = NULL;
	}
	view_matcher_free(matcher);
	vec_fini(&s.rows);
	vec_fini(&s.stamps);
	map_fini(&s.by_key);
	memuse_view_free(view);
	return rc;
}

void memuse_view_free(struct memuse_view *view)
{
	if (!view)
		return;
	free(view->rows);
	free(view);
}
