#ifndef PYPERF_KERNEL_H
#define PYPERF_KERNEL_H

#include "base/err.h"
#include "data/writer.h"

/*
 * What a reader has to know of the running kernel: where its text and its modules lie (as MMAP
 * records, perf's convention) and its build-id. Without the right to see addresses
 * (kptr_restrict) nothing is written and one line says so.
 *
 * `id` is the identifier that goes into the records' trailer.
 */
int kernel_store_maps(struct data_writer *writer, uint64_t id, struct err *err);
int kernel_store_build_id(struct data_writer *writer, struct err *err);

#endif
