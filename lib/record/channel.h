#ifndef PYPERF_CHANNEL_H
#define PYPERF_CHANNEL_H

#include "base/map.h"
#include "base/vec.h"
#include "data/data.h"
#include "record/doubt.h"
#include "record/pythons.h"
#include "record/recorder.h"
#include "ring/aux.h"
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
	struct aux_area aux; /* beside `samples`, where an event traces (traces.h) */
	uint64_t before_ns;  /* CPU time that the tasks had there before counting began */
};

/* An event that is open for one task (or for whatever runs) on one CPU. */
struct channel_event {
	int fd;		/* -1: closed, it was one too many; or not counted on this CPU */
	uint32_t event; /* in channels.events */
	uint32_t channel;
	pid_t tid; /* that it was opened for */
	uint64_t id;
};

struct channels {
	VEC_OF(struct channel)
	struct {
		VEC_OF(struct channel_event)
	} open;
	struct {
		VEC_OF(int)
	} walkers; /* fds that keep the walker attached to tracepoints */
	const struct recorder_options *options;
	const struct recorder_target *target;
	struct pythons *pythons;
	const struct native *native;
	const struct event_spec *traced; /* the event that traces; NULL: none */
	/* The events of the file: the sampled ones in their order, then side-band, then (when
	 * there is a walker) Python frames. ids belong to the channels. */
	struct data_event *events;
	size_t event_count, sampled;
	size_t opened;	   /* sampled events that are opened here: all, or none */
	size_t ring_bytes; /* of one CPU's samples ring */
	struct map event_by_id;
	struct doubt doubt;
	bool *elsewhere;    /* by channel, then sampled event: its PMU is that of other CPUs */
	uint64_t *file_ids; /* by channel, then event: the id of its records in the file; 0: none */
	bool ids_filed;	    /* set by the recorder: the file's header is written */
	bool counting;
};

/* Opens the rings and makes the events, without a task. Rings become smaller where mlock limits
 * forbid the default size. Where `pythons` walk, their event is added and the walker attached.
 * `native` is NULL where stacks are not unwound. */
int channels_open(struct channels *channels, const struct recorder_options *options,
		  const struct recorder_target *target, struct pythons *pythons,
		  const struct native *native, struct err *err);
void channels_close(struct channels *channels);

/* All events of a task, the side-band event last; -1 is whatever runs. Its sampled events begin at
 * channels.open.len. In doubt: it may have inherited them. Events of what is no command stay off
 * until channels_enable(). */
int channels_open_task(struct channels *channels, pid_t tid, bool in_doubt, struct err *err);
/* Closes the sampled events that begin at `place`. */
void channels_close_task(struct channels *channels, size_t place);
/* Is a sample to be kept, or does another event count it, too? */
bool channels_keep(struct channels *channels, size_t channel, size_t event, uint32_t tid,
		   uint64_t id);

/* The event that an id belongs to, or -1. A late one is not in the file's header. */
int channels_event(const struct channels *channels, uint64_t id, bool *late);
/* The id under which records of an event are in the file: one that was opened on the same CPU, so
 * that those of an id are in order. */
uint64_t channels_file_id(const struct channels *channels, size_t channel, size_t event);

/* Is the sampled event counted on the channel's CPU? On a hybrid one its PMU may be that of others.
 */
bool channels_reach(const struct channels *channels, size_t channel, size_t event);
/* Is it open, and the leader of its group, which alone is switched and read? */
bool channels_lead(const struct channels *channels, const struct channel_event *open);

/* channel_counts.c. Counting is about to begin. */
int channels_note_times(struct channels *channels, struct err *err);
/* What the kernel counted so far: see recorder_counts(). */
bool channels_counts(const struct channels *channels, struct recorder_count *counts);
/* Only what was opened for this task; its time is that of its events. */
void channels_task_counts(const struct channels *channels, pid_t tid,
			  struct recorder_count *counts);
/* The tasks that events were opened for, each once; freed by the caller. -1 when memory ran out. */
ssize_t channels_tasks(const struct channels *channels, pid_t **tids);

/* Starts (or ends) counting now. */
int channels_enable(struct channels *channels, bool on, struct err *err);

#endif
