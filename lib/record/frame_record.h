#ifndef PYPERF_FRAME_RECORD_H
#define PYPERF_FRAME_RECORD_H

#include "base/bytes.h"
#include "base/strbuf.h"
#include "ring/record.h"

/* Appends frames (perfmap/frames.h) as a record like those that the walker in the kernel writes, by
 * the event `id`, for the sample that follows it. */
void frame_record(struct strbuf *out, uint64_t id, const struct record_id *sample,
		  struct bytes frames);

#endif
