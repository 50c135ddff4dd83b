#ifndef PYPERF_UNWIND_H
#define PYPERF_UNWIND_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Native stacks from registers and memory, by unwind tables.
 *
 *	struct unwind_files *files = unwind_files_new();	once
 *	struct unwinder *unwinder =
 *		unwind_backends()[0]->open(files, &source, err);	per process and state of its
 *maps
 *
 *	struct unwind_frame frames[256];			per stack
 *	struct unwind_stack stack = {.frames = frames, .max = 256};
 *	if (unwind_of_sample(arch, attr.sample_regs_user, &sample, &input) == 0)
 *		backend->stack(unwinder, &input, &stack);
 *
 * One unwinder serves one process generation: what is mapped does not change under it. The files
 * and what was learnt of their tables are shared by all unwinders of a session, of which one at a
 * time may run. A back end is one row; no type of a library leaks.
 */
struct arch;
struct record_sample;
struct unwind_files;
struct unwinder;

struct unwind_module {
	/* Which file it is, as the caller numbers them: equal ids are the same bytes, also in
	 * another process. 0: not known, and nothing is shared. Told again where a stack ends. */
	uint32_t id;
	/* As this process can open it (/proc/PID/root/..., /proc/PID/map_files/...), and still the
	 * file that was mapped, which is the caller's to make sure of; NULL where there is none.
	 * Only needed until the callback is called again, like `image`. */
	const char *path;
	/* The file's bytes where they are not on disk (the vDSO); NULL: read from `path`, or where
	 * that cannot be opened from the target's memory. */
	const void *image;
	size_t image_len;
	uint64_t start, end; /* of the mapping */
	uint64_t file_offset;
};

/* Generated code, as a perf map or a jitdump tells of it. */
struct unwind_code {
	uint64_t start, end;
	/* Its call-frame information (.eh_frame), for code at `start`; NULL: none. Equal pointers
	 * are equal bytes as long as the files live. */
	const void *eh_frame;
	size_t eh_frame_len;
	/* The code itself where that is known; NULL: read from the target's memory. */
	const void *bytes;
	size_t bytes_len;
	bool python; /* a trampoline of CPython */
};

struct unwind_source {
	const struct arch *arch; /* of the target; NULL: the host's */
	/* Memory of the target; 0 or -1. May be NULL. */
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	/* It runs on, and its memory is not what it was at the sample: of it only code is read.
	 * What is beyond the copy of the stack is then gone, whatever lies there now. */
	bool running;
	/* What is mapped executable at an address, also without a file; 0, or -1 for nothing. */
	int (*module)(void *ctx, uint64_t addr, struct unwind_module *module);
	/* Generated code at an address; 0 or -1. May be NULL. */
	int (*code)(void *ctx, uint64_t addr, struct unwind_code *code);
	void *ctx;
};

#define UNWIND_REGS 33

struct unwind_regs {
	/* By DWARF register number of the architecture (its psABI). */
	uint64_t reg[UNWIND_REGS];
	uint64_t ip, sp;
};

/* Memory as it was at the sample. */
struct unwind_copy {
	const void *bytes;
	uint64_t addr;
	size_t len; /* 0: none */
};

struct unwind_input {
	struct unwind_regs regs;
	/* A copy of the stack from `stack_addr` on; it is asked before the source. Length 0: none.
	 */
	const void *stack;
	uint64_t stack_addr;
	size_t stack_len;
	/* Where that is a stack of a signal's handler, the one that the signal interrupted. */
	struct unwind_copy interrupted;
};

enum unwind_by {
	UNWIND_BY_TABLE, /* the file's call-frame information */
	UNWIND_BY_CODE,	 /* code that is known by its bytes: a trampoline, a signal's return */
	UNWIND_BY_FRAME_POINTER, /* no table: may have skipped a frame */
	UNWIND_BY_SEARCH,	 /* no table, no frame pointer: what looks like a return address */
};

struct unwind_frame {
	uint64_t ip;
	/* The frame is [sp, cfa). cfa is 0 for a last one whose end is not known. After a signal
	 * the caller's may lie on another stack: its sp is not this frame's cfa. */
	uint64_t sp, cfa;
	/* The instruction itself (the leaf, or where a signal came) and not a return address, whose
	 * call lies before it: look symbols up at ip - !exact. */
	bool exact;
	enum unwind_by by; /* how its caller was found */
};

/* Why a stack has no more frames. */
enum unwind_end {
	UNWIND_COMPLETE,    /* the outermost frame: _start, clone, a thread's or context's entry */
	UNWIND_NO_ROOM,	    /* more frames than `max` */
	UNWIND_TRUNCATED,   /* the copy of the stack ends here */
	UNWIND_OTHER_STACK, /* a signal's handler has a stack of its own: no copy of the other one
			     */
	UNWIND_NO_TABLES,   /* code without tables, and no frame pointer to follow */
	UNWIND_UNMAPPED,    /* nothing executable is mapped at the address */
	UNWIND_UNREADABLE,  /* memory other than the stack that cannot be read */
	UNWIND_BAD_RULE,    /* tables that make no sense here */
	UNWIND_LOOP,	    /* the stack pointer did not grow */
	UNWIND_NO_MEMORY,   /* ours */
	UNWIND_ENDS
};

struct unwind_stack {
	struct unwind_frame *frames; /* leaf first; the caller's */
	size_t max;

	size_t count; /* at least 1 where max is */
	enum unwind_end end;
	uint32_t module; /* id of the last frame's module: whom to blame; 0: none */
	uint64_t fault;	 /* the address that could not be read; 0 for other ends */
	size_t guessed;	 /* frames whose caller was not found by tables or known code */
};

struct unwind_backend {
	const char *name;
	struct unwinder *(*open)(struct unwind_files *files, const struct unwind_source *source,
				 struct err *err);
	void (*stack)(struct unwinder *unwinder, const struct unwind_input *input,
		      struct unwind_stack *stack);
	void (*close)(struct unwinder *unwinder);
};

/* The back ends that were built in, best first; NULL ends the list. */
const struct unwind_backend *const *unwind_backends(void);
/* NULL for a name that is none. */
const struct unwind_backend *unwind_backend_by_name(const char *name);

/* "the copy of the stack ends there", ...: the second half of a sentence. */
const char *unwind_end_text(enum unwind_end end);

struct unwind_files *unwind_files_new(void); /* NULL when memory runs out */
/* After all unwinders that were opened with it. */
void unwind_files_free(struct unwind_files *files);

/* What has been learnt of all files so far. */
struct unwind_statistics {
	size_t files;
	size_t addresses; /* each looked up once in the file's tables */
	size_t rules;	  /* distinct ones, which those addresses share */
	size_t bytes;	  /* of our memory for both; not libdw's */
};
void unwind_files_statistics(const struct unwind_files *files, struct unwind_statistics *out);

/*
 * PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER as input, which points into the sample.
 * ERR_NOT_FOUND for a sample without user registers (a kernel thread), ERR_UNSUPPORTED for one of a
 * 32-bit program and where a register that is needed is not in the mask.
 */
int unwind_of_sample(const struct arch *arch, uint64_t regs_mask,
		     const struct record_sample *sample, struct unwind_input *input);

#endif
