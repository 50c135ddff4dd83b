#ifndef PYPERF_POINTERS_H
#define PYPERF_POINTERS_H

#include <stdbool.h>

struct elf_file;

/*
 * Was the file built with frame pointers throughout? Then the kernel can follow them through its
 * functions. Tables tell: in the midst of a function that keeps a frame pointer they count from it,
 * and otherwise from the stack pointer. Of a large file some functions are asked, evenly spread.
 *
 * Assembly and the smallest functions never have one, so "throughout" is a share. False also where
 * there are no tables, or on an architecture whose compilers count from the stack pointer anyway.
 */
bool pointers_throughout(struct elf_file *elf);

#endif
