#ifndef PYPERF_CPUS_H
#define PYPERF_CPUS_H

#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>

/* CPU numbers, as in /sys/devices/system/cpu/online and perf's -C: "0-3,8". */
struct cpus {
	VEC_OF(int)
};

int cpus_parse(struct cpus *cpus, const char *text, struct err *err);
bool cpus_contain(const struct cpus *cpus, int cpu);
int cpus_online(struct cpus *cpus, struct err *err);

#endif
