#include "perfmap/linetable.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* First byte: the minor version; second: the first line; the rest is the table. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_ranges ranges = {0};
	uint32_t code_len = size & 1 ? UINT32_MAX : 4096;

	if (size < 2)
		return 0;
	linetable_expand(6 + data[0] % 9, data + 2, size - 2, data[1], code_len, &ranges, NULL);
	for (size_t i = 0; i < ranges.len; i++) {
		const struct line_range *range = &ranges.items[i];

		if (range->start >= range->end || (i && ranges.items[i - 1].end > range->start) ||
		    linetable_find(&ranges, range->start) != range->line ||
		    linetable_find(&ranges, range->end - 1) != range->line)
			abort();
	}
	vec_fini(&ranges);
	return 0;
}
