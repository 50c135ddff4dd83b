#ifndef PYPERF_TEST_MACHINE_H
#define PYPERF_TEST_MACHINE_H

#include "event/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A machine that a test invents: a folder laid out like sysfs' event_source/devices and tracefs. */
struct machine_file {
	const char *path, *text;
};

struct machine {
	char folder[40], devices[64], tracing[64];
	struct event_system sys;
};

static inline int machine_make(struct machine *machine, const struct machine_file *files,
			       size_t count)
{
	strcpy(machine->folder, "/tmp/pyperf-test-event-XXXXXX");
	if (!mkdtemp(machine->folder))
		return -1;
	for (size_t i = 0; i < count; i++) {
		char path[256];
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", machine->folder, files[i].path);
		for (char *slash = path + strlen(machine->folder) + 1; (slash = strchr(slash, '/'));
		     slash++) {
			*slash = '\0';
			mkdir(path, 0700);
			*slash = '/';
		}
		file = fopen(path, "w");
		if (!file)
			return -1;
		fputs(files[i].text, file);
		fclose(file);
	}
	snprintf(machine->devices, sizeof(machine->devices), "%s/devices", machine->folder);
	snprintf(machine->tracing, sizeof(machine->tracing), "%s/tracing", machine->folder);
	machine->sys = (struct event_system){.devices = machine->devices,
					     .tracing = machine->tracing};
	return 0;
}

static inline int machine_remove(const struct machine *machine)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", machine->folder);
	return system(command);
}

#endif
