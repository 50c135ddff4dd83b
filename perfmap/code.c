#include "perfmap/code.h"

#include "base/text.h"
#include "perfmap/code_table.h"
#include "perfmap/frames.h"

#include <stdlib.h>
#include <string.h>

/*
 * Entries lie in an arena and never move; `entries` gives them their index. `by_key` maps the mixed
 * key to the newest entry that has it, and entries of one mixed key are chained, since mixing is
 * not injective.
 *
 * A line table is expanded at the first question about it and kept as sorted ranges. Samples
 * cluster, so the range that answered last is tried first: most look-ups are two comparisons.
 */

#define SECTION_VERSION 1
#define NO_ENTRY UINT32_MAX

struct py_codes *py_codes_new(struct intern *strings)
{
	struct py_codes *codes = calloc(1, sizeof(*codes));

	if (codes) {
		codes->strings = strings;
		arena_init(&codes->arena);
	}
	return codes;
}

void py_codes_free(struct py_codes *codes)
{
	if (!codes)
		return;
	for (size_t i = 0; i < codes->entries.len; i++)
		vec_fini(&codes->entries.items[i]->ranges);
	vec_fini(&codes->entries);
	map_fini(&codes->by_key);
	arena_fini(&codes->arena);
	free(codes);
}

static uint64_t key_of(uint32_t lineage, uint64_t code, uint32_t fingerprint)
{
	return map_mix(code, (uint64_t)lineage << 32 | fingerprint);
}

int py_codes_find(const struct py_codes *codes, uint32_t lineage, uint64_t code,
		  uint32_t fingerprint)
{
	const uint64_t *place = map_get(&codes->by_key, key_of(lineage, code, fingerprint));

	for (uint32_t i = place ? (uint32_t)*place : NO_ENTRY; i != NO_ENTRY;) {
		const struct entry *entry = codes->entries.items[i];

		if (entry->addr == code && entry->lineage == lineage &&
		    entry->fingerprint == fingerprint)
			return (int)i;
		i = entry->next;
	}
	return -1;
}

const struct py_code *py_codes_get(const struct py_codes *codes, int index)
{
	if (index < 0 || (size_t)index >= codes->entries.len)
		return NULL;
	return &codes->entries.items[index]->code;
}

size_t py_codes_count(const struct py_codes *codes)
{
	return codes->entries.len;
}

#define MISSING_ALL                                                                   \
	(PY_CODE_MISSING_NAME | PY_CODE_MISSING_QUALNAME | PY_CODE_MISSING_FILENAME | \
	 PY_CODE_MISSING_TABLE)

/* A new entry with everything missing; its index. */
static int add(struct py_codes *codes, const struct py_code_parts *parts)
{
	struct entry *entry = arena_alloc(&codes->arena, sizeof(*entry));
	struct entry **slot;
	uint64_t *place;
	bool added;

	if (!entry || codes->entries.len >= INT32_MAX)
		return -1;
	place = map_put(&codes->by_key, key_of(parts->lineage, parts->code, parts->fingerprint),
			&added);
	if (!place)
		return -1;
	if (added)
		*place = NO_ENTRY;
	slot = vec_push(&codes->entries);
	if (!slot)
		return -1;
	*slot = entry;
	*entry = (struct entry){
		.code = {.firstlineno = parts->firstlineno,
			 .minor = parts->minor,
			 .missing = MISSING_ALL},
		.addr = parts->code,
		.lineage = parts->lineage,
		.fingerprint = parts->fingerprint,
		.next = (uint32_t)*place,
	};
	*place = codes->entries.len - 1;
	return (int)*place;
}

/* Takes a string that is better than what is there: whole, or cut where there is none. */
static int gain_string(struct py_codes *codes, struct entry *entry, uint32_t *id, uint8_t bit,
		       uint8_t missing, struct bytes text)
{
	uint32_t gained;

	if (!(entry->code.missing & bit) || ((missing & bit) && (*id || !bytes_left(&text))))
		return 0;
	gained = intern_add(codes->strings, text.at, bytes_left(&text));
	if (gained == INTERN_NONE)
		return -1;
	*id = gained;
	entry->code.missing &= (uint8_t)(~bit | missing);
	return 0;
}

