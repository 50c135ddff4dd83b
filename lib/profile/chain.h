#ifndef PYPERF_CHAIN_H
#define PYPERF_CHAIN_H

#include "base/err.h"
#include "profile/profile.h"
#include "ring/record.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * From the raw call chain and the raw Python frames of a sample to an interned stack.
 *
 * Each address becomes a frame and a class (kernel, native, eval loop, trampoline), perfmap/merge
 * weaves the Python frames in, and the result is interned from its root. Addresses and Python
 * frames that were seen lately are found in two small caches, so that a new stack of known frames
 * costs little.
 */
struct chains;
struct profile;

/* The profile is borrowed; arch may be NULL: the host's. `expand`: functions that were inlined get
 * frames of their own. */
struct arch;
struct chains *chains_new(struct profile *profile, const struct arch *arch, bool expand,
			  enum profile_native native);
void chains_free(struct chains *chains);

struct chain_sample {
	const struct record_sample *sample;
	uint16_t cpumode;    /* of the record: what ip belongs to */
	uint64_t regs_mask;  /* attr.sample_regs_user */
	uint64_t generation; /* of the process's maps, and of what it made at run time */
	/* PY_RAW_FRAMES payload, checked by chain_frames_sound(), at any alignment; may be NULL. */
	const void *python;
};

/* Is this payload as long as it says? */
bool chain_frames_sound(const void *payload, size_t len);

/* Native frames that are left out, of stacks that were not unwound. */
enum chain_cut {
	CHAIN_WHOLE,
	CHAIN_CUT_POINTERS, /* code without frame pointers */
	CHAIN_CUT_CALLS,    /* more calls than the CPU remembers */
};

int chains_stack(struct chains *chains, const struct chain_sample *sample, uint32_t *stack,
		 enum chain_cut *cut, struct err *err);

#endif
