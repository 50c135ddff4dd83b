#include "event/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void event_attr_modifiers(const struct perf_event_attr *attr, char *buf, size_t size)
{
	bool some = attr->exclude_user || attr->exclude_kernel;
	const struct {
		char letter;
		bool set;
	} flags[] = {
		{'u', some && !attr->exclude_user},
		{'k', some && !attr->exclude_kernel},
		{'h', attr->exclude_user && attr->exclude_kernel && !attr->exclude_hv},
		{'I', attr->exclude_idle},
		{'G', attr->exclude_host},
		{'p', attr->precise_ip > 0},
		{'p', attr->precise_ip > 1},
		{'p', attr->precise_ip > 2},
		{'D', attr->pinned},
		{'e', attr->exclusive},
	};
	size_t len = 0;

	if (!size)
		return;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (!flags[i].set || len + 2 >= size)
			continue;
		if (!len)
			buf[len++] = ':';
		buf[len++] = flags[i].letter;
	}
	buf[len] = '\0';
}

void event_attr_name(const struct perf_event_attr *attr, char *buf, size_t size)
{
	char modifiers[16];
	size_t len;

	if (event_name_of(attr->type, attr->config, buf, size))
		;
	else if (attr->type == PERF_TYPE_RAW)
		snprintf(buf, size, "raw 0x%" PRIx64, (uint64_t)attr->config);
	else if (attr->type == PERF_TYPE_TRACEPOINT)
		snprintf(buf, size, "tracepoint %" PRIu64, (uint64_t)attr->config);
	else if (attr->type == PERF_TYPE_BREAKPOINT)
		snprintf(buf, size, "mem:0x%" PRIx64, (uint64_t)attr->bp_addr);
	else
		snprintf(buf, size, "pmu %u 0x%" PRIx64, attr->type, (uint64_t)attr->config);
	event_attr_modifiers(attr, modifiers, sizeof(modifiers));
	len = strlen(buf);
	if (len + 1 < size)
		snprintf(buf + len, size - len, "%s", modifiers);
}
