#ifndef PYPERF_HITS_H
#define PYPERF_HITS_H

#include "data/writer.h"
#include "process/proc.h"
#include "process/roots.h"
#include "ring/record.h"

/*
 * The native code that samples hit, and the files it lies in, for the section of symbols.
 *
 * A file is opened when it is first mapped, in the tree of the process that maps it, since it may
 * be deleted, replaced or gone with its container when the recording ends. Only then are the
 * addresses looked up, so that a sample costs one look-up in a table.
 */
struct hits;

struct hits *hits_new(struct roots *roots);
void hits_free(struct hits *hits);

/* An executable mapping; of the roots' knowledge about the process it takes what is there. `hits`
 * may be NULL: nobody wants them. */
void hits_mmap(struct hits *hits, const struct record_mmap *map);
/* A path by which a file that was mapped under this name can be opened, whatever became of it; NULL
 * where it could not be opened. Valid until the next call. */
const char *hits_path(struct hits *hits, const char *name, const uint8_t *build_id, uint32_t len);
/* The addresses of a sample. */
void hits_sample(struct hits *hits, const struct record_sample *sample);
/* The section; called once, at the end. */
int hits_store(struct hits *hits, struct data_writer *writer, struct err *err);

#endif
