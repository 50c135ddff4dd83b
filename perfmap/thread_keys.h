#ifndef PYPERF_THREAD_KEYS_H
#define PYPERF_THREAD_KEYS_H

#include "perfmap/layout.h"
#include "symbol/elf.h"

#include <stdbool.h>

/* Where threads keep the values of pthread keys, as the file of a C library (or a program that is
 * linked with one statically) tells: glibc by data for debuggers, musl by the code of
 * pthread_getspecific(). False where it tells nothing. */
bool thread_keys_read(struct elf_file *elf, struct py_tsd *tsd);

#endif
