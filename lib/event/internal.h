#ifndef PYPERF_EVENT_INTERNAL_H
#define PYPERF_EVENT_INTERNAL_H

#include "base/privilege.h"
#include "event/event.h"

#include <sched.h>

/*
 * What the files of lib/event share.
 *
 * struct event_system is the machine as this module sees it. The public functions use
 * event_system_host; the unit tests put other machines in its place.
 */
struct event_system {
	/* As event_open_fd(). */
	int (*open)(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd);
	/* Lets an event and its group count for a moment: do they get counters? */
	bool (*runs)(int leader_fd);
	void (*privilege)(struct privilege *privilege);
	const char *devices;  /* /sys/bus/event_source/devices */
	const char *tracing;  /* a tracefs; NULL: wherever one is mounted */
	const char *watchdog; /* the sysctl nmi_watchdog */
};

extern const struct event_system event_system_host;

int event_parse_on(const struct event_system *sys, struct event_list *list, const char *text,
		   struct err *err);
int event_list_default_on(const struct event_system *sys, struct event_list *list, struct err *err);
int event_list_probe_on(const struct event_system *sys, struct event_list *list, bool reads,
			struct err *err);
int event_open_error_on(const struct event_system *sys, const struct event_spec *spec,
			int saved_errno, struct err *err);

/* Frees what it owns. */
void event_spec_fini(struct event_spec *spec);
/* A number that no group of the list has. */
int event_list_next_group(const struct event_list *list);
/* Where the group of an event ends. */
size_t event_list_group_end(const struct event_list *list, size_t at);

/* Opens an event of our own as probes do. An fd or -errno. */
int event_try_open(const struct event_system *sys, const struct event_spec *spec, int group_fd);
/* group.c: what the counters cannot hold is taken out of weak groups; of others it is an error. */
int event_fit_groups(const struct event_system *sys, struct event_list *list, struct err *err);
bool event_runs(int leader_fd);
/* Who may hold a counter that opens and does not run, in words. */
const char *event_holder(const struct event_system *sys);

/* hybrid.c: gives each core PMU its part of the events from `from` on. On failure those are gone.
 */
int event_spread(const struct event_system *sys, struct event_list *list, size_t from,
		 struct err *err);
/* Moves this thread to the CPUs of a spec; false where it may not go there. */
struct event_pin {
	cpu_set_t before;
	bool moved;
};
bool event_pin(const char *cpus, struct event_pin *pin);
void event_unpin(const struct event_pin *pin);

/* The level; 2, the kernel's default, where it cannot be read. */
int event_paranoid(const struct privilege *privilege);

/* The name with modifiers added, or with those that the attr has now in the place of the old;
 * malloced, NULL when memory runs out. */
char *event_name_extend(const struct event_spec *spec, const char *modifiers);
char *event_name_refresh(const struct event_spec *spec);
/* The place of the modifiers in the name, or its end. */
size_t event_name_modifiers(const struct event_spec *spec);
/* ":u", ":ukpp"; "" for none. */
void event_attr_modifiers(const struct perf_event_attr *attr, char *buf, size_t size);

/* A visitor of names; returning false ends the walk. */
typedef bool event_name_visit(const char *name, void *ctx);

/* names.c: perf's own names. */
bool event_name_find(const char *name, struct perf_event_attr *attr);
/* False where no name stands for type and config. */
bool event_name_of(uint32_t type, uint64_t config, char *buf, size_t size);
void event_name_each(event_name_visit *visit, void *ctx);

/*
 * terms.c: a term that any event takes, "period=1000" parted into `term` and `text` (NULL without
 * '='). 1: taken, 0: it is none of them, or a failure. *renamed is NULL or malloced, and replaced
 * by a name= term. event_terms_generic() takes all those of an event that is on no PMU,
 * "cycles/TERMS/", and writes to them.
 */
int event_term(const char *term, const char *text, struct perf_event_attr *attr, char **renamed,
	       struct err *err);
int event_terms_generic(const char *name, char *terms, struct perf_event_attr *attr, char **renamed,
			struct err *err);
/* Decimal, or hexadecimal behind 0x; the whole text. */
bool event_number(const char *text, uint64_t *value);

/*
 * sysfs.c: "pmu/terms/". *renamed is the value of a name= term, malloced, or NULL.
 * event_sysfs_alias() takes the name of an event that any PMU lists in its events folder.
 */
int event_sysfs_parse(const struct event_system *sys, const char *pmu, const char *terms,
		      struct perf_event_attr *attr, char **renamed, struct err *err);
/* Reads PMU/folder/file, or PMU/file where folder is ""; false where there is none. */
/* Does it write a trace that is recorded as it is, and no samples? */
bool event_sysfs_traces(const char *pmu);
bool event_sysfs_read(const struct event_system *sys, const char *pmu, const char *folder,
		      const char *file, char *buf, size_t size);
bool event_sysfs_type(const struct event_system *sys, const char *pmu, uint32_t *type);
bool event_sysfs_alias(const struct event_system *sys, const char *name,
		       struct perf_event_attr *attr);
void event_sysfs_each(const struct event_system *sys, event_name_visit *visit, void *ctx);

/* tracepoint.c: ERR_NOT_FOUND where the kernel has no such tracepoint. */
int event_tracepoint_parse(const struct event_system *sys, const char *system, const char *name,
			   struct perf_event_attr *attr, struct err *err);
/* A descriptor of tracefs' events folder, or -errno. */
int event_tracepoint_folder(const struct event_system *sys);
void event_tracepoint_each(const struct event_system *sys, event_name_visit *visit, void *ctx);

/* catalog.c, attempt.c */
struct catalog;
int catalog_read_on(const struct event_system *sys, struct catalog *catalog, const char *pattern,
		    struct err *err);
void catalog_try(const struct event_system *sys, struct catalog *catalog);

/* suggest.c: the hint of an unknown name. */
void event_suggest(const struct event_system *sys, const char *unknown, struct err *err);

#endif
