#include "event/internal.h"

#include "base/cpus.h"

/* Where CPUs are of several kinds, an event that is opened for a thread counts on its PMU's alone:
 * to see it count the thread must be there. */

bool event_pin(const char *cpus, struct event_pin *pin)
{
	struct cpus list = {0};
	cpu_set_t on;

	pin->moved = false;
	if (!cpus)
		return true;
	CPU_ZERO(&on);
	if (sched_getaffinity(0, sizeof(pin->before), &pin->before) == 0 &&
	    cpus_parse(&list, cpus, NULL) == 0) {
		for (size_t i = 0; i < list.len; i++)
			if (list.items[i] < CPU_SETSIZE)
				CPU_SET(list.items[i], &on);
		pin->moved = sched_setaffinity(0, sizeof(on), &on) == 0;
	}
	vec_fini(&list);
	return pin->moved;
}

void event_unpin(const struct event_pin *pin)
{
	if (pin->moved)
		sched_setaffinity(0, sizeof(pin->before), &pin->before);
}
