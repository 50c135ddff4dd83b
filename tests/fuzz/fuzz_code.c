#include "perfmap/code.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_instructions(const struct py_code *code)
{
	struct py_bytecode bytecode;
	struct py_instruction instruction;
	enum py_names_list list;
	uint32_t numbers[2];

	if (!py_bytecode_init(&bytecode, code->minor, code->bytecode, code->bytecode_len))
		return;
	while (py_bytecode_next(&bytecode, &instruction))
		py_instruction_names(code->minor, &instruction, &list, numbers);
}

/* First byte: a raw record (0, or 1 in the other byte order) a section, or, from 3 on,
 * a blob of the section of code and then that of bytecode. What was taken must
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
	else if (data[0] == 2)
		py_codes_decode(codes, input, NULL);
	else {
		py_codes_decode(codes, bytes_blob(&input), NULL);
		py_codes_decode_bytecode(codes, input, NULL);
	}
	for (size_t i = 0; i < py_codes_count(codes); i++) {
		for (uint32_t offset = 0; offset < 64; offset += 2)
			py_codes_line(codes, (int)i, offset);
		read_instructions(py_codes_get(codes, (int)i));
	}
	if (py_codes_encode(codes, NULL, &section) ||
	    py_codes_decode(back, bytes_of(section.buf, section.len), NULL) ||
	    py_codes_count(back) != py_codes_count(codes))
		abort();
	strbuf_reset(&section);
	if (py_codes_encode_bytecode(codes, NULL, &section) ||
	    py_codes_decode_bytecode(back, bytes_of(section.buf, section.len), NULL))
		abort();
	strbuf_fini(&section);
	py_codes_free(codes);
	py_codes_free(back);
	intern_fini(&strings);
	intern_fini(&strings_back);
	return 0;
}
