#ifndef PYPERF_OUTPUT_DETAILS_H
#define PYPERF_OUTPUT_DETAILS_H

#include "output/names.h"
#include "profile/bytecode.h"
#include "profile/calls.h"

/* What can be shown below a line of a Python function: bits of `details` in struct annotate. */
enum {
	DETAIL_BYTECODE = 1, /* its instructions */
	DETAIL_CALLERS = 2,  /* which lines call the function, as far as that led to this line */
	DETAIL_CALLEES = 4,  /* what the line calls */
};

struct details {
	uint32_t function;
	struct view_bytecode *bytecode; /* each NULL where it is not wanted */
	struct view_call *callers, *callees;
	size_t caller_count, callee_count;
};

int details_open(struct details *details, const struct profile *profile,
		 const struct view_filter *filter, uint32_t function, uint32_t event,
		 unsigned int wanted, struct err *err);
void details_close(struct details *details);

/* The rows of one line: the first one, and how many. */
const struct view_call *details_line(const struct view_call *rows, size_t count, uint32_t line,
				     size_t *found);
/* "backward train.py:82": the line that calls, or the function that is called; escaped. */
void details_add_call(const struct profile *profile, const struct names *names,
		      const struct view_call *call, struct strbuf *out);
/* "12  LOAD_FAST               total"; escaped. */
void details_add_instruction(const struct profile *profile, const struct view_bytecode *bytecode,
			     const struct view_instruction *row, struct strbuf *out);

#endif
