#ifndef PYPERF_EXPORT_H
#define PYPERF_EXPORT_H

#include "base/strbuf.h"
#include "output/output.h"
#include "output/samples.h"

/* What the formats of export share: each is one file, and a row of the table in export.c. */

typedef int export_write(FILE *out, const struct export_options *options, struct err *err);

export_write export_folded, export_speedscope, export_pprof, export_firefox, export_trace,
	export_callgrind, export_script, export_csv, export_otlp;

int export_perf(const char *path, const struct export_options *options, struct err *err);

/* The one event that is asked for, or SAMPLES_ALL_EVENTS: for formats that hold several. */
uint32_t export_events(const struct export_options *options);
/* Is the event to be written: sampled, has samples, and is asked for? */
bool export_has_event(const struct export_options *options, uint32_t event);
/* Are the event's periods nanoseconds? */
bool export_event_is_time(const struct profile *profile, uint32_t event);
/* The name that functions go by: qualified where it is known. Raw. */
const char *export_function_name(const struct profile *profile, uint32_t function);
/* "python3 100/101": what a thread is called where there is one name for it. Raw. */
void export_add_thread(struct strbuf *out, const struct profile *profile, uint32_t thread);
/* Nanoseconds since 1970 of a time of the recording; false where the recording does not tell. */
bool export_wall_time(const struct export_options *options, uint64_t time, int64_t *wall);

#endif
