#include "base/text.h"
#include "perfmap/code_table.h"
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
#define BYTECODE_UNITS_MAX (1u << 20)
#define NAMES_MAX (1u << 16)

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

/* The beginning of an object, read at once: most strings lie in it whole. */
struct object_head {
	uint64_t addr;
	size_t len;
	uint8_t bytes[160];
};

static void read_head(const struct memory *memory, uint64_t addr, struct object_head *head)
{
	head->addr = addr;
	head->len = memory_read(memory, addr, head->bytes, sizeof(head->bytes))
			    ? 0
			    : sizeof(head->bytes);
}

static int read_part(const struct memory *memory, const struct object_head *head, uint64_t addr,
		     void *part, size_t len)
{
	uint64_t at = addr - head->addr;

	if (at >= head->len || len > head->len - at)
		return memory_read(memory, addr, part, len);
	memcpy(part, head->bytes + at, len);
	return 0;
}

int py_text_read(const struct memory *memory, const struct py_layout *layout, uint64_t object,
		 struct strbuf *text)
{
	struct object_head head;
	struct unicode unicode;
	uint64_t length, data;
	uint32_t state;
	void *units;
	int ret = -1;

	read_head(memory, object, &head);
	if (read_part(memory, &head, object + layout->unicode_length, &length, sizeof(length)) ||
	    read_part(memory, &head, object + layout->unicode_state, &state, sizeof(state)) ||
	    !unicode_state(state >> layout->unicode_kind_bit, &unicode) ||
	    length > STRING_UNITS_MAX)
		return -1;
	data = object + (unicode.ascii ? layout->unicode_ascii_data : layout->unicode_compact_data);
	/* PyUnicodeObject is PyCompactUnicodeObject and then the pointer to the characters. */
	if (!unicode.compact && read_word(memory, object + layout->unicode_compact_data, &data))
		return -1;
	units = malloc(length * unicode.kind + 1);
	if (units && !read_part(memory, &head, data, units, length * unicode.kind)) {
		text_from_pyunicode(text, unicode.kind, units, length);
		ret = 0;
	}
	free(units);
	return ret;
}

/* Appends the string that the pointer at `field` points to. */
static int read_string(const struct memory *memory, const struct py_layout *layout, uint64_t field,
		       struct strbuf *text)
{
	uint64_t object;

	return read_word(memory, field, &object) ? -1 : py_text_read(memory, layout, object, text);
}

static int read_bytes_object(const struct memory *memory, const struct py_layout *layout,
			     uint64_t field, struct strbuf *table)
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

/* Up to 3.10 a bytes object, from 3.11 on the end of the code object itself. */
static int read_bytecode(const struct memory *memory, const struct py_layout *layout, uint64_t code,
			 struct strbuf *bytecode)
{
	uint64_t units;
	void *place;

	if (!layout->code_units)
		return read_bytes_object(memory, layout, code + layout->code_object, bytecode);
	if (read_word(memory, code + layout->code_units, &units) || units > BYTECODE_UNITS_MAX)
		return -1;
	place = strbuf_extend(bytecode, 2 * units);
	return place ? memory_read(memory, code + layout->code_bytes, place, 2 * units) : -1;
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
	struct strbuf table = {0}, bytecode = {0};
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
	if (read_bytes_object(memory, layout, code + layout->code_linetable, &table) < 0)
		parts.missing |= PY_CODE_MISSING_TABLE;
	else
		parts.table = bytes_of(strbuf_text(&table), table.len);
	if (read_bytecode(memory, layout, code, &bytecode) == 0)
		parts.bytecode = bytes_of(strbuf_text(&bytecode), bytecode.len);
	if (!py_code_is(layout, memory, code, fingerprint))
		ret = err_set(err, ERR_NOT_FOUND, "the code object went away while it was read");
	else
		ret = py_codes_put(codes, &parts, err);
	for (int i = 0; i < 3; i++)
		strbuf_fini(&strings[i].text);
	strbuf_fini(&table);
	strbuf_fini(&bytecode);
	return ret < 0 ? ret : 0;
}

/* Appends the strings of the tuple that the pointer at `field` points to; "" for what is none. */
static int read_tuple(struct py_codes *codes, const struct memory *memory,
		      const struct py_layout *layout, uint64_t field, struct name_ids *ids)
{
	uint64_t tuple, count, *items;
	struct strbuf text = {0};
	int ret = 0;

	if (read_word(memory, field, &tuple) ||
	    read_word(memory, tuple + layout->bytes_size, &count) || count > NAMES_MAX)
		return 0;
	items = malloc(count * sizeof(*items) + 1);
	if (!items)
		return -1;
	if (memory_read(memory, tuple + layout->tuple_items, items, count * sizeof(*items)))
		count = 0;
	for (uint64_t i = 0; i < count && !ret; i++) {
		uint32_t *id = vec_push(ids);

		strbuf_reset(&text);
		if (py_text_read(memory, layout, items[i], &text) < 0)
			strbuf_reset(&text);
		if (!id ||
		    (*id = intern_add(codes->strings, strbuf_text(&text), text.len)) == INTERN_NONE)
			ret = -1;
	}
	strbuf_fini(&text);
	free(items);
	return ret;
}

int py_codes_read_names(struct py_codes *codes, const struct memory *memory,
			const struct py_layout *layout, int index, struct err *err)
{
	const struct {
		uint16_t field; /* 0: this version has none */
		enum py_names_list list;
	} tuples[] = {
		{layout->code_names, PY_NAMES_ANY},
		{layout->code_locals, PY_NAMES_LOCALS},
		{layout->code_cells, PY_NAMES_FREE},
		{layout->code_frees, PY_NAMES_FREE},
	};
	const struct entry *entry = codes->entries.items[index];
	struct name_ids lists[PY_NAMES] = {0};
	int ret = 0;

	if (entry->code.names[0].ids || !layout->tuple_items)
		return 0;
	if (!py_code_is(layout, memory, entry->addr, entry->fingerprint))
		return err_set(err, ERR_NOT_FOUND, "the code object is not there any more");
	for (size_t i = 0; i < sizeof(tuples) / sizeof(tuples[0]) && !ret; i++)
		if (tuples[i].field)
			ret = read_tuple(codes, memory, layout, entry->addr + tuples[i].field,
					 &lists[tuples[i].list]);
	if (!ret && !py_code_is(layout, memory, entry->addr, entry->fingerprint))
		ret = err_set(err, ERR_NOT_FOUND, "the code object went away while it was read");
	else if (ret || py_codes_set_names(codes, index, lists))
		ret = err_nomem(err);
	for (int i = 0; i < PY_NAMES; i++)
		vec_fini(&lists[i]);
	return ret;
}
