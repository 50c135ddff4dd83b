#include "base/text.h"
#include "perfmap/code.h"
#include "perfmap/frames.h"
#include "perfmap/walk.h"

#include <stdlib.h>
#include <string.h>

/*
 * Reading a code object from the process that has it. The process runs meanwhile, so the object
 * may go away at any time: its fingerprint is taken before and after, and only when both are the
 * expected one does what lies between count. What could not be read is marked as missing.
 */

#define STRING_UNITS_MAX (1u << 16) /* no name or path is longer than this */
#define TABLE_BYTES_MAX (16u << 20)

static int read_word(const struct memory *memory, uint64_t addr, uint64_t *word)
{
	return memory_read(memory, addr, word, sizeof(*word));
}

struct unicode {
	unsigned int kind;
	bool compact, ascii;
};

/* PyASCIIObject.state: interned, then kind:3, compact:1, ascii:1. */
static bool unicode_state(uint32_t state, struct unicode *unicode)
{
	unicode->kind = state & 7;
	unicode->compact = state >> 3 & 1;
	unicode->ascii = state >> 4 & 1;
	return (unicode->kind == 1 || unicode->kind == 2 || unicode->kind == 4) &&
	       (!unicode->ascii || unicode->kind == 1);
}

/* Appends the string that the pointer at `field` points to. */
static int read_string(const struct memory *memory, const struct py_layout *layout, uint64_t field,
		       struct strbuf *text)
{
	struct unicode unicode;
	uint64_t object, length, data;
	uint32_t state;
	void *units;
	int ret = -1;

	if (read_word(memory, field, &object) ||
	    read_word(memory, object + layout->unicode_length, &length) ||
	    memory_read(memory, object + layout->unicode_state, &state, sizeof(state)) ||
	    !unicode_state(state >> layout->unicode_kind_bit, &unicode) ||
	    length > STRING_UNITS_MAX)
		return -1;
	data = object + (unicode.ascii ? layout->unicode_ascii_data : layout->unicode_compact_data);
	/* PyUnicodeObject is PyCompactUnicodeObject and then the pointer to the characters. */
	if (!unicode.compact && read_word(memory, object + layout->unicode_compact_data, &data))
		return -1;
	units = malloc(length * unicode.kind + 1);
	if (units && !memory_read(memory, data, units, length * unicode.kind)) {
		text_from_pyunicode(text, unicode.kind, units, length);
		ret = 0;
	}
	free(units);
	return ret;
}

static int read_table(const struct memory *memory, const struct py_layout *layout, uint64_t field,
		      struct strbuf *table)
{
	uint64_t object, size;
	void *place;

	if (read_word(memory, field, &object) ||
	    read_word(memory, object + layout->bytes_size, &size) || size > TABLE_BYTES_MAX)
		return -1;
	if (!size)
		return 0;
	place = strbuf_extend(table, size);
	return place ? memory_read(memory, object + layout->bytes_data, place, size) : -1;
}

int py_codes_read(struct py_codes *codes, const struct memory *memory,
		  const struct py_layout *layout, uint32_t lineage, uint64_t code,
		  uint32_t fingerprint, struct err *err)
{
	struct py_code_parts parts = {
		.lineage = lineage,
		.fingerprint = fingerprint,
		.code = code,
		.minor = layout->minor,
	};
	struct {
		uint16_t field;
		uint8_t bit;
		struct bytes *part;
		struct strbuf text;
	} strings[] = {
		{layout->code_name, PY_CODE_MISSING_NAME, &parts.name, {0}},
		{layout->code_qualname, PY_CODE_MISSING_QUALNAME, &parts.qualname, {0}},
		{layout->code_filename, PY_CODE_MISSING_FILENAME, &parts.filename, {0}},
	};
	struct strbuf table = {0};
	int ret;

	if (!py_code_is(layout, memory, code, fingerprint))
		return err_set(err, ERR_NOT_FOUND, "the code object is not there any more");
	if (memory_read(memory, code + layout->code_firstlineno, &parts.firstlineno,
			sizeof(parts.firstlineno)))
		parts.firstlineno = 0;
	for (int i = 0; i < 3; i++) {
		/* No code object starts with a name: a field at 0 is one that this version lacks.
		 */
		if (!strings[i].field ||
		    read_string(memory, layout, code + strings[i].field, &strings[i].text) < 0)
			parts.missing |= strings[i].bit;
		else
			*strings[i].part = bytes_of(strbuf_text(&strings[i].text),
						    strings[i].text.len);
	}
	if (read_table(memory, layout, code + layout->code_linetable, &table) < 0)
		parts.missing |= PY_CODE_MISSING_TABLE;
	else
		parts.table = bytes_of(strbuf_text(&table), table.len);
	if (!py_code_is(layout, memory, code, fingerprint))
		ret = err_set(err, ERR_NOT_FOUND, "the code object went away while it was read");
	else
		ret = py_codes_put(codes, &parts, err);
	for (int i = 0; i < 3; i++)
		strbuf_fini(&strings[i].text);
	strbuf_fini(&table);
	return ret < 0 ? ret : 0;
}
