#ifndef PYPERF_OUTPUT_PAGE_H
#define PYPERF_OUTPUT_PAGE_H

#include "output/names.h"
#include "output/output.h"
#include "output/samples.h"

#include "base/map.h"
#include "base/vec.h"

/*
 * The self-contained page of `report --html`: the files of page/, and the data as one JSON object,
 * compressed. What the object holds is documented in page/README.md; page_data.c writes it.
 */

/* Stacks as the page knows them: frames of one function and line are one, whatever their address.
 * Stack 0 is the empty one; a parent's number is always the lower one. Where not all functions are
 * shown, one stands for different kinds of code: see profile_stack_kind(). */
struct page_stack {
	uint32_t parent, function, line;
	enum frame_kind kind;
};

struct page_stacks {
	struct {
		VEC_OF(struct page_stack)
	} items;
	uint32_t *of_stack; /* by stack of the profile; meaningless where that is not shown */
	uint64_t fewest;    /* stacks with fewer samples lack the frames in their middle; 0: none */
	uint64_t cut_samples; /* that were in such stacks */
};

struct view_matcher;
/* At most about `limit` stacks: the rarest lose the callers in their middle, and never the function
 * or the Python line in which the sample was taken. */
int page_stacks_init(struct page_stacks *stacks, const struct profile *profile,
		     const struct view_matcher *matcher, size_t limit, struct err *err);
void page_stacks_fini(struct page_stacks *stacks);

/* JSON's string of text that is escaped already (see names.h). */
void page_put_text(struct strbuf *out, const char *text, size_t len);
/* Of any text; NULL is none. */
void page_put_raw_text(struct strbuf *out, const char *text);

/* The member "sources": the lines of source that the stacks lie in. */
int page_put_sources(struct strbuf *out, const struct page *page, const struct page_stacks *stacks,
		     struct err *err);
/* The whole object. */
int page_put_data(struct strbuf *out, const struct page *page, struct err *err);

#endif
