#ifndef PYPERF_CMD_PROGRESS_H
#define PYPERF_CMD_PROGRESS_H

#include <stdbool.h>

/*
 * One line on the terminal that tells how far long work has come: on standard error, where that is
 * a terminal and we are in its foreground. It appears when a command has worked for a while and
 * erases itself.
 */
void progress_show(bool on);
/* Erases the line: something else is to be written. */
void progress_hide(void);

#endif
