#ifndef PYPERF_BROWSE_OPEN_LINES_H
#define PYPERF_BROWSE_OPEN_LINES_H

#include "base/vec.h"

#include <stdbool.h>

#include <stdint.h>

/*
 * Which row of a list is which line, where some lines have rows below them. Lines are numbers from
 * 0 on; what is below one is the view's. Both ways cost a search among the open lines only.
 */
struct open_line {
	uint32_t line;
	unsigned int parts; /* what is shown below it: the view's */
	size_t below;	    /* rows */
	size_t before;	    /* rows below the open lines above it */
};
struct open_lines {
	uint32_t lines;
	struct {
		VEC_OF(struct open_line)
	} open; /* by line */
};

void open_lines_fini(struct open_lines *lines);
size_t open_lines_rows(const struct open_lines *lines);
/* *below is 0 for the line itself, else which row below it, from 1 on. */
uint32_t open_lines_line(const struct open_lines *lines, size_t row, size_t *below);
size_t open_lines_row(const struct open_lines *lines, uint32_t line);
unsigned int open_lines_parts(const struct open_lines *lines, uint32_t line);
/* Opens the line, or closes it where `below` is 0; -1 when memory ran out. */
int open_lines_set(struct open_lines *lines, uint32_t line, unsigned int parts, size_t below);

#endif