static uint8_t *copy_bytes(struct py_codes *codes, struct bytes bytes)
{
	uint8_t *copy = arena_alloc(&codes->arena, bytes_left(&bytes) + 1);

	if (copy && bytes_left(&bytes))
		memcpy(copy, bytes.at, bytes_left(&bytes));
	return copy;
}

static int gain_bytecode(struct py_codes *codes, struct py_code *code, struct bytes bytecode)
{
	if (code->bytecode || !bytes_left(&bytecode))
		return 0;
	code->bytecode = copy_bytes(codes, bytecode);
	code->bytecode_len = (uint32_t)bytes_left(&bytecode);
	return code->bytecode ? 0 : -1;
}

static int gain_table(struct py_codes *codes, struct entry *entry, struct bytes table)
{
	uint8_t *copy = copy_bytes(codes, table);

	if (!copy)
		return -1;
	entry->code.table = copy;
	entry->code.table_len = (uint32_t)bytes_left(&table);
	entry->code.missing &= (uint8_t)~PY_CODE_MISSING_TABLE;
	entry->expanded = false;
	return 0;
}

int py_codes_put(struct py_codes *codes, const struct py_code_parts *parts, struct err *err)
{
	int index = py_codes_find(codes, parts->lineage, parts->code, parts->fingerprint);
	struct bytes qualname = parts->qualname;
	uint8_t missing = parts->missing;
	struct entry *entry;
	struct py_code *code;

	if (index < 0)
		index = add(codes, parts);
	if (index < 0)
		return err_nomem(err);
	entry = codes->entries.items[index];
	code = &entry->code;
	if (parts->minor <= 10) { /* co_qualname came with 3.11 */
		qualname = parts->name;
		missing &= (uint8_t)~PY_CODE_MISSING_QUALNAME;
		if (missing & PY_CODE_MISSING_NAME)
			missing |= PY_CODE_MISSING_QUALNAME;
	}
	if (gain_string(codes, entry, &code->name, PY_CODE_MISSING_NAME, missing, parts->name) ||
	    gain_string(codes, entry, &code->qualname, PY_CODE_MISSING_QUALNAME, missing,
			qualname) ||
	    gain_string(codes, entry, &code->filename, PY_CODE_MISSING_FILENAME, missing,
			parts->filename))
		return err_nomem(err);
	if ((code->missing & ~missing & PY_CODE_MISSING_TABLE) &&
	    gain_table(codes, entry, parts->table))
		return err_nomem(err);
	if (gain_bytecode(codes, code, parts->bytecode))
		return err_nomem(err);
	return index;
}

struct raw_string {
	unsigned int kind;
	uint32_t len;
	uint8_t bit;
	struct bytes *part;
	size_t end; /* in the text buffer */
};

static struct raw_string raw_string_head(struct bytes *raw, uint8_t bit, struct bytes *part)
{
	struct raw_string string = {.kind = bytes_u8(raw), .bit = bit, .part = part};

	bytes_take(raw, 3);
	string.len = bytes_u32(raw);
	return string;
}

static bool kind_is_known(unsigned int kind)
{
	return kind == 1 || kind == 2 || kind == 4;
}

/* Appends a string as UTF-8, whatever the byte order it came in. */
static void append_units(struct strbuf *text, struct bytes units, unsigned int kind)
{
	while (bytes_left(&units) >= kind) {
		uint32_t wide;
		uint16_t half;

		if (kind == 4) {
			wide = bytes_u32(&units);
			text_from_pyunicode(text, 4, &wide, 1);
		} else if (kind == 2) {
			half = bytes_u16(&units);
			text_from_pyunicode(text, 2, &half, 1);
		} else {
			text_from_pyunicode(text, 1, units.at, bytes_left(&units));
			return;
		}
	}
}

static bool raw_string_body(struct bytes *raw, struct raw_string *string, uint8_t *missing,
			    struct strbuf *text)
{
	uint64_t size = (uint64_t)string->len * string->kind;

	if (string->len && !kind_is_known(string->kind))
		return false;
	if (size >= PY_STRING_BYTES_MAX) { /* it may have been cut */
		size = PY_STRING_BYTES_MAX;
		*missing |= string->bit;
	}
	append_units(text, bytes_sub(raw, (size_t)size), string->kind);
	bytes_take(raw, (size_t)(-size & 7));
	string->end = text->len;
	return !raw->bad;
}

