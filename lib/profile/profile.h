#ifndef PYPERF_PROFILE_H
#define PYPERF_PROFILE_H

#include "base/err.h"
#include "base/intern.h"
#include "data/data.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A recording, understood: threads, functions, stacks, and how often each stack was sampled by
 * each event. All views (report, annotate, script, exports) are made from this.
 *
 * Loading reads the file once, in the order of time: side-band records move the process model,
 * each sample is paired with the Python frames that lie before it in its CPU's ring, merged, and
 * interned. A stack that was seen before costs one hash look-up; symbols are resolved once per
 * distinct address, at the end. Everything lives until profile_free(); ids are dense indices.
 */
enum frame_kind {
	FRAME_PYTHON, /* a Python function's frame; the eval loop running it is part of it */
	FRAME_NATIVE, /* machine code in user space */
	FRAME_KERNEL,
};
const char *frame_kind_name(enum frame_kind kind); /* "python", "native", "kernel" */

/* The Python function that stands in a stack for its callers that are deeper than is recorded. */
#define PROFILE_CUT_NAME "[deeper Python callers]"
/* The function that stands for stacks of which nothing is shown: see profile/shown.h. */
#define PROFILE_UNSHOWN_NAME "(not shown)"

/* Strings are ids of profile_text(). */
struct profile_function {
	enum frame_kind kind;
	uint32_t name; /* co_name or symbol; without one the start, "0x12af", or where that is not
			  known either "[libfoo.so]", all such code of an object */
	uint32_t qualname; /* co_qualname; "0x12af [libfoo.so]"; the name for others */
	uint32_t file; /* co_filename; native: the path of the object; kernel: "[kernel]" or module
			*/
	uint32_t line; /* co_firstlineno; 0 for native code */
};

struct profile_frame {
	uint32_t function;
	uint32_t line; /* that was executing; 0 where not known. Python, and native with DWARF when
			  asked for with profile_native_lines() */
	uint64_t addr; /* native and kernel: vaddr in the object (or absolute); Python: byte offset
			*/
	uint64_t ip;   /* native and kernel: an address at which it was sampled; Python: 0 */
};

/* Stacks are a tree from the root: a stack id names its leaf, `parent` is the caller's stack.
 * Stack 0 is the empty stack, above every root. */
struct profile_stack {
	uint32_t parent;
	uint32_t frame;
};

struct profile_thread {
	uint32_t pid, tid;
	uint32_t comm; /* string */
};

struct profile_event {
	const char *name;
	uint64_t samples, period_total;
	uint64_t lost; /* records that the kernel says it dropped, shared by all events of a ring:
			  the whole recording's count when it cannot be told apart */
	bool sampled;  /* false: side-band and Python-frame events; views leave them out */
	double frequency; /* Hz where attr.freq; 0 for a fixed period */
	uint64_t period;
	struct perf_event_attr attr;
	/* Events that were read at the same samples have one number: that of the event that was
	 * sampled, plus 1. The others were counted along. 0: sampled on its own. */
	uint32_t group;
	/* What it counted in all: as the recorder read it (`exact`), else with what is missing from
	 * period_total for lost samples and throttling, as far as that is known. */
	double estimated_total;
	uint64_t throttled;    /* how often */
	uint64_t throttled_ns; /* how long, summed over CPUs */
	/* How long it was enabled, and on a counter; 0 where that is not known. Counts of groups
	 * are scaled up; estimated_total is in any case. */
	uint64_t enabled_ns, running_ns;
	double missed, exact_total; /* for estimated_total */
	bool exact;
};
static inline bool profile_event_counted(const struct profile_event *event, uint32_t index)
{
	return event->group && event->group - 1 != index;
}

/* The part of its time that the event was on a counter: less than 1 where others used it, too. */
static inline double profile_event_counter_time(const struct profile_event *event)
{
	return event->running_ns && (double)event->running_ns < 0.995 * (double)event->enabled_ns
		       ? (double)event->running_ns / (double)event->enabled_ns
		       : 1;
}

