#ifndef PYPERF_CODE_H
#define PYPERF_CODE_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/strbuf.h"
#include "perfmap/layout.h"
#include "perfmap/opcode.h"
#include "process/memory.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The code objects of a recording: names and line tables, taken while they lived, found again by
 * (lineage, address, fingerprint). Used by the recorder, which fills it from raw records and from
 * processes and stores it in the file, and by the reader, which fills it from the file.
 */
struct py_codes;

struct py_code {
	uint32_t name, qualname, filename; /* ids in the table's strings; qualname is the name where
					      CPython has none (<= 3.10) */
	uint32_t firstlineno;
	uint8_t minor;
	uint8_t missing; /* PY_CODE_MISSING_*: what never could be read whole; of a string that was
			    cut there is its beginning */
	const uint8_t *table;
	uint32_t table_len;
	/* co_code as it lay in memory, rewritten by the interpreter (opcode.h); NULL where it is
	 * not known */
	const uint8_t *bytecode;
	uint32_t bytecode_len;
	/* What its instructions have numbers of: strings, 0 where one is not known. */
	struct py_names {
		const uint32_t *ids;
		uint32_t count;
	} names[PY_NAMES];
};

/* `strings` is borrowed and must outlive the table. */
struct py_codes *py_codes_new(struct intern *strings);
void py_codes_free(struct py_codes *codes);

/* What is known of a code object; strings are UTF-8, and everything is copied. */
struct py_code_parts {
	uint32_t lineage, fingerprint;
	uint64_t code;
	uint32_t firstlineno;
	uint8_t minor, missing;
	struct bytes name, qualname, filename, table;
	struct bytes bytecode; /* empty: not known */
};

/* One that is there already gains what it was missing. Returns its index, or ERR_NOMEM. */
int py_codes_put(struct py_codes *codes, const struct py_code_parts *parts, struct err *err);

/* Takes a PY_RAW_CODE payload. 0, or ERR_CORRUPT for one that breaks its own lengths (left out). */
int py_codes_add_raw(struct py_codes *codes, struct bytes raw, struct err *err);

/* Reads a code object from a process; refuses (ERR_NOT_FOUND) when the fingerprint of what is
 * there now differs: the object was freed. */
int py_codes_read(struct py_codes *codes, const struct memory *memory,
		  const struct py_layout *layout, uint32_t lineage, uint64_t code,
		  uint32_t fingerprint, struct err *err);

/* Reads the names that its bytecode has numbers of, for one that is known; ERR_NOT_FOUND likewise.
 */
int py_codes_read_names(struct py_codes *codes, const struct memory *memory,
			const struct py_layout *layout, int index, struct err *err);

/* Index of a code object, or -1. Indices are dense from 0 and never change. */
int py_codes_find(const struct py_codes *codes, uint32_t lineage, uint64_t code,
		  uint32_t fingerprint);
/* Valid until py_codes_free(); NULL for an index that is none. */
const struct py_code *py_codes_get(const struct py_codes *codes, int index);
size_t py_codes_count(const struct py_codes *codes);

/* Line of the instruction at a byte offset (PY_INSTR_MASK of a raw frame); 0 where the table says
 * that it has none or is missing. Fast: tables are expanded at first use. */
uint32_t py_codes_line(struct py_codes *codes, int index, uint32_t offset);

/*
 * The private section: all code objects, or only those of `only` (one byte per index, non-zero
 * keeps; NULL keeps all). Little-endian, unaligned; a blob is a u32 length and that many bytes:
 *
 *      u32 version = 1
 *      u32 strings, then so many blobs of UTF-8; string 0 is the empty one and is not among them
 *      u32 codes, then for each:
 *              u32 lineage, u64 address, u32 fingerprint, u32 firstlineno
 *              u8 minor, u8 missing, u16 zero
 *              u32 name, u32 qualname, u32 filename      numbers of strings
 *              blob line table, as CPython of that minor version has it
 */
int py_codes_encode(const struct py_codes *codes, const uint8_t *only, struct strbuf *out);
int py_codes_decode(struct py_codes *codes, struct bytes section, struct err *err);

/*
 * The section of bytecode, of all code objects that have any or names for it. `only` (may be NULL)
 * says which code objects are in the section above: the bytecode of others is in the stream.
 *
 *      u32 version = 1
 *      up to the end, for each code object:
 *              u32 lineage, u64 address, u32 fingerprint
 *              blob co_code; empty where a record in the stream has it
 *              three times, for each of enum py_names_list: u32 count, so many blobs of UTF-8
 */
int py_codes_encode_bytecode(const struct py_codes *codes, const uint8_t *only, struct strbuf *out);
int py_codes_decode_bytecode(struct py_codes *codes, struct bytes section, struct err *err);

/* Appends a string object as UTF-8; -1 where it cannot be read. */
int py_text_read(const struct memory *memory, const struct py_layout *layout, uint64_t object,
		 struct strbuf *text);

#endif
