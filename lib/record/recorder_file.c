#include "record/recorder_internal.h"

#include "perfmap/source.h"
#include "record/hits.h"
#include "record/kernel.h"
#include "record/meta.h"
#include "record/phases.h"
#include "record/pythons.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file of a recording: begun beside an older one, completed with what is only known at the end.
 */

/* An older recording becomes PATH.old; what is no regular file is written to as it is. */
static int keep_old(struct recorder *recorder, struct err *err)
{
	char old[PATH_MAX];
	struct stat st;

	if (lstat(recorder->options->path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if ((size_t)snprintf(old, sizeof(old), "%s.old", recorder->options->path) >= sizeof(old))
		return err_set(err, ERR_USAGE, "the name %s is too long", recorder->options->path);
	if (rename(recorder->options->path, old) < 0)
		return err_sys(err, errno, "cannot rename %s to %s", recorder->options->path, old);
	recorder->kept_old = true;
	return 0;
}

static void put_old_back(struct recorder *recorder)
{
	char old[PATH_MAX];

	if (recorder->created)
		unlink(recorder->options->path);
	if (!recorder->kept_old)
		return;
	snprintf(old, sizeof(old), "%s.old", recorder->options->path);
	rename(old, recorder->options->path);
}

/* The events as the file has them: see sums.h. */
static int create_file(struct recorder *recorder, struct err *err)
{
	const struct channels *channels = &recorder->channels;
	struct data_writer_options options = {
		.zstd_level = recorder->options->zstd_level,
		.mmap_len = channels->ring_bytes,
	};
	struct data_event *events = malloc(channels->event_count * sizeof(*events));
	int ret;

	if (!events)
		return err_nomem(err);
	memcpy(events, channels->events, channels->event_count * sizeof(*events));
	for (size_t i = 0; i < channels->event_count; i++)
		if (events[i].attr.sample_type & PERF_SAMPLE_READ)
			events[i].attr.inherit = 0;
	ret = data_writer_open(&recorder->writer, recorder->options->path, events,
			       channels->event_count, &options, err);
	free(events);
	return ret;
}

int recorder_file_open(struct recorder *recorder, struct err *err)
{
	struct stat st;
	int ret = keep_old(recorder, err);

	if (!ret)
		ret = create_file(recorder, err);
	if (ret)
		return ret;
	recorder->out = outlet_to_file(recorder->writer);
	recorder->channels.ids_filed = true;
	recorder->created = lstat(recorder->options->path, &st) == 0 && S_ISREG(st.st_mode);
	return 0;
}

/* Build-ids of files whose maps came without one (kernels before 5.12) are not known here; perf
 * and our reader then take the file's. */
static int store_all(struct recorder *recorder, int exit_status, struct err *err)
{
	struct meta meta = {
		.options = recorder->options,
		.result = &recorder->result,
		.pythons = recorder->pythons,
		.engine = recorder->engine,
		.native = recorder->native,
		.exit_status = exit_status,
	};
	struct recorder_count *totals = calloc(recorder->channels.sampled, sizeof(*totals));
	int ret = kernel_store_build_id(recorder->writer, err);

	if (totals && channels_counts(&recorder->channels, totals))
		meta.totals = totals;
	if (!ret)
		ret = pythons_store(recorder->pythons, recorder->options->sources, recorder->writer,
				    err);
	if (!ret)
		ret = hits_store(recorder->hits, recorder->writer, err);
	if (!ret)
		ret = meta_store(recorder->writer, &meta, err);
	free(totals);
	if (!ret)
		ret = phases_store(recorder->options->phases, recorder->writer, err);
	return ret;
}

int recorder_file_close(struct recorder *recorder, int exit_status, int failed, struct err *err)
{
	int ret = failed ? failed : store_all(recorder, exit_status, err);
	int closed = data_writer_close(recorder->writer, &recorder->facts.info, ret ? NULL : err);
	struct stat st;

	recorder->writer = NULL;
	recorder->created = recorder->kept_old = false;
	if (stat(recorder->options->path, &st) == 0)
		recorder->result.bytes = (uint64_t)st.st_size;
	return ret ? ret : closed;
}

void recorder_file_abandon(struct recorder *recorder)
{
	if (recorder->writer)
		data_writer_close(recorder->writer, &recorder->facts.info, NULL);
	put_old_back(recorder);
}
