#ifndef PYPERF_PERF_IMAGE_H
#define PYPERF_PERF_IMAGE_H

#include "base/err.h"
#include "base/vec.h"

#include <stdint.h>

/*
 * An ELF file of functions that have no machine code of their own: each line of each is a few
 * instructions that do nothing, so that debuggers and profilers can give it a symbol and a source
 * line.
 */
struct image_line {
	const char *function; /* symbol */
	const char *file;     /* NULL or "": none */
	uint32_t line;	      /* 0: not known */
	uint64_t address;     /* is set: within the file, which is mapped from its start on */
};

#define IMAGE_SLOT 4u /* bytes of a line */

struct image {
	struct {
		VEC_OF(struct image_line)
	} lines;       /* lines of a function follow each other */
	uint64_t size; /* of what is to be mapped */
};

/* Gives addresses. */
void image_lay_out(struct image *image);
int image_write(const struct image *image, const char *path, uint16_t elf_machine, struct err *err);

#endif
