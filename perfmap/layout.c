#include "perfmap/layout.h"

#include "perfmap/walk_limits.h"

#include <string.h>

/*
 * The layouts of CPython versions.
 *
 * Up to 3.12 a row holds every offset, measured on real builds. From 3.13 on the interpreter
 * describes itself: `struct _Py_DebugOffsets` (Include/internal/pycore_debug_offsets.h) lies at the
 * start of _PyRuntime, a sequence of 8-byte words after its cookie. Its own layout changes with
 * each minor version, so a row says where its groups start. The one thing that it leaves out is
 * the TSD key, so every row has that.
 */

struct version_row {
	uint8_t minor;
	uint16_t tss_key, current;     /* in _PyRuntime: autoTSSkey._key, gilstate.tstate_current */
	const struct py_layout *fixed; /* NULL: by the debug offsets, whose groups follow */
	uint16_t thread_state, frame, code, bytes, unicode;
	uint8_t frame_tagged;
	uint8_t has_tlbc; /* free-threaded builds have copies of the bytecode */
};

/* Include/cpython/unicodeobject.h, bytesobject.h; 3.12 took wstr out of strings. */
#define OBJECTS_BEFORE_3_12                                                          \
	.identity_strings = 1, .unicode_length = 16, .unicode_state = 32,            \
	.unicode_ascii_data = 48, .unicode_kind_bit = 2, .unicode_compact_data = 72, \
	.bytes_size = 16, .bytes_data = 32

/* Which words tell code objects apart: what Include/cpython/code.h has of the source (counts,
 * constants, names, first line, code, tables); 3.12+ co_version. What the interpreter writes while
 * it runs is left out. */
static const struct py_layout layout_3_6 = {
	.key_bare = 1,
	.tstate_frame = 24,
	.tstate_thread_id = 152,
	.frame_objects = 1,
	.frame_size = 128,
	.frame_previous = 24,
	.frame_code = 32,
	.frame_instr = 120,
	.code_size = 120,
	.code_firstlineno = 36,
	.code_filename = 96,
	.code_name = 104,
	.code_linetable = 112,
	.code_identity = {2, 3, 4, 5, 6, 7, 8, 12, 13, 14},
	OBJECTS_BEFORE_3_12,
};

static const struct py_layout layout_3_7 = {
	.tstate_frame = 24,
	.tstate_thread_id = 176,
	.frame_objects = 1,
	.frame_size = 112,
	.frame_previous = 24,
	.frame_code = 32,
	.frame_instr = 104,
	.code_size = 120,
	.code_firstlineno = 36,
	.code_filename = 96,
	.code_name = 104,
	.code_linetable = 112,
	.code_identity = {2, 3, 4, 5, 6, 7, 8, 12, 13, 14},
	OBJECTS_BEFORE_3_12,
};

static const struct py_layout layout_3_8 = {
	.tstate_frame = 24,
	.tstate_thread_id = 176,
	.frame_objects = 1,
	.frame_size = 112,
	.frame_previous = 24,
	.frame_code = 32,
	.frame_instr = 104,
	.code_size = 128,
	.code_firstlineno = 40,
	.code_filename = 104,
	.code_name = 112,
	.code_linetable = 120,
	.code_identity = {2, 4, 5, 6, 7, 8, 9, 13, 14, 15},
	OBJECTS_BEFORE_3_12,
};

static const struct py_layout layout_3_10 = {
	.tstate_frame = 24,
	.tstate_thread_id = 176,
	.frame_objects = 1,
	.lasti_shift = 1,
	.frame_size = 104,
	.frame_previous = 24,
	.frame_code = 32,
	.frame_instr = 96,
	.code_size = 128,
	.code_firstlineno = 40,
	.code_filename = 104,
	.code_name = 112,
	.code_linetable = 120,
	.code_identity = {2, 4, 5, 6, 7, 8, 9, 13, 14, 15},
	OBJECTS_BEFORE_3_12,
};

static const struct py_layout layout_3_11 = {
	.tstate_frame = 56,
	.has_cframe = 1,
	.cframe_frame = 8,
	.tstate_thread_id = 152,
	.frame_size = 72,
	.frame_code = 32,
	.frame_previous = 48,
	.frame_instr = 56,
	.frame_is_entry = 68,
	.frame_owner = 69,
	.code_size = 144,
	.code_units = 16,
	.code_firstlineno = 72,
	.code_filename = 112,
	.code_name = 120,
	.code_qualname = 128,
	.code_linetable = 136,
	.code_bytes = 184,
	.code_identity = {2, 3, 4, 9, 11, 12, 14, 15, 16, 17},
	OBJECTS_BEFORE_3_12,
};

