#include "symbol/elf.h"
#include "symbol/saved.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The section, then look-ups of whatever addresses its words make. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t id[20] = {1, 2, 3};
	const struct saved_object *object;
	struct saved *saved;

	saved_decode(&saved, bytes_of(data, size), NULL);
	object = saved_find(saved, "/a", NULL, 0);
	if (!object)
		object = saved_find(saved, "", id, sizeof(id));
	for (size_t i = 0; object && i + sizeof(uint64_t) <= size; i++) {
		struct elf_inlined calls[ELF_INLINED_MAX];
		struct saved_function function;
		uint64_t word, vaddr;

		memcpy(&word, data + i, sizeof(word));
		saved_vaddr(object, word, &vaddr);
		if (saved_at(object, word, &function) &&
		    (word - function.vaddr >= function.size || strlen(function.name) > size))
			abort();
		for (size_t n = saved_inlined(object, word, calls, ELF_INLINED_MAX); n-- > 0;)
			if (!*calls[n].name || strlen(calls[n].name) > size)
				abort();
	}
	saved_free(saved);
	return 0;
}
