#include "data/file.h"

#include <string.h>

/* Pipe mode: attributes, features and build-ids come as records. */

static int read_attr(struct data_file *file, struct bytes in, struct err *err)
{
	struct perf_event_attr attr;
	uint32_t size;

	if (!header_attr(file, in, &attr))
		return file_lose(file, err, "an attribute record is broken");
	size = attr.size < bytes_left(&in) ? attr.size : (uint32_t)bytes_left(&in);
	bytes_take(&in, size);
	return header_add_event(file, &attr, in, err);
}

static int read_update(struct data_file *file, struct bytes in, struct err *err)
{
	uint64_t kind = bytes_u64(&in), id = bytes_u64(&in);
	const char *text = (const char *)in.at;
	int index = data_event_by_id(file, id);
	char *name;

	if (in.bad || kind != FORMAT_EVENT_UPDATE_NAME || index < 0 || !bytes_left(&in) || !*text)
		return 0;
	name = arena_strndup(&file->arena, text, strnlen(text, bytes_left(&in)));
	if (!name)
		return err_nomem(err);
	file->events.items[index]->name = name;
	return 0;
}

int pipe_record(struct data_file *file, uint32_t type, uint16_t misc, struct bytes in,
		struct err *err)
{
	uint64_t feature;
	int rc;

	switch (type) {
	case RECORD_HEADER_ATTR:
		/* A file has its attributes in the header. */
		rc = file->pipe ? read_attr(file, in, err) : 0;
		break;
	case RECORD_HEADER_EVENT_TYPE:
		rc = file->pipe ? header_add_event_type(file, in, err) : 0;
		break;
	case RECORD_HEADER_BUILD_ID:
		rc = feature_read_build_id(file, misc, in, err);
		break;
	case RECORD_EVENT_UPDATE:
		rc = read_update(file, in, err);
		break;
	case RECORD_HEADER_FEATURE:
		feature = bytes_u64(&in);
		rc = file->pipe && !in.bad && feature < FORMAT_FEATURES
			     ? feature_read(file, (unsigned int)feature, in, err)
			     : 0;
		break;
	default:
		return 0;
	}
	return rc < 0 ? rc : 1;
}
