#include "perfmap/layout.h"

#include "perfmap/walk_limits.h"

#include <string.h>

/*
 * The layouts of CPython versions. Up to 3.12 a row holds every offset, measured on real builds.
 * From 3.13 on the interpreter describes itself (offsets.c), in versions that are not out yet too;
 * the one thing that it leaves out is the TSD key, which has a row where it is known.
 */

struct version_row {
	uint8_t minor;
	uint16_t tss_key, current; /* in _PyRuntime: autoTSSkey._key, gilstate.tstate_current */
	/* interpreters.head in _PyRuntime, threads.head in PyInterpreterState */
	uint16_t interpreters, interp_threads;
	const struct py_layout *fixed; /* NULL: by the debug offsets */
};

#define DEBUG_OFFSETS_SINCE 13

/* Include/cpython/unicodeobject.h, bytesobject.h; 3.12 took wstr out of strings. */
#define OBJECTS_BEFORE_3_12                                                          \
	.identity_strings = 1, .unicode_length = 16, .unicode_state = 32,            \
	.unicode_ascii_data = 48, .unicode_kind_bit = 2, .unicode_compact_data = 72, \
	.bytes_size = 16, .bytes_data = 32, .tuple_items = 24

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
	.code_object = 40,
	.code_names = 56,
	.code_locals = 64,
	.code_frees = 72,
	.code_cells = 80,
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
	.code_object = 40,
	.code_names = 56,
	.code_locals = 64,
	.code_frees = 72,
	.code_cells = 80,
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
	.code_object = 48,
	.code_names = 64,
	.code_locals = 72,
	.code_frees = 80,
	.code_cells = 88,
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
	.code_object = 48,
	.code_names = 64,
	.code_locals = 72,
	.code_frees = 80,
	.code_cells = 88,
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
	.code_names = 32,
	.code_locals = 96,
	.code_bytes = 184,
	.code_identity = {2, 3, 4, 9, 11, 12, 14, 15, 16, 17},
	OBJECTS_BEFORE_3_12,
};

static const struct py_layout layout_3_12 = {
	.owner_shim = 3,
	.tstate_frame = 56,
	.has_cframe = 1,
	.cframe_frame = 0,
	.tstate_thread_id = 136,
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
	.code_names = 32,
	.code_locals = 96,
	.code_bytes = 192,
	.code_identity = {2, 3, 4, 8, 11, 12, 14, 15, 16, 17},
	.unicode_length = 16,
	.unicode_state = 32,
	.unicode_ascii_data = 40,
	.unicode_compact_data = 56,
	.unicode_kind_bit = 2,
	.bytes_size = 16,
	.bytes_data = 32,
	.tuple_items = 24,
};

/* clang-format off */
static const struct version_row rows[] = {
	{ 6,    0,    0,  0,  8, &layout_3_6},
	{ 7, 1508, 1480, 24,  8, &layout_3_7},
	{ 8, 1396, 1368, 32,  8, &layout_3_8},
	{ 9,  588,  568, 32,  8, &layout_3_8},
	{10,  588,  568, 32,  8, &layout_3_10},
	{11,  596,  576, 40, 16, &layout_3_11},
	{12, 1548,    0, 40, 72, &layout_3_12},
	{13, 2164,    0,  0,  0, NULL},
	{14, 2340,    0,  0,  0, NULL},
};
/* clang-format on */

struct py_version py_version_of_hex(uint64_t hex)
{
	return (struct py_version){
		.major = (int)(hex >> 24 & 0xff),
		.minor = (int)(hex >> 16 & 0xff),
		.micro = (int)(hex >> 8 & 0xff),
	};
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
		{"co_code_adaptive", layout->code_bytes, 2, 4096},
		{"co_code", layout->code_object, 8, layout->code_size},
		{"co_names", layout->code_names, 8, layout->code_size},
		{"co_varnames", layout->code_locals, 8, layout->code_size},
		{"co_cellvars", layout->code_cells, 8, layout->code_size},
		{"co_freevars", layout->code_frees, 8, layout->code_size},
		{"co_tlbc", layout->code_tlbc, 8, 4096},
		{"current_frame", layout->tstate_frame, 8, 4096},
		{"cframe's current_frame", layout->cframe_frame, 8, 4096},
		{"string's length", layout->unicode_length, 8, WALK_STRING_HEADER},
		{"string's state", layout->unicode_state, 4, WALK_STRING_HEADER},
		{"string's ASCII data", layout->unicode_ascii_data, 1, 256},
		{"string's data", layout->unicode_compact_data, 4, 256},
		{"bytes' size", layout->bytes_size, 8, WALK_STRING_HEADER},
		{"bytes' data", layout->bytes_data, 1, 256},
		{"tuple's items", layout->tuple_items, 8, 256},
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
	int ret;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (version->major == 3 && version->minor == rows[i].minor)
			row = &rows[i];
	if (!row && (version->major < 3 || version->minor < DEBUG_OFFSETS_SINCE))
		return err_set(err, ERR_UNSUPPORTED, "Python lines of CPython %d.%d are not known",
			       version->major, version->minor);
	version->tss_key = row ? row->tss_key : 0;
	version->current = row ? row->current : 0;
	if (row && row->fixed) {
		version->interpreters = row->interpreters;
		version->interp_next = 0;
		version->interp_threads = row->interp_threads;
		*layout = *row->fixed;
	} else {
		ret = py_layout_of_offsets(version, offsets, len, layout, err);
		if (ret < 0)
			return ret;
	}
	layout->major = (uint8_t)version->major;
	layout->minor = (uint8_t)version->minor;
	return py_layout_check(layout, err);
}
