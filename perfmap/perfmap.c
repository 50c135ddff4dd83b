#include "perfmap/perfmap.h"

#include "base/partition.h"
#include "base/vec.h"
#include "process/safe_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A map is kept as its text, with NULs for newlines, and sorted disjoint ranges that point into it.
 *
 * Ranges come from a sweep over the lines sorted by start address: a heap holds the lines that
 * cover the present address, the latest line on top, which is the one that counts. An entry that
 * is partly overwritten leaves up to two ranges, so there are fewer than two ranges a line.
 */

struct line {
	uint64_t start, end;
	size_t name; /* offset in the text */
	uint32_t order;
};

struct range {
	uint64_t start, end;
	size_t name;
};

struct perfmap {
	char *text;
	struct {
		VEC_OF(struct range)
	} ranges;
	uint64_t skipped;
};

struct lines {
	VEC_OF(struct line)
};

static int by_start(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* A heap of indices into the sorted lines, the one with the largest order on top. */
struct heap {
	const struct line *lines;
	VEC_OF(uint32_t)
};

static bool heap_above(const struct heap *heap, size_t a, size_t b)
{
	return heap->lines[heap->items[a]].order > heap->lines[heap->items[b]].order;
}

static void heap_swap(struct heap *heap, size_t a, size_t b)
{
	uint32_t item = heap->items[a];

	heap->items[a] = heap->items[b];
	heap->items[b] = item;
}

static bool heap_push(struct heap *heap, uint32_t line)
{
	uint32_t *item = vec_push(heap);
	size_t at = heap->len - 1;

	if (!item)
		return false;
	*item = line;
	for (; at && heap_above(heap, at, (at - 1) / 2); at = (at - 1) / 2)
		heap_swap(heap, at, (at - 1) / 2);
	return true;
}

static void heap_pop(struct heap *heap)
{
	size_t at = 0;

	heap->items[0] = heap->items[--heap->len];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= heap->len)
			return;
		if (child + 1 < heap->len && heap_above(heap, child + 1, child))
			child++;
		if (!heap_above(heap, child, at))
			return;
		heap_swap(heap, at, child);
		at = child;
	}
}

static bool add_range(struct perfmap *map, uint64_t start, uint64_t end, size_t name)
{
	struct range *last = map->ranges.len ? &map->ranges.items[map->ranges.len - 1] : NULL;

	if (last && last->end == start && last->name == name) {
		last->end = end;
		return true;
	}
	last = vec_push(&map->ranges);
	if (last)
		*last = (struct range){start, end, name};
	return last;
}

static int resolve(struct perfmap *map, const struct lines *lines, struct err *err)
{
	struct heap heap = {.lines = lines->items};
	uint64_t at = 0;
	size_t next = 0;
	int ret = 0;

	while (next < lines->len || heap.len) {
		uint64_t end;

		if (!heap.len)
			at = lines->items[next].start;
		for (; next < lines->len && lines->items[next].start <= at; next++)
			if (!heap_push(&heap, (uint32_t)next))
				goto nomem;
		while (heap.len && lines->items[heap.items[0]].end <= at)
			heap_pop(&heap);
		if (!heap.len)
			continue;
		end = lines->items[heap.items[0]].end;
		if (next < lines->len && lines->items[next].start < end)
			end = lines->items[next].start;
		if (!add_range(map, at, end, lines->items[heap.items[0]].name))
			goto nomem;
		at = end;
	}
	goto out;
nomem:
	ret = err_nomem(err);
out:
	vec_fini(&heap);
	return ret;
}

/* Hexadecimal, with or without 0x, up to a blank. NULL where it is no number that fits. */
static const char *parse_hex(const char *s, const char *end, uint64_t *value)
{
	const char *first;

	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	if (end - s > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		s += 2;
	*value = 0;
	for (first = s; s < end; s++) {
		int digit;

		if (*s >= '0' && *s <= '9')
			digit = *s - '0';
		else if ((*s | 0x20) >= 'a' && (*s | 0x20) <= 'f')
			digit = (*s | 0x20) - 'a' + 10;
		else
			break;
		if (*value >> 60)
			return NULL;
		*value = *value << 4 | (uint64_t)digit;
	}
	if (s == first || s == end || (*s != ' ' && *s != '\t'))
		return NULL;
	return s;
}

static bool parse_line(const char *text, const char *s, const char *end, struct line *line)
{
	uint64_t size;

	s = parse_hex(s, end, &line->start);
	s = s ? parse_hex(s, end, &size) : NULL;
	if (!s || !size || size > UINT64_MAX - line->start)
		return false;
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	line->end = line->start + size;
	line->name = (size_t)(s - text);
	return s < end && *s;
}

static void cut_name(char *name, const char *end)
{
	if (end - name > (ptrdiff_t)PERFMAP_NAME_MAX)
		memcpy(name + PERFMAP_NAME_MAX - 3, "...", sizeof("..."));
}

static int parse_lines(struct perfmap *map, size_t len, struct lines *lines, struct err *err)
{
	char *s = map->text, *end = s + len;

	while (s < end) {
		char *newline = memchr(s, '\n', (size_t)(end - s));
		char *stop = newline ? newline : end;
		struct line line = {.order = (uint32_t)lines->len};
		struct line *place;

		*stop = '\0';
		if (lines->len >= PERFMAP_LINES_MAX || !parse_line(map->text, s, stop, &line)) {
			map->skipped += stop > s; /* an empty line is no loss */
		} else {
			place = vec_push(lines);
			if (!place)
				return err_nomem(err);
			*place = line;
			cut_name(map->text + line.name, stop);
		}
		s = stop + 1;
	}
	return 0;
}

static uint64_t count_lines(const char *text, size_t len)
{
	const char *end = text + len;
	uint64_t count = 0;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		count++;
		text = newline ? newline + 1 : end;
	}
	return count;
}

