#ifndef PYPERF_CHANNEL_H
#define PYPERF_CHANNEL_H

#include "base/vec.h"
#include "data/data.h"
#include "record/recorder.h"
#include "ring/ring.h"

/*
 * The kernel's side of a recording: on every CPU one ring for samples and Python frames, and a
 * small one for side-band records.
 *
 * All sampled events of a CPU and its Python-frame event are redirected into one ring
 * (PERF_EVENT_IOC_SET_OUTPUT), so that a walker's record lies directly before its sample.
 */
struct channel {
	int cpu;
	int *fds; /* one per sampled event; -1 where it could not be opened on this CPU */
	int sideband_fd, python_fd;
	struct ring samples, sideband;
};

struct channels {
	VEC_OF(struct channel)
	const struct recorder_options *options;
	/* The events of the file: the sampled ones in their order, then side-band, then (when
	 * there is a walker) Python frames. ids belong to the channels. */
	struct data_event *events;
	size_t event_count, sampled;
	size_t ring_bytes; /* of one CPU's samples ring */
};

/* Opens everything for the held target. Rings become smaller where mlock limits forbid the
 * default size. `python` adds the Python-frame event. */
int channels_open(struct channels *channels, const struct recorder_options *options, pid_t target,
		  bool python, struct err *err);
void channels_close(struct channels *channels);
/* Starts (or ends) counting now, for -D and before the last read. */
int channels_enable(struct channels *channels, bool on, struct err *err);

#endif
