#ifndef PYPERF_CATALOG_H
#define PYPERF_CATALOG_H

#include "event/event.h"

/*
 * The events that can be named here, for `pyperf list`: what the kernel knows, what the PMUs of
 * this machine list in sysfs, tracepoints, and what libpfm4 knows of its processor.
 *
 * That an event opens does not say that it counts: virtual PMUs take many that stay at 0. So each
 * is opened for this process alone while that computes, misses caches, faults pages and sleeps.
 * (Not tracepoints: they are many, the kernel patches itself for each, and they count when they are
 * hit.)
 */
enum catalog_kind {
	CATALOG_HARDWARE,
	CATALOG_CACHE,
	CATALOG_SOFTWARE,
	CATALOG_PMU,
	CATALOG_TRACEPOINT,
	CATALOG_LIBPFM,
	CATALOG_KINDS,
};

enum catalog_status {
	CATALOG_COUNTS,
	CATALOG_ZERO,	    /* opens, and stayed at 0 */
	CATALOG_NO_COUNTER, /* opens, and got no counter: others hold them */
	CATALOG_ABSENT,
	CATALOG_FORBIDDEN,
	CATALOG_UNTRIED, /* see `why` */
};

struct catalog_event {
	char *name;
	char *aliases; /* other names, parted by ", "; NULL: none */
	char *text;    /* what it counts, where somebody says; NULL */
	char *why;     /* it is not there, or was not tried; NULL */
	enum catalog_kind kind;
	enum catalog_status status;
	bool user_only; /* the kernel's part is forbidden */
	struct perf_event_attr attr;
};

/* A PMU of sysfs, with the terms that its events are made of. */
struct catalog_pmu {
	char *name;
	uint32_t type;
	char *cpus;  /* that it counts on; NULL: all */
	char *terms; /* "event=config:0-7 umask=config:8-15" */
};

/* A processor that libpfm4 knows. */
struct catalog_model {
	const char *name, *text; /* static */
	int events, counters, fixed_counters;
	bool present;
};

struct catalog {
	struct {
		VEC_OF(struct catalog_event)
	} events; /* by kind, then by name */
	struct {
		VEC_OF(struct catalog_pmu)
	} pmus;
	struct {
		VEC_OF(struct catalog_model)
	} models;
};

/* `pattern`: a part of a name or of what it counts, a glob of the name, or a kind as
 * catalog_kind_name() has it; NULL: all. With "model::" also events of other processors. */
int catalog_read(struct catalog *catalog, const char *pattern, struct err *err);
void catalog_fini(struct catalog *catalog);

const char *catalog_kind_name(enum catalog_kind kind); /* "hardware", as in JSON and patterns */
const char *catalog_status_name(enum catalog_status status); /* "counts" */

#endif
