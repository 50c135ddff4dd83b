#ifndef PYPERF_KERNEL_H
#define PYPERF_KERNEL_H

#include "base/err.h"
#include "record/synth.h"

#include <stdbool.h>

/*
 * What a reader has to know of the running kernel: where its text and its modules lie (as MMAP
 * records, perf's convention) and its build-id. Without the right to see addresses
 * (kptr_restrict) nothing is written and one line says so.
 */
int kernel_store_maps(const struct synth *synth, bool sampled, struct err *err);
struct data_writer;
int kernel_store_build_id(struct data_writer *writer, struct err *err);

#endif
