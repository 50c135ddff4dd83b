#ifndef PYPERF_OUTLET_H
#define PYPERF_OUTLET_H

#include "base/err.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where records go as they are taken: into a file, or to a listener (recorder.h) that makes its own
 * of them and keeps no file.
 */
struct data_writer;
struct recorder_listener;

struct outlet {
	/* All but samples, as they go into a file. */
	int (*record)(const struct outlet *outlet, const struct perf_event_header *record,
		      struct err *err);
	/* Of a mapped file; NULL where nobody wants it, and it need not be looked up. */
	int (*build_id)(const struct outlet *outlet, const char *path, const uint8_t *id,
			size_t len, struct err *err);
	union {
		struct data_writer *writer;
		const struct recorder_listener *listener;
	};
};

/* Both are borrowed. */
struct outlet outlet_to_file(struct data_writer *writer);
struct outlet outlet_to_listener(const struct recorder_listener *listener);

#endif
