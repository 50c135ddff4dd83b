#ifndef PYPERF_EVENT_H
#define PYPERF_EVENT_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Event names -> perf_event_attr, and opening them with the fall-backs that keep a recording
 * possible where a counter is missing.
 *
 * A group is sampled in one of two ways. Either each of its events writes samples of its own, with
 * the period it stands for; or only the leader does, and its samples read what all events of the
 * group have counted so far (PERF_SAMPLE_READ, "{..}:S"). How such samples lie in a file, and what
 * may be subtracted from what: lib/data/FORMAT.md, "Groups that are read".
 */

struct event_spec {
	char *name; /* as the user wrote it, modifiers included: what reports show */
	/* type, config*, exclude_*, precise_ip; sample_period, or freq and sample_freq, where the
	 * event says these itself */
	struct perf_event_attr attr;
	int group;     /* number of its {group}; -1 alone */
	bool leader;   /* first of its group, or alone */
	bool fallback; /* stands in for an event that this machine does not have */
	bool counted;  /* not sampled: the samples of its group's leader read it */
	bool weak;     /* of its group: it is taken out of it where it does not fit */
	bool traces;   /* into a buffer apart (AUX): it has no samples and no count */
	bool along;    /* nobody asked for it: it is left out quietly */
	char *cpus;    /* "0-15": those that count it, on a hybrid CPU; NULL: all */
};

struct event_list {
	VEC_OF(struct event_spec)
};

void event_list_fini(struct event_list *list);

/*
 * Parses one -e argument and appends: "cycles,cache-misses", "{a,b}:u", "sched:sched_switch",
 * "r1a8", "cpu/event=0x3c,umask=0/", "skl::INST_RETIRED:u". A name with slashes is sysfs's, or a
 * generic one with terms, "cycles/period=100000/"; one with "::" libpfm4's; others are looked for
 * among the generic names, the events that sysfs lists, raw codes, tracepoints and libpfm4's, in
 * this order. An unknown name is ERR_USAGE and the hint suggests the nearest ones. On a hybrid CPU
 * what names no PMU is there once for each: "cpu_core/cycles/" and "cpu_atom/cycles/". On failure
 * the list is as it was.
 */
int event_parse(struct event_list *list, const char *text, struct err *err);

/* What is sampled without -e: cycles, whose samples read instructions, cache references, cache and
 * branch misses, as far as this machine counts them. Appends. */
int event_list_default(struct event_list *list, struct err *err);
/* Counts instructions along with cycles that are sampled, unless they are in the list anyway. */
int event_list_count_instructions(struct event_list *list, struct err *err);
/* What the words of -e name (ended by NULL; NULL where there is none), or the default; without
 * `metrics` nothing is counted along. */
int event_list_wanted(struct event_list *list, char **words, bool metrics, struct err *err);

/* Can samples of events that are inherited read their group? (Linux 6.12) */
bool event_reads_inherited(void);

/*
 * Tries each event once on this machine (pid 0, disabled, sampling by the attr's period or, where
 * it has none, by a long one). Hardware cycles that do not exist become cpu-clock under that name;
 * what else does not exist is dropped; each with one log_info() line; duplicates that arise are
 * dropped too. A list that ends up empty is ERR_UNSUPPORTED and the hint says what to use. A
 * permission problem is ERR_PERMISSION with the remedies: for exclude_kernel enough, the event
 * silently gets ":u" with one line (as perf does).
 *
 * A group that the counters cannot hold is ERR_UNSUPPORTED and the text says which event is too
 * much and how many counters there are; one that is weak gives up events instead, which then stand
 * alone. Where samples cannot read a group (`reads`), its members are sampled as well.
 */
int event_list_probe(struct event_list *list, bool reads, struct err *err);

/* perf_event_open(2) with CLOEXEC; the fd or -errno. */
int event_open_fd(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd);
/* The same for what belongs to a control group, given by an fd of its folder. */
int event_open_cgroup_fd(const struct perf_event_attr *attr, int cgroup_fd, int cpu, int group_fd);

/* Puts a failed open into words: what, why (paranoid level, capability, limits), what to do on a
 * host and in a container. Returns the code. */
int event_open_error(const struct event_spec *spec, int saved_errno, struct err *err);
/* Whether events may be opened at all; where not, there is nothing else to say. */
int event_list_permitted(const struct event_list *list, struct err *err);

/* What perf needs to know of a list's tracepoints to open their recording: the TRACING_DATA
 * feature. Nothing is appended where there are none. */
int event_tracing_data(const struct event_list *list, struct strbuf *out, struct err *err);

/* kernel.perf_event_max_sample_rate, or 0 where it cannot be read. */
uint64_t event_max_sample_rate(void);

/* Of the kernel's own events cpu-clock and task-clock are timers, which count nanoseconds; the
 * others count what the kernel does, one by one. */
bool event_is_clock(const struct perf_event_attr *attr);

/* The name for an attr that came without one: "cycles", "page-faults:u", "raw 0x1a8". */
void event_attr_name(const struct perf_event_attr *attr, char *buf, size_t size);

#endif