/* One cell: this thread, in this stack, sampled by this event. */
struct profile_cell {
	uint32_t thread, stack, event;
	uint64_t samples, period;
	double square; /* sum of the squares of what each sample counted for */
};

/* Of two events that were read at the same samples: the sum of the products of their counts. */
struct profile_pair {
	uint32_t a, b; /* events, a < b */
};
struct profile_product {
	uint32_t thread, stack, pair;
	double sum;
};

struct profile_summary {
	uint64_t samples;		/* of all sampled events */
	uint64_t user_samples;		/* whose leaf is in user space (python or native) */
	uint64_t python;		/* carry Python frames */
	uint64_t python_lines;		/* and the innermost Python frame has its line */
	uint64_t user_python_lines;	/* of these, leaf in user space */
	uint64_t lost;			/* samples and records lost by the kernel */
	uint64_t unpaired;		/* Python frames without a sample */
	uint64_t truncated;		/* Python stacks cut at the root end */
	uint64_t faulted;		/* Python stacks cut by unreadable memory */
	uint64_t torn;			/* and by frames that led nowhere */
	uint64_t unresolved_code;	/* samples with a code object that could not be read */
	uint64_t not_stopped;		/* samples whose thread could not be stopped for frames */
	uint64_t dropped_native;	/* samples whose native chain was cut (no frame pointers) */
	uint64_t dropped_calls;		/* that made more calls than the CPU remembers (lbr) */
	uint64_t malformed;		/* records left out because they break their layout */
	uint64_t jit_skipped;		/* lines of perf maps and records of jitdumps, likewise */
	uint64_t late;			/* out of time order */
	uint64_t reads_dropped;		/* reads of groups that went backwards or make no sense */
	uint64_t reads_idle;		/* or of a time in which the group had no counters */
	uint64_t reads_throttled;	/* or of nearly no time, for the rest was throttled */
	uint64_t replaced_objects;	/* files that are another build here than was recorded */
	uint64_t first_time, last_time; /* ns */
	const char *loss;		/* what a broken file lost; NULL */
	/* Of a hardware trace: records that are cut or make no sense, and pieces that lack some. */
	uint64_t trace_broken;
	uint64_t trace_truncated;  /* the buffer was full */
	uint64_t trace_gaps;	   /* or had gaps */
	uint64_t trace_collisions; /* a sample was due while the one before was not over */
	const char *trace;	   /* kind of one that is not read; NULL */
	uint64_t trace_bytes;
	const char *command;	    /* the profiled command; NULL where not known */
	const char *python_version; /* "CPython 3.12.1", several joined by ", "; NULL */
	const char *engine;	    /* "bpf", "stop", "trampoline", "off"; NULL */
	double rate_cut;	    /* sampled so many times more seldom than asked for; 0: no */
	uint32_t threads;	    /* that were sampled */
	const char *shown; /* "files a.py, all but tests": what profile_shown chose; NULL: all */
	bool folded;	   /* by PROFILE_NATIVE_OFF: who is innermost cannot be told any more */
	/* Native stacks that were unwound from copies, by the recorder or here. */
	uint64_t unwound, unwound_whole;
};

/* Unwound native stacks that are not whole, by why and where: at most one row for each. */
struct profile_incomplete {
	const char *reason; /* "the copy of the stack ends there" */
	const char *object; /* path of what lies at the last address; "" for nothing */
	uint64_t samples;
};

/* A span of time that the program named while it was recorded (--control); a moment where begin and
 * end are the same. CLOCK_MONOTONIC in ns, as samples. */
struct profile_phase {
	uint32_t name; /* string */
	uint32_t pid, tid;
	uint64_t begin, end;
};

struct profile;

/* Called for every sample in order of time while loading, for `script`. */
struct profile_sample {
	uint32_t thread, event,
		stack; /* stack: as above; frames are complete, names only after load */
	uint32_t cpu;
	uint64_t time, period, ip, addr;
};
typedef int profile_on_sample(const struct profile_sample *sample, void *ctx, struct err *err);

