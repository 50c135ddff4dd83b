#ifndef PYPERF_ORIGIN_H
#define PYPERF_ORIGIN_H

#include "profile/profile.h"

/*
 * Whose code a function is, by where its file lies. The interpreter puts its library into
 * lib/pythonX.Y below its prefix, and installers put packages into site-packages or dist-packages,
 * in virtual environments and zip files as elsewhere; what is left is the user's own.
 */
enum code_origin {
	CODE_OWN,
	CODE_PACKAGES, /* site-packages, dist-packages */
	CODE_STDLIB,   /* Python's library and the interpreter itself */
	CODE_SYSTEM,   /* native code that came with the system */
	CODE_KERNEL,
	CODE_UNKNOWN, /* has no file */
};
#define CODE_ORIGINS 6

const char *code_origin_name(enum code_origin origin);	/* "own", "packages", "stdlib", ... */
const char *code_origin_title(enum code_origin origin); /* "own code", "standard library", ... */
enum code_origin code_origin_of_path(enum frame_kind kind, const char *path);
enum code_origin code_origin(const struct profile *profile, uint32_t function);

/*
 * Does a file hold the module that the pattern (a glob) names, or one below it? "numpy" stands for
 * numpy/linalg/_linalg.py and numpy/core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so. Where
 * modules begin is known for Python's library and for packages; for the user's own code each folder
 * of the path is tried.
 */
bool code_in_module(const char *path, const char *pattern);

#endif
