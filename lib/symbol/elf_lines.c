#include "symbol/elf_file.h"

void elf_lines_free(struct elf_lines *lines)
{
	(void)lines;
}
