#include "base/cpus.h"

#include "base/io.h"

#include <ctype.h>
#include <stdlib.h>

#define CPU_MAX 65536

static int malformed(const char *text, struct err *err)
{
	err_set(err, ERR_USAGE, "'%s' is not a list of CPUs", text);
	err_hint(err, "A list of CPUs looks like 0-3,8.");
	return ERR_USAGE;
}

int cpus_parse(struct cpus *cpus, const char *text, struct err *err)
{
	const char *at = text;

	for (;;) {
		unsigned long first, last;
		char *end;

		if (!isdigit((unsigned char)*at))
			return malformed(text, err);
		first = last = strtoul(at, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtoul(end + 1, &end, 10);
		if (first > last || last >= CPU_MAX)
			return malformed(text, err);
		for (; first <= last; first++) {
			int *cpu = vec_push(cpus);

			if (!cpu)
				return err_nomem(err);
			*cpu = (int)first;
		}
		if (!*end)
			return 0;
		if (*end != ',')
			return malformed(text, err);
		at = end + 1;
	}
}

bool cpus_contain(const struct cpus *cpus, int cpu)
{
	for (size_t i = 0; i < cpus->len; i++)
		if (cpus->items[i] == cpu)
			return true;
	return false;
}

int cpus_online(struct cpus *cpus, struct err *err)
{
	char line[4096];
	int ret = io_read_line("/sys/devices/system/cpu/online", line, sizeof(line), err);

	return ret < 0 ? ret : cpus_parse(cpus, line, err);
}
