#ifndef PYPERF_CMD_PAGE_H
#define PYPERF_CMD_PAGE_H

#include "cmd/filter.h"

#include <stdio.h>

/* The page of a recording: for report --html, and for view. */
struct page_input;

/* Reads the recording as view_options say. */
int page_read(struct page_input **input, struct err *err);
void page_free(struct page_input *input);
int page_write(const struct page_input *input, FILE *out, struct err *err);

#endif
