#include "event/catalog.h"
#include "event/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Opens each event of a catalogue for a moment in which there is something to count. */

#define MEMORY (16u << 20) /* larger than most caches */
#define STEPS 6000u	   /* about half a millisecond */

/* Arithmetic, branches that nobody can foresee, memory near and far, system calls, page faults and
 * a sleep: what a program does. */
static void exercise(volatile unsigned char *memory)
{
	const struct timespec moment = {.tv_nsec = 1000};
	unsigned int x = 12345;
	unsigned char *fresh;

	for (unsigned int i = 0; memory && i < STEPS; i++) {
		x = x * 1664525u + 1013904223u;
		memory[(x >> 8) % MEMORY]++;
		if (x & 1u << 20)
			memory[i]++;
	}
	fresh = mmap(NULL, 1u << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh != MAP_FAILED) {
		memset(fresh, 1, 1u << 16);
		munmap(fresh, 1u << 16);
	}
	for (int i = 0; i < 10; i++)
		(void)getppid();
	nanosleep(&moment, NULL);
}

static int open_counting(const struct event_system *sys, struct catalog_event *event)
{
	struct perf_event_attr attr = event->attr;
	int fd;

	attr.size = sizeof(attr);
	attr.disabled = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = sys->open(&attr, 0, -1, -1);
	if ((fd != -EACCES && fd != -EPERM) || attr.exclude_kernel)
		return fd;
	attr.exclude_kernel = attr.exclude_hv = 1;
	event->user_only = true;
	return sys->open(&attr, 0, -1, -1);
}

/* PMUs outside of the cores, such as memory controllers', count for a CPU, not for a task. */
static bool counts_cpus(const struct event_system *sys, const struct catalog_event *event)
{
	struct perf_event_attr attr = event->attr;
	int fd;

	attr.size = sizeof(attr);
	attr.disabled = 1;
	fd = sys->open(&attr, -1, 0, -1);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static enum catalog_status count(int fd, volatile unsigned char *memory)
{
	struct {
		uint64_t value, enabled, running;
	} now = {0};

	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return CATALOG_UNTRIED;
	exercise(memory);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &now, sizeof(now)) != sizeof(now))
		return CATALOG_NO_COUNTER; /* a pinned one's error */
	if (now.value)
		return CATALOG_COUNTS;
	return now.enabled && !now.running ? CATALOG_NO_COUNTER : CATALOG_ZERO;
}

/* A core PMU counts on its own CPUs alone. */
static const char *cpus_of(const struct catalog *catalog, const struct catalog_event *event)
{
	for (size_t i = 0; i < catalog->pmus.len; i++)
		if (catalog->pmus.items[i].cpus && catalog->pmus.items[i].type == event->attr.type)
			return catalog->pmus.items[i].cpus;
	return NULL;
}

static void try_one(const struct event_system *sys, const struct catalog *catalog,
		    struct catalog_event *event, volatile unsigned char *memory)
{
	int fd = open_counting(sys, event);
	struct event_pin pin;

	if (fd >= 0) {
		event_pin(cpus_of(catalog, event), &pin);
		event->status = count(fd, memory);
		event_unpin(&pin);
		close(fd);
		return;
	}
	event->user_only = false;
	if (fd == -EINVAL && counts_cpus(sys, event)) {
		event->why = strdup("counts whole CPUs, not programs: perf stat -a");
		return;
	}
	event->status = fd == -EACCES || fd == -EPERM ? CATALOG_FORBIDDEN : CATALOG_ABSENT;
	event->why = strdup(strerror(-fd));
}

void catalog_try(const struct event_system *sys, struct catalog *catalog)
{
	void *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	for (size_t i = 0; i < catalog->events.len; i++)
		if (!catalog->events.items[i].why)
			try_one(sys, catalog, &catalog->events.items[i],
				memory == MAP_FAILED ? NULL : memory);
	if (memory != MAP_FAILED)
		munmap(memory, MEMORY);
}