int py_codes_add_raw(struct py_codes *codes, struct bytes raw, struct err *err)
{
	struct py_code_parts parts = {0};
	struct strbuf text = {0};
	struct raw_string strings[3];
	uint32_t magic = bytes_u32(&raw), table_len, bytecode_len;
	size_t start = 0;
	int ret = 0;

	parts.lineage = bytes_u32(&raw);
	parts.code = bytes_u64(&raw);
	parts.fingerprint = bytes_u32(&raw);
	parts.firstlineno = bytes_u32(&raw);
	parts.minor = bytes_u8(&raw);
	parts.missing = bytes_u8(&raw) & MISSING_ALL;
	bytes_take(&raw, sizeof(uint16_t) + sizeof(uint32_t)); /* reserved, pid */
	strings[0] = raw_string_head(&raw, PY_CODE_MISSING_NAME, &parts.name);
	strings[1] = raw_string_head(&raw, PY_CODE_MISSING_QUALNAME, &parts.qualname);
	strings[2] = raw_string_head(&raw, PY_CODE_MISSING_FILENAME, &parts.filename);
	table_len = bytes_u32(&raw);
	bytecode_len = bytes_u32(&raw);
	if (raw.bad || magic != PY_RAW_CODE)
		return err_set(err, ERR_CORRUPT, "a code object's record is no such record");
	for (int i = 0; i < 3; i++) {
		if (!raw_string_body(&raw, &strings[i], &parts.missing, &text)) {
			ret = err_set(err, ERR_CORRUPT, "a code object's record ends in a string");
			goto out;
		}
	}
	parts.table = bytes_sub(&raw, parts.missing & PY_CODE_MISSING_TABLE ? 0 : table_len);
	if (raw.bad) {
		ret = err_set(err, ERR_CORRUPT, "a code object's record ends in its line table");
		goto out;
	}
	if (bytecode_len) {
		bytes_take(&raw, -bytes_left(&parts.table) & 7);
		parts.bytecode = bytes_sub(&raw, bytecode_len);
	}
	if (raw.bad) {
		ret = err_set(err, ERR_CORRUPT, "a code object's record ends in its bytecode");
		goto out;
	}
	if (strbuf_failed(&text)) {
		ret = err_nomem(err);
		goto out;
	}
	for (int i = 0; i < 3; i++) {
		*strings[i].part = bytes_of(strbuf_text(&text) + start, strings[i].end - start);
		start = strings[i].end;
	}
	ret = py_codes_put(codes, &parts, err);
out:
	strbuf_fini(&text);
	return ret < 0 ? ret : 0;
}

/* Asked about for the first time. What came before a fault in the table stays usable. */
static bool expand(struct entry *entry)
{
	const struct py_code *code = &entry->code;

	entry->ranges.len = 0;
	entry->recent = 0;
	if (!(code->missing & PY_CODE_MISSING_TABLE) &&
	    linetable_expand(code->minor, code->table, code->table_len, code->firstlineno,
			     UINT32_MAX, &entry->ranges, NULL) == ERR_NOMEM)
		return false;
	entry->expanded = true;
	return true;
}

uint32_t py_codes_line(struct py_codes *codes, int index, uint32_t offset)
{
	const struct line_range *range;
	struct entry *entry;

	if (index < 0 || (size_t)index >= codes->entries.len)
		return 0;
	entry = codes->entries.items[index];
	if (!entry->expanded && !expand(entry))
		return 0;
	if (!entry->ranges.len)
		return 0;
	range = &entry->ranges.items[entry->recent];
	if (offset >= range->start && offset < range->end)
		return range->line;
	range = linetable_at(&entry->ranges, offset);
	if (!range)
		return 0;
	entry->recent = (uint32_t)(range - entry->ranges.items);
	return range->line;
}

/* Numbers of strings in the section, in the order of their first use. */
struct numbering {
	struct map of_id;
	struct strbuf blobs;
	uint32_t count;
};

static uint32_t number_of(struct numbering *numbering, const struct intern *strings, uint32_t id)
{
	uint64_t *number;
	bool added;

	if (!id)
		return 0;
	number = map_put(&numbering->of_id, id, &added);
	if (!number) {
		numbering->blobs.failed = 1;
		return 0;
	}
	if (added) {
		size_t len;
		const char *text = intern_text(strings, id, &len);

		strbuf_blob(&numbering->blobs, text, len);
		*number = ++numbering->count;
	}
	return (uint32_t)*number;
}

