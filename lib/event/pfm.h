#ifndef PYPERF_EVENT_PFM_H
#define PYPERF_EVENT_PFM_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Names of libpfm4, which knows the events of each processor model. Apart from internal.h, since
 * libpfm4's header has a perf_event_attr of its own: `attr` is one, of `size` bytes.
 *
 * ERR_NOT_FOUND where libpfm4 does not know the name; ERR_USAGE where it knows the event but not
 * what follows it.
 */
int event_pfm_parse(const char *text, void *attr, size_t size, struct err *err);

/* Names of the models that are active here, as "pmu::EVENT". */
void event_pfm_each(bool (*visit)(const char *name, void *ctx), void *ctx);

/* Those with their variants ("pmu::EVENT:UMASK") and what they count, or NULL; and those of the
 * model with this name (`len` bytes), present or not. */
void event_pfm_list(const char *model, size_t len,
		    bool (*visit)(const char *name, const char *text, bool present, void *ctx),
		    void *ctx);

struct pfm_model {
	const char *name, *text; /* static */
	int events, counters, fixed_counters;
	bool present;
};
void event_pfm_models(bool (*visit)(const struct pfm_model *model, void *ctx), void *ctx);

#endif
