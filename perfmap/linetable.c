#include "perfmap/linetable.h"

#include "base/bytes.h"
#include "base/partition.h"

/*
 * Three encodings, one output. Each decoder steps through its entries and hands every stretch of
 * code to append(), which merges neighbours of one line just as co_lines() does. Line numbers run
 * in 64 bits, since a hostile table can add up to anything; what is no line becomes 0.
 */

static int append(struct line_ranges *out, uint64_t start, uint64_t end, int64_t line,
		  struct err *err)
{
	struct line_range *last = out->len ? &out->items[out->len - 1] : NULL;
	uint32_t shown = line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;

	if (end > UINT32_MAX)
		end = UINT32_MAX;
	if (start >= end)
		return 0;
	if (last && last->end == start && last->line == shown) {
		last->end = (uint32_t)end;
		return 0;
	}
	last = vec_push(out);
	if (!last)
		return err_nomem(err);
	*last = (struct line_range){(uint32_t)start, (uint32_t)end, shown};
	return 0;
}

static int truncated(struct err *err)
{
	return err_set(err, ERR_CORRUPT, "the line table ends within an entry");
}

/* Objects/lnotab_notes.txt: pairs of an unsigned step in bytes and a signed step in lines; the
 * lines step after the bytes. */
static int expand_lnotab(struct bytes table, int64_t line, uint32_t code_len,
			 struct line_ranges *out, struct err *err)
{
	uint64_t start = 0;

	while (bytes_left(&table) >= 2 && start < code_len) {
		uint64_t end = start + bytes_u8(&table);
		int ret = append(out, start, end < code_len ? end : code_len, line, err);

		if (ret < 0)
			return ret;
		start = end;
		line += (int8_t)bytes_u8(&table);
	}
	if (start < code_len) {
		int ret = append(out, start, code_len, line, err);

		if (ret < 0)
			return ret;
	}
	return bytes_left(&table) == 1 ? truncated(err) : 0;
}

/* PEP 626: the same pairs, but lines step before the bytes and -128 is "no line". */
static int expand_linetable(struct bytes table, int64_t line, struct line_ranges *out,
			    struct err *err)
{
	uint64_t start = 0;

	while (bytes_left(&table) >= 2) {
		uint64_t end = start + bytes_u8(&table);
		int8_t step = (int8_t)bytes_u8(&table);
		int ret;

		if (step != INT8_MIN)
			line += step;
		ret = append(out, start, end, step == INT8_MIN ? 0 : line, err);
		if (ret < 0)
			return ret;
		start = end;
	}
	return bytes_left(&table) ? truncated(err) : 0;
}

/* Objects/locations.md. An entry starts with the only byte that has its top bit set: the kind (4
 * bits) and how many code units it covers (3 bits, less one). */
enum { KIND_SHORT_LAST = 9, KIND_ONE_LINE = 10, KIND_NO_COLUMNS = 13, KIND_LONG = 14, KIND_NONE };

static const uint8_t location_least[] = {
	[0 ... KIND_SHORT_LAST] = 1,
	[KIND_ONE_LINE... KIND_NO_COLUMNS - 1] = 2,
	[KIND_NO_COLUMNS] = 1,
	[KIND_LONG] = 4,
	[KIND_NONE] = 0,
};

/* Six bits a byte, least first; bit 6 says that more follow; bit 0 of the sum is the sign. */
static int64_t signed_varint(struct bytes *b)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = bytes_u8(b);
		if (shift < 36)
			value |= (uint64_t)(byte & 0x3f) << shift;
		shift += 6;
	} while (byte & 0x40);
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static int64_t location_step(unsigned int kind, struct bytes *payload)
{
	if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
		return signed_varint(payload);
	return kind >= KIND_ONE_LINE && kind < KIND_NO_COLUMNS ? (int)kind - KIND_ONE_LINE : 0;
}

static int expand_locations(struct bytes table, int64_t line, struct line_ranges *out,
			    struct err *err)
{
	uint64_t start = 0;

	while (bytes_left(&table)) {
		uint8_t head = bytes_u8(&table);
		unsigned int kind = head >> 3 & 15;
		uint64_t end = start + 2 * ((head & 7u) + 1);
		struct bytes payload = {.at = table.at, .end = table.at};
		int ret;

		if (!(head & 0x80))
			return err_set(err, ERR_CORRUPT,
				       "the line table has no entry where one "
				       "starts");
		while (bytes_left(&table) && !(*table.at & 0x80))
			table.at++;
		payload.end = table.at;
		if (bytes_left(&payload) < location_least[kind])
			return truncated(err);
		line += location_step(kind, &payload);
		if (payload.bad)
			return truncated(err);
		ret = append(out, start, end, kind == KIND_NONE ? 0 : line, err);
		if (ret < 0)
			return ret;
		start = end;
	}
	return 0;
}

int linetable_expand(unsigned int minor, const uint8_t *table, size_t len, uint32_t firstlineno,
		     uint32_t code_len, struct line_ranges *out, struct err *err)
{
	struct bytes bytes = bytes_of(table, len);

	if (minor <= 9)
		return expand_lnotab(bytes, firstlineno, code_len, out, err);
	if (minor == 10)
		return expand_linetable(bytes, firstlineno, out, err);
	return expand_locations(bytes, firstlineno, out, err);
}

const struct line_range *linetable_at(const struct line_ranges *ranges, uint32_t offset)
{
	size_t at = partition_point(ranges->items, ranges->len, range, range->end <= offset);

	if (at == ranges->len || ranges->items[at].start > offset)
		return NULL;
	return &ranges->items[at];
}

uint32_t linetable_find(const struct line_ranges *ranges, uint32_t offset)
{
	const struct line_range *range = linetable_at(ranges, offset);

	return range ? range->line : 0;
}
