#ifndef PYPERF_SCREEN_LEAVE_H
#define PYPERF_SCREEN_LEAVE_H

#include <stdbool.h>
#include <stddef.h>

/* What a terminal must be told so that it is as it was: of the terminal that is open. */
void leave_text(char *buf, size_t size, bool mouse);

#endif
