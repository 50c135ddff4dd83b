/* Symbols of hostile files: their plain form ends, and what was there before it stays. */
#include "symbol/demangle.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct strbuf out = {0};
	char *name = malloc(len + 1);
	bool plain;

	if (!name)
		return 0;
	memcpy(name, data, len);
	name[len] = '\0';
	strbuf_str(&out, "before");
	plain = demangle(name, &out);
	if (memcmp(out.buf, "before", 6) != 0 || (!plain && out.len != 6) || out.buf[out.len])
		__builtin_trap();
	strbuf_fini(&out);
	free(name);
	return 0;
}
