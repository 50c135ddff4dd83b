#ifndef PYPERF_SAMPLES_H
#define PYPERF_SAMPLES_H

#include "profile/profile.h"
#include "profile/view.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Every sample of a recording in order of time, for what shows time: exports and script. Names come
 * only after the last sample, so samples are kept while the profile loads: in an unnamed file that
 * is mapped afterwards, so that memory does not grow with the recording.
 */
struct sample {
	uint64_t time, period;
	uint32_t thread, stack; /* of the profile */
	uint32_t cpu;		/* UINT32_MAX: not known */
	uint32_t event;
};

struct samples;

#define SAMPLES_ALL_EVENTS UINT32_MAX

struct samples *samples_new(void);
void samples_free(struct samples *samples);
/* A profile_on_sample whose ctx is a struct samples. */
int samples_keep(const struct profile_sample *sample, void *samples, struct err *err);

/* Goes through those that pass the filter (NULL: all) and belong to the event. Start with all
 * zero but the first line's fields; ends itself. */
struct samples_walk {
	const struct samples *samples;
	const struct profile *profile;
	struct view_matcher *matcher;
	uint32_t event, work; /* of progress.h */
	size_t next;
};
int samples_walk_init(struct samples_walk *walk, const struct samples *samples,
		      const struct profile *profile, const struct view_filter *filter,
		      uint32_t event, struct err *err);
void samples_walk_fini(struct samples_walk *walk);
/* Once more from the first one on. */
void samples_walk_rewind(struct samples_walk *walk);
/* NULL at the end. */
const struct sample *samples_walk_next(struct samples_walk *walk);

/* The samples of each thread, in order of time: those of thread t are order[starts[t]] up to
 * order[starts[t + 1]]. */
struct samples_by_thread {
	const struct sample *all;
	uint32_t *order, *starts;
};
int samples_by_thread(struct samples_by_thread *by, struct samples_walk *walk, struct err *err);
void samples_by_thread_fini(struct samples_by_thread *by);

#endif
