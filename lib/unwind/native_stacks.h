#ifndef PYPERF_NATIVE_STACKS_H
#define PYPERF_NATIVE_STACKS_H

#include "process/process.h"
#include "unwind/unwind.h"

/*
 * Native stacks of samples: the unwinder over a process table, for a recording that is being made
 * or being read.
 *
 * An unwinder is kept for each process and state of its maps, as long as there is room; what is
 * known of files outlives it.
 */
struct record_sample;
struct native_stacks;

struct native_stacks_options {
	const struct unwind_backend *backend; /* NULL: the best */
	const struct arch *arch;	      /* NULL: the host's */
	bool live;			      /* the processes run here: their memory can be read */
	/* By which to open the file that an object is, or NULL; asked once. */
	const char *(*path)(void *ctx, uint32_t dso);
	/* Generated code; may be NULL. */
	int (*code)(void *ctx, uint32_t pid, uint64_t addr, struct unwind_code *code);
	void *ctx;
};

/* The table is borrowed. ERR_UNSUPPORTED where no back end was built in. */
int native_stacks_new(struct native_stacks **stacks, struct process_table *processes,
		      const struct native_stacks_options *options, struct err *err);
void native_stacks_free(struct native_stacks *stacks);

/*
 * The stack of a sample that carries user registers and a copy of the stack, by the maps that the
 * process has in the table now. `interrupted` is as in struct unwind_input; NULL: none. `out` has
 * the caller's frames. False where the sample has none or is of a kind that cannot be unwound (a
 * kernel thread, a 32-bit program), or memory ran out.
 */
bool native_stacks_of_sample(struct native_stacks *stacks, uint64_t regs_mask,
			     const struct record_sample *sample,
			     const struct unwind_copy *interrupted, struct unwind_stack *out);

#endif
