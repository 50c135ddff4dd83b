#include "browse/open_lines.h"

#include "base/partition.h"

#include <string.h>

void open_lines_fini(struct open_lines *lines)
{
	vec_fini(&lines->open);
}

size_t open_lines_rows(const struct open_lines *lines)
{
	const struct open_line *last = lines->open.len ? &lines->open.items[lines->open.len - 1]
						       : NULL;

	return lines->lines + (last ? last->before + last->below : 0);
}

/* How many open lines lie above the row. */
static size_t open_above_row(const struct open_lines *lines, size_t row)
{
	return partition_point(lines->open.items, lines->open.len, open,
			       open->line + open->before < row);
}

/* The first open line that is not above the line. */
static size_t find(const struct open_lines *lines, uint32_t line)
{
	return partition_point(lines->open.items, lines->open.len, open, open->line < line);
}

uint32_t open_lines_line(const struct open_lines *lines, size_t row, size_t *below)
{
	size_t at = open_above_row(lines, row);
	const struct open_line *open;

	*below = 0;
	if (!at)
		return (uint32_t)row;
	open = &lines->open.items[at - 1];
	if (row - open->line - open->before <= open->below) {
		*below = row - open->line - open->before;
		return open->line;
	}
	return (uint32_t)(row - open->before - open->below);
}

size_t open_lines_row(const struct open_lines *lines, uint32_t line)
{
	size_t at = find(lines, line);

	if (!at)
		return line;
	return line + lines->open.items[at - 1].before + lines->open.items[at - 1].below;
}

unsigned int open_lines_parts(const struct open_lines *lines, uint32_t line)
{
	size_t at = find(lines, line);

	if (at == lines->open.len || lines->open.items[at].line != line)
		return 0;
	return lines->open.items[at].parts;
}

int open_lines_set(struct open_lines *lines, uint32_t line, unsigned int parts, size_t below)
{
	size_t at = find(lines, line);
	bool there = at < lines->open.len && lines->open.items[at].line == line;
	struct open_line *items;

	if (!there && below && !vec_push(&lines->open))
		return -1;
	items = lines->open.items;
	if (!there && below)
		memmove(items + at + 1, items + at, (lines->open.len - 1 - at) * sizeof(*items));
	if (there && !below) {
		memmove(items + at, items + at + 1, (lines->open.len - 1 - at) * sizeof(*items));
		lines->open.len--;
	}
	if (below)
		items[at] = (struct open_line){.line = line, .parts = parts, .below = below};
	for (; at < lines->open.len; at++)
		items[at].before = at ? items[at - 1].before + items[at - 1].below : 0;
	return 0;
}
