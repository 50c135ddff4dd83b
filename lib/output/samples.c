#include "output/samples.h"

#include "base/progress.h"
#include "base/vec.h"
#include "profile/match.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* So many are kept in memory before there is a file. */
#define FEW (1u << 15)

struct samples {
	struct {
		VEC_OF(struct sample)
	} few;
	FILE *file; /* NULL: the few are all */
	size_t count;
	struct sample *mapped;	  /* the file, from the first walk on */
	const struct sample *all; /* since then */
};

struct samples *samples_new(void)
{
	return calloc(1, sizeof(struct samples));
}

void samples_free(struct samples *samples)
{
	if (!samples)
		return;
	if (samples->mapped)
		munmap(samples->mapped, samples->count * sizeof(*samples->mapped));
	if (samples->file)
		fclose(samples->file);
	vec_fini(&samples->few);
	free(samples);
}

static int failed(int saved, struct err *err)
{
	int rc = err_sys(err, saved, "cannot keep the samples in a temporary file");

	err_hint(err, "There must be room in the folder for temporary files, 32 bytes a sample.");
	return rc;
}

int samples_keep(const struct profile_sample *in, void *ctx, struct err *err)
{
	struct samples *samples = ctx;
	const struct sample kept = {
		.time = in->time,
		.period = in->period,
		.thread = in->thread,
		.stack = in->stack,
		.cpu = in->cpu,
		.event = in->event,
	};

	if (samples->count < FEW) {
		struct sample *sample = vec_push(&samples->few);

		if (!sample)
			return err_nomem(err);
		*sample = kept;
		samples->count++;
		return 0;
	}
	if (!samples->file) {
		samples->file = tmpfile();
		if (!samples->file || fwrite(samples->few.items, sizeof(kept), samples->few.len,
					     samples->file) != samples->few.len)
			return failed(errno, err);
		vec_fini(&samples->few);
	}
	if (fwrite(&kept, sizeof(kept), 1, samples->file) != 1)
		return failed(errno, err);
	samples->count++;
	return 0;
}

static int map_all(struct samples *samples, struct err *err)
{
	void *all;

	if (samples->all || !samples->count)
		return 0;
	if (!samples->file) {
		samples->all = samples->few.items;
		return 0;
	}
	if (fflush(samples->file))
		return failed(errno, err);
	all = mmap(NULL, samples->count * sizeof(*samples->all), PROT_READ, MAP_SHARED,
		   fileno(samples->file), 0);
	if (all == MAP_FAILED)
		return failed(errno, err);
	samples->all = samples->mapped = all;
	return 0;
}

int samples_walk_init(struct samples_walk *walk, const struct samples *samples,
		      const struct profile *profile, const struct view_filter *filter,
		      uint32_t event, struct err *err)
{
	/* That the file is mapped late is nothing that its users see. */
	int rc = map_all((struct samples *)samples, err);

	*walk = (struct samples_walk){.samples = samples, .profile = profile, .event = event};
	samples_walk_rewind(walk);
	return rc ? rc : view_matcher_new(&walk->matcher, profile, filter, err);
}

void samples_walk_fini(struct samples_walk *walk)
{
	progress_end(walk->work);
	view_matcher_free(walk->matcher);
	walk->matcher = NULL;
}

void samples_walk_rewind(struct samples_walk *walk)
{
	walk->next = 0;
	walk->work = progress_start("converting samples", PROGRESS_COUNT, walk->samples->count);
}

const struct sample *samples_walk_next(struct samples_walk *walk)
{
	while (walk->next < walk->samples->count) {
		const struct sample *sample = &walk->samples->all[walk->next++];

		progress_at(walk->work, walk->next);
		if (walk->event != SAMPLES_ALL_EVENTS && walk->event != sample->event)
			continue;
		if (profile_event(walk->profile, sample->event)->sampled &&
		    view_matches(walk->matcher, sample->thread, sample->stack))
			return sample;
	}
	return NULL;
}

int samples_by_thread(struct samples_by_thread *by, struct samples_walk *walk, struct err *err)
{
	size_t threads = profile_thread_count(walk->profile), count = 0;
	const struct sample *sample;
	uint32_t at = 0;

	*by = (struct samples_by_thread){.all = walk->samples->all};
	if (walk->samples->count >= UINT32_MAX)
		return err_set(err, ERR_UNSUPPORTED, "the recording has too many samples");
	by->starts = calloc(threads + 2, sizeof(*by->starts));
	if (!by->starts)
		return err_nomem(err);
	/* Counted one place up, so that filling in moves each start to where it belongs. */
	samples_walk_rewind(walk);
	for (; (sample = samples_walk_next(walk)); count++)
		by->starts[sample->thread + 2]++;
	for (size_t t = 0; t < threads + 2; t++)
		by->starts[t] = at += by->starts[t];
	by->order = malloc((count + 1) * sizeof(*by->order));
	if (!by->order)
		return err_nomem(err);
	samples_walk_rewind(walk);
	while ((sample = samples_walk_next(walk)))
		by->order[by->starts[sample->thread + 1]++] = (uint32_t)(sample -
									 walk->samples->all);
	return 0;
}

void samples_by_thread_fini(struct samples_by_thread *by)
{
	free(by->order);
	free(by->starts);
}
