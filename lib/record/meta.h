#ifndef PYPERF_META_H
#define PYPERF_META_H

#include "data/writer.h"
#include "record/pythons.h"
#include "record/recorder.h"

/* The META section (JSON text; FORMAT.md lists its keys) and the facts of the machine that perf's
 * own feature sections hold. */

struct native;
struct meta {
	const struct recorder_options *options;
	const struct recorder_result *result;
	const struct recorder_count *totals; /* of options->events; NULL: not known */
	const struct pythons *pythons;
	enum recorder_python engine;
	const struct native *native;
	int exit_status; /* -1: not known */
};
int meta_store(struct data_writer *writer, const struct meta *meta, struct err *err);

struct machine_facts {
	struct data_info info; /* points into the rest */
	char hostname[256], os_release[256], arch[80], cpu_desc[256], cpuid[64];
};
/* Clocks are read here: call it when recording starts. argv is borrowed. */
void meta_machine(struct machine_facts *facts, const char *const *argv);

#endif
