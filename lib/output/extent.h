#ifndef PYPERF_OUTPUT_EXTENT_H
#define PYPERF_OUTPUT_EXTENT_H

#include "perfmap/source.h"

#include <stdint.h>

/*
 * The last line of the Python function, class or lambda that starts at line `first` (decorators
 * included), found in the text alone: its body ends before the next statement that is indented no
 * further than its `def`. Brackets, strings and comments are skipped as the tokenizer of Python
 * does, so that a closing bracket or the text of a docstring at the margin ends nothing. Something
 * that is no block reaches to the end of its statement.
 */
uint32_t extent_end(const struct source *source, uint32_t first);

#endif
