#include "perfmap/jitdump.h"

#include "base/map.h"
#include "base/partition.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

/*
 * Line and unwinding records describe the code of the load record that follows them, so they wait
 * for it. Line tables are kept as they are and read when a line is asked for, since few are.
 *
 * An address in a line table counts from the start of the code, but many runtimes (V8, LLVM) add
 * 0x40 to it, because perf used to put the code behind the header of an ELF file and the addresses
 * not (linux tools/perf/util/genelf.h, GEN_ELF_TEXT_OFFSET). No table of such a dump names an
 * address below 0x40.
 */
#define MAGIC 0x4a695444u /* "JiTD" */
#define MAGIC_SWAPPED 0x4454694au
#define HEAD_BYTES 40u
#define RECORD_HEAD_BYTES 16u
#define FLAG_ARCH_TIMES 1u /* time stamp counter, not ns */
#define ELF_HEAD_BYTES 0x40u

enum record_id {
	RECORD_LOAD = 0,
	RECORD_MOVE = 1,
	RECORD_DEBUG_INFO = 2,
	RECORD_CLOSE = 3,
	RECORD_UNWINDING_INFO = 4,
};

/*
 * Which codes cover an address: an interval tree in an array that is sorted by start, the root of
 * a range of nodes in its middle. A move leaves a second node, over the place that it left.
 */
struct node {
	uint64_t start, end;
	uint64_t end_max; /* of the nodes of the subtree */
	uint32_t code;
	bool left; /* the code was here until then */
};

struct jitdump {
	unsigned char *bytes;
	struct {
		VEC_OF(struct node)
	} nodes;
	struct jitdump_head head;
	struct {
		VEC_OF(struct jitdump_code)
	} codes;
	uint64_t skipped;
	uint64_t lines_bias;
	bool other_clock;
};

struct parser {
	struct jitdump *dump;
	uint64_t time;	     /* of the record at hand */
	struct map by_index; /* code_index -> index in codes, + 1 */
	struct jitdump_unwind unwind;
	struct bytes lines;
	uint64_t line_count, lines_addr;
};

/* A view of the dump's copy. */
static bool read_head(struct bytes *b, struct jitdump_head *head, bool *other_clock)
{
	uint32_t magic = bytes_u32(b), size;

	b->swap = magic == MAGIC_SWAPPED;
	if (magic != MAGIC && magic != MAGIC_SWAPPED)
		return false;
	bytes_u32(b); /* version: only 1 was ever written, and the sizes tell what there is */
	size = bytes_u32(b);
	head->machine = bytes_u32(b);
	bytes_u32(b);
	head->pid = bytes_u32(b);
	head->time = bytes_u64(b);
	*other_clock = bytes_u64(b) & FLAG_ARCH_TIMES;
	if (size < HEAD_BYTES)
		return false;
	bytes_take(b, size - HEAD_BYTES);
	return !b->bad;
}

bool jitdump_head(const void *bytes, size_t len, struct jitdump_head *head)
{
	struct bytes b = bytes_of(bytes, len);
	bool other_clock;

	return read_head(&b, head, &other_clock);
}

/* Text that is too long for a name ends in dots. */
static const char *take_name(struct bytes *record)
{
	const char *name = bytes_cstr(record);

	if (name && strnlen(name, JITDUMP_NAME_MAX + 1) > JITDUMP_NAME_MAX) {
		char *end = (char *)name + JITDUMP_NAME_MAX; /* in our own copy */

		memcpy(end - 3, "...", 4);
	}
	return name;
}

static int add_code(struct parser *parser, const struct jitdump_code *code, uint64_t index,
		    struct err *err)
{
	struct jitdump *dump = parser->dump;
	struct jitdump_code *place;
	uint64_t *at;

	if (!code->size || code->addr > UINT64_MAX - code->size ||
	    dump->codes.len >= JITDUMP_CODES_MAX) {
		dump->skipped++;
		return 0;
	}
	place = vec_push(&dump->codes);
	at = place ? map_put(&parser->by_index, index, NULL) : NULL;
	if (!at)
		return err_nomem(err);
	*place = *code;
	place->time = dump->other_clock ? 0 : parser->time;
	place->order = (uint32_t)dump->codes.len;
	*at = dump->codes.len;
	return 0;
}

static int take_load(struct parser *parser, struct bytes *record, struct err *err)
{
	struct jitdump_code code = {.unwind = parser->unwind};
	uint64_t index, tables;

	bytes_take(record, 2 * sizeof(uint32_t)); /* pid, tid */
	bytes_u64(record);			  /* vma: the address again */
	code.addr = bytes_u64(record);
	code.size = bytes_u64(record);
	index = bytes_u64(record);
	code.name = take_name(record);
	/* Runtimes may leave the code out. */
	code.code = bytes_sub(record, bytes_left(record) < code.size ? 0 : (size_t)code.size);
	if (parser->lines_addr == code.addr) {
		code.lines = parser->lines;
		code.line_count = parser->line_count;
		code.lines_addr = parser->lines_addr;
	}
	tables = (code.addr + code.size + 7) & ~(uint64_t)7;
	code.unwind.eh_frame_addr = tables;
	code.unwind.eh_frame_hdr_addr = tables + bytes_left(&code.unwind.eh_frame);
	parser->unwind = (struct jitdump_unwind){0};
	parser->line_count = 0;
	if (record->bad) {
		parser->dump->skipped++;
		return 0;
	}
	return add_code(parser, &code, index, err);
}

