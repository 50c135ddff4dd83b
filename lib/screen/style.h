#ifndef PYPERF_SCREEN_STYLE_H
#define PYPERF_SCREEN_STYLE_H

#include "screen/line.h"

/* How each role looks, in the terms of the library that draws; nothing without colours where the
 * terminal has none or NO_COLOR is set (no-color.org). */
void style_init(void);
unsigned int style_attributes(enum screen_role role);

#endif
