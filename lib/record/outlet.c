#include "record/outlet.h"

#include "data/writer.h"
#include "record/recorder.h"

static int write_record(const struct outlet *outlet, const struct perf_event_header *record,
			struct err *err)
{
	return data_write(outlet->writer, record, record->size, err);
}

static int write_build_id(const struct outlet *outlet, const char *path, const uint8_t *id,
			  size_t len, struct err *err)
{
	return data_writer_build_id(outlet->writer, -1, PERF_RECORD_MISC_USER, path, id, len, err);
}

struct outlet outlet_to_file(struct data_writer *writer)
{
	return (struct outlet){
		.record = write_record, .build_id = write_build_id, .writer = writer};
}

static int tell_record(const struct outlet *outlet, const struct perf_event_header *record,
		       struct err *err)
{
	return outlet->listener->sideband(outlet->listener->ctx, record, err);
}

struct outlet outlet_to_listener(const struct recorder_listener *listener)
{
	return (struct outlet){.record = tell_record, .listener = listener};
}