static int take_move(struct parser *parser, struct bytes *record, struct err *err)
{
	struct jitdump_code code;
	uint64_t from, to, size, index, *at;

	bytes_take(record, 2 * sizeof(uint32_t));
	bytes_u64(record);
	from = bytes_u64(record);
	to = bytes_u64(record);
	size = bytes_u64(record);
	index = bytes_u64(record);
	at = map_get(&parser->by_index, index);
	if (record->bad || !at || !from || parser->dump->codes.items[*at - 1].addr != from ||
	    from > UINT64_MAX - size) {
		parser->dump->skipped++;
		return 0;
	}
	code = parser->dump->codes.items[*at - 1];
	code.unwind.eh_frame_addr += to - from;
	code.unwind.eh_frame_hdr_addr += to - from;
	code.addr = to;
	code.size = size;
	code.moved_from = from;
	if (bytes_left(&code.code) != size)
		code.code = (struct bytes){0};
	return add_code(parser, &code, index, err);
}

static int take_debug_info(struct parser *parser, struct bytes *record, struct err *err)
{
	struct jitdump *dump = parser->dump;
	uint64_t offset;

	parser->lines_addr = bytes_u64(record);
	parser->line_count = bytes_u64(record);
	parser->lines = *record;
	if (!parser->line_count)
		return 0;
	offset = bytes_u64(record) - parser->lines_addr;
	if (record->bad) {
		parser->line_count = 0;
		dump->skipped++;
	} else if (offset < dump->lines_bias) {
		dump->lines_bias = 0;
	}
	return 0;
}

static int take_unwinding_info(struct parser *parser, struct bytes *record, struct err *err)
{
	uint64_t size = bytes_u64(record), hdr_size = bytes_u64(record);
	struct bytes tables;

	bytes_u64(record); /* how much of it the runtime has mapped itself */
	tables = bytes_sub(record, (size_t)size);
	if (tables.bad || hdr_size > size) {
		parser->unwind = (struct jitdump_unwind){0};
		parser->dump->skipped++;
		return 0;
	}
	parser->unwind.eh_frame = bytes_sub(&tables, (size_t)(size - hdr_size));
	parser->unwind.eh_frame_hdr = tables;
	return 0;
}

static int (*const handlers[])(struct parser *parser, struct bytes *record, struct err *err) = {
	[RECORD_LOAD] = take_load,
	[RECORD_MOVE] = take_move,
	[RECORD_DEBUG_INFO] = take_debug_info,
	[RECORD_CLOSE] = NULL,
	[RECORD_UNWINDING_INFO] = take_unwinding_info,
};

static int parse_records(struct parser *parser, struct bytes b, struct err *err)
{
	int ret = 0;

	while (!ret && bytes_left(&b) >= RECORD_HEAD_BYTES) {
		uint32_t id = bytes_u32(&b), size = bytes_u32(&b);
		struct bytes record;

		parser->time = bytes_u64(&b);
		if (size < RECORD_HEAD_BYTES) {
			parser->dump->skipped++;
			break; /* nothing says where the next one is */
		}
		record = bytes_sub(&b, size - RECORD_HEAD_BYTES);
		if (record.bad)
			break; /* the rest was not written yet, or never */
		if (id < sizeof(handlers) / sizeof(handlers[0]) && handlers[id])
			ret = handlers[id](parser, &record, err);
	}
	return ret;
}