int perfmap_parse(struct perfmap **out, const char *text, size_t len, struct err *err)
{
	struct perfmap *map = calloc(1, sizeof(*map));
	size_t kept = len < PERFMAP_BYTES_MAX ? len : PERFMAP_BYTES_MAX;
	struct lines lines = {0};
	int ret = 0;

	*out = NULL;
	if (!map)
		return err_nomem(err);
	map->text = malloc(kept + 1);
	if (!map->text) {
		ret = err_nomem(err);
		goto out;
	}
	if (kept)
		memcpy(map->text, text, kept);
	map->text[kept] = '\0';
	if (kept < len)
		map->skipped += count_lines(text + kept, len - kept);
	ret = parse_lines(map, kept, &lines, err);
	if (ret < 0)
		goto out;
	for (size_t i = 1; i < lines.len; i++) {
		if (lines.items[i].start < lines.items[i - 1].start) {
			qsort(lines.items, lines.len, sizeof(*lines.items), by_start);
			break;
		}
	}
	ret = resolve(map, &lines, err);
out:
	vec_fini(&lines);
	if (ret < 0)
		perfmap_free(map);
	else
		*out = map;
	return ret;
}

void perfmap_free(struct perfmap *map)
{
	if (!map)
		return;
	vec_fini(&map->ranges);
	free(map->text);
	free(map);
}

/* "py::QUALNAME:FILE": a qualified name holds no colon, a file may. */
static void split_python(struct perfmap_entry *entry)
{
	const char *colon;

	entry->python = strncmp(entry->name, "py::", 4) == 0;
	if (!entry->python)
		return;
	entry->qualname = entry->name + 4;
	colon = strchr(entry->qualname, ':');
	entry->filename = colon ? colon + 1 : entry->qualname + strlen(entry->qualname);
	entry->qualname_len = colon ? (size_t)(colon - entry->qualname) : strlen(entry->qualname);
	entry->filename_len = strlen(entry->filename);
}

void perfmap_entry_of(uint64_t start, uint64_t size, const char *name, struct perfmap_entry *entry)
{
	*entry = (struct perfmap_entry){.start = start, .size = size, .name = name};
	split_python(entry);
}

bool perfmap_find(const struct perfmap *map, uint64_t addr, struct perfmap_entry *entry)
{
	size_t at = partition_point(map->ranges.items, map->ranges.len, before,
				    before->end <= addr);
	const struct range *range;

	if (at == map->ranges.len || map->ranges.items[at].start > addr)
		return false;
	range = &map->ranges.items[at];
	perfmap_entry_of(range->start, range->end - range->start, map->text + range->name, entry);
	return true;
}

size_t perfmap_count(const struct perfmap *map)
{
	return map->ranges.len;
}

uint64_t perfmap_skipped(const struct perfmap *map)
{
	return map->skipped;
}

int perfmap_open(const char *held, pid_t pid, pid_t ns_pid, uid_t uid, struct err *err)
{
	char path[40];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)ns_pid);
	return safe_open_written(held, pid, ns_pid, uid, path, err);
}

int perfmap_read(int fd, struct strbuf *text, uint64_t *refused, struct err *err)
{
	size_t start = text->len;
	int ret = safe_read_start(fd, "a perf map", PERFMAP_BYTES_MAX, text, refused, err);

	/* The line that is cut through is refused whole. */
	while (!ret && *refused && text->len > start && text->buf[text->len - 1] != '\n') {
		text->len--;
		++*refused;
	}
	return ret;
}

void perfmap_section_add(struct strbuf *section, uint32_t pid, const char *text, size_t len)
{
	strbuf_u32(section, pid);
	strbuf_blob(section, text, len);
}

bool perfmap_section_next(struct bytes *section, uint32_t *pid, struct bytes *text)
{
	if (!bytes_left(section))
		return false;
	*pid = bytes_u32(section);
	*text = bytes_blob(section);
	return !section->bad;
}
