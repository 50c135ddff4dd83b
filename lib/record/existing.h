#ifndef PYPERF_EXISTING_H
#define PYPERF_EXISTING_H

#include "record/hits.h"
#include "record/pythons.h"
#include "record/recorder.h"
#include "record/synth.h"

/*
 * What ran before the recording began: names, threads and executable maps of the target's
 * processes become records, build-ids with them, and the Pythons among them to the engine.
 * A process that ends meanwhile is left out.
 */
int existing_store(const struct synth *synth, const struct recorder_target *target,
		   struct roots *roots, struct pythons *pythons, struct hits *hits,
		   struct err *err);

#endif
