#ifndef PYPERF_KERNEL_TYPES_H
#define PYPERF_KERNEL_TYPES_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

#include <stddef.h>

/*
 * A small description of the kernel's types, for libbpf's CO-RE: what has one of the given names of
 * all that the kernel describes of itself. libbpf by itself reads all 5 MB of that, and looks
 * through all for each name, which is most of what it takes to load a program.
 */
struct kernel_type_names {
	VEC_OF(const char *)
};

/* Of a description (BTF, as of KERNEL_TYPES_PATH) into another. It has structures, unions and
 * enumerations of these names, with their members; behind a pointer, and within what has another
 * name, nothing is described. */
int kernel_types_pick(const void *all, size_t len, const struct kernel_type_names *names,
		      struct strbuf *out, struct err *err);

#define KERNEL_TYPES_PATH "/sys/kernel/btf/vmlinux"

/* The same of the running kernel. */
int kernel_types_read(const struct kernel_type_names *names, struct strbuf *out, struct err *err);

#endif