static const struct py_layout layout_3_12 = {
	.owner_shim = 3,
	.tstate_frame = 56,
	.has_cframe = 1,
	.cframe_frame = 0,
	.frame_size = 72,
	.frame_code = 0,
	.frame_previous = 8,
	.frame_instr = 56,
	.frame_owner = 70,
	.code_size = 144,
	.code_units = 16,
	.code_firstlineno = 68,
	.code_filename = 112,
	.code_name = 120,
	.code_qualname = 128,
	.code_linetable = 136,
	.code_bytes = 192,
	.code_identity = {2, 3, 4, 8, 11, 12, 14, 15, 16, 17},
	.unicode_length = 16,
	.unicode_state = 32,
	.unicode_ascii_data = 40,
	.unicode_compact_data = 56,
	.unicode_kind_bit = 2,
	.bytes_size = 16,
	.bytes_data = 32,
};

static const struct version_row rows[] = {
	{.minor = 6, .fixed = &layout_3_6},
	{.minor = 7, .tss_key = 1508, .current = 1480, .fixed = &layout_3_7},
	{.minor = 8, .tss_key = 1396, .current = 1368, .fixed = &layout_3_8},
	{.minor = 9, .tss_key = 588, .current = 568, .fixed = &layout_3_8},
	{.minor = 10, .tss_key = 588, .current = 568, .fixed = &layout_3_10},
	{.minor = 11, .tss_key = 596, .current = 576, .fixed = &layout_3_11},
	{.minor = 12, .tss_key = 1548, .fixed = &layout_3_12},
	{.minor = 13,
	 .tss_key = 2164,
	 .thread_state = 152,
	 .frame = 224,
	 .code = 272,
	 .bytes = 512,
	 .unicode = 536},
	{.minor = 14,
	 .tss_key = 2340,
	 .thread_state = 176,
	 .frame = 248,
	 .code = 312,
	 .bytes = 592,
	 .unicode = 616,
	 .frame_tagged = 1,
	 .has_tlbc = 1},
};

struct py_version py_version_of_hex(uint64_t hex)
{
	return (struct py_version){
		.major = (int)(hex >> 24 & 0xff),
		.minor = (int)(hex >> 16 & 0xff),
		.micro = (int)(hex >> 8 & 0xff),
	};
}

/* One group of the debug offsets; the first word of each is the structure's size. */
struct group {
	const unsigned char *at;
	bool bad;
};

static uint16_t group_word(struct group *group, unsigned int index)
{
	uint64_t word;

	memcpy(&word, group->at + 8 * index, sizeof(word));
	if (word >= UINT16_MAX)
		group->bad = true;
	return (uint16_t)word;
}

static uint16_t round_up(unsigned int end)
{
	return (uint16_t)((end + 7) & ~7u);
}

static int layout_of_offsets(const struct version_row *row, const unsigned char *at, size_t len,
			     bool free_threaded, struct py_layout *layout, struct err *err)
{
	struct group thread, frame, code, bytes, unicode;

	if (len < row->unicode + 4 * sizeof(uint64_t) || memcmp(at, "xdebugpy", 8) != 0)
		return err_set(err, ERR_CORRUPT, "CPython 3.%d without its debug offsets",
			       row->minor);
	thread = (struct group){.at = at + row->thread_state};
	frame = (struct group){.at = at + row->frame};
	code = (struct group){.at = at + row->code};
	bytes = (struct group){.at = at + row->bytes};
	unicode = (struct group){.at = at + row->unicode};
	*layout = (struct py_layout){
		.major = 3,
		.minor = row->minor,
		.free_threaded = free_threaded,
		.owner_shim = 3,
		.frame_tagged = row->frame_tagged,
		.tstate_frame = group_word(&thread, 4),
		.tstate_thread_id = group_word(&thread, 5),
		.frame_previous = group_word(&frame, 1),
		.frame_code = group_word(&frame, 2),
		.frame_instr = group_word(&frame, 3),
		.frame_owner = group_word(&frame, 5),
		.code_filename = group_word(&code, 1),
		.code_name = group_word(&code, 2),
		.code_qualname = group_word(&code, 3),
		.code_linetable = group_word(&code, 4),
		.code_firstlineno = group_word(&code, 5),
		.code_bytes = group_word(&code, 9),
		.bytes_size = group_word(&bytes, 1),
		.bytes_data = group_word(&bytes, 2),
		.unicode_state = group_word(&unicode, 1),
		.unicode_length = group_word(&unicode, 2),
		.unicode_ascii_data = group_word(&unicode, 3),
		/* One bit field with the rest, but a byte where threads share it without a lock. */
		.unicode_kind_bit = free_threaded && row->minor >= 14 ? 8 : 2,
	};
	if (free_threaded && row->has_tlbc) {
		layout->frame_tlbc = group_word(&frame, 7);
		layout->code_tlbc = group_word(&code, 10);
	}
	/* Both are PyVarObjects, whose header differs between kinds of builds. */
	layout->code_units = layout->bytes_size;
	/* PyCompactUnicodeObject adds utf8_length and utf8. */
	layout->unicode_compact_data = layout->unicode_ascii_data + 16;
	layout->frame_size = round_up(layout->frame_owner + 1u);
	if (layout->frame_size < layout->frame_instr + 8)
		layout->frame_size = round_up(layout->frame_instr + 8u);
	layout->code_size = round_up(layout->code_linetable + 8u);
	const uint8_t identity[PY_IDENTITY_WORDS] = {
		(uint8_t)(layout->code_units / 8),
		(uint8_t)(layout->code_units / 8 + 1), /* co_consts */
		(uint8_t)(layout->code_units / 8 + 2), /* co_names */
		(uint8_t)(layout->code_firstlineno / 8),
		(uint8_t)((layout->code_firstlineno + 20) / 8), /* co_nfreevars, co_version */
		(uint8_t)(group_word(&code, 7) / 8),
		(uint8_t)(layout->code_filename / 8),
		(uint8_t)(layout->code_name / 8),
		(uint8_t)(layout->code_qualname / 8),
		(uint8_t)(layout->code_linetable / 8),
	};
	memcpy(layout->code_identity, identity, sizeof(identity));
	if (thread.bad || frame.bad || code.bad || bytes.bad || unicode.bad)
		return err_set(err, ERR_CORRUPT, "debug offsets of CPython 3.%d that cannot be",
			       row->minor);
	return py_layout_check(layout, err);
}

