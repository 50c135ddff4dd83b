#ifndef PYPERF_CHANNEL_H
#define PYPERF_CHANNEL_H

#include "base/vec.h"
#include "data/data.h"
#include "record/pythons.h"
#include "record/recorder.h"
#include "ring/ring.h"

/*
 * The kernel's side of a recording: on every CPU one ring for samples and Python frames, and a
 * small one for side-band records.
 *
 * All events of a CPU are redirected into one of its rings (PERF_EVENT_IOC_SET_OUTPUT), so that a
 * walker's record lies directly before its sample. The rings belong to events of our own, which no
 * end of a target hangs up.
 */
struct channel {
	int cpu;
	int samples_fd, sideband_fd; /* own the rings, are polled */
	int python_fd;
	struct ring samples, sideband;
};

/* An event that is open for one task (or for whatever runs) on one CPU. */
struct channel_event {
	int fd;
	uint32_t event; /* in channels.events */
};

struct channels {
	VEC_OF(struct channel)
	struct {
		VEC_OF(struct channel_event)
	} open;
	const struct recorder_options *options;
	const struct recorder_target *target;
	struct pythons *pythons;
	/* The events of the file: the sampled ones in their order, then side-band, then (when
	 * there is a walker) Python frames. ids belong to the channels. */
	struct data_event *events;
	size_t event_count, sampled;
	size_t ring_bytes; /* of one CPU's samples ring */
};

/* Opens everything for a held child, or for all threads that a running target has. Rings become
 * smaller where mlock limits forbid the default size. Where `pythons` walk, their event is added
 * and the walker attached. Events of what is no command stay off until channels_enable(). */
int channels_open(struct channels *channels, const struct recorder_options *options,
		  const struct recorder_target *target, struct pythons *pythons, struct err *err);
void channels_close(struct channels *channels);
/* Starts (or ends) counting now. */
int channels_enable(struct channels *channels, bool on, struct err *err);

#endif