/* Which native frames stacks have. */
enum profile_native {
	PROFILE_NATIVE_ON, /* all but CPython's eval loop and trampolines, whose time is Python's */
	PROFILE_NATIVE_OFF, /* none where there are Python frames, whose time is also that of native
			     * code and of the kernel that run for them */
	PROFILE_NATIVE_ALL, /* all */
};

/* Which functions stacks have, by their files: see profile/shown.h. Lists of globs with commas
 * between them; NULL: all, all, none. */
struct profile_shown {
	char *files, *modules, *exclude;
};

struct profile_options {
	profile_on_sample *on_sample; /* may be NULL */
	void *ctx;
	bool no_symbols; /* counting only */
	enum profile_native native;
	bool by_pmu;	/* what each PMU of a hybrid CPU counted stays apart */
	bool no_inline; /* functions that the compiler inlined are a part of their callers */
	/* Only samples of these times are loaded: within phases of that name, within perf's --time
	 * (see spans_parse()). NULL: all. ERR_NOT_FOUND where no phase has the name. */
	const char *phase, *time;
	struct profile_shown shown;
};

int profile_load(struct profile **profile, struct data_file *file,
		 const struct profile_options *options, struct err *err);
void profile_free(struct profile *profile);

const struct profile_summary *profile_summary(const struct profile *profile);
const char *profile_text(const struct profile *profile, uint32_t string);

size_t profile_event_count(const struct profile *profile);
size_t profile_thread_count(const struct profile *profile);
size_t profile_function_count(const struct profile *profile);
size_t profile_frame_count(const struct profile *profile);
size_t profile_stack_count(const struct profile *profile);
size_t profile_cell_count(const struct profile *profile);
size_t profile_pair_count(const struct profile *profile);
size_t profile_product_count(const struct profile *profile);
size_t profile_phase_count(const struct profile *profile);
size_t profile_incomplete_count(const struct profile *profile); /* most samples first */
const struct profile_incomplete *profile_incomplete(const struct profile *profile, size_t row);
const struct profile_phase *profile_phase(const struct profile *profile,
					  size_t phase); /* by begin */
const struct profile_event *profile_event(const struct profile *profile, uint32_t event);
const struct profile_thread *profile_thread(const struct profile *profile, uint32_t thread);
const struct profile_function *profile_function(const struct profile *profile, uint32_t function);
/* Address at which a native or kernel function starts, as frames' `addr` has it; 0 where not known.
 */
uint64_t profile_function_start(const struct profile *profile, uint32_t function);
/* Where a native frame lies in its file, whose path is that of its function: an offset. False for
 * code that no file has (JITs, the vDSO), for what was inlined, and for other kinds. */
bool profile_frame_offset(const struct profile *profile, uint32_t frame, uint64_t *offset);
const struct profile_frame *profile_frame(const struct profile *profile, uint32_t frame);
const struct profile_stack *profile_stack(const struct profile *profile, uint32_t stack);
const struct profile_cell *profile_cell(const struct profile *profile, size_t cell);
/* What kind of code ran: that of the innermost frame, even where that is not shown. */
enum frame_kind profile_stack_kind(const struct profile *profile, uint32_t stack);
const struct profile_pair *profile_pair(const struct profile *profile, size_t pair);
const struct profile_product *profile_product(const struct profile *profile, size_t product);

/* The code object that a Python frame ran, by its number; -1 where the frame has none, or its
 * instruction is not known. */
int profile_frame_code(const struct profile *profile, uint32_t frame);
struct py_code;
const struct py_code *profile_code(const struct profile *profile, int code);
uint32_t profile_code_line(const struct profile *profile, int code, uint32_t offset);

/* The recorded text of a Python source file; see perfmap/source.h. */
struct source;
const struct source *profile_source(const struct profile *profile, uint32_t file);

/* Fills in `line` (and *file, a path) of a native frame by DWARF; false where there is none. */
bool profile_native_line(struct profile *profile, uint32_t frame, const char **file,
			 uint32_t *line);
/* Machine code of a native function: its bytes and where they lie. Freed by the caller. */
int profile_native_code(struct profile *profile, uint32_t function, uint64_t *vaddr,
			uint8_t **bytes, size_t *len, uint16_t *machine, struct err *err);

#endif