/* Times of one writer increase; several threads of a runtime may differ a little. */
static int by_time(const void *a, const void *b)
{
	const struct jitdump_code *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void sort_codes(struct jitdump *dump)
{
	struct jitdump_code *codes = dump->codes.items;

	for (size_t i = 1; i < dump->codes.len; i++)
		if (codes[i].time < codes[i - 1].time) {
			qsort(codes, dump->codes.len, sizeof(*codes), by_time);
			return;
		}
}

static bool add_node(struct jitdump *dump, uint64_t start, uint64_t size, size_t code, bool left)
{
	struct node *node = vec_push(&dump->nodes);

	if (node)
		*node = (struct node){start, start + size, 0, (uint32_t)code, left};
	return node;
}

static int by_start(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static uint64_t set_end_max(struct node *nodes, size_t low, size_t high)
{
	size_t mid = low + (high - low) / 2;
	uint64_t left, right;

	if (low == high)
		return 0;
	left = set_end_max(nodes, low, mid);
	right = set_end_max(nodes, mid + 1, high);
	nodes[mid].end_max = nodes[mid].end;
	if (left > nodes[mid].end_max)
		nodes[mid].end_max = left;
	if (right > nodes[mid].end_max)
		nodes[mid].end_max = right;
	return nodes[mid].end_max;
}

static int make_tree(struct jitdump *dump, struct err *err)
{
	for (size_t i = 0; i < dump->codes.len; i++) {
		const struct jitdump_code *code = &dump->codes.items[i];

		if ((code->moved_from && !add_node(dump, code->moved_from, code->size, i, true)) ||
		    !add_node(dump, code->addr, code->size, i, false))
			return err_nomem(err);
	}
	if (dump->nodes.len)
		qsort(dump->nodes.items, dump->nodes.len, sizeof(*dump->nodes.items), by_start);
	set_end_max(dump->nodes.items, 0, dump->nodes.len);
	return 0;
}

int jitdump_parse(struct jitdump **out, const void *bytes, size_t len, struct err *err)
{
	struct jitdump *dump = calloc(1, sizeof(*dump));
	struct parser parser = {.dump = dump};
	size_t kept = len < JITDUMP_BYTES_MAX ? len : JITDUMP_BYTES_MAX;
	struct bytes b;
	int ret;

	*out = NULL;
	if (!dump)
		return err_nomem(err);
	dump->bytes = malloc(kept + 1);
	if (!dump->bytes) {
		jitdump_free(dump);
		return err_nomem(err);
	}
	if (kept)
		memcpy(dump->bytes, bytes, kept);
	dump->skipped = kept < len;
	dump->lines_bias = ELF_HEAD_BYTES;
	b = bytes_of(dump->bytes, kept);
	if (read_head(&b, &dump->head, &dump->other_clock))
		ret = parse_records(&parser, b, err);
	else
		ret = err_set(err, ERR_CORRUPT, "it does not begin as a jitdump does");
	map_fini(&parser.by_index);
	if (!ret) {
		sort_codes(dump);
		ret = make_tree(dump, err);
	}
	if (ret)
		jitdump_free(dump);
	else
		*out = dump;
	return ret;
}

void jitdump_free(struct jitdump *dump)
{
	if (!dump)
		return;
	vec_fini(&dump->nodes);
	vec_fini(&dump->codes);
	free(dump->bytes);
	free(dump);
}

size_t jitdump_count(const struct jitdump *dump)
{
	return dump->codes.len;
}

const struct jitdump_code *jitdump_code(const struct jitdump *dump, size_t index)
{
	return &dump->codes.items[index];
}

size_t jitdump_count_until(const struct jitdump *dump, uint64_t time)
{
	return partition_point(dump->codes.items, dump->codes.len, code, code->time <= time);
}

/* Addresses are used again, but not as often as this. */
#define COVERING_MAX 4096u

struct search {
	const struct jitdump *dump;
	uint64_t addr;
	size_t until; /* codes that are old enough */
	const struct node *best;
	unsigned int seen;
};

static void search_nodes(struct search *search, size_t low, size_t high)
{
	while (low < high && search->seen < COVERING_MAX) {
		size_t mid = low + (high - low) / 2;
		const struct node *node = &search->dump->nodes.items[mid];

		if (node->end_max <= search->addr)
			return;
		search_nodes(search, low, mid);
		if (node->start > search->addr)
			return;
		if (node->end > search->addr) {
			search->seen++;
			if (node->code < search->until &&
			    (!search->best || node->code > search->best->code ||
			     (node->code == search->best->code && !node->left)))
				search->best = node;
		}
		low = mid + 1;
	}
}

const struct jitdump_code *jitdump_find(const struct jitdump *dump, uint64_t addr, uint64_t time)
{
	struct search search = {dump, addr, jitdump_count_until(dump, time), NULL, 0};

	search_nodes(&search, 0, dump->nodes.len);
	return search.best && !search.best->left ? &dump->codes.items[search.best->code] : NULL;
}

const struct jitdump_head *jitdump_head_of(const struct jitdump *dump)
{
	return &dump->head;
}

uint64_t jitdump_skipped(const struct jitdump *dump)
{
	return dump->skipped;
}

/* A row holds from its address to that of the next one. A file "\xff" is that of the row before. */
bool jitdump_line(const struct jitdump *dump, const struct jitdump_code *code, uint64_t addr,
		  const char **file, uint32_t *line)
{
	uint64_t offset = addr - code->addr, best = 0;
	struct bytes rows = code->lines;
	const char *name = NULL;
	bool found = false;

	for (uint64_t i = 0; i < code->line_count; i++) {
		uint64_t row = bytes_u64(&rows) - code->lines_addr - dump->lines_bias;
		uint32_t number = bytes_u32(&rows);
		const char *text;

		bytes_u32(&rows); /* column */
		text = bytes_cstr(&rows);
		if (rows.bad)
			break;
		if (strcmp(text, "\xff") != 0)
			name = strnlen(text, JITDUMP_NAME_MAX) < JITDUMP_NAME_MAX ? text : NULL;
		if (!name || !number || row > offset || (found && row < best))
			continue;
		found = true;
		best = row;
		*file = name;
		*line = number;
	}
	return found;
}
