#include "cmd/progress.h"

#include "base/clock.h"
#include "base/progress.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define APPEARS_NS 300000000u
#define ERASE "\r\033[K"

#define PAUSE_NS 300000000u /* works that follow each other sooner are one */

static uint64_t started_ns, told_ns;
static bool visible;

static bool has_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* Another program's screen is not written into. */
static bool in_foreground(void)
{
	pid_t foreground = tcgetpgrp(STDERR_FILENO);

	/* -1: the terminal is not the one that controls us. */
	return foreground < 0 || foreground == getpgrp();
}

static int columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
}

static void put_amount(char *out, size_t size, enum progress_unit unit, uint64_t amount)
{
	if (unit == PROGRESS_BYTES)
		text_size(out, size, amount);
	else
		text_count(out, size, amount);
}

static void show(const struct progress *progress)
{
	char line[160], done[32], total[32];
	int width = columns() - 1;

	uint64_t now = clock_now_ns();

	if (now - told_ns > PAUSE_NS)
		started_ns = now;
	told_ns = now;
	if (!progress->what) {
		progress_hide();
		return;
	}
	if (now - started_ns < APPEARS_NS || !in_foreground())
		return;
	put_amount(done, sizeof(done), progress->unit, progress->done);
	put_amount(total, sizeof(total), progress->unit, progress->total);
	if (progress->total)
		snprintf(line, sizeof(line), "%s: %.0f%% of %s", progress->what,
			 100.0 *
				 (double)(progress->done < progress->total ? progress->done
									   : progress->total) /
				 (double)progress->total,
			 total);
	else
		snprintf(line, sizeof(line), "%s: %s", progress->what, done);
	fprintf(stderr, ERASE "%.*s", width > 0 ? width : 0, line);
	fflush(stderr);
	visible = true;
}

void progress_show(bool on)
{
	progress_set_sink(on && has_terminal() ? show : NULL);
}

void progress_hide(void)
{
	if (!visible)
		return;
	fputs(ERASE, stderr);
	fflush(stderr);
	visible = false;
}
