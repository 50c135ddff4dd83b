#ifndef PYPERF_LIVE_H
#define PYPERF_LIVE_H

#include "profile/profile.h"
#include "profile/view.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A profile of what runs now: fed with samples as they come, looked at now and then.
 *
 * Time is cut into intervals, which live_turn() ends. What is shown is the window, the last so many
 * intervals together, or all of them. The views of view.h and what is made of them work on it as on
 * the profile of a recording.
 *
 * A program that runs for weeks may make functions, threads and processes without end. So where the
 * tables have grown beyond a limit live_is_full() says so, and live_renew() begins anew with empty
 * ones: memory stays bounded, and live_since() tells what "all" means.
 */
struct live;
struct perf_event_header;
struct py_codes;

struct live_options {
	enum profile_native native;
	unsigned int window; /* intervals */
	/* The events, those of the recorder in its order (but those that are no samples are never
	 * fed), and which of them an id belongs to. Names are copied. */
	const struct live_event *events;
	size_t event_count;
	int (*event_of)(const void *ctx, uint64_t id);
	const void *ctx;
};

struct live_event {
	const char *name;
	const struct perf_event_attr *attr;
};

int live_new(struct live **live, const struct live_options *options, uint64_t now, struct err *err);
void live_free(struct live *live);

/* What the recorder's listener is told (record/recorder.h). */
int live_sample(struct live *live, const struct perf_event_header *record, uint32_t event,
		const void *frames, size_t frames_len, struct err *err);
int live_sideband(struct live *live, const struct perf_event_header *record, struct err *err);
/* Where the code objects of its frames are looked for; valid until live_renew(). */
struct py_codes *live_codes(struct live *live);

/* The interval ends at `now`: names become known, the oldest one leaves the window. */
int live_turn(struct live *live, uint64_t now, struct err *err);
/* Forgets all counts, not the names. */
void live_reset(struct live *live, uint64_t now);
/* Are the tables too large? Then live_renew() empties them, and wants live_codes() used and all
 * processes told again. */
bool live_is_full(const struct live *live);
int live_renew(struct live *live, uint64_t now, struct err *err);
unsigned int live_renewals(const struct live *live);
/* When the first interval that counts began: of the window, or of all. */
uint64_t live_since(const struct live *live, bool all);

/* The profile with the counts of the window, or of all; valid until the next call of any of these
 * functions, as is what is made of it. */
struct profile *live_profile(struct live *live, bool all);
/* The innermost function of a thread's last sample, as live_profile() numbers them, and its line;
 * UINT32_MAX where it had none in this interval or the one before. */
uint32_t live_function_of(const struct live *live, uint32_t tid, uint32_t *line);
/* Samples that were taken: of the window, or of all. */
uint64_t live_samples(const struct live *live, bool all);

#endif
