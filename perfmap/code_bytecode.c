#include "perfmap/code_table.h"

#include <string.h>

/* The section of bytecode, and the names that it has numbers of. */

#define SECTION_VERSION 1

int py_codes_set_names(struct py_codes *codes, int index, const struct name_ids lists[PY_NAMES])
{
	struct py_code *code = &codes->entries.items[index]->code;

	for (int i = 0; i < PY_NAMES; i++) {
		uint32_t *copy = arena_alloc(&codes->arena, lists[i].len * sizeof(*copy) + 1);

		if (!copy)
			return -1;
		if (lists[i].len)
			memcpy(copy, lists[i].items, lists[i].len * sizeof(*copy));
		code->names[i] = (struct py_names){copy, (uint32_t)lists[i].len};
	}
	return 0;
}

static void encode_names(const struct py_codes *codes, const struct py_names *names,
			 struct strbuf *out)
{
	strbuf_u32(out, names->count);
	for (uint32_t i = 0; i < names->count; i++) {
		size_t len;
		const char *text = intern_text(codes->strings, names->ids[i], &len);

		strbuf_blob(out, text, len);
	}
}

int py_codes_encode_bytecode(const struct py_codes *codes, const uint8_t *only, struct strbuf *out)
{
	bool begun = false;

	for (size_t i = 0; i < codes->entries.len; i++) {
		const struct entry *entry = codes->entries.items[i];
		const struct py_code *code = &entry->code;
		bool bytecode = code->bytecode && (!only || only[i]);

		if (!bytecode && !code->names[0].ids)
			continue;
		if (!begun)
			strbuf_u32(out, SECTION_VERSION);
		begun = true;
		strbuf_u32(out, entry->lineage);
		strbuf_u64(out, entry->addr);
		strbuf_u32(out, entry->fingerprint);
		strbuf_blob(out, code->bytecode, bytecode ? code->bytecode_len : 0);
		for (int list = 0; list < PY_NAMES; list++)
			encode_names(codes, &code->names[list], out);
	}
	return strbuf_failed(out) ? ERR_NOMEM : 0;
}

static int decode_names(struct py_codes *codes, struct bytes *section, struct name_ids *ids)
{
	uint32_t count = bytes_u32(section);

	ids->len = 0;
	for (uint32_t i = 0; i < count && !section->bad; i++) {
		struct bytes text = bytes_blob(section);
		uint32_t *id = vec_push(ids);

		if (!id)
			return -1;
		*id = intern_add(codes->strings, text.at, bytes_left(&text));
		if (*id == INTERN_NONE)
			return -1;
	}
	return 0;
}

/* What no sample names is left out. */
static int decode_one(struct py_codes *codes, struct bytes *section,
		      struct name_ids lists[PY_NAMES], struct err *err)
{
	struct py_code_parts parts = {.missing = UINT8_MAX};
	int index;

	parts.lineage = bytes_u32(section);
	parts.code = bytes_u64(section);
	parts.fingerprint = bytes_u32(section);
	parts.bytecode = bytes_blob(section);
	for (int i = 0; i < PY_NAMES; i++)
		if (decode_names(codes, section, &lists[i]))
			return err_nomem(err);
	if (section->bad)
		return err_set(err, ERR_CORRUPT, "the recorded bytecode is cut short");
	index = py_codes_find(codes, parts.lineage, parts.code, parts.fingerprint);
	if (index < 0)
		return 0;
	parts.minor = codes->entries.items[index]->code.minor;
	index = py_codes_put(codes, &parts, err);
	if (index < 0)
		return index;
	return py_codes_set_names(codes, index, lists) ? err_nomem(err) : 0;
}

int py_codes_decode_bytecode(struct py_codes *codes, struct bytes section, struct err *err)
{
	uint32_t version = bytes_left(&section) ? bytes_u32(&section) : SECTION_VERSION;
	struct name_ids lists[PY_NAMES] = {0};
	int ret = 0;

	if (section.bad)
		return err_set(err, ERR_CORRUPT, "the recorded bytecode is cut short");
	if (version != SECTION_VERSION)
		return err_set(err, ERR_UNSUPPORTED, "the recorded bytecode is of version %u",
			       version);
	while (!ret && bytes_left(&section))
		ret = decode_one(codes, &section, lists, err);
	for (int i = 0; i < PY_NAMES; i++)
		vec_fini(&lists[i]);
	return ret;
}
