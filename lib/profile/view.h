#ifndef PYPERF_VIEW_H
#define PYPERF_VIEW_H

#include "profile/profile.h"

/*
 * Tables over a profile: which samples count (a filter), summed by function or by line.
 *
 * self:  the function is the innermost frame of the merged stack. A sample in C code counts for the
 *        C function, not for the Python function that called it.
 * total: the function is anywhere on the stack; once per sample, however deep it recurses.
 *
 * A line belongs to a Python function's frame. Its self is all time in which that frame is the
 * innermost *Python* frame, C and kernel code called from the line included; where the time went is
 * told by the split into python, native and kernel. Its total counts the line anywhere on the
 * stack.
 */
struct view_filter {
	const char *comm;	 /* NULL: all; names separated by commas */
	const char *pids, *tids; /* decimal, separated by commas */
	const char *dso;	 /* samples whose leaf lies in this object (last path component) */
	const char
		*python_file; /* those whose innermost Python frame lies in this file: its path */
};

struct view_count {
	uint64_t self, total; /* period sums */
	uint64_t self_samples, total_samples;
	/* Period of the samples in which this is the innermost Python frame, by the leaf's kind
	 * (for Python functions and lines; by enum frame_kind). */
	uint64_t split[3];
	/* Sums of the squares of what each sample counted for, of the same samples as above: see
	 * profile/estimate.h. */
	double self_square, total_square, split_square[3];
};

/* Sums of the products of two events' counts, of samples that read both. */
struct view_product {
	double self, total;
};

struct view_row {
	uint32_t function;
	uint32_t line;			     /* of the function table: 0 */
	struct view_count *counts;	     /* one per event of the profile */
	const struct view_product *products; /* one per pair of the profile */
};

struct view {
	struct view_row
		*rows; /* sorted by `sort_event`: self, or total, descending; ties by name */
	size_t count;
	uint64_t *period_total; /* per event, after the filter */
	uint64_t *samples;
	double *square_total;
	size_t events;
	struct view_product *products; /* the rows' */
};

enum view_sort { VIEW_BY_SELF, VIEW_BY_TOTAL };

/* What a ranking of functions takes and no filter changes: for who ranks them again and again. The
 * profile must stay as it is. */
struct view_basis;
int view_basis_new(struct view_basis **basis, const struct profile *profile, struct err *err);
void view_basis_free(struct view_basis *basis);
int view_functions_of(struct view **view, const struct view_basis *basis,
		      const struct view_filter *filter, enum view_sort sort, uint32_t sort_event,
		      struct err *err);
int view_functions(struct view **view, const struct profile *profile,
		   const struct view_filter *filter, enum view_sort sort, uint32_t sort_event,
		   struct err *err);
/* All lines of all Python functions; `function` UINT32_MAX, or only those of one, by line. */
int view_lines(struct view **view, const struct profile *profile, const struct view_filter *filter,
	       uint32_t function, uint32_t sort_event, struct err *err);
/* That line's row in the view of one function; NULL where it has none. */
const struct view_row *view_line(const struct view *lines, uint32_t line);
void view_free(struct view *view);

/* Grouped by other keys than the function: see profile/group.h. */
enum view_key {
	VIEW_COMM,
	VIEW_PID,
	VIEW_TID,
	VIEW_DSO,
	VIEW_FILE,
	VIEW_KIND,
	VIEW_ORIGIN,
	VIEW_FUNCTION
};

/* Self time of a native function by address, for annotate: pairs sorted by addr. */
struct view_address {
	uint64_t addr;
	uint32_t frame;
	struct view_count *counts;
};
int view_addresses(struct view_address **rows, size_t *count, const struct profile *profile,
		   const struct view_filter *filter, uint32_t function, struct err *err);
void view_addresses_free(struct view_address *rows, size_t count);

#endif
