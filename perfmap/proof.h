#ifndef PYPERF_PROOF_H
#define PYPERF_PROOF_H

#include "perfmap/layout.h"
#include "process/memory.h"
#include "symbol/elf.h"

/*
 * A layout from a table is believed when the interpreter at hand bears it out: by its debug
 * information, where it has any that is at hand, and by its threads' frames.
 */

/*
 * ERR_UNSUPPORTED where the file's debug information puts a field elsewhere; the error says which.
 * *proved counts the fields that it knows: 0 where there is none, and where it is packed, whose
 * unpacking takes longer than an interpreter to start.
 */
int py_prove_by_types(struct elf_file *elf, const struct py_version *version,
		      const struct py_layout *layout, size_t *proved, struct err *err);

enum py_proof {
	PY_PROOF_NONE = 0, /* no thread runs Python yet */
	PY_PROOF_GOOD = 1, /* a thread's frames lead to their end, and have names */
	PY_PROOF_BAD = 2,  /* no thread's do, however often they are walked */
};

/* Of a version that describes itself there is nothing to prove: good. */
enum py_proof py_prove_by_frames(const struct memory *memory, const struct py_process *process);

#endif
