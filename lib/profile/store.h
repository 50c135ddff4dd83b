#ifndef PYPERF_STORE_H
#define PYPERF_STORE_H

#include "base/arena.h"
#include "base/intern.h"
#include "base/vec.h"
#include "profile/jit.h"
#include "profile/keyed.h"
#include "profile/memuse.h"
#include "profile/profile.h"
#include "profile/stacks.h"

/*
 * The inside of a profile, shared by the files of this folder only.
 *
 * While a file is read, frames are known by where they come from: a code object and an offset, an
 * object file and an offset. resolve.c gives them functions and lines at the end, once each.
 */
enum frame_origin {
	ORIGIN_CODE, /* owner: profile->codes_seen; addr: byte offset, with PY_FRAME_NO_INSTR */
	ORIGIN_TRAMPOLINE, /* a py:: entry of a perf map or dump; owner: function */
	ORIGIN_JIT,	   /* another entry of either; owner: function */
	ORIGIN_NATIVE,	/* owner: dso; addr: offset in the file, or the address where dso is no file
			 */
	ORIGIN_KERNEL,	/* owner: dso; addr: absolute */
	ORIGIN_INLINED, /* a function put into its caller; owner: function; addr: as of NATIVE */
	ORIGIN_IMPORTED, /* of another tool's profile; owner: function; addr: line */
	ORIGIN_CUT, /* stands for the callers of a Python stack that is deeper than is recorded */
};

struct frame_key {
	uint32_t origin, owner;
	uint64_t addr;
};

struct frame_item {
	struct frame_key key;
	struct profile_frame frame;
	bool unreadable; /* a code object of which nothing is known */
};

/* A code object as frames name it; it may arrive after them. */
struct code_key {
	uint64_t code;
	uint32_t lineage, fingerprint;
};

/* Two functions of one name in one object stay apart by their addresses. */
struct function_item {
	struct profile_function function;
	uint32_t dso;
	uint64_t vaddr;
	uint64_t size; /* no part of the key */
};
#define FUNCTION_KEY_SIZE offsetof(struct function_item, size)

/* A function that a jitdump has the machine code and the lines of. */
struct jit_code {
	const struct jitdump *dump;
	const struct jitdump_code *code;
};

struct profile {
	struct intern strings;
	struct keyed threads;	/* struct profile_thread */
	struct keyed functions; /* struct function_item */
	struct keyed frames;	/* struct frame_item */
	struct stacks stacks;
	uint8_t *leaf_kinds;   /* by stack: see profile_stack_kind(); NULL: all is shown */
	struct keyed cells;    /* struct profile_cell */
	struct keyed pairs;    /* struct profile_pair */
	struct keyed products; /* struct profile_product */
	struct memuse memuse;
	struct keyed codes_seen; /* struct code_key */
	struct {
		VEC_OF(struct profile_event)
	} events;
	struct profile_summary summary;
	struct {
		VEC_OF(struct profile_phase)
	} phases;
	struct process_table *processes;
	struct py_codes *codes;
	struct sources *sources;
	struct objects *objects;
	struct jit jit;
	struct {
		VEC_OF(struct jit_code)
	} jit_codes;
	struct map jit_by_function; /* index + 1 into jit_codes */
	struct {
		VEC_OF(struct profile_incomplete)
	} incomplete;
	uint64_t meta_lost;   /* as the recorder counted */
	uint64_t kernel_text; /* recorded address of the kernel's _text; 0: not known */
};

struct profile *profile_new(void);

/* The ids, or KEYED_NONE when memory ran out. */
uint32_t profile_add_thread(struct profile *profile, uint32_t pid, uint32_t tid, const char *comm);
uint32_t profile_add_frame(struct profile *profile, enum frame_origin origin, uint32_t owner,
			   uint64_t addr);
uint32_t profile_add_cell(struct profile *profile, uint32_t thread, uint32_t stack, uint32_t event);
/* Adds to the product of two events; false when memory ran out. */
bool profile_add_product(struct profile *profile, uint32_t thread, uint32_t stack, uint32_t a,
			 uint32_t b, double sum);

/* `size` is kept when the function is new. Text ids may be INTERN_NONE: then memory ran out. */
uint32_t profile_add_function(struct profile *profile, const struct function_item *key,
			      uint64_t size);

/* NULL for a function of which no jitdump has the code. */
const struct jit_code *profile_jit_code(const struct profile *profile, uint32_t function);

/* The id of a symbol's name as its sources have it; INTERN_NONE when memory ran out. */
uint32_t profile_symbol_id(struct profile *profile, const char *symbol, bool inlined);
/* Counts samples whose native stack is not whole; false when memory ran out. */
bool profile_add_incomplete(struct profile *profile, const char *reason, const char *object,
			    uint64_t samples);

/* Interns a copy; NULL when memory ran out. */
const char *profile_keep(struct profile *profile, const char *text);

static inline struct frame_item *profile_frame_item(const struct profile *profile, uint32_t frame)
{
	return keyed_at(&profile->frames, frame);
}

/* resolve.c: gives every frame its function and line. */
int profile_resolve(struct profile *profile, bool no_symbols, struct err *err);
/* The same bit by bit: the frames that are new, and those whose code objects were not there yet. */
struct resolver;
struct resolver *resolver_new(struct profile *profile, bool no_symbols);
void resolver_free(struct resolver *resolver);
int resolver_run(struct resolver *resolver, struct err *err);
/* summary.c: what META and the file say, and what the cells add up to. */
int profile_read_meta(struct profile *profile, struct data_file *file, struct err *err);
int profile_summarise(struct profile *profile, struct err *err);

#endif
