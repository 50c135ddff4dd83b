#include "perfmap/jitdump.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(struct bytes b)
{
	volatile unsigned char last = 0;

	if (bytes_left(&b))
		last = b.end[-1];
	(void)last;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jitdump_head head;
	struct jitdump *dump;
	bool begins = jitdump_head(data, size, &head);

	if ((jitdump_parse(&dump, data, size, NULL) == 0) != begins)
		abort();
	if (!begins)
		return 0;
	for (size_t i = 0; i < jitdump_count(dump); i++) {
		const struct jitdump_code *code = jitdump_code(dump, i), *found;
		const char *file = "";
		uint32_t line;

		if (strlen(code->name) > JITDUMP_NAME_MAX ||
		    (i && jitdump_code(dump, i - 1)->time > code->time))
			abort();
		touch(code->code);
		touch(code->unwind.eh_frame);
		touch(code->unwind.eh_frame_hdr);
		if (jitdump_line(dump, code, code->addr + code->size / 2, &file, &line) &&
		    strlen(file) >= JITDUMP_NAME_MAX)
			abort();
		found = jitdump_find(dump, code->addr, code->time);
		if (found && (found->time > code->time || found->addr > code->addr ||
			      found->addr + found->size <= code->addr))
			abort();
	}
	jitdump_free(dump);
	return 0;
}
