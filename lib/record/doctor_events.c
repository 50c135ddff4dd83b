#include "record/doctor_probe.h"

#include "process/system.h"
#include "record/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EVENT_SOURCES "/sys/bus/event_source/devices"
#define BUSY_NS 1000000 /* of CPU time, in which an event that counts counts something */

static int open_software(const struct examination *exam, uint64_t config, bool kernel, pid_t pid,
			 int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER5,
		.config = config,
		.disabled = 1,
		.exclude_kernel = !kernel,
		.exclude_hv = !kernel,
		.sample_period = 1000000,
	};

	return exam->machine->open_event(&attr, pid, cpu, -1);
}

void doctor_probe_open(struct examination *exam, struct doctor_line *line)
{
	struct event_spec spec = {.name = (char *)"cpu-clock", .attr = {.exclude_kernel = 1}};
	int fd = open_software(exam, PERF_COUNT_SW_CPU_CLOCK, false, exam->pid, -1);
	struct err err = {0};

	if (fd >= 0) {
		close(fd);
		exam->opens = true;
		doctor_say(line, DOCTOR_OK, "can be opened%s", exam->pid ? " on the process" : "");
		return;
	}
	event_open_error(&spec, fd, &err);
	line->need = (int)privilege_explain(&exam->doctor->privilege, PRIVILEGE_NEED_PERF);
	if (exam->pid)
		target_explain(exam->pid, &err);
	doctor_say(line, DOCTOR_FAIL, "%.390s", err.text);
}

void doctor_probe_paranoid(struct examination *exam, struct doctor_line *line)
{
	static const char *const levels[] = {
		[0] = "everything but raw tracepoints for everyone",
		[1] = "no whole CPUs",
		[2] = "no kernel code, no whole CPUs",
	};
	int level = exam->doctor->privilege.paranoid;
	bool free_of_it = privilege_perf(&exam->doctor->privilege) &&
			  !exam->doctor->privilege.user_namespace;

	if (level == PRIVILEGE_UNKNOWN) {
		doctor_say(line, DOCTOR_UNKNOWN,
			   "not known: kernel.perf_event_paranoid holds no number");
		return;
	}
	if (free_of_it && exam->opens)
		doctor_say(line, DOCTOR_OK, "%d, but not for you (CAP_PERFMON or CAP_SYS_ADMIN)",
			   level);
	else if (level > 2 && !exam->opens)
		doctor_say(line, DOCTOR_FAIL, "%d: nothing without CAP_PERFMON", level);
	else
		doctor_say(line, level < 2 ? DOCTOR_OK : DOCTOR_NOTE, "%d: %s", level,
			   level < 0 ? "everything for everyone"
			   : level > 2
				   ? "which this kernel takes for 2: no kernel code, no whole CPUs"
				   : levels[level]);
}

/* Keeps the CPU busy in user space with calculations, branches and memory. */
static void be_busy(void)
{
	static volatile unsigned int place[4096];
	struct timespec start, now;
	unsigned int x = 1;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		for (int i = 0; i < 10000; i++) {
			x = x * 1103515245u + 12345u;
			place[x >> 20]++;
		}
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000000ll + now.tv_nsec - start.tv_nsec <
		 BUSY_NS);
}

static const struct {
	const char *name;
	uint64_t config;
} hardware[] = {
	{"cycles", PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_COUNT_HW_BRANCH_MISSES},
};
#define HARDWARE (sizeof(hardware) / sizeof(hardware[0]))

/* Does it open, get a counter and count? One at a time, so that they do not take each other's
 * counters. */
static int count_hardware(const struct examination *exam, uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = PERF_ATTR_SIZE_VER5,
		.config = config,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	int fd = exam->machine->open_event(&attr, 0, -1, -1);
	uint64_t values[3] = {0}; /* count, time enabled, time running */
	ssize_t got;

	if (fd < 0)
		return fd;
	be_busy();
	got = read(fd, values, sizeof(values));
	close(fd);
	return got == sizeof(values) && values[2] && values[0] ? 0 : -EBUSY;
}

void doctor_probe_hardware(struct examination *exam, struct doctor_line *line)
{
	struct strbuf works = {0}, idle = {0}, absent = {0};

	for (size_t i = 0; i < HARDWARE; i++) {
		int ret = count_hardware(exam, hardware[i].config);
		struct strbuf *to = !ret ? &works : ret == -EBUSY ? &idle : &absent;

		strbuf_printf(to, "%s%s", to->len ? " " : "", hardware[i].name);
	}
	if (!idle.len && !absent.len)
		doctor_say(line, DOCTOR_OK, "%s", strbuf_text(&works));
	else if (!works.len && !idle.len)
		doctor_say(line, DOCTOR_NOTE, "none (%s); cpu-clock is sampled instead of cycles",
			   exam->opens ? "a virtual machine?" : "events cannot be opened");
	else
		doctor_say(line, DOCTOR_NOTE, "%s%s%s%s%s",
			   works.len ? strbuf_text(&works) : "none",
			   idle.len ? "; get no counter: " : "", strbuf_text(&idle),
			   absent.len ? "; not there: " : "", strbuf_text(&absent));
	strbuf_fini(&works);
	strbuf_fini(&idle);
	strbuf_fini(&absent);
}

