#ifndef PYPERF_PHASES_H
#define PYPERF_PHASES_H

#include "base/err.h"
#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Spans of time that the recorded program gave names ("load", "train"), and moments (marks: spans
 * of no length). They become a section of the recording, by which views choose samples.
 *
 * Times are CLOCK_MONOTONIC in ns, as those of samples. A thread's spans of one name nest.
 */
#define PHASE_NAME_MAX 255    /* bytes */
#define PHASES_MAX (1u << 20) /* in a recording */
#define PHASES_OPEN_MAX 1024  /* at a time */
#define PHASE_OPEN UINT64_MAX /* `end` of one that did not end */

struct phase {
	char *name; /* UTF-8, owned */
	uint64_t begin, end;
	uint32_t pid, tid;
};
struct phases {
	struct {
		VEC_OF(struct phase)
	} list;
	struct {
		VEC_OF(size_t)
	} open;		  /* indices, the latest last */
	uint64_t refused; /* names that are empty or too long, ends without a beginning, too many */
};

int phases_begin(struct phases *phases, const char *name, uint32_t pid, uint32_t tid, uint64_t time,
		 struct err *err);
/* Ends the latest one of that name that this thread has open. */
void phases_end(struct phases *phases, const char *name, uint32_t pid, uint32_t tid, uint64_t time);
int phases_mark(struct phases *phases, const char *name, uint32_t pid, uint32_t tid, uint64_t time,
		struct err *err);

/* The section (FORMAT.md); the second writes nothing where there are no phases. */
struct data_writer;
struct strbuf;
int phases_encode(const struct phases *phases, struct strbuf *section);
int phases_store(const struct phases *phases, struct data_writer *writer, struct err *err);
void phases_fini(struct phases *phases);

#endif
