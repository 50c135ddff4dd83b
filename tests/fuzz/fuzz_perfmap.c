#include "perfmap/perfmap.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes section = bytes_of(data, size), text;
	struct perfmap_entry entry;
	struct perfmap *map;
	uint64_t addr = 0;
	uint32_t pid;

	while (perfmap_section_next(&section, &pid, &text))
		;
	if (perfmap_parse(&map, (const char *)data, size, NULL))
		abort();
	for (size_t i = 0; i < size; i++) {
		addr = addr << 4 | (data[i] & 15);
		if (!perfmap_find(map, addr, &entry))
			continue;
		if (addr < entry.start || addr - entry.start >= entry.size || !*entry.name)
			abort();
		if (entry.python && entry.qualname_len + entry.filename_len > strlen(entry.name))
			abort();
	}
	perfmap_free(map);
	return 0;
}