int py_codes_encode(const struct py_codes *codes, const uint8_t *only, struct strbuf *out)
{
	struct numbering numbering = {0};
	struct strbuf body = {0};
	uint32_t count = 0;
	int ret;

	for (size_t i = 0; i < codes->entries.len; i++) {
		const struct entry *entry = codes->entries.items[i];
		const struct py_code *code = &entry->code;

		if (only && !only[i])
			continue;
		count++;
		strbuf_u32(&body, entry->lineage);
		strbuf_u64(&body, entry->addr);
		strbuf_u32(&body, entry->fingerprint);
		strbuf_u32(&body, code->firstlineno);
		strbuf_u8(&body, code->minor);
		strbuf_u8(&body, code->missing);
		strbuf_u16(&body, 0);
		strbuf_u32(&body, number_of(&numbering, codes->strings, code->name));
		strbuf_u32(&body, number_of(&numbering, codes->strings, code->qualname));
		strbuf_u32(&body, number_of(&numbering, codes->strings, code->filename));
		strbuf_blob(&body, code->table, code->table_len);
	}
	strbuf_u32(out, SECTION_VERSION);
	strbuf_u32(out, numbering.count);
	strbuf_add(out, strbuf_text(&numbering.blobs), numbering.blobs.len);
	strbuf_u32(out, count);
	strbuf_add(out, strbuf_text(&body), body.len);
	ret = strbuf_failed(&numbering.blobs) || strbuf_failed(&body) || strbuf_failed(out)
		      ? ERR_NOMEM
		      : 0;
	map_fini(&numbering.of_id);
	strbuf_fini(&numbering.blobs);
	strbuf_fini(&body);
	return ret;
}

struct blobs {
	VEC_OF(struct bytes)
};

static int decode_strings(struct bytes *section, struct blobs *blobs, struct err *err)
{
	uint32_t count = bytes_u32(section);

	for (uint32_t i = 0; i < count && !section->bad; i++) {
		struct bytes *blob = vec_push(blobs);

		if (!blob)
			return err_nomem(err);
		*blob = bytes_blob(section);
	}
	if (section->bad)
		return err_set(err, ERR_CORRUPT, "the recorded code objects end in their strings");
	return 0;
}

static bool string_of(struct bytes *section, const struct blobs *blobs, struct bytes *text)
{
	uint32_t number = bytes_u32(section);

	*text = number && number <= blobs->len ? blobs->items[number - 1] : bytes_of("", 0);
	return number <= blobs->len;
}

static int decode_code(struct py_codes *codes, struct bytes *section, const struct blobs *blobs,
		       struct err *err)
{
	struct py_code_parts parts = {0};
	bool known;
	int ret;

	parts.lineage = bytes_u32(section);
	parts.code = bytes_u64(section);
	parts.fingerprint = bytes_u32(section);
	parts.firstlineno = bytes_u32(section);
	parts.minor = bytes_u8(section);
	parts.missing = bytes_u8(section) & MISSING_ALL;
	bytes_u16(section);
	known = string_of(section, blobs, &parts.name);
	known &= string_of(section, blobs, &parts.qualname);
	known &= string_of(section, blobs, &parts.filename);
	parts.table = bytes_blob(section);
	if (section->bad || !known)
		return err_set(err, ERR_CORRUPT,
			       section->bad ? "the recorded code objects are cut short"
					    : "a recorded code object has no name");
	ret = py_codes_put(codes, &parts, err);
	return ret < 0 ? ret : 0;
}

int py_codes_decode(struct py_codes *codes, struct bytes section, struct err *err)
{
	uint32_t version = bytes_u32(&section);
	struct blobs blobs = {0};
	uint32_t count;
	int ret;

	if (section.bad)
		return err_set(err, ERR_CORRUPT, "the recorded code objects are cut short");
	if (version != SECTION_VERSION)
		return err_set(err, ERR_UNSUPPORTED, "the recorded code objects are of version %u",
			       version);
	ret = decode_strings(&section, &blobs, err);
	count = bytes_u32(&section);
	if (!ret && section.bad)
		ret = err_set(err, ERR_CORRUPT, "the recorded code objects are cut short");
	for (uint32_t i = 0; !ret && i < count; i++)
		ret = decode_code(codes, &section, &blobs, err);
	vec_fini(&blobs);
	return ret;
}