void doctor_probe_pmus(struct examination *exam, struct doctor_line *line)
{
	struct strbuf names = {0};
	struct err err = {0};
	int count = system_list(exam->machine->root, EVENT_SOURCES, &names, &err);

	if (count < 0)
		doctor_say_unknown(line, &err);
	else if (count == 0)
		doctor_say(line, DOCTOR_NOTE, "none");
	else
		doctor_say(line, DOCTOR_OK, "%.390s", strbuf_text(&names));
	strbuf_fini(&names);
}

void doctor_probe_kernel_side(struct examination *exam, struct doctor_line *line)
{
	int fd = open_software(exam, PERF_COUNT_SW_CPU_CLOCK, true, exam->pid, -1);

	if (fd >= 0)
		close(fd);
	if (fd >= 0)
		doctor_say(line, DOCTOR_OK, "sampled too");
	else
		doctor_say(line, DOCTOR_NOTE, "not sampled: user space only (%s)", strerror(-fd));
}

void doctor_probe_whole_cpus(struct examination *exam, struct doctor_line *line)
{
	int fd = open_software(exam, PERF_COUNT_SW_CPU_CLOCK, true, -1, 0);

	if (fd >= 0)
		close(fd);
	if (fd >= 0)
		doctor_say(line, DOCTOR_OK, "-a and -C work");
	else
		doctor_say(line, DOCTOR_NOTE, "-a and -C do not work (%s)", strerror(-fd));
}

void doctor_probe_tracepoints(struct examination *exam, struct doctor_line *line)
{
	static const char *const folders[] = {"/sys/kernel/tracing/events",
					      "/sys/kernel/debug/tracing/events"};
	struct strbuf names = {0};
	bool forbidden = false;
	int count = 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && count <= 0; i++) {
		strbuf_reset(&names);
		count = system_list(exam->machine->root, folders[i], &names, NULL);
		forbidden |= count == ERR_PERMISSION;
	}
	if (count > 0)
		doctor_say(line, DOCTOR_OK, "%d systems of tracepoints", count);
	else if (forbidden)
		doctor_say(line, DOCTOR_NOTE,
			   "tracefs may not be read: -e SYSTEM:EVENT does not work");
	else
		doctor_say(line, DOCTOR_NOTE,
			   "no tracefs is mounted: -e SYSTEM:EVENT does not work");
	strbuf_fini(&names);
}

void doctor_probe_rate(struct examination *exam, struct doctor_line *line)
{
	struct err err = {0};
	long long rate;

	if (system_number(exam->machine->root, "/proc/sys/kernel/perf_event_max_sample_rate", &rate,
			  &err) < 0)
		doctor_say_unknown(line, &err);
	else if (rate < RECORDER_DEFAULT_HZ)
		doctor_say(
			line, DOCTOR_NOTE,
			"%lld samples per second at most (the kernel lowers it when samples take "
			"long)",
			rate);
	else
		doctor_say(line, DOCTOR_OK, "up to %lld samples per second", rate);
}

void doctor_probe_stack(struct examination *exam, struct doctor_line *line)
{
	struct err err = {0};
	long long depth;

	if (system_number(exam->machine->root, "/proc/sys/kernel/perf_event_max_stack", &depth,
			  &err) < 0)
		doctor_say_unknown(line, &err);
	else
		doctor_say(line, depth < PERF_MAX_STACK_DEPTH ? DOCTOR_NOTE : DOCTOR_OK,
			   "native and kernel stacks up to %lld frames", depth);
}

void doctor_probe_mlock(struct examination *exam, struct doctor_line *line)
{
	const struct privilege *privilege = &exam->doctor->privilege;
	long long wanted = (RECORDER_DEFAULT_PAGES + 1) * (sysconf(_SC_PAGESIZE) / 1024);
	long long allowed = privilege->perf_mlock_kb;

	if (doctor_has_cap(exam, PRIVILEGE_IPC_LOCK) || privilege->memlock == UINT64_MAX) {
		doctor_say(line, DOCTOR_OK, "ring buffers of any size");
		return;
	}
	if (privilege->perf_mlock_kb == PRIVILEGE_UNKNOWN) {
		doctor_say(line, DOCTOR_UNKNOWN,
			   "not known: kernel.perf_event_mlock_kb holds no number");
		return;
	}
	if (exam->doctor->cpus > 0)
		allowed += (long long)(privilege->memlock / 1024) / exam->doctor->cpus;
	if (allowed >= wanted)
		doctor_say(line, DOCTOR_OK, "ring buffers of %lld KB a CPU", wanted);
	else
		doctor_say(line, DOCTOR_NOTE,
			   "%lld KB a CPU, where ring buffers of %lld KB are wanted: smaller ones "
			   "are used",
			   allowed, wanted);
}
