#ifndef PYPERF_IMPORTER_H
#define PYPERF_IMPORTER_H

#include "base/json.h"
#include "profile/store.h"

#include <stdio.h>

/*
 * What the formats that are imported share; one file each. All of them end in import_sample().
 */
struct importer {
	struct profile *profile;
	const struct profile_options *options;
	const char *path; /* for messages */
	struct {
		VEC_OF(uint32_t)
	} stack; /* frames of the sample at hand, leaf first */
};

/* Ids; KEYED_NONE when memory ran out. */
uint32_t import_event(struct importer *importer, const char *name);
uint32_t import_function(struct importer *importer, enum frame_kind kind, const char *name,
			 const char *file, uint32_t line);
uint32_t import_frame(struct importer *importer, uint32_t function, uint32_t line);

/* What runs code in a file of that name: Python, the kernel, or neither. */
enum frame_kind import_kind(const char *file);

/* `samples` of `period` each, in importer->stack. */
int import_sample(struct importer *importer, uint32_t thread, uint32_t event, uint64_t time,
		  uint64_t samples, uint64_t period, struct err *err);

int import_folded(struct importer *importer, FILE *file, struct err *err);
int import_speedscope(struct importer *importer, const struct json_doc *doc, struct err *err);
int import_firefox(struct importer *importer, const struct json_doc *doc, struct err *err);

#endif
