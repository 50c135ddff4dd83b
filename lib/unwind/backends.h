#ifndef PYPERF_BACKENDS_H
#define PYPERF_BACKENDS_H

#include "unwind/unwind.h"

/* One file each; defined only where its library is built in. */
extern const struct unwind_backend unwind_by_table;
extern const struct unwind_backend unwind_by_libunwind;
extern const struct unwind_backend unwind_by_libdw;

#endif
