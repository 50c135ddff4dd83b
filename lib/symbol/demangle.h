#ifndef PYPERF_DEMANGLE_H
#define PYPERF_DEMANGLE_H

#include "base/strbuf.h"

#include <stdbool.h>

/*
 * Names of C++ (Itanium ABI) and Rust (both schemes) as their sources have them, without
 * parameters:
 * "_ZN3foo3barEi" is "foo::bar". What surrounds a name stays: "_Z3barv@plt" is "bar@plt".
 *
 * Appends to `out`; false, and nothing appended, for a name that is not mangled, and for a hostile
 * one that would become longer than any real one.
 */
bool demangle(const char *name, struct strbuf *out);

#endif
