#include "base/progress.h"

#include "base/clock.h"

#include <stddef.h>

#define TELL_NS 100000000u /* between two calls of the sink */
#define LOOK_NS 5000000u   /* at the clock */

uint64_t progress_due = UINT64_MAX;

static progress_sink *current_sink;
static struct progress current;
static uint32_t current_work;
static uint64_t step, looked_ns, told_ns;

void progress_set_sink(progress_sink *sink)
{
	progress_end(current_work);
	current_sink = sink;
}

uint32_t progress_start(const char *what, enum progress_unit unit, uint64_t total)
{
	progress_end(current_work);
	current_work += current_work == UINT32_MAX ? 2 : 1;
	if (!current_sink)
		return current_work;
	current = (struct progress){what, unit, 0, total};
	looked_ns = told_ns = clock_now_ns();
	step = 1;
	progress_due = step;
	return current_work;
}

/* The steps grow and shrink so that the clock is looked at every few milliseconds. */
void progress_tell(uint32_t work, uint64_t done)
{
	uint64_t now;

	if (work != current_work || !current.what)
		return;
	now = clock_now_ns();
	if (now - looked_ns < LOOK_NS)
		step *= 2;
	else if (now - looked_ns > 4 * (uint64_t)LOOK_NS && step > 1)
		step /= 2;
	looked_ns = now;
	progress_due = done + step;
	current.done = done;
	if (now - told_ns < TELL_NS)
		return;
	told_ns = now;
	current_sink(&current);
}

void progress_end(uint32_t work)
{
	if (work != current_work || !current.what)
		return;
	current = (struct progress){0};
	progress_due = UINT64_MAX;
	current_sink(&current);
}