int py_layout_check(const struct py_layout *layout, struct err *err)
{
	const struct {
		const char *what;
		uint32_t offset, width, limit;
	} fields[] = {
		{"frame size", layout->frame_size, 0, 8 * WALK_FRAME_WORDS},
		{"code size", layout->code_size, 0, 8 * WALK_CODE_WORDS},
		{"frame's code", layout->frame_code, 8, layout->frame_size},
		{"frame's previous", layout->frame_previous, 8, layout->frame_size},
		{"frame's instruction", layout->frame_instr, 8, layout->frame_size},
		{"frame's owner", layout->frame_owner, 1, layout->frame_size},
		{"frame's bytecode index", layout->frame_tlbc, 4, layout->frame_size},
		{"frame's is_entry", layout->frame_is_entry, 1, layout->frame_size},
		{"ob_size", layout->code_units, 8, layout->code_size},
		{"co_name", layout->code_name, 8, layout->code_size},
		{"co_qualname", layout->code_qualname, 8, layout->code_size},
		{"co_filename", layout->code_filename, 8, layout->code_size},
		{"co_firstlineno", layout->code_firstlineno, 4, layout->code_size},
		{"co_linetable", layout->code_linetable, 8, layout->code_size},
		{"co_code", layout->code_bytes, 2, 4096},
		{"co_tlbc", layout->code_tlbc, 8, 4096},
		{"current_frame", layout->tstate_frame, 8, 4096},
		{"cframe's current_frame", layout->cframe_frame, 8, 4096},
		{"string's length", layout->unicode_length, 8, WALK_STRING_HEADER},
		{"string's state", layout->unicode_state, 4, WALK_STRING_HEADER},
		{"string's ASCII data", layout->unicode_ascii_data, 1, 256},
		{"string's data", layout->unicode_compact_data, 4, 256},
		{"bytes' size", layout->bytes_size, 8, WALK_STRING_HEADER},
		{"bytes' data", layout->bytes_data, 1, 256},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].offset + fields[i].width > fields[i].limit ||
		    (fields[i].width && fields[i].offset % fields[i].width))
			return err_set(
				err, ERR_CORRUPT, "layout of CPython %d.%d: the %s cannot be at %u",
				layout->major, layout->minor, fields[i].what, fields[i].offset);
	if (layout->frame_size % 8 || layout->code_size % 8 || layout->lasti_shift > 1 ||
	    layout->unicode_kind_bit > 16)
		return err_set(err, ERR_CORRUPT,
			       "layout of CPython %d.%d: sizes of %u and %u bytes", layout->major,
			       layout->minor, layout->frame_size, layout->code_size);
	for (size_t i = 0; i < PY_IDENTITY_WORDS; i++)
		if (8u * layout->code_identity[i] + 8 > layout->code_size)
			return err_set(err, ERR_CORRUPT,
				       "layout of CPython %d.%d: word %d is beyond the code header",
				       layout->major, layout->minor, layout->code_identity[i]);
	return 0;
}

int py_layout_find(struct py_version *version, const void *offsets, size_t len,
		   struct py_layout *layout, struct err *err)
{
	const struct version_row *row = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (version->major == 3 && version->minor == rows[i].minor)
			row = &rows[i];
	if (!row)
		return err_set(err, ERR_UNSUPPORTED, "Python lines of CPython %d.%d are not known",
			       version->major, version->minor);
	version->tss_key = row->tss_key;
	version->current = row->current;
	if (row->fixed) {
		*layout = *row->fixed;
		layout->major = 3;
		layout->minor = row->minor;
		return py_layout_check(layout, err);
	}
	if (len >= 24) {
		uint64_t free_threaded;

		memcpy(&free_threaded, (const unsigned char *)offsets + 16, sizeof(free_threaded));
		version->free_threaded = free_threaded != 0;
	}
	return layout_of_offsets(row, offsets, len, version->free_threaded, layout, err);
}
