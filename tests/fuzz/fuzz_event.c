#include "event/internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The grammar of -e. The machine has no sysfs and no tracefs, so that a run depends on the input
 * alone; what they hold is tested with made-up folders. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct event_system bare = {.devices = "/dev/null", .tracing = "/dev/null"};
	struct event_list list = {0};
	char *text = malloc(size + 1), name[64];
	struct err err = {0};

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (event_parse_on(&bare, &list, text, &err) < 0 && (list.len || !err.text[0]))
		abort();
	for (size_t i = 0; i < list.len; i++) {
		const struct event_spec *spec = &list.items[i];
		char *fresh = event_name_refresh(spec);

		event_attr_name(&spec->attr, name, sizeof(name));
		/* A group's first event leads it, and no other does. */
		if (spec->leader !=
		    (spec->group < 0 || i == 0 || list.items[i - 1].group != spec->group))
			abort();
		free(fresh);
	}
	event_list_fini(&list);
	free(text);
	return 0;
}
