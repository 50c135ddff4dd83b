#include "record/frame_record.h"

#include <string.h>

void frame_record(struct strbuf *out, uint64_t id, const struct record_id *sample,
		  struct bytes frames)
{
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE,
					   .misc = PERF_RECORD_MISC_USER};
	uint64_t words[] = {id, 0, sample->time, sample->cpu};
	/* The size that precedes the payload takes half a word: so does the padding behind it. */
	uint32_t ids[] = {sample->pid, sample->tid};
	uint32_t size = (uint32_t)bytes_left(&frames) + sizeof(size);

	memcpy(&words[1], ids, sizeof(ids));
	header.size = (uint16_t)(sizeof(header) + sizeof(words) + sizeof(size) + size);
	strbuf_add(out, &header, sizeof(header));
	strbuf_add(out, words, sizeof(words));
	strbuf_add(out, &size, sizeof(size));
	strbuf_add(out, frames.at, bytes_left(&frames));
	strbuf_extend(out, sizeof(size));
}
