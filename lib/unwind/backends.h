#ifndef PYPERF_BACKENDS_H
#define PYPERF_BACKENDS_H

#include "unwind/unwind.h"

/* How far behind the copy of the stack an address is still taken for one of the stack. */
#define STACK_BYTES_MAX (64ull << 20)

/* One file each; defined only where its library is built in. */
extern const struct unwind_backend unwind_by_table;
extern const struct unwind_backend unwind_by_libunwind;
extern const struct unwind_backend unwind_by_libdw;

#endif
