#include "perfmap/code.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* First byte: a raw record (0, or 1 in the other byte order) or a section. What was taken must
 * survive being written and read again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct intern strings, strings_back;
	struct py_codes *codes, *back;
	struct strbuf section = {0};
	struct bytes input;

	if (!size)
		return 0;
	intern_init(&strings);
	intern_init(&strings_back);
	codes = py_codes_new(&strings);
	back = py_codes_new(&strings_back);
	if (!codes || !back)
		abort();
	input = bytes_of(data + 1, size - 1);
	input.swap = data[0] == 1;
	if (data[0] < 2)
		py_codes_add_raw(codes, input, NULL);
	else
		py_codes_decode(codes, input, NULL);
	for (size_t i = 0; i < py_codes_count(codes); i++)
		for (uint32_t offset = 0; offset < 64; offset += 2)
			py_codes_line(codes, (int)i, offset);
	if (py_codes_encode(codes, NULL, &section) ||
	    py_codes_decode(back, bytes_of(section.buf, section.len), NULL) ||
	    py_codes_count(back) != py_codes_count(codes))
		abort();
	strbuf_fini(&section);
	py_codes_free(codes);
	py_codes_free(back);
	intern_fini(&strings);
	intern_fini(&strings_back);
	return 0;
}
